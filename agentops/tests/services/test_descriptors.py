"""Three hundred turns leave no file descriptor open."""

import time

import pytest

from agentops.tests.services.posting import callers
from agentops.tests.services.processes import Process
from agentops.tests.services.tenant import MODEL, READS, message

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]
WARM, TURNS, AT_ONCE = 60, 300, 8
QUIET_SECONDS = 2
# A pool may hold a connection more or less at the moment it is looked at.
PLAY = 4


def run(web, shop, first: int, count: int) -> None:
    numbers = iter(range(first, first + count))

    async def talk(post):
        for number in numbers:
            agent = (READS, MODEL)[number % 2]
            body = message(agent, session=f"s{number}", message_id=f"m{number}")
            answer = await post(body, wait=30)
            assert answer.json()["metadata"]["outcome"] == "answered"

    callers(web.url, shop, talk, AT_ONCE)


def test_descriptors__of_web_and_worker__stay_flat_over_300_turns(web, shop, fleet, capsys):
    [worker] = fleet.workers(1, concurrency=AT_ONCE)
    run(web, shop, 0, WARM)
    before = quiet(worker), quiet(web.process)
    run(web, shop, WARM, TURNS)
    after = quiet(worker), quiet(web.process)
    with capsys.disabled():
        print(f"\n\nfile descriptors (worker, web): {before} after {WARM} turns, ", end="")
        print(f"{after} after {WARM + TURNS}")
    assert after[0] <= before[0] + PLAY
    assert after[1] <= before[1] + PLAY


def quiet(process: Process) -> int:
    """Return how many descriptors are open once the callers' connections are closed."""
    end = time.monotonic() + QUIET_SECONDS
    fewest = process.descriptors()
    while time.monotonic() < end:
        time.sleep(0.1)
        fewest = min(fewest, process.descriptors())
    return fewest
