"""A small bounded memory of this process."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")


class BoundedCache(Generic[KeyT, ValueT]):
    """Keeps the ``size`` most recently used values; safe under threads.

    ``make`` of one key runs in one thread at a time and once when it succeeds. It must not ask the
    database: the threads that wait for it may hold every connection of the pool.
    """

    def __init__(self, size: Callable[[], int]) -> None:
        self._size = size
        self._values: OrderedDict[KeyT, ValueT] = OrderedDict()
        self._making: dict[KeyT, Lock] = {}
        self._lock = Lock()

    def get(self, key: KeyT) -> ValueT | None:
        """Return the value of ``key``, or ``None`` when it is not kept."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key]

    def put(self, key: KeyT, value: ValueT) -> None:
        """Keep ``value``; the least recently used ones make room."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._size():
                self._values.popitem(last=False)

    def get_or_make(self, key: KeyT, make: Callable[[], ValueT]) -> ValueT:
        """Return the value of ``key``, made by ``make`` when it is not kept."""
        value = self.get(key)
        if value is not None:
            return value
        with self._lock:
            turnstile = self._making.setdefault(key, Lock())
        with turnstile:
            try:
                value = self.get(key)
                if value is None:
                    value = make()
                    self.put(key, value)
                return value
            finally:
                with self._lock:
                    self._making.pop(key, None)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._values.clear()
