"""JSON numbers without loss: what a float cannot hold exactly is kept as what was written.

For ``json.loads(..., parse_float=decimal_read, parse_int=whole_read)``.
"""

import math
import sys
from decimal import Decimal, InvalidOperation

LONGEST = 1000
"""Digits of a number that is read; Python itself refuses integers of more than 4300."""

_EXACT_FLOAT = 2**53


class Inexact(float):
    """A number that no float holds exactly; ``text`` is how it was written.

    Everything that writes JSON takes it for a float. Whoever sends values on must refuse it.
    """

    text: str

    @classmethod
    def of(cls, text: str) -> "Inexact":
        """Return the nearest float of ``text``, marked."""
        near = float(text) if len(text) <= LONGEST else math.inf
        if not math.isfinite(near):
            near = math.copysign(sys.float_info.max, near)
        number = cls(near)
        number.text = text
        return number


def decimal_read(text: str) -> float | int:
    """Return the number written as ``text``: a float that is written the same, a whole number beyond
    what floats count exactly as an integer, or an ``Inexact``."""
    if len(text) > LONGEST:
        return Inexact.of(text)
    near = float(text)
    try:
        exact = Decimal(text)
        if math.isinf(near):
            return Inexact.of(text)
        if abs(near) >= _EXACT_FLOAT and exact == exact.to_integral_value():
            return int(exact)
        return near if exact == Decimal(repr(near)) else Inexact.of(text)
    except InvalidOperation:
        return Inexact.of(text)


def whole_read(text: str) -> int | float:
    """Return the integer written as ``text`` with all its digits, or an ``Inexact`` of a longer one."""
    return int(text) if len(text) <= LONGEST else Inexact.of(text)
