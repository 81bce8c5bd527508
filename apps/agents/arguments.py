"""The arguments a model wrote for a tool, read strictly: never repaired, never through a float."""

import json
import math
from decimal import Decimal
from typing import Any

MAX_ARGUMENT_CHARS = 50_000
_EXACT_FLOAT = 2**53


class ArgumentsInvalid(ValueError):
    """What a model wrote is no JSON object; the text says what is wrong, for the model to read."""


def arguments_parse(raw: str | None) -> dict[str, Any]:
    """Return the JSON object in ``raw``; nothing, blanks and ``null`` mean no arguments.

    Integers keep every digit (field case 1.6) and texts that look like JSON stay texts (1.8).
    Raises ``ArgumentsInvalid`` for anything else, cut-off text included (11.7).
    """
    text = (raw or "").strip()
    if text in ("", "null"):
        return {}
    if len(text) > MAX_ARGUMENT_CHARS:
        raise ArgumentsInvalid(f"the arguments are longer than {MAX_ARGUMENT_CHARS} characters")
    try:
        value = json.loads(text, parse_float=_number, parse_constant=_no_constant)
    except ArgumentsInvalid:
        raise
    except json.JSONDecodeError as error:
        raise ArgumentsInvalid(
            f"the arguments are not valid JSON: {error.msg} at character {error.pos}"
        ) from None
    except (ValueError, RecursionError):
        raise ArgumentsInvalid("the arguments are not valid JSON") from None
    if not isinstance(value, dict):
        raise ArgumentsInvalid("the arguments must be one JSON object")
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise ArgumentsInvalid("the arguments hold a character that is not text") from None
    return value


def _number(text: str) -> float | int:
    """Return a decimal number; one too large for exact floats is an integer or is refused."""
    value = float(text)
    if math.isinf(value):
        raise ArgumentsInvalid(f"the number {text[:40]} is too large")
    if abs(value) < _EXACT_FLOAT:
        return value
    exact = Decimal(text)
    if exact != exact.to_integral_value():
        raise ArgumentsInvalid(f"the number {text[:40]} is too large; write it as text")
    return int(exact)


def _no_constant(name: str) -> Any:
    raise ArgumentsInvalid(f"{name} is not JSON")
