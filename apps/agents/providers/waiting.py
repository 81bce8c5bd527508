"""How long to wait before a model is asked again."""

import random
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime

# Longer than this a customer's turn does not wait: it fails as rate limited instead.
MAX_WAIT_SECONDS = 60.0
FIRST_BACKOFF_SECONDS = 0.5
MAX_BACKOFF_SECONDS = 8.0


def retry_after(
    headers: Mapping[str, str], *, now: Callable[[], float] = time.time
) -> float | None:
    """Return the seconds a server asks to wait, from ``Retry-After`` (seconds or HTTP date) or
    ``retry-after-ms``; ``None`` when it asks nothing that can be read (field case 11.1)."""
    milliseconds = headers.get("retry-after-ms", "")
    if milliseconds.strip().isdigit():
        return int(milliseconds) / 1000
    asked = headers.get("retry-after", "").strip()
    if not asked:
        return None
    try:
        seconds = float(asked)
        return seconds if seconds >= 0 else None  # NaN compares false
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(asked).timestamp() - now())
    except (TypeError, ValueError, OverflowError):
        return None


def wait_seconds(
    asked: float | None, attempt: int, *, chance: Callable[[], float] = random.random
) -> float | None:
    """Return the wait before retry number ``attempt`` (0 is the first), jittered.

    Never less than ``asked``; ``None`` when that is over a minute. Without ``asked`` it grows from
    half a second to eight.
    """
    if asked is not None:
        return None if asked > MAX_WAIT_SECONDS else asked + chance() * min(1.0, 0.1 * asked + 0.05)
    backoff = min(MAX_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2.0**attempt)
    return backoff * (0.5 + chance() / 2)
