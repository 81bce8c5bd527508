"""How long a call may still take: the turn's own end, whatever the tool allows itself."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from apps.runtime.ports import RemoteTool, ToolUnavailable


@dataclass(frozen=True)
class Deadline:
    """A moment of the monotonic clock that nothing moves."""

    ends: float
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def after(cls, seconds: float, clock: Callable[[], float] = time.monotonic) -> "Deadline":
        """Return the deadline ``seconds`` from now."""
        return cls(clock() + seconds, clock)

    def left(self, cap: float | None = None) -> float:
        """Return the seconds left, no more than ``cap`` and never below 0."""
        left = max(0.0, self.ends - self.clock())
        return left if cap is None else min(left, cap)

    def within(self, remote: RemoteTool, *, least: float = 0.05) -> RemoteTool:
        """Return ``remote`` with a timeout that ends by this deadline.

        Raises ``ToolUnavailable(code="deadline", sent=False)`` when less than ``least`` seconds are
        left: a request that cannot be answered in time is not sent, and is no failure of the server.
        """
        left = self.left(remote.timeout_seconds)
        if left < least:
            text = "The turn has no time left for this call."
            raise ToolUnavailable(text, sent=False, code="deadline")
        return replace(remote, timeout_seconds=left)
