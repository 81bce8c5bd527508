"""Time travel: whatever was so at a moment is told as it was, exactly."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.releases.change_models import DeploymentEvent, HeadMove
from apps.releases.environments.services import binding_set, release_deploy
from apps.releases.evidence.history import (
    NoMoment,
    configuration_at,
    environment_at,
    environment_events,
    item_at,
    item_spans,
    moment_parse,
    release_environments_at,
    release_newest_at,
)
from apps.releases.freezing import manifest_of_heads
from apps.releases.models import ConfigItem, Release, Revision
from apps.releases.patches.comparing import manifest_items
from apps.releases.selectors import item_history
from apps.releases.services import ItemInUse, item_archive, item_restore_head, release_publish
from apps.releases.tests.conftest import item, save
from apps.tenants.scope import tenant_transaction


def content(revision: Revision | None) -> Any:
    return json.loads(revision.content) if revision else None


def number(revision: Revision | Release | None) -> int:
    return revision.number if revision else 0


# -- moments ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("2026-03-03T14:00", "America/Sao_Paulo", datetime(2026, 3, 3, 17, tzinfo=UTC)),
        ("2026-03-03 14:00", "", datetime(2026, 3, 3, 17, tzinfo=UTC)),
        ("2026-03-03T14:00:30+02:00", "America/Sao_Paulo", datetime(2026, 3, 3, 12, 0, 30, tzinfo=UTC)),
        ("2026-07-01T14:00", "Europe/Berlin", datetime(2026, 7, 1, 12, tzinfo=UTC)),
        ("2025-10-26T02:30+01:00", "Europe/Berlin", datetime(2025, 10, 26, 1, 30, tzinfo=UTC)),
    ],
)  # fmt: skip
def test_moment__of_a_place_or_with_an_offset__is_that_instant(text, zone, expected):
    assert moment_parse(text, zone) == expected


@pytest.mark.parametrize(
    ("text", "zone", "message"),
    [
        ("yesterday", "", "Give a date and a time"),
        ("", "", "Give a date and a time"),
        ("2026-02-30T10:00", "", "Give a date and a time"),
        ("2026-03-03T14:00", "Mars/Olympus", "There is no time zone"),
        ("2026-03-03T14:00", "../../etc/passwd", "There is no time zone"),
        ("2025-03-30T02:30", "Europe/Berlin", "skipped that time"),
        ("2025-10-26T02:30", "Europe/Berlin", "showed that time twice"),
        ("2999-01-01T00:00", "UTC", "lies ahead"),
        ("0001-01-01T00:00", "Asia/Tokyo", "Give a date and a time"),
        ("9999-12-31T23:59", "America/Sao_Paulo", "Give a date and a time"),
    ],
)
def test_moment__that_is_none_or_lies_ahead__is_refused_with_a_sentence(text, zone, message):
    with pytest.raises(NoMoment, match=message):
        moment_parse(text, zone)


def test_moment__of_a_window__may_lie_ahead():
    assert moment_parse("2999-01-01T00:00", "UTC", ahead=True).year == 2999


# -- items -----------------------------------------------------------------------------------------
def test_item__at_every_moment_of_its_life__is_what_it_was_then(acme):
    before = timezone.now()
    save("prompt", "p", system="one")
    first = timezone.now()
    save("prompt", "p", system="two")
    second = timezone.now()
    item_archive(item=item("prompt", "p"), actor="a")
    archived = timezone.now()
    oldest = item_history(item("prompt", "p")).last()
    assert oldest is not None
    item_restore_head(item=item("prompt", "p"), revision=oldest, actor="a")
    restored = timezone.now()

    prompt = item("prompt", "p")
    assert item_at(prompt, before).revision is None
    assert content(item_at(prompt, first).revision)["system"] == "one"
    assert content(item_at(prompt, second).revision)["system"] == "two"
    then = item_at(prompt, archived)
    assert (then.is_archived, number(then.revision)) == (True, 2)
    now = item_at(prompt, restored)
    assert (now.is_archived, number(now.revision)) == (False, 1)
    assert [move.revision_id is None for move in HeadMove.objects.order_by("pk")] == [
        False,
        False,
        True,
        False,
    ]


@pytest.mark.once  # It deletes rows, which the application's role may not.
def test_item__older_than_the_rows_of_moves__is_told_by_its_revisions(acme):
    save("prompt", "p", system="one")
    first = timezone.now()
    save("prompt", "p", system="two")
    second = timezone.now()
    forget_moves()
    prompt = item("prompt", "p")
    assert content(item_at(prompt, first).revision)["system"] == "one"
    assert content(item_at(prompt, second).revision)["system"] == "two"
    assert item_at(prompt, first - timedelta(days=1)).revision is None
    save("prompt", "p", system="three")
    assert content(item_at(prompt, second).revision)["system"] == "two"
    assert content(item_at(prompt, timezone.now()).revision)["system"] == "three"
    item_archive(item=prompt, actor="a")
    forget_moves()
    assert item_at(item("prompt", "p"), timezone.now()).is_archived
    assert configuration_at(timezone.now()) == {}
    assert set(configuration_at(second)) == {("prompt", "p")}


def forget_moves() -> None:
    """Empty the table, as it is in a tenant from before it."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM releases_headmove")


