"""kill -9 of the worker at every step of a turn: nothing is lost, said twice or done twice."""

from collections import Counter

import pytest

from agentops.tests.services.conftest import QUICK
from agentops.tests.services.deployment import deployed
from agentops.tests.services.killing import Called, Killed, Killing, Left
from agentops.tests.services.points import POINTS
from agentops.tests.services.tenant import MODEL, ONCE, READS, REPEATABLE, shop_make

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]

PLANS = [
    ("claim.uncommitted", READS),
    ("claim.uncommitted", ONCE),
    ("claim.committed", REPEATABLE),
    ("claim.committed", MODEL),
    ("model.in_flight", READS),
    ("model.in_flight", MODEL),
    ("model.unrecorded", ONCE),
    ("tool.in_flight", READS),
    ("action.in_flight", ONCE),
    ("action.in_flight", REPEATABLE),
    ("tool.unrecorded", MODEL),
    ("action.unrecorded", ONCE),
    ("action.unrecorded", REPEATABLE),
    ("action.uncommitted", ONCE),
    ("settle.uncommitted", ONCE),
    ("settle.uncommitted", MODEL),
    ("settle.committed", REPEATABLE),
    ("deliver.uncommitted", READS),
    ("deliver.uncommitted", ONCE),
    ("deliver.committed", REPEATABLE),
]
SLOW = ("--delay-ms", "200-800", "--delay-after-ms", "100")
MODEL_MS = 400
# A turn whose worker died is claimed again within lease + sweep; then it walks (model and tools).
BOUND_SECONDS = float(QUICK["TURN_LEASE_SECONDS"]) + float(QUICK["TURN_SWEEP_SECONDS"])


@pytest.mark.timeout(400)
def test_worker__killed_at_every_step_of_twenty_turns__nothing_lost_said_or_done_twice(
    tmp_path, capsys
):
    (tmp_path / "stall").mkdir()
    with deployed(
        tmp_path / "kill",
        **QUICK,
        STALL_DIR=str(tmp_path / "stall"),
        DJANGO_SETTINGS_MODULE="agentops.tests.services.stalling_settings",
    ) as deployment:
        servers = [deployment.tool_server(name, *SLOW) for name in ("telecom", "retail")]
        shop = shop_make(telecom=servers[0].address, retail=servers[1].address, model_ms=MODEL_MS)
        killing = Killing(deployment, deployment.web(), shop, servers, tmp_path / "stall")
        deployment.beat()
        kills = killing.kill_all(PLANS)
        killing.settle(kills, seconds=60)
        with capsys.disabled():
            report(kills)
        for kill in kills:
            assert is_at(kill.point, kill.left), f"{kill.number} {kill.point}: {kill.left}"
            assert set(killing.replies(kill.turn_id).values()) == {1}, kill
            assert killing.answer(kill.turn_id).json()["metadata"]["outcome"] == "answered"
            for called in kill.calls:
                done_at_most_once(called, kill)
        steps = Counter(POINTS[kill.point] for kill in kills)
        assert len(kills) == 20
        assert all(steps[step] >= 2 for step in POINTS.values()), steps
        assert max(Counter(killing.effects()).values()) == 1
        assert {call.key for call in killing.served()} >= set(killing.effects())


def is_at(point: str, left: Left) -> bool:
    """Whether what the turn had left behind is what a death at ``point`` leaves."""
    kind, moment = point.split(".")
    match kind:
        case "claim":
            status = "running" if moment == "committed" else "queued"
            return left.status == status and not left.open_calls and not left.ended_calls
        case "model" | "tool" | "action":
            reached_server = kind == "model" or any(
                call.outcome == "effect" or kind == "tool" or moment == "in_flight"
                for call in left.served
            )
            return left.status == "running" and kind in left.open_calls and reached_server
        case "settle" if moment == "uncommitted":
            return left.status == "running" and not left.open_calls and left.messages == 0
        case "settle":
            return left.status == "settled" and left.messages == 2 and left.unsent == 1
        case _:
            return left.status == "settled" and left.sent == (moment == "committed")


def done_at_most_once(called: Called, kill: Killed) -> None:
    """A call is repeated only when it may be, and the ledger knows of each time it was sent."""
    if called.kind != "tool":
        return
    assert called.effects <= 1, (called, kill)
    assert called.served <= called.starts, (called, kill)
    if called.served > 1:
        assert not called.action or called.idempotent, (called, kill)
    [status] = [c["status"] for c in kill.record["tool_calls"] if c["tool"] == called.name]
    assert status == ("ok" if called.ended else "unknown"), (called, kill)
    if called.action:
        assert called.effects == 1 or not called.ended, (called, kill)
    dies_in_action = kill.point.startswith("action.") and called.action
    if dies_in_action and not called.idempotent:
        assert (called.served, called.starts, called.ended) == (1, 1, False), (called, kill)
    if dies_in_action and called.idempotent:
        assert called.ended, (called, kill)
        assert called.served > 1, (called, kill)


def report(kills: list[Killed]) -> None:
    """Print the step that each kill hit, and how the turns ended."""
    print("\n\nkill -9 of the Celery worker: what each of 20 kills hit")
    for kill in kills:
        calls = ", ".join(
            f"{c.name} sent {c.served}x effects {c.effects} {'done' if c.ended else 'unknown'}"
            for c in kill.calls
            if c.kind == "tool"
        )
        print(
            f"{kill.number:3} {POINTS[kill.point]:25} {kill.point:19} {kill.agent:10}"
            f" left: {kill.left}\n{'':29} settled {kill.settled_after:+.1f} s after"
            f" by attempt {kill.attempts}; {calls}"
        )
    steps = Counter(POINTS[kill.point] for kill in kills)
    print("by step:", ", ".join(f"{step} {count}" for step, count in steps.items()))
    late = max(kill.settled_after for kill in kills)
    print(f"longest from kill to settled {late:.1f} s; claimed again within {BOUND_SECONDS:g} s")
