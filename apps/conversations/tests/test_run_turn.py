"""Claims, fences, the ledger, settling, delivering, sweeping: without a pipeline."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.conversations import ledger, services, tasks
from apps.conversations.models import Event, LedgerEntry, Message, OutboundMessage, TurnRecord
from apps.conversations.tests.conftest import Say
from apps.releases.selectors import release_load
from apps.runtime.outcomes import Answered
from apps.runtime.ports import LeaseLost, LedgerCall, LedgerResult
from apps.runtime.turn import BusinessContext, Turn
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction

pytestmark = pytest.mark.django_db
CALL = LedgerCall(kind="tool", name="get_bill", ordinal=0, contract="c" * 64, arguments="{}")


def take(tenant: Tenant, turn_id: uuid.UUID) -> services.Taken:
    taken = services.turn_take(tenant_id=tenant.pk, turn_id=turn_id, worker="w1")
    assert taken is not None
    return taken


def walked(taken: services.Taken, text: str = "Olá!") -> Turn:
    return Turn(
        id=str(taken.turn_id),
        tenant=str(taken.tenant_id),
        release=release_load(taken.tenant_id, taken.release_id),
        inbound=taken.inbound,
        session=taken.session,
        fence=taken.fence,
        text=taken.inbound.text,
        business_context=BusinessContext(values={"contract_key": "C1"}),
        outcome=Answered(text),
        next_state="",
    )


def expire(taken: services.Taken) -> None:
    with tenant_transaction(taken.tenant_id):
        TurnRecord.objects.filter(pk=taken.turn_id).update(
            lease_until=timezone.now() - timedelta(seconds=1)
        )


def sweep(tenant: Tenant) -> services.Swept:
    return services.tenant_sweep(tenant_id=tenant.pk, idle_seconds=0)


def test_claim__names_any_turn__gets_the_first_queued_one(say: Say, deployed: Tenant):
    first, second = say("1", message_id="m1"), say("2", message_id="m2")
    assert take(deployed, second.turn_id).turn_id == first.turn_id


def test_claim__while_the_session_runs__gets_nothing(say: Say, deployed: Tenant):
    first, second = say("1", message_id="m1"), say("2", message_id="m2")
    take(deployed, first.turn_id)
    assert services.turn_take(tenant_id=deployed.pk, turn_id=second.turn_id, worker="w2") is None


def test_settle_and_deliver__once__write_messages_state_and_events(say: Say, deployed: Tenant):
    taken = take(deployed, say("oi").turn_id)
    services.turn_settle(turn=walked(taken, "Olá " * 80), tenant_id=deployed.pk)
    assert services.turn_deliver(tenant_id=deployed.pk, turn_id=taken.turn_id) is False
    with tenant_transaction():
        turn = TurnRecord.objects.select_related("session").get()
        lines = list(Message.objects.values_list("role", "text"))
        events = list(Event.objects.order_by("sequence").values_list("event_type", flat=True))
        sent = OutboundMessage.objects.get().sent_at
    assert (turn.status, turn.outcome, turn.inbound) == ("settled", "answered", "")
    assert turn.session.business_context == '{"contract_key":"C1"}'
    assert lines == [("user", "oi"), ("assistant", "Olá " * 80)]
    assert events == [
        "flow.start", "session.upserted", "message.received", "workflow.started",
        "workflow.completed", "message.delta", "message.delta", "message.responded", "flow.end",
    ]  # fmt: skip
    assert sent is not None


def test_deliver__twice__adds_nothing(say: Say, deployed: Tenant):
    taken = take(deployed, say("oi").turn_id)
    services.turn_settle(turn=walked(taken), tenant_id=deployed.pk)
    services.turn_deliver(tenant_id=deployed.pk, turn_id=taken.turn_id)
    with tenant_transaction():
        before = Event.objects.count()
    assert services.turn_deliver(tenant_id=deployed.pk, turn_id=taken.turn_id) is False
    with tenant_transaction():
        assert Event.objects.count() == before


def test_deliver__with_more_queued__says_so(say: Say, deployed: Tenant):
    taken = take(deployed, say("1", message_id="m1").turn_id)
    say("2", message_id="m2")
    services.turn_settle(turn=walked(taken), tenant_id=deployed.pk)
    assert services.turn_deliver(tenant_id=deployed.pk, turn_id=taken.turn_id) is True


def test_deliver__earlier_reply_still_here__leaves_before_it(say: Say, deployed: Tenant):
    for number in ("1", "2"):
        taken = take(deployed, say(number, message_id=f"m{number}").turn_id)
        services.turn_settle(turn=walked(taken, number), tenant_id=deployed.pk)
    services.turn_deliver(tenant_id=deployed.pk, turn_id=taken.turn_id)
    with tenant_transaction():
        said = Event.objects.filter(event_type="message.responded").order_by("sequence")
        assert [turn.answer for turn in (event.turn for event in said)] == ["1", "2"]
        assert not OutboundMessage.objects.filter(sent_at=None).exists()


def test_heartbeat__of_a_settled_turn__finds_it_still_its_own(say: Say, deployed: Tenant):
    taken = take(deployed, say("oi").turn_id)
    services.turn_settle(turn=walked(taken), tenant_id=deployed.pk)
    assert services.turn_extend(tenant_id=deployed.pk, turn_id=taken.turn_id, fence=taken.fence)
    with tenant_transaction():
        assert TurnRecord.objects.get().lease_until is None


def test_heartbeat__of_a_turn_back_in_the_queue__has_lost_it(say: Say, deployed: Tenant):
    taken = take(deployed, say("oi").turn_id)
    expire(taken)
    sweep(deployed)
    assert not services.turn_extend(tenant_id=deployed.pk, turn_id=taken.turn_id, fence=taken.fence)


def test_old_holder__after_its_lease_went_on__can_write_nothing(say: Say, deployed: Tenant):
    old = take(deployed, say("oi").turn_id)
    expire(old)
    assert sweep(deployed).expired == 1
    new = take(deployed, old.turn_id)
    assert new.fence == old.fence + 1
    turn_id = str(old.turn_id)
    assert not services.turn_extend(tenant_id=deployed.pk, turn_id=old.turn_id, fence=old.fence)
    with pytest.raises(LeaseLost):
        services.turn_settle(turn=walked(old), tenant_id=deployed.pk)
    with pytest.raises(LeaseLost):
        ledger.ledger_begin(tenant_id=deployed.pk, turn_id=turn_id, fence=old.fence, calls=[CALL])
    with tenant_transaction():
        assert Message.objects.count() == 0
        assert LedgerEntry.objects.count() == 0
    assert services.turn_extend(tenant_id=deployed.pk, turn_id=new.turn_id, fence=new.fence)


@pytest.mark.parametrize(
    ("call", "again"),
    [
        ({}, "restarted"),
        ({"action": True, "idempotent": True}, "restarted"),
        ({"action": True}, "unknown"),
    ],
)
def test_ledger__started_without_end__is_repeated_only_when_that_is_safe(
    say: Say, deployed: Tenant, call: dict[str, Any], again: str
):
    made = LedgerCall(**{**CALL.__dict__, **call})
    old = take(deployed, say("oi").turn_id)
    (first,) = begin(deployed, old, made)
    expire(old)
    sweep(deployed)
    (second,) = begin(deployed, take(deployed, old.turn_id), made)
    assert (first.state, second.state) == ("fresh", again)
    assert first.idempotency_key == second.idempotency_key


@pytest.mark.parametrize(
    ("first", "again"),
    [({"action": True}, "unknown"), ({"action": True, "idempotent": True}, "fresh"), ({}, "fresh")],
)
def test_ledger__attempt_that_wants_another_action_than_the_one_that_died__does_no_second_thing(
    say: Say, deployed: Tenant, first: dict[str, Any], again: str
):
    made = LedgerCall(**{**CALL.__dict__, **first})
    other = LedgerCall(**{**CALL.__dict__, "action": True, "arguments": '{"other":1}'})
    old = take(deployed, say("oi").turn_id)
    begin(deployed, old, made)
    expire(old)
    sweep(deployed)
    (second,) = begin(deployed, take(deployed, old.turn_id), other)
    assert second.state == again


def test_ledger__ended__gives_its_result_and_is_not_sent(say: Say, deployed: Tenant):
    old = take(deployed, say("oi").turn_id)
    (state,) = begin(deployed, old, CALL)
    ledger.ledger_finish(
        tenant_id=deployed.pk,
        turn_id=str(old.turn_id),
        fence=old.fence,
        results=[LedgerResult(state.idempotency_key, '{"ok":true}')],
    )
    expire(old)
    sweep(deployed)
    (again,) = begin(deployed, take(deployed, old.turn_id), CALL)
    assert (again.state, again.result) == ("done", '{"ok":true}')


def test_ledger__two_equal_calls_at_once__are_sent_once(say: Say, deployed: Tenant):
    taken = take(deployed, say("oi").turn_id)
    first, second = begin(deployed, taken, CALL, CALL)
    assert first.state == "fresh"
    assert second.state != "fresh"
    assert first.idempotency_key == second.idempotency_key


def test_sweep__queued_turn_nobody_heard_of__rings_again(
    say: Say, deployed: Tenant, rings: list[Any]
):
    accepted = say("oi")
    rings.clear()
    assert sweep(deployed).rung == 1
    assert rings == [(deployed.pk, accepted.turn_id)]


def test_sweep__settled_but_undelivered__delivers_once(say: Say, deployed: Tenant):
    taken = take(deployed, say("oi").turn_id)
    services.turn_settle(turn=walked(taken), tenant_id=deployed.pk)
    assert sweep(deployed).delivered == 1
    assert sweep(deployed).delivered == 0
    with tenant_transaction():
        assert Event.objects.filter(event_type="message.responded").count() == 1


def test_sweep__turn_no_worker_survives__fails_with_the_tenants_words_and_frees_the_session(
    say: Say, deployed: Tenant, rings: list[Any], settings: Any
):
    settings.TURN_MAX_ATTEMPTS = 2
    first = say("1", message_id="m1")
    second = say("2", message_id="m2")
    for _ in range(2):
        taken = take(deployed, first.turn_id)
        expire(taken)
        swept = sweep(deployed)
    assert swept.failed == 1
    with tenant_transaction():
        turn = TurnRecord.objects.get(pk=first.turn_id)
    assert (turn.status, turn.outcome, turn.answer) == ("settled", "failed", "Broken.")
    assert take(deployed, second.turn_id).turn_id == second.turn_id


def test_sweep__session_with_several_queued__rings_once_for_the_next(
    say: Say, deployed: Tenant, rings: list[Any]
):
    first = say("1", message_id="m1")
    for number in ("2", "3"):
        say(number, message_id=f"m{number}")
    rings.clear()
    assert sweep(deployed).rung == 1
    assert rings == [(deployed.pk, first.turn_id)]


def test_sweep__of_the_only_process__takes_back_what_a_former_one_held(
    say: Say, deployed: Tenant, rings: list[Any]
):
    taken = take(deployed, say("oi").turn_id)
    rings.clear()
    assert sweep(deployed).expired == 0
    swept = services.tenant_sweep(tenant_id=deployed.pk, idle_seconds=0, alone=True)
    assert (swept.expired, rings) == (1, [(deployed.pk, taken.turn_id)])
    assert take(deployed, taken.turn_id).fence == taken.fence + 1


def test_sweep__breaks_in_one_tenant__sweeps_the_next(
    world: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    swept = []

    def one(*, tenant_id: int, **_options: Any) -> None:
        swept.append(tenant_id)
        if tenant_id == world.acme.pk:
            raise RuntimeError

    monkeypatch.setattr(services, "tenant_sweep", one)
    tasks.sweep_all()
    assert swept == [world.acme.pk, world.other.pk]
    assert f"the sweep of tenant {world.acme.pk} failed" in caplog.text


def begin(tenant: Tenant, taken: services.Taken, *calls: LedgerCall) -> list[Any]:
    return ledger.ledger_begin(
        tenant_id=tenant.pk, turn_id=str(taken.turn_id), fence=taken.fence, calls=calls
    )
