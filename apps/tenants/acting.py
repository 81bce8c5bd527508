"""By which key a person acts, for the audit trail: ``audit_append`` adds it to the detail."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_key: ContextVar[str] = ContextVar("acting_key", default="")


@contextmanager
def acting_with_key(prefix: str) -> Iterator[None]:
    """Let the block's audit entries name the key ``prefix`` ("" for a login, which names none)."""
    token = _key.set(prefix)
    try:
        yield
    finally:
        _key.reset(token)


def acting_key() -> str:
    """Return the prefix of the key the current person acts with, or ""."""
    return _key.get()
