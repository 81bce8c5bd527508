"""Order holds within a session and across worker processes."""

from collections import Counter, defaultdict
from itertools import pairwise

import pytest

from agentops.tests.services.posting import callers, turn_id_of
from agentops.tests.services.processes import until
from agentops.tests.services.tenant import READS, message
from apps.conversations.models import Event, TurnRecord
from apps.tenants.scope import tenant_transaction

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]
SESSIONS, MESSAGES, CONCURRENCY = 50, 5, 8


def test_sessions__fifty_over_two_workers__answer_in_order_and_never_overlap(
    web, shop, fleet, capsys
):
    workers = fleet.workers(2, concurrency=CONCURRENCY)
    names = iter(range(SESSIONS))
    posted: dict[str, list[str]] = {}

    async def talk(post):
        session = f"s{next(names)}"
        for number in range(MESSAGES):
            body = message(READS, session=session, message_id=f"m{number}", note=f"vez {number}")
            answer = await post(body, wait=0)
            posted.setdefault(session, []).append(turn_id_of(answer))

    callers(web.url, shop, talk, SESSIONS)
    # No beat runs: nothing but the doorbells moves the turns.
    until(lambda: shop.sent() == SESSIONS * MESSAGES, "every reply to leave", seconds=120)

    with tenant_transaction(shop.tenant):
        turns = list(TurnRecord.objects.select_related("session").order_by("session", "number"))
        said = list(
            Event.objects.filter(event_type="message.responded")
            .order_by("session", "sequence")
            .values_list("session__name", "turn_id")
        )
    by_session = defaultdict(list)
    for turn in turns:
        by_session[turn.session.name].append(turn)
    answered = defaultdict(list)
    for session, turn_id in said:
        answered[session].append(str(turn_id))
    overlaps = sum(
        later.claimed_at < earlier.settled_at
        for of_session in by_session.values()
        for earlier, later in pairwise(of_session)
    )
    served = Counter(turn.worker for turn in turns)
    at_once = most_at_once(turns)
    with capsys.disabled():
        print(f"\n\n{SESSIONS} sessions x {MESSAGES} messages over two workers: ", end="")
        print(f"{len(turns)} turns, {overlaps} overlap, {at_once} at once at most, ", end="")
        print(f"by worker {sorted(served.values())}")
    assert len(by_session) == len(posted) == SESSIONS
    assert {(turn.outcome, turn.attempts) for turn in turns} == {("answered", 1)}
    for session, ids in posted.items():
        assert [str(turn.id) for turn in by_session[session]] == ids
        assert [turn.number for turn in by_session[session]] == [1, 2, 3, 4, 5]
        assert answered[session] == ids
    assert overlaps == 0
    assert at_once > 1
    assert {int(worker.rsplit(":", 1)[1]) for worker in served} == {w.pid for w in workers}


def most_at_once(turns) -> int:
    """Return how many turns ran at the same moment, at most."""
    moments = [(turn.claimed_at, 1) for turn in turns] + [(turn.settled_at, -1) for turn in turns]
    running = most = 0
    for _at, change in sorted(moments):
        running += change
        most = max(most, running)
    return most
