"""What a rail is: it reads a text and returns a verdict, with the text it would let through.

A rail knows nothing of policies: the chain turns its own action into the rule's, catches it when
it breaks, and hands its text to the next rail.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from apps.governance.vault import Vault
from apps.runtime.turn import Action, Decision, Turn

Phase = Literal["input", "output"]
Parameters = Mapping[str, int | float | str | bool]


@dataclass(frozen=True)
class RailContext:
    """What a rail may know besides the text. ``vault`` grows while sanitising rails run."""

    phase: Phase
    turn: Turn
    vault: Vault
    parameters: Parameters = field(default_factory=dict)

    def number(self, name: str, default: float) -> float:
        """Return the numeric parameter ``name``; raise ``ValueError`` when it is no number."""
        return float(self.parameters.get(name, default))

    def names(self, name: str) -> frozenset[str]:
        """Return the parameter ``name``, a comma-separated list, as a set."""
        listed = str(self.parameters.get(name, "")).split(",")
        return frozenset(entry.strip() for entry in listed if entry.strip())


@dataclass(frozen=True)
class RailResult:
    """A rail's verdict; ``text`` is the text to go on with, ``None`` when it is unchanged."""

    decision: Decision
    text: str | None = None


class Rail:
    """One check. ``denies`` is its action when it denies and the rule names no other.

    ``sanitizes``: the rail returns a cleaned text, so it runs even after another one has blocked.
    """

    code: ClassVar[str]
    denies: ClassVar[Action] = "block"
    sanitizes: ClassVar[bool] = False

    def check(self, text: str, context: RailContext) -> RailResult:
        """Return the verdict on ``text``. May raise; the rule's ``on_error`` decides then."""
        raise NotImplementedError

    def allow(self, context: RailContext) -> RailResult:
        """Return a verdict that lets the text through as it is."""
        return RailResult(Decision(phase=context.phase, code=self.code, action="allow"))

    def deny(
        self,
        context: RailContext,
        reason: str,
        *,
        action: Action | None = None,
        guidance: str = "",
        text: str | None = None,
    ) -> RailResult:
        """Return a denial. ``reason`` names the rule that matched; it never leaves the platform."""
        decision = Decision(
            phase=context.phase,
            code=self.code,
            action=action or self.denies,
            reason=reason,
            guidance=guidance,
        )
        return RailResult(decision, text)
