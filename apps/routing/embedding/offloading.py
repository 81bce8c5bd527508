"""Threads on which sentences become vectors: few, with a short queue, never the event loop's."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Busy(RuntimeError):
    """More sentences wait than can be answered in time."""


class Offload:
    """Runs at most ``threads`` calls at once and lets at most ``waiting`` more wait."""

    def __init__(self, *, threads: int, waiting: int) -> None:
        self._limit = threads + waiting
        self._open = 0
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="embedding")

    async def run(self, call: Callable[[], T]) -> T:
        """Return what ``call`` returns; raise ``Busy`` when the queue is full."""
        with self._lock:
            if self._open >= self._limit:
                raise Busy("too many sentences wait for their vectors")
            self._open += 1
        try:
            future = self._pool.submit(call)
        except BaseException:
            self._done()
            raise
        # Counted until the thread is free again, also when nobody waits for the answer any more.
        future.add_done_callback(lambda _: self._done())
        return await asyncio.wrap_future(future)

    def _done(self) -> None:
        with self._lock:
            self._open -= 1
