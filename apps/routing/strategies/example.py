"""Whose example sentences the message is like."""

from apps.routing.sentence import requests
from apps.routing.strategies.face import (
    MAX_CANDIDATES,
    Finding,
    Question,
    best_first,
    settles,
)
from apps.runtime.turn import Candidate


async def by_example(question: Question) -> Finding:
    """Score the intents by the likeness of their examples, as a calibrated probability."""
    index = question.index
    likely = index.examples.rank(question.sentence, question.admits, limit=MAX_CANDIDATES)
    candidates = best_first(
        question,
        [
            Candidate(
                intent=likeness.intent,
                agent=index.intents[likeness.intent].agent,
                score=round(likeness.confidence, 6),
                matches=likeness.words,
            )
            for likeness in likely
        ],
    )
    reason = "examples: " + ", ".join(candidates[0].matches) if candidates else ""
    return Finding(method="example", candidates=candidates, reason=reason)


async def settled_by_example(question: Question, tie: Finding) -> Candidate | None:
    """Return whose examples settle a request of which the keywords name several, if any do."""
    if "example" not in question.policy.strategies or not requests(question.sentence):
        return None
    finding = await by_example(question)
    return finding.best if finding.best and settles(finding, tie, question.policy) else None
