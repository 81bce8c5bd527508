"""Gives the conversation to a person, or ends it, when the customer asks for that."""

from collections.abc import Callable

from apps.runtime.outcomes import Ended, HandedOver
from apps.runtime.turn import Turn

HANDED_OVER_STATE = "HUMAN_HANDOFF_REQUESTED"
ENDED_STATE = "SESSION_ENDED"
"""States of platform facts 3.5; no state policy is asked for them."""

HANDOFF_REASON = "customer"


class TakeControl:
    """Sets the outcome of a route that no agent answers: ``HandedOver`` or ``Ended``.

    ``text_for`` gives the tenant's words, ``leave`` ends an open sub-conversation. What was open in
    the conversation is closed; what was done stays known. Stands after the action of the turn was
    ended.
    """

    def __init__(
        self, text_for: Callable[[Turn], str], *, leave: Callable[[Turn], Turn] | None = None
    ) -> None:
        self._text_for = text_for
        self._leave = leave

    async def __call__(self, turn: Turn) -> Turn:
        route = turn.route
        if route is None or not route.control:
            return turn
        text = self._text_for(turn)
        if self._leave is not None:
            turn = self._leave(turn)
        closed = turn.dialogue.evolve(sub_conversation=None, active_agent="", active_intent="")
        if route.control == "HUMAN_HANDOFF":
            return turn.evolve(
                outcome=HandedOver(text=text, reason=HANDOFF_REASON),
                next_state=HANDED_OVER_STATE,
                dialogue=closed.evolve(control="handed_over"),
            )
        return turn.evolve(
            outcome=Ended(text=text),
            next_state=ENDED_STATE,
            dialogue=closed.evolve(control="ended", topics=(), boundary=True),
        )
