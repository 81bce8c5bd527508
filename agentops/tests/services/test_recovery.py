"""A worker that stops for a while, ends politely, or dies between a reply and its delivery."""

import signal
import time

import httpx2
import pytest

from agentops.tests.services.conftest import QUICK
from agentops.tests.services.deployment import Web
from agentops.tests.services.processes import until
from agentops.tests.services.tenant import ONCE, READS, Shop, message, shop_make
from apps.conversations.models import Event, LedgerEntry, Message, TurnRecord
from apps.tenants.scope import tenant_transaction

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]
BOUND_SECONDS = float(QUICK["TURN_LEASE_SECONDS"]) + float(QUICK["TURN_SWEEP_SECONDS"])
# What a doorbell and a busy machine may add to the bound.
SLACK_SECONDS = 3.0


def post(web: Web, shop: Shop, body: dict) -> str:
    answer = httpx2.post(
        f"{web.url}/gateway/message",
        json=body,
        headers={**shop.headers, "Prefer": "wait=0"},
        timeout=20,
    )
    assert answer.status_code == 202, answer.text
    return str(answer.json()["metadata"]["turn_id"])


def turn(shop: Shop, turn_id: str) -> TurnRecord:
    with tenant_transaction(shop.tenant):
        found: TurnRecord = TurnRecord.objects.get(pk=turn_id)
    return found


@pytest.fixture
def slow_shop(fleet, tool_servers):
    """The shop over a retail server that takes two seconds, and that server."""
    retail = fleet.tool_server("retail", "--delay-ms", "2000")
    return shop_make(telecom=tool_servers[0].address, retail=retail.address), retail


def test_worker__frozen_past_its_lease_in_an_action__wakes_up_and_writes_nothing(
    slow_shop, fleet, web, capsys
):
    shop, retail = slow_shop
    beat = fleet.beat()
    workers = fleet.workers(2)
    turn_id = post(web, shop, message(ONCE, session="s1", message_id="m1", order=5090))
    until(retail.calls, "the action to arrive at its server")
    holder = int(turn(shop, turn_id).worker.rsplit(":", 1)[1])
    [frozen] = [worker for worker in workers if worker.pid == holder]
    frozen.signal(signal.SIGSTOP)
    stopped_at = time.time()
    until(lambda: shop.sent() == 1, "another worker to answer", seconds=30)
    ended = turn(shop, turn_id)
    assert ended.claimed_at is not None
    again = ended.claimed_at.timestamp() - stopped_at
    frozen.signal(signal.SIGCONT)
    until(lambda: "another worker holds it now" in frozen.said(), "it to see that it lost the turn")
    # It goes on serving: it is the only one left.
    next(worker for worker in workers if worker is not frozen).stop()
    beat.stop()
    post(web, shop, message(READS, session="s2", message_id="m2"))
    until(lambda: shop.sent() == 2, "the thawed worker to answer another turn")
    with capsys.disabled():
        print(f"\n\nfrozen worker's turn claimed again after {again:.1f} s ", end="")
        print(f"(lease + sweep {BOUND_SECONDS:g} s)")
    assert again <= BOUND_SECONDS + SLACK_SECONDS
    assert (ended.attempts, ended.outcome) == (2, "answered")
    assert '"status":"unknown"' in ended.record
    assert [call.outcome for call in retail.calls()] == ["effect"]
    assert len(retail.effects()) == 1
    assert turn(shop, turn_id).record == ended.record
    with tenant_transaction(shop.tenant):
        assert Message.objects.filter(turn_id=turn_id).count() == 2
        assert Event.objects.filter(turn_id=turn_id, event_type="message.responded").count() == 1
        [action] = LedgerEntry.objects.filter(turn_id=turn_id, action=True)
    assert (action.starts, action.ended_at) == (1, None)
    assert "Traceback" not in frozen.said()


def test_worker__asked_to_end_in_an_action__ends_its_turn_first(slow_shop, fleet, web):
    shop, retail = slow_shop
    worker = fleet.worker()
    turn_id = post(web, shop, message(ONCE, session="s1", message_id="m1", order=5091))
    until(retail.calls, "the action to arrive at its server")
    worker.signal(signal.SIGTERM)
    until(lambda: not worker.running, "the worker to end", seconds=30)
    ended = turn(shop, turn_id)
    assert (ended.status, ended.outcome, ended.attempts) == ("settled", "answered", 1)
    assert shop.sent() == 1
    assert '"status":"unknown"' not in ended.record


def test_worker__killed_between_a_reply_and_its_delivery__replies_still_leave_in_order(
    shop, fleet, web, tmp_path
):
    plans = tmp_path / "stall"
    plans.mkdir()
    (plans / "m1").write_text("settle.committed")
    dying = fleet.worker(
        STALL_DIR=str(plans),
        DJANGO_SETTINGS_MODULE="agentops.tests.services.stalling_settings",
    )
    first = post(web, shop, message(READS, session="s1", message_id="m1", note="um"))
    until((plans / "m1.hit").exists, "the first turn to be settled")
    dying.kill()
    fleet.worker()
    # No beat runs, so no sweep: the second turn's own delivery has to see to the first.
    second = post(web, shop, message(READS, session="s1", message_id="m2", note="dois"))
    until(lambda: shop.sent() == 2, "both replies to leave")
    with tenant_transaction(shop.tenant):
        said = Event.objects.filter(event_type="message.responded").order_by("sequence")
        assert [str(event.turn_id) for event in said] == [first, second]
