"""A thousand turns and more at two environments while what they run changes without pause."""

import asyncio
import itertools
import time
from collections import defaultdict
from dataclasses import replace
from uuid import UUID

import httpx2
import pytest

from agentops.tests.services.changing import (
    ENVIRONMENTS,
    Changer,
    Place,
    Said,
    place_make,
    verdict_of,
)
from apps.conversations.models import TurnRecord
from apps.tenants.scope import tenant_transaction

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]
CALLERS, CONVERSATIONS, LONG, MESSAGES, PAUSE = 16, 2000, 8, 5, 0.3
"""Of every ``LONG`` conversations one has ``MESSAGES`` messages, spread over the run."""
# A rail asks who says the same thing a third time to stop.
WORDS = ("Quero conversar", "Conte mais", "Que bom", "Continue por favor", "Muito obrigado")


@pytest.mark.timeout(600)
def test_turns__while_releases_change_in_two_environments__each_run_on_one_that_was_legal(
    web, fleet, capsys
):
    fleet.workers(2, concurrency=8)
    place = place_make()
    changers = [Changer(place, name, seed, PAUSE) for seed, name in enumerate(ENVIRONMENTS)]
    for changer in changers:
        changer.start()
    began = time.monotonic()
    said = asyncio.run(_talk(web.url, place))
    seconds = time.monotonic() - began
    for changer in changers:
        changer.stopping.set()
        changer.join(30)
        assert changer.error is None

    with tenant_transaction(place.tenant):
        rows = list(TurnRecord.objects.values_list("session__environment", "outcome", "attempts"))
        accepted = dict(TurnRecord.objects.values_list("pk", "accepted_at"))
    # An answer comes long after what it runs on was chosen.
    verdict = verdict_of(
        place,
        [[replace(one, known=accepted[one.turn].timestamp()) for one in talk] for talk in said],
    )
    by_environment: dict[str, int] = defaultdict(int)
    for environment, _outcome, _attempts in rows:
        by_environment[environment] += 1
    with capsys.disabled():
        print(
            f"\n\n{verdict.turns} turns of {len(said)} conversations in {seconds:.0f} s, ", end=""
        )
        print(f"{dict(by_environment)}, while {sum(place.acts.values())} acts: {place.acts}")
        print(f"on a release that was not legal: {len(verdict.illegal)}; ", end="")
        print(f"answered by another than its own: {len(verdict.wrong_answers)}")
        print(
            f"canary: {verdict.share:.2f} % of {verdict.new_beside_canary} new conversations, ",
            end="",
        )
        print(f"configured {verdict.configured_share:.2f} %")
        print(f"conversations finished on their release: {verdict.finished_on_theirs}, ", end="")
        print(
            f"moved because it was taken back: {verdict.moved_legally}, lost: {len(verdict.lost)}"
        )
    assert verdict.illegal == []
    assert verdict.lost == []
    assert verdict.wrong_answers == []
    assert verdict.turns == len(rows) >= 2 * 1000
    assert {(outcome, attempts) for _e, outcome, attempts in rows} == {("answered", 1)}
    assert min(by_environment.values()) >= 1000
    assert verdict.new_beside_canary > 500
    assert verdict.against_the_hash == 0
    assert abs(verdict.share - verdict.configured_share) < 2
    assert {"deploy", "roll_back", "canary_start", "canary_stop", "canary_finish"} <= set(
        place.acts
    )


async def _talk(url: str, place: Place) -> list[list[Said]]:
    """Hold every conversation; the long ones go on while others begin."""
    numbers = itertools.count()
    found: list[list[Said]] = []
    limits = httpx2.Limits(max_connections=100, max_keepalive_connections=100)
    async with httpx2.AsyncClient(base_url=url, timeout=60, limits=limits) as client:

        async def say(environment: str, session: str, number: int) -> Said:
            sent = time.time()
            answer = await client.post(
                "/gateway/message",
                json={
                    "channel": "web",
                    "payload": {
                        "message": WORDS[number],
                        "session_id": session,
                        "message_id": f"m{number}",
                    },
                },
                headers={
                    "Authorization": f"Bearer {place.keys[environment]}",
                    "Prefer": "wait=50",
                },
            )
            assert answer.status_code == 200, answer.text
            body = answer.json()
            release = _release_of(place, body["metadata"]["release"]["number"])
            turn = UUID(body["metadata"]["turn_id"])
            return Said(environment, session, sent, time.time(), release, body["text"], turn)

        async def caller() -> None:
            long: list[list[Said]] = []
            while (number := next(numbers)) < CONVERSATIONS:
                environment = ENVIRONMENTS[number % len(ENVIRONMENTS)]
                talk = [await say(environment, f"conversa-{number}", 0)]
                found.append(talk)
                if number // len(ENVIRONMENTS) % LONG == 0:
                    long.append(talk)
                if long:
                    goes_on = long.pop(0)
                    goes_on.append(
                        await say(environment_of(goes_on), goes_on[0].session, len(goes_on))
                    )
                    if len(goes_on) < MESSAGES:
                        long.append(goes_on)

        await asyncio.gather(*(caller() for _ in range(CALLERS)))
    return found


def environment_of(talk: list[Said]) -> str:
    """Return where a conversation is."""
    return talk[0].environment


def _release_of(place: Place, number: int) -> UUID:
    return next(release.pk for release in place.releases if release.number == number)
