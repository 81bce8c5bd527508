"""What a pre-validation tool says of an action (platform facts 15.1, 4.8)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.runtime.turn import ToolCall

MAX_MESSAGE = 1_000


@dataclass(frozen=True)
class Verdict:
    """``stop``: the action ends here, because it is not possible or nobody could say.

    ``values``: arguments the validator resolved; ``target``: the tool it says must run instead;
    ``reconfirm``: the customer must be asked (again) with ``message``.
    """

    stop: bool = False
    unavailable: bool = False
    reason: str = ""
    message: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    target: str = ""
    reconfirm: bool = False


def validator_verdict(call: ToolCall, *, fail_open: bool) -> Verdict:
    """Return the verdict in ``call``'s result: ``eligible``, ``status``, ``reason``, decision.

    A validator that failed stops the action unless ``fail_open``. A result that does not say
    ``eligible`` counts as failed too: silence is no permission.
    """
    result = call.result if isinstance(call.result, Mapping) else {}
    eligible = result.get("eligible")
    if not isinstance(eligible, bool):
        return Verdict(stop=not fail_open, unavailable=True)
    message = str(result.get("message") or result.get("reason") or "")[:MAX_MESSAGE]
    if not eligible:
        return Verdict(
            stop=True, reason=str(result.get("status") or "not_eligible"), message=message
        )
    decision = result.get("transaction_decision")
    if not isinstance(decision, Mapping):
        return Verdict()
    resolved = decision.get("resolved_arguments")
    target = str(decision.get("target_tool") or "")
    changed = bool(target) and bool(decision.get("action_changed", True))
    return Verdict(
        values=dict(resolved) if isinstance(resolved, Mapping) else {},
        target=target,
        reconfirm=changed or decision.get("requires_reconfirmation") is True,
        message=str(decision.get("confirmation_message") or "")[:MAX_MESSAGE],
    )
