"""Makes a plan of a message that asks for several things (platform facts 3.7).

The message is cut into clauses, each is resolved against declared intents only. What changes
something goes first, and only one of them is done: the rest is kept for later.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from apps.routing.routes import intent_part
from apps.routing.scorers import SCORERS
from apps.routing.sentence import Sentence, read, requests
from apps.routing.strategies.face import Finding, Question, settles
from apps.runtime.turn import Candidate, Decision, ModelCall, PlanPart

RULES = ("keyword", "example")
# More clauses than this are one wall of text: what follows is read as part of the last one.
MAX_CLAUSES = 12
_JOINERS = "e|y|and|mas|but|pero|também|tambem|also|además|ademas|depois|después|despues|then|luego"
_BREAK = re.compile(
    r"[.!?;:]+(?=\s|$)\s*|\n+\s*|(?<!\d),\s*|,(?!\d)\s*" rf"|\s+(?:{_JOINERS})\s+", re.IGNORECASE
)
_JOINING = re.compile(rf"^(?:(?:{_JOINERS})(?:\s+|$))+", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?;\n]")


@dataclass(frozen=True)
class Clause:
    """A piece of the message, from ``start`` to ``end`` of its text."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Plan:
    """What a message asks for.

    ``parts`` are done now, ``topics`` are kept for later; ``off_context`` is what no intent
    answers. ``settled`` is the one subject of a message in which a single one was found.
    """

    parts: tuple[PlanPart, ...] = ()
    topics: tuple[PlanPart, ...] = ()
    off_context: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    model_calls: tuple[ModelCall, ...] = ()
    decisions: tuple[Decision, ...] = ()

    @property
    def several(self) -> bool:
        return len(self.parts) > 1

    @property
    def metadata(self) -> dict[str, Any]:
        """What is noted on the route: topics as the session keeps them, clauses left out."""
        noted: dict[str, Any] = {}
        if self.topics:
            noted["topics"] = topics_of(self.topics)
        if self.off_context:
            noted["off_context"] = list(self.off_context)
        return noted


def topics_of(parts: Iterable[PlanPart]) -> list[dict[str, str]]:
    """Return ``parts`` as topics to be kept: intent, agent and the customer's words."""
    return [{"intent": part.intent, "agent": part.agent, "text": part.text} for part in parts]


def clauses(text: str) -> list[Clause]:
    """Cut ``text`` at punctuation and joining words; numbers and addresses stay whole."""
    found: list[Clause] = []
    start = 0
    for match in _BREAK.finditer(text):
        if len(found) == MAX_CLAUSES - 1:
            break
        found.extend(_clause(text, start, match.start()))
        start = match.end()
    return [*found, *_clause(text, start, len(text))]


def head_of(text: str, rest: str) -> str:
    """Return what stands in ``text`` before ``rest``, without what joins them; all when nothing does."""
    before = clauses(text[: text.rfind(rest)]) if rest in text else []
    return text[before[0].start : before[-1].end].strip() if before else text


def _clause(text: str, start: int, end: int) -> list[Clause]:
    said = _JOINING.sub("", text[start:end].strip())
    return [Clause(said, start, end)] if read(said).words else []


async def plan_make(question: Question, text: str, *, models: bool = False) -> Plan:
    """Return the plan of ``text``; ``models``: also models may be asked about a clause."""
    names = [name for name in question.policy.strategies if name in SCORERS]
    names = [name for name in dict.fromkeys(names) if models or name in RULES]
    reading = _Reading(question, names)
    parts = await reading.parts(text)
    kept, topics = _arranged(question, parts)
    return Plan(
        parts=kept,
        topics=topics,
        off_context=tuple(reading.off_context),
        candidates=tuple(reading.candidates),
        model_calls=tuple(reading.model_calls),
        decisions=tuple(reading.decisions),
    )


