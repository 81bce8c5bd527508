"""A message is accepted once, in one commit, under the release of that moment."""

from typing import Any

import pytest

from apps.conversations.models import Event, Session, TurnRecord
from apps.conversations.services import (
    ForeignSession,
    MessageIdReused,
    NotDeployed,
    UnknownAgent,
    turn_accept,
)
from apps.conversations.tests.conftest import Say, deploy, save
from apps.runtime.turn import Inbound
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_scope, tenant_transaction
from apps.tenants.sealing import unseal

pytestmark = pytest.mark.django_db


def stored() -> tuple[int, int, int]:
    with tenant_transaction():
        return Session.objects.count(), TurnRecord.objects.count(), Event.objects.count()


def test_message__first_of_a_session__makes_session_turn_and_three_events(
    say: Say, deployed: Tenant
):
    accepted = say("Olá")
    assert accepted.session_key == "acme:helper:s1"
    assert not accepted.duplicate
    with tenant_transaction():
        turn = TurnRecord.objects.select_related("session").get()
        events = list(Event.objects.values_list("sequence", "event_type"))
    assert (turn.number, turn.status, turn.fence) == (1, "queued", 0)
    assert turn.session.agent == "helper"
    assert events == [(1, "flow.start"), (2, "session.upserted"), (3, "message.received")]


def test_message__stored__is_not_readable_in_the_row(say: Say):
    say("Meu CPF é 111.444.777-35")
    with tenant_transaction():
        turn = TurnRecord.objects.get()
    assert "111" not in turn.inbound
    assert unseal(turn.inbound)["text"] == "Meu CPF é 111.444.777-35"


def test_message__same_id_and_body__is_the_same_turn(say: Say):
    first = say("oi")
    again = say("oi")
    assert again.turn_id == first.turn_id
    assert again.duplicate
    assert stored() == (1, 1, 3)


def test_message__same_id_with_another_body__is_refused_and_stores_nothing(say: Say):
    say("oi")
    with pytest.raises(MessageIdReused):
        say("tchau")
    assert stored() == (1, 1, 3)


@pytest.mark.parametrize(
    "other",
    [{"channel": "whatsapp"}, {"user_id": "u2"}, {"session": "s2"}, {"message_id": "m2"}],
)
def test_message__any_other_key_part__is_another_turn(say: Say, other: dict[str, Any]):
    first = say("oi")
    assert say("oi", **other).turn_id != first.turn_id


def test_messages__of_one_session__are_numbered_in_order(say: Say):
    for number in range(1, 5):
        say(f"pergunta {number}", message_id=f"m{number}")
    with tenant_transaction():
        numbers = list(TurnRecord.objects.order_by("number").values_list("number", "message_id"))
        sequences = list(Event.objects.order_by("sequence").values_list("sequence", flat=True))
    assert numbers == [(1, "m1"), (2, "m2"), (3, "m3"), (4, "m4")]
    assert sequences == list(range(1, 13))


def test_message__of_another_requested_agent__has_a_session_of_its_own(say: Say):
    assert say("oi", agent="other").session_key == "acme:other:s1"
    assert say("oi").session_key == "acme:helper:s1"


def test_message__for_an_unknown_agent__stores_nothing(say: Say):
    with pytest.raises(UnknownAgent):
        say("oi", agent="nobody")
    assert stored() == (0, 0, 0)


def test_message__where_nothing_is_deployed__is_refused(world: Any):
    with tenant_scope(world.other), pytest.raises(NotDeployed):
        turn_accept(
            inbound=Inbound(channel="web", text="oi", agent=None, message_id="m", session="s"),
            tenant_slug="other",
            environment="production",
        )


def test_token__for_another_session__opens_none(say: Say):
    with pytest.raises(ForeignSession):
        say("oi", only_session="acme:helper:s2")
    assert say("oi", only_session="acme:helper:s1").session_key == "acme:helper:s1"


def test_deploy__between_two_messages__holds_from_the_next(say: Say):
    say("oi")
    save("prompt", "main", system="You help politely.")
    release = deploy()
    say("oi de novo", message_id="m2")
    with tenant_transaction():
        turns = dict(TurnRecord.objects.values_list("number", "release_id"))
    assert turns[2] == release.pk
    assert turns[1] != release.pk


def test_deploy__that_changes_the_default_agent__moves_the_next_message_to_it(say: Say):
    assert say("oi").session_key == "acme:helper:s1"
    save("routing_policy", "default", default_agent="other")
    deploy()
    assert say("oi", message_id="m2").session_key == "acme:other:s1"


def test_message__warm__asks_no_configuration_table(say: Say, django_assert_num_queries: Any):
    say("oi")
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as queries:
        say("mais", message_id="m2")
    statements = [query["sql"] for query in queries.captured_queries]
    configuration = [
        sql
        for sql in statements
        if "releases_" in sql.split("WHERE")[0].replace("releases_deployment", "")
    ]
    assert configuration == []
    # The deployment's pointer comes with the statement that locks the session, never by itself.
    assert not any('FROM "releases_deployment"' in sql[:40] for sql in statements)
