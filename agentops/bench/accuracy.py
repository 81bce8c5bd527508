"""How well routing does on sentences nobody on this project wrote: ``manage.py routing_accuracy``.

The strategies themselves are asked, with the thresholds of a policy nobody changed. Nothing here was
tuned on what is asked: weights and probabilities were fitted on the parts that configure.
"""

import asyncio
import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from agentops.bench.intent_sets import IntentSet
from apps.routing.config import IntentConfig, RoutingPolicyConfig
from apps.routing.embedding.local import LocalEmbeddings
from apps.routing.index import AgentFacts, RoutingIndex, routing_index
from apps.routing.linear import Floats
from apps.routing.meaning import Compared, Meanings, Silent, meanings_fit
from apps.routing.sentence import read
from apps.routing.strategies.example import by_example
from apps.routing.strategies.face import Finding, Question, settles
from apps.routing.strategies.semantic import by_semantic
from apps.routing.vector_selectors import sentence_of
from apps.runtime.release import Release
from apps.runtime.turn import Inbound, SessionState, Turn

# Of known messages that may be refused where the recall of foreign ones is stated.
FALSE_ALARMS = (0.05, 0.10)
WORST = 10


class VectorFile:
    """Vectors of the model in this process, kept in a file between runs when ``path`` is given."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._local = LocalEmbeddings()
        self._known: dict[str, Floats] = {}
        if path is not None and path.is_file():
            with np.load(path, allow_pickle=False) as kept:
                self._known = dict(zip(kept["texts"].tolist(), kept["vectors"], strict=True))

    @property
    def available(self) -> bool:
        return self._local.available

    def fill(self, texts: Iterable[str], say: Callable[[str], None] = lambda _: None) -> None:
        """Make what is missing; twenty milliseconds each."""
        missing = list(dict.fromkeys(text for text in texts if text not in self._known))
        for start in range(0, len(missing), 256):
            batch = missing[start : start + 256]
            self._known.update(zip(batch, self._local.embed_now(batch), strict=True))
            if start and start % 2560 == 0:
                say(f"  vectors: {start:,} of {len(missing):,}")
                self.save()
        self.save()

    def save(self) -> None:
        if self._path is not None and self._known:
            texts = np.array(list(self._known), dtype=np.str_)
            np.savez(self._path, texts=texts, vectors=np.stack(list(self._known.values())))

    def vector(self, text: str) -> Floats:
        """Return a text's vector."""
        if text not in self._known:
            self.fill([text])
        return self._known[text]


class FiledMeanings:
    """A ``MeaningPort`` over a ``VectorFile``: the examples are fitted once per release."""

    def __init__(self, vectors: VectorFile) -> None:
        self._vectors = vectors
        self._fitted: dict[str, Meanings] = {}

    async def compare(self, turn: Turn, examples: Mapping[str, Sequence[str]]) -> Compared | Silent:
        """See ``MeaningPort``."""
        key = turn.release.sha256
        if key not in self._fitted:
            pairs = [
                (intent, sentence_of(text)) for intent, texts in examples.items() for text in texts
            ]
            matrix = np.stack([self._vectors.vector(text) for _, text in pairs])
            self._fitted = {key: meanings_fit(pairs, matrix)}
        vector = self._vectors.vector(sentence_of(turn.text))
        return Compared(vector=vector, meanings=self._fitted[key], model="file")  # fmt: skip


def release_of(examples: Sequence[tuple[str, Sequence[str]]], name: str) -> Release:
    """Return a release with an intent of its own agent for each label."""
    items: dict[tuple[str, str], Any] = {
        ("routing_policy", "default"): RoutingPolicyConfig(
            strategies=["keyword", "example", "semantic"]
        )
    }
    for label, texts in examples:
        items[("intent", label)] = IntentConfig(agent=label, examples=list(texts))
    return Release(sha256=name, items=items)


@dataclass
class Answers:
    """What one way of choosing said: for asked texts right or not and how sure, for foreign how sure."""

    right: list[bool] = field(default_factory=list)
    sure: list[float] = field(default_factory=list)
    foreign: list[float] = field(default_factory=list)
    confused: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def accuracy(self) -> float:
        return sum(self.right) / max(1, len(self.right))

    @property
    def auroc(self) -> float:
        """How often a known message is surer than a foreign one."""
        ordered = sorted(self.foreign)
        below = sum(
            bisect.bisect_left(ordered, s) + bisect.bisect_right(ordered, s) for s in self.sure
        )
        return below / 2 / max(1, len(self.sure) * len(self.foreign))

    def foreign_recall(self, false_alarms: float) -> float:
        """Return the share of foreign messages refused when so many known ones are refused too."""
        limit = float(np.quantile(self.sure, false_alarms))
        return sum(score < limit for score in self.foreign) / max(1, len(self.foreign))


@dataclass
class Routed:
    """What the router did with both kinds of messages: answered, and of these rightly."""

    answered: int = 0
    rightly: int = 0
    asked: int = 0
    foreign_answered: int = 0
    foreign: int = 0

    @property
    def share(self) -> float:
        return self.answered / max(1, self.asked)

    @property
    def precision(self) -> float:
        return self.rightly / max(1, self.answered)

    @property
    def foreign_share(self) -> float:
        return self.foreign_answered / max(1, self.foreign)