class _Reading:
    """Resolves the clauses of one message, first to last."""

    def __init__(self, question: Question, names: Sequence[str]) -> None:
        self._question = question
        self._names = names
        self.off_context: list[str] = []
        self.candidates: list[Candidate] = []
        self.model_calls: list[ModelCall] = []
        self.decisions: list[Decision] = []

    async def parts(self, text: str) -> list[PlanPart]:
        """Return the parts in the order of the message.

        A clause that means nothing alone is tried together with its neighbours ("a segunda e
        última via"); what then means nothing is off context when it asks for something, else it
        belongs to what it stands beside.
        """
        found: list[PlanPart] = []
        open_from = -1
        for clause in clauses(text):
            resolved = await self._resolve(clause.text)
            if not resolved and open_from >= 0 and not _ends_sentence(text, open_from, clause):
                resolved = await self._resolve(text[open_from : clause.end].strip())
                if resolved:
                    open_from = -1
            if not resolved:
                if self._is_request(clause.text):
                    self.off_context.append(clause.text)
                    open_from = -1
                elif open_from < 0:
                    open_from = clause.start
                continue
            open_from = -1
            found.extend(resolved)
        return found

    def _is_request(self, text: str) -> bool:
        sentence = read(text)
        told = [word for word in sentence.words if word.content and word.stands]
        return bool(told) and requests(sentence)

    async def _resolve(self, text: str) -> list[PlanPart]:
        """Return what ``text`` is about: one intent, or one of each agent that ties."""
        sentence = read(text)
        tie: Finding | None = None
        for name in self._names:
            finding = await self._ask(name, text, sentence)
            policy = self._question.policy
            one = tie is not None or len(finding.subjects) <= 1
            if one and settles(finding, tie, policy):
                return [self._part(finding.candidates[0], text)]
            if finding.confident(policy):
                tie = tie or finding
        if tie is None:
            return []
        return [self._part(candidate, text) for candidate in _subjects(tie)]

    async def _ask(self, name: str, text: str, sentence: Sentence) -> Finding:
        turn = self._question.turn
        turn = turn.evolve(text=text, model_calls=(*turn.model_calls, *self.model_calls))
        finding = await SCORERS[name](replace(self._question, sentence=sentence, turn=turn))
        self.candidates.extend(finding.candidates)
        self.model_calls.extend(finding.model_calls)
        self.decisions.extend(finding.decisions)
        return finding

    def _part(self, candidate: Candidate, text: str) -> PlanPart:
        return intent_part(self._question.index, candidate.intent, text, candidate.score)


def _subjects(tie: Finding) -> list[Candidate]:
    """Return the best candidate of each agent that the words name, in the order of evidence."""
    named = tie.subjects or {candidate.agent for candidate in tie.candidates[:2]}
    best: dict[str, Candidate] = {}
    for candidate in tie.candidates:
        if candidate.agent in named:
            best.setdefault(candidate.agent, candidate)
    return list(best.values())


def _ends_sentence(text: str, start: int, clause: Clause) -> bool:
    return bool(_SENTENCE_END.search(text[start : clause.start]))


def _arranged(
    question: Question, parts: Sequence[PlanPart]
) -> tuple[tuple[PlanPart, ...], tuple[PlanPart, ...]]:
    """Return (now, later): each intent once, what changes something first and only once."""
    once: dict[str, PlanPart] = {}
    for part in parts:
        known = once.get(part.intent)
        if known is None:
            once[part.intent] = part
        elif part.text not in known.text:
            joined = f"{known.text}, {part.text}"
            once[part.intent] = replace(known, text=joined, score=max(known.score, part.score))
    actions = [part for part in once.values() if question.index.mutates(part.intent)]
    reads = [part for part in once.values() if not question.index.mutates(part.intent)]
    wanted = [*actions[:1], *reads]
    limit = question.policy.max_plan
    return tuple(wanted[:limit]), (*actions[1:], *wanted[limit:])
