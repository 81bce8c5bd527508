"""How strong an action against a text is. Pure."""

from apps.governance.rails.registry import RAILS

# Mildest first. A person who takes over still reads what a block keeps from everybody.
STRENGTH = {"allow": 0, "observe": 1, "sanitize": 2, "retry": 3, "handover": 4, "block": 5}
# DLEX_OUT answers each finding in its own way: a placeholder, a name of internals, a credential.
SEVERAL_ACTIONS = {"DLEX_OUT": ("sanitize", "block")}


def is_relaxed(code: str, before: str, after: str) -> bool:
    """Return whether rail ``code`` does less in any case; "" is the rail's own action."""
    (old_low, old_high), (low, high) = _strengths(code, before), _strengths(code, after)
    return low < old_low or high < old_high


def _strengths(code: str, action: str) -> tuple[int, int]:
    """Return how strong the mildest and the strictest answer is."""
    own = RAILS[code].denies if code in RAILS else "block"
    mildest, strictest = SEVERAL_ACTIONS.get(code, (own, own))
    return STRENGTH.get(action or mildest, 0), STRENGTH.get(action or strictest, 0)
