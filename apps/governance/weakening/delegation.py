"""An agent asks more of others, or lets them say and see more. Pure."""

from collections.abc import Iterator
from typing import Any

from apps.governance.weakening.edited import Content, Edited, number

DELEGATIONS = 3


def delegates_widened(edited: Edited) -> Iterator[str]:
    """Another agent may be asked, or in another way."""
    if set(_delegates(edited.after)) - set(_delegates(edited.before)):
        yield "delegates"


def delegate_speaks(edited: Edited) -> Iterator[str]:
    """A sub-agent that was silent may speak to the customer."""
    if _turned_on(edited, "speaks"):
        yield "delegates"


def delegate_sees(edited: Edited) -> Iterator[str]:
    """An agent that is asked sees the conversation and not only its question."""
    if _turned_on(edited, "pass_history"):
        yield "delegates"


def delegations_raised(edited: Edited) -> Iterator[str]:
    """Others are asked more often for one message."""
    field = "max_delegations"
    if number(edited.after, field, DELEGATIONS) > number(edited.before, field, DELEGATIONS):
        yield field


def _turned_on(edited: Edited, name: str) -> bool:
    before = _delegates(edited.before)
    return any(
        bool(entry.get(name)) and key in before and not before[key].get(name)
        for key, entry in _delegates(edited.after).items()
    )


def _delegates(content: Content) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Return kind, agent and role -> entry of the delegates; what is no entry is left out."""
    listed = content.get("delegates")
    return {
        (
            str(entry.get("kind", "consult")),
            str(entry.get("agent", "")),
            str(entry.get("role", "")),
        ): entry
        for entry in (listed if isinstance(listed, list | tuple) else ())
        if isinstance(entry, dict)
    }
