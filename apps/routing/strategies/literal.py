"""A fixed answer to a fixed message, given before any model is asked."""

from apps.routing.strategies.face import Finding, Question
from apps.runtime.turn import Route

LITERAL = "literal"


async def by_literal(question: Question) -> Finding:
    """Answer when the whole message is one of the policy's; its answer is in the metadata."""
    answer = question.index.literals.get(question.sentence.texts)
    if answer is None:
        return Finding(method="literal")
    reason = "fixed answer to a fixed message"
    route = Route(
        agent=question.speaker,
        intent=LITERAL,
        method="literal",
        confidence=1.0,
        reason=reason,
        threshold=question.policy.confidence_threshold,
        metadata={"answer": answer},
    )
    return Finding(method="literal", route=route, reason=reason)
