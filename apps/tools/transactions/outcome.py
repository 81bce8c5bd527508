"""What became of an action, and what of it is kept."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.runtime.dialogue import Evidence, TransactionStatus
from apps.runtime.turn import ToolCall
from apps.tools.config import ToolConfig

MAX_FIELDS = 12
MAX_FIELD_CHARS = 200

Mask = Callable[[str], str]


@dataclass(frozen=True)
class Items:
    """Per-item results of one call (platform facts 15.4)."""

    count: int = 0
    succeeded: int = 0

    @property
    def failed(self) -> int:
        return self.count - self.succeeded


def items_of(result: Any) -> Items:
    """Return the count of ``results`` entries that say whether they worked, none for fewer than two."""
    entries = result.get("results") if isinstance(result, Mapping) else None
    if not isinstance(entries, Sequence) or isinstance(entries, str) or len(entries) < 2:
        return Items()
    said = [_said(entry) for entry in entries]
    if any(answer is None for answer in said):
        return Items()
    return Items(count=len(said), succeeded=sum(answer is True for answer in said))


def _said(entry: Any) -> bool | None:
    if not isinstance(entry, Mapping):
        return None
    for key in ("success", "ok"):
        if isinstance(entry.get(key), bool):
            return bool(entry[key])
    return None


def status_of(call: ToolCall) -> tuple[TransactionStatus, Items]:
    """Return the terminal status of the action that ``call`` carried out.

    Items decide when there are some: one bad item does not make the others undone, and a flag of the
    whole call does not undo them either.
    """
    items = items_of(call.result)
    if items.count and call.status in ("ok", "error"):
        if items.failed == 0:
            return "COMPLETED", items
        return ("PARTIAL_SUCCESS" if items.succeeded else "FAILED"), items
    known: Mapping[str, TransactionStatus] = {
        "ok": "COMPLETED",
        "error": "FAILED",
        "refused": "BLOCKED",
        "unknown": "UNKNOWN",
    }
    return known[call.status], items


def evidence_of(
    tool: ToolConfig, call: ToolCall, status: str, turn_number: int, mask: Mask
) -> Evidence:
    """Return what is kept of ``call``: the short plain fields of its result, masked."""
    result = call.result if isinstance(call.result, Mapping) else {}
    resource = call.arguments.get(tool.resource_argument, "") if tool.resource_argument else ""
    return Evidence(
        tool=call.tool,
        status=status,
        resource=str(resource),
        turn=turn_number,
        summary=summary_of(result, mask),
    )


def summary_of(result: Mapping[str, Any], mask: Mask) -> dict[str, Any]:
    """Return the first short plain fields of ``result``, masked."""
    plain = {
        str(key): mask(value) if isinstance(value, str) else value
        for key, value in result.items()
        if isinstance(value, (str, int, bool)) and len(str(value)) <= MAX_FIELD_CHARS
    }
    return dict(list(plain.items())[:MAX_FIELDS])
