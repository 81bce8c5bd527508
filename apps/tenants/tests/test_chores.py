"""What is due by the clock is done in every tenant, whatever breaks elsewhere."""

import logging

import pytest
from django.utils import timezone

from apps.tenants.chores import chores_run
from apps.tenants.scope import current_tenant_id, has_tenant

done: list[tuple[str, int]] = []


def chore_breaking(now):
    done.append(("breaking", current_tenant_id()))
    raise ValueError("a bad row")


def chore_working(now):
    done.append(("working", current_tenant_id()))


def chore_timed(now):
    done.append((now.isoformat(), current_tenant_id()))


@pytest.fixture(autouse=True)
def _nothing_done():
    done.clear()


def names(*functions):
    return [f"{__name__}.{function.__name__}" for function in functions]


def test_chores__one_that_breaks__keeps_no_chore_and_no_tenant_waiting(world, settings, caplog):
    settings.TENANT_CHORES = names(chore_breaking, chore_working)
    with caplog.at_level(logging.ERROR):
        chores_run()
    tenants = [world.acme.pk, world.other.pk]
    assert done == [("breaking", tenants[0]), ("breaking", tenants[1])] + [
        ("working", pk) for pk in tenants
    ]
    assert sum("chore_breaking" in record.message for record in caplog.records) == 2
    assert not has_tenant()


def test_chores__a_name_that_is_not_there__is_logged_and_the_next_one_runs(world, settings, caplog):
    settings.TENANT_CHORES = ["apps.tenants.nowhere.chore", *names(chore_working)]
    chores_run()
    assert [name for name, _pk in done] == ["working", "working"]
    assert "apps.tenants.nowhere.chore" in caplog.text


def test_chores__given_a_moment__get_that_moment(world, settings):
    settings.TENANT_CHORES = names(chore_timed)
    moment = timezone.now()
    chores_run(moment)
    assert {stamp for stamp, _pk in done} == {moment.isoformat()}


def test_chores__by_the_clock__are_in_the_beat_schedule(settings):
    assert settings.CELERY_BEAT_SCHEDULE["chores"]["task"] == "tenants.chores"
    assert settings.CELERY_BEAT_SCHEDULE["chores"]["schedule"] == settings.CHORES_SECONDS