@dataclass
class Measured:
    """The figures of one set, configured with so many examples per intent."""

    name: str
    language: str
    intents: int
    examples: int
    lexical: Answers = field(default_factory=Answers)
    semantic: Answers | None = None
    routed_lexical: Routed = field(default_factory=Routed)
    routed: Routed = field(default_factory=Routed)

    @property
    def best(self) -> Answers:
        return self.semantic or self.lexical


def accuracy_measure(
    chosen: IntentSet,
    *,
    per_intent: int | None,
    vectors: VectorFile | None,
    seed: int = 0,
    limit: int | None = None,
) -> Measured:
    """Configure ``chosen`` with its train part and ask its other part (the first ``limit``)."""
    examples = chosen.examples(per_intent, seed)
    release = release_of(examples, f"{chosen.name}-{per_intent}-{seed}")
    index = routing_index(release, lambda _: {label: AgentFacts() for label, _ in examples})
    measured = Measured(
        name=chosen.name,
        language=chosen.language,
        intents=len(examples),
        examples=sum(len(texts) for _, texts in examples),
        semantic=Answers() if vectors is not None else None,
    )
    meanings = FiledMeanings(vectors) if vectors is not None else None
    asyncio.run(_ask_all(chosen, release, index, meanings, measured, limit))
    return measured


async def _ask_all(
    chosen: IntentSet,
    release: Release,
    index: RoutingIndex,
    meanings: FiledMeanings | None,
    measured: Measured,
    limit: int | None,
) -> None:
    nobody: frozenset[str] = frozenset()
    asked = chosen.asked if limit is None else chosen.asked[:: max(1, len(chosen.asked) // limit)]
    foreign = chosen.foreign if limit is None else chosen.foreign[:limit]
    for text, labels in (*asked, *((text, nobody) for text in foreign)):
        question = question_of(text, release, index, meanings)
        example = await by_example(question)
        _count(measured.lexical, example, labels)
        _route(measured.routed_lexical, [example], labels, question)
        if measured.semantic is not None:
            semantic = await by_semantic(question)
            _count(measured.semantic, semantic, labels)
            _route(measured.routed, [example, semantic], labels, question)


def question_of(
    text: str, release: Release, index: RoutingIndex, meanings: FiledMeanings | None
) -> Question:
    """Return the question who answers ``text``, every agent allowed."""
    turn = Turn(
        id="t",
        tenant="1",
        release=release,
        inbound=Inbound(channel="web", text=text, agent=None, message_id="m", session="s"),
        session=SessionState(key="t::s"),
        text=text,
    )
    return Question(
        sentence=read(text),
        index=index,
        allowed=frozenset(index.agents),
        turn=turn,
        embeddings=meanings,
    )


def _count(answers: Answers, finding: Finding, labels: frozenset[str]) -> None:
    best = finding.best
    score = best.score if best else 0.0
    if not labels:
        answers.foreign.append(score)
        return
    said = best.intent if best else "(nothing)"
    answers.right.append(said in labels)
    answers.sure.append(score)
    if said not in labels:
        answers.confused[(sorted(labels)[0], said)] += 1


def _route(
    routed: Routed, findings: Sequence[Finding], labels: frozenset[str], question: Question
) -> None:
    """Let the first confident and unambiguous finding decide, as the router does."""
    policy, tie = question.policy, None
    decided = None
    for finding in findings:
        if not finding.confident(policy):
            continue
        if settles(finding, tie, policy):
            decided = finding.candidates[0].intent
            break
        tie = tie or finding
    if not labels:
        routed.foreign += 1
        routed.foreign_answered += decided is not None
        return
    routed.asked += 1
    routed.answered += decided is not None
    routed.rightly += decided in labels


HEAD = (
    "set | language | intents | examples | lexical | + semantic | routed: answered, of these right"
    " | foreign refused at 5 % / 10 % false alarms, AUROC"
)


def line_of(measured: Measured) -> str:
    """Return the figures of one set as a line under ``HEAD``."""
    semantic = f"{measured.semantic.accuracy:.3f}" if measured.semantic else "–"
    routed = measured.routed if measured.semantic else measured.routed_lexical
    foreign = "–"
    if measured.best.foreign:
        foreign = "; ".join(
            f"{name} {answers.foreign_recall(FALSE_ALARMS[0]):.3f} / {answers.foreign_recall(FALSE_ALARMS[1]):.3f},"
            f" {answers.auroc:.3f}"
            for name, answers in (("lexical", measured.lexical), ("semantic", measured.semantic))
            if answers is not None
        )
        foreign += f"; answered by mistake {routed.foreign_share:.3f}"
    return (
        f"{measured.name} | {measured.language} | {measured.intents} | {measured.examples:,} |"
        f" {measured.lexical.accuracy:.3f} | {semantic} |"
        f" {routed.share:.3f}, {routed.precision:.3f} | {foreign}"
    )


def confusions(measured: Measured) -> Iterator[str]:
    """Yield the pairs that are confused most: meant → said, how often."""
    for (meant, said), count in measured.best.confused.most_common(WORST):
        yield f"  {count:3} x {meant} → {said}"
