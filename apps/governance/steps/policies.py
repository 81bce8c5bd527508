"""How a step learns which rail policy holds: a function that ``agentops/pipeline.py`` passes in.

Before routing it is the policy of the requested agent, afterwards that of the one that answers.
"""

from collections.abc import Callable

from apps.governance.config import RailPolicyConfig
from apps.runtime.outcomes import Blocked, HandedOver
from apps.runtime.turn import Decision, Turn

PolicyFor = Callable[[Turn], RailPolicyConfig]


def turn_block(turn: Turn, policy: RailPolicyConfig, decision: Decision) -> Turn:
    """End ``turn`` with the tenant's words for the rail; nothing of this turn's answer is left."""
    text = policy.block_texts.get(decision.code) or policy.block_text
    return _emptied(turn).evolve(outcome=Blocked(text=text, code=decision.code))


def turn_hand_over(turn: Turn, policy: RailPolicyConfig, reason: str) -> Turn:
    """End ``turn`` by passing the conversation to a person."""
    return _emptied(turn).evolve(outcome=HandedOver(text=policy.handover_text, reason=reason))


def _emptied(turn: Turn) -> Turn:
    return turn.evolve(draft=None)
