"""Lets a bench see what a server wrote, before it is made a result. Off for every other call."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_watcher: ContextVar[Callable[[Any], None] | None] = ContextVar("tool_answer_watcher", default=None)


@contextmanager
def watching(see: Callable[[Any], None]) -> Iterator[None]:
    """Hand every answer that a server gives inside the block to ``see``, as JSON values."""
    token = _watcher.set(see)
    try:
        yield
    finally:
        _watcher.reset(token)


def answer_seen(value: Callable[[], Any]) -> None:
    """Hand on what ``value`` returns when somebody watches; otherwise it is not even made."""
    see = _watcher.get()
    if see is not None:
        see(value())
