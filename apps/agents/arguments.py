"""The arguments a model wrote for a tool, read strictly: never repaired, never through a float."""

import json
from typing import Any

from apps.runtime.numbers import decimal_read, whole_read

MAX_ARGUMENT_CHARS = 50_000


class ArgumentsInvalid(ValueError):
    """What a model wrote is no JSON object; the text says what is wrong, for the model to read."""


def arguments_parse(raw: str | None) -> dict[str, Any]:
    """Return the JSON object in ``raw``; nothing, blanks and ``null`` mean no arguments.

    Integers keep every digit (field case 1.6) and texts that look like JSON stay texts (1.8). A
    decimal that no float holds comes out as ``Inexact``, for the tool's validation to refuse by its
    field. Raises ``ArgumentsInvalid`` for anything else, cut-off text included (11.7).
    """
    text = (raw or "").strip()
    if text in ("", "null"):
        return {}
    if len(text) > MAX_ARGUMENT_CHARS:
        raise ArgumentsInvalid(f"the arguments are longer than {MAX_ARGUMENT_CHARS} characters")
    try:
        value = json.loads(
            text,
            parse_float=decimal_read,
            parse_int=whole_read,
            parse_constant=_no_constant,
            object_pairs_hook=_once,
        )
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


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object; a name written twice would mean whichever value came last."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ArgumentsInvalid("a field is written twice")
    return found


def _no_constant(name: str) -> Any:
    raise ArgumentsInvalid(f"{name} is not JSON")
