"""Lets the reply leave."""

from apps.runtime.ports import TurnStore
from apps.runtime.turn import Turn


class Deliver:
    """Hands the settled turn to its channel, once. Raises ``LeaseLost``."""

    def __init__(self, store: TurnStore) -> None:
        self._store = store

    async def __call__(self, turn: Turn) -> Turn:
        await self._store.deliver(turn)
        return turn
