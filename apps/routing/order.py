"""Every routing strategy by its name, and the order in which a policy has them asked."""

from collections.abc import Mapping
from types import MappingProxyType

from apps.routing.config import RoutingPolicyConfig
from apps.routing.scorers import SCORERS
from apps.routing.strategies.continuity import by_continuity
from apps.routing.strategies.control import by_control
from apps.routing.strategies.delegation import by_delegation
from apps.routing.strategies.face import Strategy
from apps.routing.strategies.literal import by_literal
from apps.routing.strategies.state import by_state
from apps.routing.strategies.transaction import by_transaction

STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {
        "transaction": by_transaction,
        "delegation": by_delegation,
        "state": by_state,
        "control": by_control,
        "literal": by_literal,
        "continuity": by_continuity,
        **SCORERS,
    }
)
# What is open is never ignored, whether or not a policy of an older release names it.
FLOWS = ("transaction", "delegation")
# What the customer says in so many words is heard before any model is asked.
PLAIN = ("control", "literal")
MODELS = ("continuity", "semantic", "llm")


def order(policy: RoutingPolicyConfig) -> tuple[str, ...]:
    """Return the names of the strategies to ask, first to last: the policy's order, but for two rules.

    Open flows always come first, and ``control`` and ``literal`` never after a model.
    """
    listed = [name for name in dict.fromkeys(policy.strategies) if name not in FLOWS]
    first_model = next((i for i, name in enumerate(listed) if name in MODELS), len(listed))
    late = [name for name in listed[first_model:] if name in PLAIN]
    before = [*listed[:first_model], *late]
    return (*FLOWS, *before, *(name for name in listed if name not in before))