@pytest.mark.once
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    acts=st.lists(
        st.tuples(
            st.sampled_from(["save", "save", "save", "archive", "restore"]),
            st.sampled_from(["a", "b", "c"]),
            st.integers(0, 4),
        ),
        max_size=14,
    )
)
def test_configuration__at_any_moment_of_any_life__is_what_the_heads_were(world, acts):
    """Property: after every act the heads are kept by hand; later each moment still gives them."""
    with tenant_transaction(world.other):
        clear()
        kept: list[tuple[datetime, dict[tuple[str, str], Any]]] = [(timezone.now(), {})]
        for act, slug, chosen in acts:
            perform(act, slug, chosen)
            kept.append((timezone.now(), manifest_items(manifest_of_heads())))
        for moment, heads in kept:
            assert configuration_at(moment) == heads
            for found in ConfigItem.objects.all():
                then = item_at(found, moment)
                expected = heads.get((found.kind, found.slug))
                assert (None if then.is_archived else content(then.revision)) == expected
                inside = any(a <= moment < b for a, b in item_spans(found))
                assert inside == ((found.kind, found.slug) in heads)


def perform(act: str, slug: str, chosen: int) -> None:
    found = ConfigItem.objects.filter(kind="prompt", slug=slug).first()
    if act == "save":
        save("prompt", slug, system=f"text {chosen}")
    elif found and act == "archive":
        try:
            item_archive(item=found, actor="a")
        except ItemInUse:
            raise AssertionError("prompts name nobody") from None
    elif found:
        revisions = list(item_history(found))
        item_restore_head(item=found, revision=revisions[chosen % len(revisions)], actor="a")


def clear() -> None:
    """Begin the next example with nothing."""
    with connection.cursor() as cursor:
        for table in ("headmove", "reference"):
            cursor.execute(f"DELETE FROM releases_{table}")
        cursor.execute("UPDATE releases_configitem SET head_id = NULL")
        cursor.execute("UPDATE releases_revision SET base_id = NULL")
        cursor.execute("DELETE FROM releases_revision")
        cursor.execute("DELETE FROM releases_configitem")


def test_configuration__of_another_tenant__is_not_in_it(world, billing):
    moment = timezone.now()
    assert ("prompt", "billing") in configuration_at(moment)
    with tenant_transaction(world.other):
        assert configuration_at(timezone.now()) == {}


def test_configuration__of_many_items__costs_two_queries(acme):
    for place in range(30):
        save("prompt", f"p{place}", system=str(place))
        save("prompt", f"p{place}", system=f"{place} again")
    with CaptureQueriesContext(connection) as captured:
        found = configuration_at(timezone.now())
    assert (len(found), len(captured)) == (30, 2)


# -- environments and releases ---------------------------------------------------------------------
def test_environment__at_every_moment__ran_what_it_ran(billing):
    release_publish(actor="a")
    save("prompt", "billing", system="Shorter.")
    release_publish(actor="a")
    binding_set(environment="dev", what="address", name="telecom_mcp", value="http://x/", actor="a")
    first, second = Release.objects.order_by("number")
    moments = [timezone.now()]
    for release in (first, second, first):
        release_deploy(release=release, environment="dev", actor="user:otto")
        moments.append(timezone.now())
    ran = [environment_at("dev", moment) for moment in moments]
    assert [number(then.release) for then in ran] == [0, 1, 2, 1]
    assert {then.actor for then in ran[1:]} == {"user:otto"}
    assert environment_at("staging", moments[-1]).release is None
    assert [event.release.number for event in environment_events("dev")] == [1, 2, 1]
    assert [t.environment for t in release_environments_at(second, moments[2], ["dev", "staging"])] == ["dev"]  # fmt: skip
    assert release_environments_at(second, moments[3], ["dev", "staging"]) == []
    assert number(release_newest_at(moments[0])) == 2
    assert release_newest_at(first.published_at - timedelta(seconds=1)) is None


@pytest.mark.once  # It deletes rows, which the application's role may not.
def test_environment__from_before_its_events_were_kept__is_told_by_the_audit_trail(billing):
    release_publish(actor="a")
    binding_set(environment="dev", what="address", name="telecom_mcp", value="http://x/", actor="a")
    release_deploy(release=Release.objects.get(), environment="dev", actor="user:otto")
    moment = timezone.now()
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {DeploymentEvent._meta.db_table}")
    then = environment_at("dev", moment)
    assert (number(then.release), then.actor) == (1, "user:otto")
    assert environment_at("dev", moment - timedelta(days=1)).release is None
