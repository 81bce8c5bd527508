"""How long the tools of one turn may take altogether."""

import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from apps.runtime.turn import Turn

REMEMBERED = 4096
"""Turns whose time is remembered; far more than a process runs at once."""


class TurnTime:
    """Seconds that calls of a turn have taken, by turn and lease.

    What is counted is the time a turn waited, so that calls at the same moment count once, and a
    server that sends a sign of life every second counts as one that is silent.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._spent: OrderedDict[tuple[str, int], float] = OrderedDict()

    def left(self, turn: Turn) -> float:
        """Return the seconds that ``turn`` may still wait for tools."""
        return self._seconds - self._spent.get((turn.id, turn.fence), 0.0)

    @contextmanager
    def spending(self, turn: Turn) -> Iterator[None]:
        """Count the time of the block as the turn's."""
        started = time.monotonic()
        try:
            yield
        finally:
            key = (turn.id, turn.fence)
            self._spent[key] = self._spent.pop(key, 0.0) + time.monotonic() - started
            while len(self._spent) > REMEMBERED:
                self._spent.popitem(last=False)
