"""REVPREC: the answer says that something was done, and nothing shows that it was."""

from apps.governance.detection.action_claims import claims_find, leaves, protocols_find, proven
from apps.governance.rails.base import Rail, RailContext, RailResult
from apps.runtime.turn import Turn

_GUIDANCE = (
    "Do not say that an action was carried out: no tool confirmed it in this conversation. Say what "
    "is known from the tools, and what the next step would be."
)


class PrematureAction(Rail):
    """Allows a claim that an action tool of the turn, a tool's result or an earlier answer proves.

    Earlier answers have passed this rail, so what they claimed had its evidence then.
    """

    code = "REVPREC"
    denies = "retry"

    def check(self, text: str, context: RailContext) -> RailResult:
        turn = context.turn
        unproven = {family for family in claims_find(text) if not proven(family, turn.tool_calls)}
        if unproven:
            unproven -= _claimed_before(turn)
        if not unproven and _protocols_known(text, turn):
            return self.allow(context)
        reason = ", ".join(sorted(unproven)) or "protocol"
        return self.deny(context, f"claim without evidence: {reason}", guidance=_GUIDANCE)


def _claimed_before(turn: Turn) -> set[str]:
    claimed: set[str] = set()
    for message in turn.memory:
        if message.role == "assistant":
            claimed |= claims_find(message.text)
    return claimed


def _protocols_known(text: str, turn: Turn) -> bool:
    """Tell whether every protocol number in ``text`` was given by a tool, now or earlier, or said."""
    numbers = protocols_find(text)
    if not numbers:
        return True
    known = " ".join(
        [str(value) for call in turn.tool_calls if call.ok for _, value in leaves(call.result)]
        + [str(v) for kept in turn.dialogue.evidence for v in kept.summary.values()]
        + [message.text for message in turn.memory]
        + [turn.text, *turn.business_context.values.values()]
    )
    return all(number in known for number in numbers)
