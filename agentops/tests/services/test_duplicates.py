"""One message that comes five times at once is one turn, two hundred times over."""

import asyncio
from collections import Counter

import pytest
from django.db.models import Count

from agentops.tests.services.posting import callers, turn_id_of
from agentops.tests.services.processes import until
from agentops.tests.services.tenant import READS, message
from apps.conversations.models import Event, LedgerEntry, Message, TurnRecord
from apps.tenants.scope import tenant_transaction

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]
MESSAGES, TIMES, AT_ONCE = 200, 5, 10


def test_message__posted_five_times_at_once__is_one_turn(web, shop, tool_servers, fleet, capsys):
    fleet.workers(1)
    numbers = iter(range(MESSAGES))
    answers: dict[int, list] = {}

    async def talk(post):
        for number in numbers:
            body = message(READS, session=f"s{number}", message_id=f"m{number}")
            # Every other one does not wait: its answers are 202 with the turn's place.
            wait = 30 if number % 2 else 0
            answers[number] = await asyncio.gather(*(post(body, wait=wait) for _ in range(TIMES)))

    before = {call.key for call in tool_servers[0].calls()}
    callers(web.url, shop, talk, AT_ONCE)
    turns = {number: {turn_id_of(answer) for answer in five} for number, five in answers.items()}
    until(lambda: shop.sent() == MESSAGES, "every reply to leave", seconds=90)

    statuses = Counter(answer.status_code for five in answers.values() for answer in five)
    with capsys.disabled():
        print(f"\n\n{MESSAGES} messages posted {TIMES} times at once: answers {dict(statuses)},")
        print(f"distinct turn ids {len(set.union(*turns.values()))}, ", end="")
        print(f"most turn ids of one message {max(len(ids) for ids in turns.values())}")
    assert all(len(ids) == 1 for ids in turns.values())
    assert len(set.union(*turns.values())) == MESSAGES
    assert statuses[200] >= MESSAGES // 2 * TIMES
    for number in range(1, MESSAGES, 2):
        assert len({answer.text for answer in answers[number]}) == 1
    with tenant_transaction(shop.tenant):
        assert TurnRecord.objects.count() == MESSAGES
        assert set(TurnRecord.objects.values_list("outcome", "attempts")) == {("answered", 1)}
        assert Message.objects.count() == 2 * MESSAGES
        assert Event.objects.filter(event_type="message.received").count() == MESSAGES
        entries = LedgerEntry.objects.values_list("turn").annotate(Count("pk"))
        assert Counter(count for _turn, count in entries) == {3: MESSAGES}  # two tools, one model
        assert set(LedgerEntry.objects.values_list("starts", flat=True)) == {1}
    served = Counter(c.key for c in tool_servers[0].calls() if c.key not in before)
    assert len(served) == 2 * MESSAGES
    assert set(served.values()) == {1}
    assert "Traceback" not in web.process.said()
