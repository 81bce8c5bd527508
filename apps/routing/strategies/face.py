"""The face every routing strategy has: a ``Question`` in, a ``Finding`` out.

A strategy is an async function in a file of its own, entered by name in ``apps/routing/order.py``,
or in ``scorers.py`` when it scores intents.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from apps.routing.config import RoutingPolicyConfig
from apps.routing.index import RoutingIndex
from apps.routing.meaning import MeaningPort
from apps.routing.sentence import Sentence
from apps.runtime.ports import ModelPort
from apps.runtime.text import stem_plural, words
from apps.runtime.turn import Candidate, Decision, ModelCall, Route, RouteMethod, Turn

# How many candidates a strategy reports (platform facts 1.6: at most 5).
MAX_CANDIDATES = 5
# Scores are compared at this precision, so that sums in another order are still a tie.
PRECISION = 6
# What is less likely than this settles no tie, however far in front of the others it is.
UNLIKELY = 0.4


@dataclass(frozen=True)
class Question:
    """Who should answer ``sentence``, the analysed words of ``turn.text``?

    ``allowed``: the agents that may, in no order. ``speaker``: who says what needs no intent.
    ``state``: the state policy's state of the session, "" for none. ``models`` and ``embeddings``
    are absent where none may be asked: a strategy that needs one then has nothing to say.
    ``turn.model_calls`` holds the calls of the strategies asked before, so the ordinal of the next
    one is their number. ``released``: this message left an open flow, nothing may hold it there.
    """

    sentence: Sentence
    index: RoutingIndex
    allowed: frozenset[str]
    turn: Turn
    speaker: str = ""
    state: str = ""
    models: ModelPort | None = None
    embeddings: MeaningPort | None = None
    released: bool = False

    @property
    def policy(self) -> RoutingPolicyConfig:
        return self.index.policy

    def admits(self, intent: str) -> bool:
        """Whether ``intent`` belongs to an allowed agent."""
        return self.index.intents[intent].agent in self.allowed


@dataclass(frozen=True)
class Finding:
    """What a strategy found: candidates, best first; none when it has nothing to say.

    ``threshold``: what the best candidate needs, when that is not the policy's confidence.
    ``subjects``: the agents that the message names in so many words, where a strategy can tell.
    ``route``: the whole route, of a strategy that needs no scores to decide. ``metadata`` is noted
    on the route whoever decides. ``released``: an open flow was left. ``model_calls`` and
    ``decisions`` become part of the turn.
    """

    method: RouteMethod
    candidates: tuple[Candidate, ...] = ()
    reason: str = ""
    threshold: float | None = None
    subjects: frozenset[str] = frozenset()
    route: Route | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    released: bool = False
    model_calls: tuple[ModelCall, ...] = ()
    decisions: tuple[Decision, ...] = ()

    @property
    def best(self) -> Candidate | None:
        return self.candidates[0] if self.candidates else None

    @property
    def margin(self) -> float:
        """The best candidate's score over that of the best one of another agent."""
        if not self.candidates:
            return 0.0
        best = self.candidates[0]
        others = [c.score for c in self.candidates if c.agent != best.agent]
        return round(best.score - max(others, default=0.0), PRECISION)

    def confident(self, policy: RoutingPolicyConfig) -> bool:
        """Whether the best candidate reaches what it needs."""
        needed = policy.confidence_threshold if self.threshold is None else self.threshold
        return bool(self.candidates) and self.candidates[0].score >= needed


class Strategy(Protocol):
    """One way to find who answers. Never raises for a model or embedding that fails."""

    async def __call__(self, question: Question) -> Finding: ...


def best_first(question: Question, candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Return the best candidates; an exact tie is broken by the intent's priority, then its slug.

    The best candidate of another agent than the first's is always among them, as the margin is
    measured against it.
    """
    intents = question.index.intents
    ranked = sorted(
        candidates,
        key=lambda c: (-round(c.score, PRECISION), intents[c.intent].priority, c.intent),
    )
    kept = ranked[:MAX_CANDIDATES]
    if kept and all(c.agent == kept[0].agent for c in kept):
        rival = next((c for c in ranked if c.agent != kept[0].agent), None)
        if rival is not None:
            kept[-1] = rival
    return tuple(kept)


def settles(finding: Finding, tie: Finding | None, policy: RoutingPolicyConfig) -> bool:
    """Whether ``finding`` decides, also over an earlier strategy that saw a ``tie``.

    A tie is settled only for one of the agents that were tied, and only by a model that read the
    whole message or by evidence that holds every word the tie was about: an example that ignores
    half of the message settles nothing. That it is one of the tied is known by then, so how sure the
    evidence has to be is asked among these.
    """
    best = finding.best
    if best is None or finding.margin < policy.margin:
        return False
    if tie is None:
        return finding.confident(policy)
    tied = _tied(tie, policy)
    if best.agent not in {c.agent for c in tied}:
        return False
    if finding.method == "llm":
        return finding.confident(policy)
    disputed = {stem_plural(w) for c in tied for match in c.matches for w in words(match)}
    known = {stem_plural(word) for word in best.matches}
    return disputed <= known and sureness(finding, tie, policy) >= policy.confidence_threshold


def sureness(finding: Finding, tie: Finding | None, policy: RoutingPolicyConfig) -> float:
    """Return how sure the best candidate is; after a tie, among the agents that were tied."""
    best = finding.candidates[0]
    if tie is None or best.score < UNLIKELY:
        return best.score
    agents = {candidate.agent for candidate in _tied(tie, policy)}
    rivals = [c.score for c in finding.candidates if c.agent in agents and c.agent != best.agent]
    among = best.score / (best.score + max(rivals, default=0.0))
    return round(max(best.score, min(among, tie.candidates[0].score)), PRECISION)


def _tied(tie: Finding, policy: RoutingPolicyConfig) -> list[Candidate]:
    best = tie.candidates[0].score
    return [c for c in tie.candidates if best - c.score < policy.margin]
