"""Kept answers in the database: sealed, of one tenant, gone when their time is over."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.tenants.scope import tenant_scope, tenant_transaction
from apps.tools.cache_models import ToolAnswer
from apps.tools.cache_services import (
    DatabaseAnswers,
    answers_drop,
    answers_expire,
    answers_find,
    answers_keep,
)
from apps.tools.caching import Kept

pytestmark = pytest.mark.django_db
SECRET = '{"cpf":"111.444.777-35"}'


def kept(key="k1", scope="s1", text=SECRET, seconds=60) -> Kept:
    return Kept(key=key, scope=scope, tool="consultar", text=text, seconds=seconds)


def test_answer__kept__is_found_by_its_tenant_only_and_is_sealed(world):
    answers_keep(tenant_id=world.acme.pk, answers=[kept()])

    assert answers_find(tenant_id=world.acme.pk, keys=["k1", "k2"]) == {"k1": SECRET}
    assert answers_find(tenant_id=world.other.pk, keys=["k1"]) == {}
    with tenant_transaction(world.acme):
        stored = ToolAnswer.objects.get().answer
    assert "111" not in stored
    assert "cpf" not in stored


def test_answer__kept_again__the_newer_one_holds(world):
    answers_keep(tenant_id=world.acme.pk, answers=[kept(), kept(text="b"), kept(key="k2")])
    answers_keep(tenant_id=world.acme.pk, answers=[kept(text="c")])

    assert answers_find(tenant_id=world.acme.pk, keys=["k1", "k2"]) == {"k1": "c", "k2": SECRET}


def test_answer__older_than_its_time__is_not_found_and_is_cleared_away(world):
    answers_keep(tenant_id=world.acme.pk, answers=[kept(), kept(key="k2", seconds=600)])
    answers_keep(tenant_id=world.other.pk, answers=[kept()])
    later = timezone.now() + timedelta(seconds=61)
    with tenant_transaction(world.acme):
        ToolAnswer.objects.filter(key="k1").update(expires_at=timezone.now())

    assert answers_find(tenant_id=world.acme.pk, keys=["k1"]) == {}
    with tenant_scope(world.acme):
        answers_expire(later)

    with tenant_transaction(world.acme):
        assert list(ToolAnswer.objects.values_list("key", flat=True)) == ["k2"]
    with tenant_transaction(world.other):
        assert ToolAnswer.objects.count() == 1


def test_answers__of_a_scope__are_dropped_in_one_tenant(world):
    for tenant in (world.acme, world.other):
        answers_keep(tenant_id=tenant.pk, answers=[kept(), kept(key="k2", scope="s2")])

    answers_drop(tenant_id=world.acme.pk, scopes=["s1"])

    assert answers_find(tenant_id=world.acme.pk, keys=["k1", "k2"]) == {"k2": SECRET}
    assert len(answers_find(tenant_id=world.other.pk, keys=["k1", "k2"])) == 2


def test_answer__sealed_with_another_key__is_not_there(world, settings):
    answers_keep(tenant_id=world.acme.pk, answers=[kept()])
    settings.SECRET_KEY = "another-secret-key-of-the-installation-0123456789"
    settings.SECRET_KEY_FALLBACKS = []

    assert answers_find(tenant_id=world.acme.pk, keys=["k1"]) == {}


def test_find__more_keys__asks_the_database_no_more_often(world):
    answers_keep(tenant_id=world.acme.pk, answers=[kept(key=f"k{n}") for n in range(20)])
    asked = []

    for wanted in (1, 20):
        with CaptureQueriesContext(connection) as queries:
            found = answers_find(tenant_id=world.acme.pk, keys=[f"k{n}" for n in range(wanted)])
        assert len(found) == wanted
        asked.append(len(queries))

    assert asked[0] == asked[1]


@pytest.mark.django_db(transaction=True)
async def test_adapter__keeps_finds_and_drops__from_the_turns_loop(world):
    answers = DatabaseAnswers()

    await answers.keep(world.acme.pk, [kept()])
    found = await answers.find(world.acme.pk, ["k1"])
    await answers.drop(world.acme.pk, ["s1"])

    assert found == {"k1": SECRET}
    assert await answers.find(world.acme.pk, ["k1"]) == {}
