"""Runs the rails of a policy over one text, each on what the one before let through.

Sanitising is chained whatever the order: a rail never sees or returns an older text than the last
one, and sanitising rails run even when another rail has blocked, because the text is stored.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from apps.governance.config import RailRule
from apps.governance.rails.base import Phase, Rail, RailContext, RailResult
from apps.governance.rails.registry import RAILS
from apps.governance.vault import Vault
from apps.runtime.turn import SEVERITY, Action, Decision, Turn

logger = logging.getLogger(__name__)

# Stored in place of a text whose sanitiser broke: nobody can say what is in it.
WITHHELD = "<WITHHELD>"
_STOPS = SEVERITY["block"]


@dataclass(frozen=True)
class RailsRun:
    """The text that may go on, one decision per rail that ran, and the vault with new entries."""

    text: str
    decisions: tuple[Decision, ...]
    vault: Mapping[str, str]


def rails_run(
    *,
    phase: Phase,
    rules: Sequence[RailRule],
    text: str,
    turn: Turn,
    rails: Mapping[str, Rail] = RAILS,
) -> RailsRun:
    """Run the enabled ``rules`` in order over ``text``. Never raises for a rail that breaks."""
    vault = Vault({**turn.session.vault, **turn.vault})
    decisions: list[Decision] = []
    stopped = False
    for rule in rules:
        rail = rails[rule.code]
        if not rule.enabled or (stopped and not rail.sanitizes):
            continue
        context = RailContext(phase=phase, turn=turn, vault=vault, parameters=rule.parameters)
        result = _checked(rail, rule, text, context)
        decision = _with_attempt(result.decision, turn)
        decisions.append(decision)
        if result.text is not None and decision.action != "observe":
            text = result.text
        stopped = stopped or SEVERITY[decision.action] >= _STOPS
    return RailsRun(text=text, decisions=tuple(decisions), vault=vault.values)


def worst(decisions: Sequence[Decision]) -> Decision | None:
    """Return the first of the most severe ``decisions``, ``None`` when there are none."""
    return max(decisions, key=lambda d: SEVERITY[d.action], default=None)


def _checked(rail: Rail, rule: RailRule, text: str, context: RailContext) -> RailResult:
    try:
        result = rail.check(text, context)
    except Exception as error:
        # Deliberately broad: any surprise in a rail is answered by the rule's own on_error.
        logger.error("rail_failed code=%s error=%s", rail.code, type(error).__name__)
        return _broken(rail, rule, context, error)
    action = result.decision.action
    if rule.on_deny and action != "allow":
        result = replace(result, decision=replace(result.decision, action=rule.on_deny))
    return result


def _broken(rail: Rail, rule: RailRule, context: RailContext, error: Exception) -> RailResult:
    action: Action = "block" if rule.on_error == "block" else "observe"
    decision = Decision(
        phase=context.phase,
        code=rail.code,
        action=action,
        reason=f"rail broke: {type(error).__name__}",
        metadata={"error": True},
    )
    return RailResult(decision, WITHHELD if rail.sanitizes else None)


def _with_attempt(decision: Decision, turn: Turn) -> Decision:
    if decision.phase != "output":
        return decision
    return replace(decision, metadata={**decision.metadata, "attempt": turn.attempt})
