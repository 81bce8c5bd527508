"""Whether the customer asks for a person or ends the conversation, in so many words."""

from apps.routing.routes import Control, control_route
from apps.routing.sentence import asks_for_person, says_farewell
from apps.routing.strategies.face import Finding, Question


async def by_control(question: Question) -> Finding:
    """Give the conversation to a person, or end it, when the message says so and nothing else."""
    control = control_said(question)
    if control is None:
        return Finding(method="control")
    reason = f"{control} in so many words"
    route = control_route(question, control, "control", reason)
    return Finding(method="control", route=route, reason=reason)


def control_said(question: Question) -> Control | None:
    """Return what the message asks of the conversation itself; ``None`` for nothing.

    A request for a person counts wherever it stands in the message, a farewell only when it is
    (almost) all of it, and neither when it is denied.
    """
    sentence, index = question.sentence, question.index
    own = any(not match.negated for match in index.handoff_words.find(sentence))
    if own or asks_for_person(sentence):
        return "HUMAN_HANDOFF"
    return "END_SESSION" if says_farewell(sentence, index.end_words) else None
