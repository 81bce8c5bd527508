"""Every routing strategy by its name, and the order in which a policy has them asked."""

from collections.abc import Mapping
from types import MappingProxyType

from apps.routing.config import RoutingPolicyConfig
from apps.routing.strategies.example import by_example
from apps.routing.strategies.face import Strategy
from apps.routing.strategies.keyword import by_keyword
from apps.routing.strategies.state import by_state

STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {"state": by_state, "keyword": by_keyword, "example": by_example}
)


def order(policy: RoutingPolicyConfig) -> tuple[str, ...]:
    """Return the names of the strategies to ask, first to last."""
    return tuple(name for name in dict.fromkeys(policy.strategies) if name in STRATEGIES)
