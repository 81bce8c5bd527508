"""The strategies that score intents; a plan's clauses and what follows a yes are put to them too."""

from collections.abc import Mapping
from types import MappingProxyType

from apps.routing.strategies.example import by_example
from apps.routing.strategies.face import Strategy
from apps.routing.strategies.keyword import by_keyword
from apps.routing.strategies.llm import by_llm
from apps.routing.strategies.semantic import by_semantic

SCORERS: Mapping[str, Strategy] = MappingProxyType(
    {"keyword": by_keyword, "example": by_example, "semantic": by_semantic, "llm": by_llm}
)
