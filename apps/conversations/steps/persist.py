"""Writes down what happened."""

from apps.conversations.steps.reply import next_state_of
from apps.runtime.ports import TurnStore
from apps.runtime.turn import Turn


class Persist:
    """Settles the turn in the store: record, messages, session state, outbox, in one commit.

    A turn that ended before its reply (blocked, handed over, failed) gets its next state here.
    Raises ``LeaseLost``.
    """

    def __init__(self, store: TurnStore) -> None:
        self._store = store

    async def __call__(self, turn: Turn) -> Turn:
        if turn.next_state is None:
            turn = turn.evolve(next_state=next_state_of(turn))
        await self._store.settle(turn)
        return turn
