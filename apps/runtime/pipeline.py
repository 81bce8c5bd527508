"""Walks a turn through its steps."""

import time
import uuid
from collections.abc import Callable, Sequence

from apps.runtime.outcomes import Failed
from apps.runtime.ports import LeaseLost, Observer, Step
from apps.runtime.turn import Turn


def step_name(step: Step) -> str:
    """Return the name a step goes by in timings and observers."""
    return type(step).__name__


class Pipeline:
    """``steps`` run in order until one sets an outcome; ``closing`` always run after that.

    The only broad ``except`` of a turn is here: a surprise becomes a ``Failed`` outcome with an
    error id that is also in the log. ``LeaseLost`` goes up: another worker owns the turn.
    """

    def __init__(
        self,
        *,
        steps: Sequence[Step],
        closing: Sequence[Step],
        failure_text: Callable[[Turn], str],
        observers: Sequence[Observer] = (),
        on_error: Callable[[Turn, str, BaseException], None] | None = None,
    ) -> None:
        self.steps = tuple(steps)
        self.closing = tuple(closing)
        self.observers = tuple(observers)
        self._failure_text = failure_text
        self._on_error = on_error

    async def run(self, turn: Turn) -> Turn:
        """Return the turn with its outcome, persisted and delivered."""
        try:
            for step in self.steps:
                if turn.outcome is not None:
                    break
                turn = await self.step(turn, step)
        except LeaseLost:
            raise
        except Exception as error:
            error_id = uuid.uuid4().hex
            if self._on_error is not None:
                self._on_error(turn, error_id, error)
            turn = turn.evolve(
                outcome=Failed(
                    text=self._failure_text(turn), code="RUNTIME_AGENT_ERROR", error_id=error_id
                )
            )
        for step in self.closing:
            turn = await self.step(turn, step)
        return turn

    async def step(self, turn: Turn, step: Step) -> Turn:
        """Run one step under the observers and note its milliseconds in ``turn.timings``."""
        name = step_name(step)
        for observer in self.observers:
            observer.step_started(turn, name)
        started = time.perf_counter()
        turn = await step(turn)
        seconds = time.perf_counter() - started
        turn = turn.evolve(timings={**turn.timings, name: round(seconds * 1000, 3)})
        for observer in self.observers:
            observer.step_ended(turn, name, seconds)
        return turn
