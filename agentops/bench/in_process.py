"""What needs no server: routing time by number of intents."""

import asyncio
import random
import statistics
import time

from agentops.policies import agents_of
from apps.agents.config import AgentConfig
from apps.routing.config import IntentConfig, RoutingPolicyConfig
from apps.routing.step import ChooseAgent
from apps.runtime.release import Release
from apps.runtime.turn import Inbound, SessionState, Turn

_SYLLABLES = [
    "ba",
    "be",
    "bi",
    "bo",
    "ca",
    "ce",
    "co",
    "da",
    "de",
    "di",
    "fa",
    "fe",
    "ga",
    "go",
    "la",
    "le",
    "li",
    "ma",
    "me",
    "mi",
    "na",
    "no",
    "pa",
    "pe",
    "ra",
    "re",
    "sa",
    "ta",
    "to",
    "va",
]


def words(count: int, seed: int = 7) -> list[str]:
    """Return ``count`` different made-up words."""
    chance = random.Random(seed)  # noqa: S311  # no secret
    found: dict[str, None] = {}
    while len(found) < count:
        found["".join(chance.choice(_SYLLABLES) for _ in range(4))] = None
    return list(found)


def routing_release(intents: int) -> Release:
    """Return a release with ``intents`` intents of three keywords and two examples each."""
    lexicon = words(intents * 3)
    items: dict[tuple[str, str], object] = {
        ("agent", "front"): AgentConfig(prompt="p", members=["back"]),
        ("agent", "back"): AgentConfig(prompt="p"),
        ("routing_policy", "default"): RoutingPolicyConfig(default_agent="front"),
    }
    for number in range(intents):
        mine = lexicon[number * 3 : number * 3 + 3]
        items[("intent", f"intent-{number}")] = IntentConfig(
            agent="back" if number % 2 else "front",
            keywords=mine,
            examples=[f"quero saber de {mine[0]} e {mine[1]}", f"onde vejo {mine[2]}"],
        )
    return Release(sha256=str(intents), items=items)  # type: ignore[arg-type]


def routing_times(intents: int, turns: int = 300) -> tuple[float, float, float]:
    """Return (compile seconds, p50 ms, p95 ms) of choosing an agent among ``intents``."""
    release = routing_release(intents)
    lexicon = words(intents * 3)
    step = ChooseAgent(agents_of)
    chance = random.Random(11)  # noqa: S311  # no secret

    def turn(text: str) -> Turn:
        return Turn(
            id="t",
            tenant="1",
            release=release,
            inbound=Inbound(channel="web", text=text, agent=None, message_id="m", session="s"),
            session=SessionState(key="t:front:s", agent="front"),
            text=text,
        )

    async def run() -> tuple[float, float, float]:
        started = time.perf_counter()
        await step(turn("primeira"))
        compiled = time.perf_counter() - started
        times = []
        for _ in range(turns):
            asked = turn(f"bom dia, quero saber de {chance.choice(lexicon)} por favor")
            started = time.perf_counter()
            routed = await step(asked)
            times.append((time.perf_counter() - started) * 1000)
            assert routed.route is not None
        times.sort()
        return compiled, statistics.median(times), times[int(len(times) * 0.95)]

    return asyncio.run(run())
