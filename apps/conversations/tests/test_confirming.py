"""Recorded confirmations: single use, for exactly one call, by the session that was asked."""

import uuid
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.conversations import services
from apps.conversations.confirming import confirmation_use
from apps.conversations.models import Confirmation, Session
from apps.conversations.tests.conftest import Say
from apps.conversations.tests.test_run_turn import expire, sweep, take, walked
from apps.runtime.dialogue import Ask, Dialogue, Transaction
from apps.runtime.outcomes import HandedOver, Waiting
from apps.runtime.ports import Grant, LeaseLost
from apps.runtime.turn import Turn
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction

pytestmark = pytest.mark.django_db

CONTRACT = "c" * 64
ARGUMENTS = '{"order_id":"PED-1","reason":"defeito"}'
ASKED = str(uuid.uuid5(uuid.NAMESPACE_URL, "confirmation"))
GRANT = Grant(id=ASKED, tool="trocar", contract=CONTRACT, arguments=ARGUMENTS)


def asking(turn: Turn) -> Turn:
    """Return ``turn`` as it is when it puts the question."""
    transaction = Transaction(
        id="t",
        status="AWAITING_CONFIRMATION",
        tool="trocar",
        agent="helper",
        confirmation=ASKED,
        question="Confirma?",
        ask=Ask(contract=CONTRACT, arguments=ARGUMENTS, seconds=60),
    )
    return replace(
        turn,
        dialogue=Dialogue(transaction=transaction),
        outcome=Waiting(text="Confirma?", waiting_for="confirmation"),
    )


@pytest.fixture
def asked(say: Say, deployed: Tenant) -> Turn:
    """The next turn of a session that was asked a question, as its holder has it."""
    first = take(deployed, say("quero trocar", message_id="m1").turn_id)
    services.turn_settle(turn=asking(walked(first)), tenant_id=deployed.pk)
    return walked(take(deployed, say("sim", message_id="m2").turn_id))


def use(turn: Turn, tenant: Tenant, grant: Grant = GRANT) -> Any:
    return confirmation_use(turn=turn, tenant_id=tenant.pk, grant=grant)


def test_settle__question__is_recorded_with_the_dialogue(asked: Turn, deployed: Tenant):
    with tenant_transaction(deployed):
        row = Confirmation.objects.get()
        session = Session.objects.get()
    assert (row.tool, row.contract, row.used_turn_id) == ("trocar", CONTRACT, None)
    assert 55 < (row.expires_at - row.asked_at).total_seconds() <= 61
    assert session.pending is True
    assert asked.session.dialogue.transaction is not None
    assert asked.session.dialogue.transaction.confirmation == ASKED


def test_use__exactly_what_was_asked__is_granted_once(asked: Turn, deployed: Tenant, say: Say):
    assert use(asked, deployed) == "granted"
    services.turn_settle(turn=asked, tenant_id=deployed.pk)
    later = walked(take(deployed, say("sim", message_id="m3").turn_id))

    assert use(later, deployed) == "used"


def test_use__same_turn_again__is_granted_for_the_same_call_only(asked: Turn, deployed: Tenant):
    assert use(asked, deployed) == "granted"
    assert use(asked, deployed) == "granted"
    assert use(asked, deployed, replace(GRANT, arguments="{}")) == "used"


@pytest.mark.parametrize(
    "changed",
    [
        {"tool": "devolver"},
        {"contract": "d" * 64},
        {"arguments": '{"order_id":"PED-2","reason":"defeito"}'},
        {"arguments": '{"order_id":"PED-1","reason":"defeito","more":1}'},
    ],
)
def test_use__anything_else__is_no_match(asked: Turn, deployed: Tenant, changed: dict[str, str]):
    assert use(asked, deployed, replace(GRANT, **changed)) == "mismatch"
    assert use(asked, deployed) == "granted"


def test_use__question_that_a_judge_took_back__is_absent(deployed: Tenant, say: Say):
    first = take(deployed, say("quero trocar", message_id="m1").turn_id)
    unread = replace(asking(walked(first)), outcome=HandedOver(text="Um momento.", reason="JUDGE"))
    services.turn_settle(turn=unread, tenant_id=deployed.pk)
    later = walked(take(deployed, say("sim", message_id="m2").turn_id))

    assert use(later, deployed) == "absent"


def test_use__yes_that_was_sent_before_the_question__is_no_match(deployed: Tenant, say: Say):
    first = take(deployed, say("quero trocar", message_id="m1").turn_id)
    queued = say("sim", message_id="m2")
    services.turn_settle(turn=asking(walked(first)), tenant_id=deployed.pk)

    assert use(walked(take(deployed, queued.turn_id)), deployed) == "mismatch"


@pytest.mark.parametrize("name", ["", "nonsense", "5a1f0f8e-0b4e-4f0e-9a53-0d2f6c8b1a11"])
def test_use__unknown_id__is_absent(asked: Turn, deployed: Tenant, name: str):
    assert use(asked, deployed, replace(GRANT, id=name)) == "absent"


def test_use__other_session__is_absent(asked: Turn, deployed: Tenant, say: Say):
    other = walked(take(deployed, say("sim", session="s2", message_id="x1").turn_id))

    assert use(other, deployed) == "absent"


def test_use__other_release__is_no_match(asked: Turn, deployed: Tenant):
    moved = replace(asked, release=replace(asked.release, id=str(uuid.uuid4())))

    assert use(moved, deployed) == "mismatch"


def test_use__too_late__is_expired(asked: Turn, deployed: Tenant):
    with tenant_transaction(deployed):
        Confirmation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    assert use(asked, deployed) == "expired"


def test_use__turn_was_taken_away__is_refused_and_nothing_used(asked: Turn, deployed: Tenant):
    stale = replace(asked, fence=asked.fence - 1)

    with pytest.raises(LeaseLost):
        use(stale, deployed)
    assert use(asked, deployed) == "granted"


def test_use__turn_that_asked__cannot_say_yes_to_itself(say: Say, deployed: Tenant):
    first = walked(take(deployed, say("quero trocar", message_id="m1").turn_id))
    asked = asking(first)
    services.turn_settle(turn=asked, tenant_id=deployed.pk)

    with pytest.raises(LeaseLost):
        use(asked, deployed)


def test_use__worker_died_after_it__the_next_holder_goes_on(asked: Turn, deployed: Tenant):
    assert use(asked, deployed) == "granted"
    expire(_taken(asked))
    sweep(deployed)

    again = walked(take(deployed, uuid.UUID(asked.id)))

    assert again.fence > asked.fence
    assert use(again, deployed) == "granted"
    with pytest.raises(LeaseLost):
        use(asked, deployed)


def _taken(turn: Turn) -> Any:
    class Holder:
        turn_id = uuid.UUID(turn.id)
        tenant_id = int(turn.tenant)

    return Holder


def test_settle__question_unchanged_by_the_next_turn__is_not_recorded_twice(
    asked: Turn, deployed: Tenant
):
    kept = asked.session.dialogue
    assert kept.transaction is not None
    again = kept.evolve(transaction=kept.transaction.model_copy(update={"times": 2}))

    services.turn_settle(turn=replace(asked, dialogue=again), tenant_id=deployed.pk)

    with tenant_transaction(deployed):
        assert Confirmation.objects.count() == 1
