"""What an agent in code may look up in documents. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from apps.runtime.turn import Turn


@dataclass(frozen=True)
class Retrieved:
    """Passages for a question. ``enabled``: whether there is anything to look in at all."""

    passages: tuple[str, ...] = ()
    enabled: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)


class RetrievalPort(Protocol):
    """Finds passages for ``query`` in what the agent ``agent`` of the turn's release may read."""

    async def retrieve(self, turn: Turn, agent: str, query: str) -> Retrieved: ...


class NoKnowledge:
    """The port while there is no knowledge base: it says so and finds nothing."""

    async def retrieve(self, turn: Turn, agent: str, query: str) -> Retrieved:
        return Retrieved()
