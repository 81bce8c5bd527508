"""The face every routing strategy has: a ``Question`` in, a ``Finding`` out."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

from apps.routing.config import RoutingPolicyConfig
from apps.routing.index import RoutingIndex
from apps.routing.sentence import Sentence
from apps.runtime.text import stem_plural, words
from apps.runtime.turn import Candidate

# How many candidates a strategy reports (platform facts 1.6: at most 5).
MAX_CANDIDATES = 5
# Scores are compared at this precision, so that sums in another order are still a tie.
PRECISION = 6


@dataclass(frozen=True)
class Question:
    """Who should answer ``sentence``? ``allowed``: the agents that may, in no order."""

    sentence: Sentence
    index: RoutingIndex
    allowed: frozenset[str]
    state: str = ""

    def admits(self, intent: str) -> bool:
        """Whether ``intent`` belongs to an allowed agent."""
        return self.index.intents[intent].agent in self.allowed


@dataclass(frozen=True)
class Finding:
    """What a strategy found: candidates, best first; none when it has nothing to say.

    ``subjects``: the agents that the message names in so many words, where a strategy can tell.
    """

    method: Literal["state", "keyword", "example"]
    candidates: tuple[Candidate, ...] = ()
    reason: str = ""
    subjects: frozenset[str] = frozenset()

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


class Strategy(Protocol):
    """One way to find who answers."""

    def __call__(self, question: Question) -> Finding: ...


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

    A tie is settled only for one of the agents that were tied, and only by evidence that holds
    every word the tie was about: an example that ignores half of the message settles nothing.
    """
    if finding.margin < policy.margin:
        return False
    if tie is None:
        return True
    best = tie.candidates[0].score
    tied = [c for c in tie.candidates if best - c.score < policy.margin]
    disputed = {stem_plural(w) for c in tied for match in c.matches for w in words(match)}
    settled = finding.candidates[0]
    known = {stem_plural(word) for word in settled.matches}
    return settled.agent in {c.agent for c in tied} and disputed <= known
