"""Arguments against the declared schema, with errors that say what to send instead.

A value is accepted, written in the declared type without loss, or refused; it is never replaced by
another one (field cases 1.3, 1.6, 1.8, 1.10, 1.11).
"""

import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from apps.runtime.canonical import canonical_json
from apps.runtime.i18n import gettext_noop as _
from apps.runtime.text import fold
from apps.tools.config import Argument, ToolConfig

INT64 = range(-(2**63), 2**63)
"""What every server's integer holds; a longer number has to be declared as text."""

_DIGITS = re.compile(r"-?(0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")


class Refused(ValueError):
    """The value cannot be sent; the text says why and never repeats the value."""


@dataclass(frozen=True)
class Checked:
    """``arguments`` in their declared types, and what was wrong: ``{field, message, accepted}``."""

    arguments: Mapping[str, Any]
    errors: tuple[Mapping[str, str], ...] = ()


def arguments_check(tool: ToolConfig, arguments: Mapping[str, Any]) -> Checked:
    """Return ``arguments`` (declared names only) as ``tool`` wants them, or the field errors.

    Every ``requires`` name must be there: it is tested here, after the mapping.
    """
    checked: dict[str, Any] = {}
    errors: list[Mapping[str, str]] = []
    for name, argument in tool.args_schema.items():
        if name in arguments:
            try:
                checked[name] = value_check(argument, arguments[name])
            except Refused as reason:
                errors.append(field_error(name, argument, str(reason)))
        elif name in tool.requires:
            errors.append(field_error(name, argument, _("This field is required.")))
    return Checked(checked, tuple(errors))


def field_error(name: str, argument: Argument, message: str) -> dict[str, str]:
    """Return one field error; ``accepted`` lists the values of an enumeration, or the type."""
    accepted = ", ".join(argument.enum) if argument.enum else argument.type
    return {"field": name, "message": message, "accepted": accepted}


def value_check(argument: Argument, value: Any) -> Any:
    """Return ``value`` in the declared type. Raises ``Refused``."""
    typed = _TYPES[argument.type](value)
    if not argument.enum:
        return typed
    if isinstance(typed, list):
        return [_enum(argument, item) for item in typed]
    return _enum(argument, typed)


def _enum(argument: Argument, value: Any) -> Any:
    """Return the declared spelling of ``value``: exact, or the only one equal but for case/accents."""
    if str(value) in argument.enum:
        return value
    alike = [item for item in argument.enum if fold(item) == fold(str(value).strip())]
    if isinstance(value, str) and len(alike) == 1:
        return alike[0]
    raise Refused(_("This is none of the accepted values."))


def _string(value: Any) -> str:
    """An integer is written out in all its digits; text stays as it is, even when it looks like JSON."""
    if isinstance(value, str):
        if any("\ud800" <= char <= "\udfff" for char in value):
            raise Refused(_("This text has characters that no encoding has."))
        return value
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= 1024:
        return str(value)
    raise Refused(_("This must be text."))


def _integer(value: Any) -> int:
    if isinstance(value, str) and _DIGITS.fullmatch(value) and len(value) <= 20:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise Refused(_("This must be a whole number, digits only."))
    if value not in INT64:
        raise Refused(_("This number has more digits than a 64-bit integer holds."))
    return value


def _number(value: Any) -> int | float:
    if isinstance(value, str) and _DECIMAL.fullmatch(value) and len(value) <= 40:
        value = float(value) if "." in value else int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Refused(_("This must be a number, with a point before decimals."))
    if isinstance(value, int):
        return _integer(value)
    if not math.isfinite(value):
        raise Refused(_("This must be a finite number."))
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Refused(_("This must be true or false, not text."))
    return value


def _array(value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise Refused(_("This must be a list, not text."))
    if list(value) == ["null"]:
        # How some models write "leave this empty"; sent on, it is a search for the word.
        raise Refused(_("Leave this field out instead of sending the word null."))
    _plain(value)
    return list(value)


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise Refused(_("This must be an object, not text."))
    _plain(value)
    return dict(value)


def _plain(value: Any) -> None:
    """Refuse what cannot be written as JSON text: NaN, lone surrogates, foreign types, bottomless nesting."""
    try:
        canonical_json(value).encode("utf-8")
    except (ValueError, TypeError, RecursionError):
        raise Refused(_("This holds a value that JSON text cannot hold.")) from None


_TYPES: dict[str, Callable[[Any], Any]] = {
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "array": _array,
    "object": _object,
}


def json_schema(tool: ToolConfig, *, filled: Collection[str] = ()) -> dict[str, Any]:
    """Return the JSON schema of the tool's arguments as a model is shown it.

    ``filled`` are arguments that the platform fills for this conversation: they are left out, so
    that no model is tempted to make one up.
    """
    shown = {name: arg for name, arg in tool.args_schema.items() if name not in filled}
    return {
        "type": "object",
        "properties": {name: _property(argument) for name, argument in shown.items()},
        "required": [name for name in tool.requires if name in shown],
        "additionalProperties": False,
    }


def _property(argument: Argument) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": argument.type}
    if argument.description or argument.label:
        schema["description"] = argument.description or argument.label
    if argument.enum and argument.type == "array":
        schema["items"] = {"type": "string", "enum": list(argument.enum)}
    elif argument.enum:
        schema["enum"] = [_enum_value(argument, item) for item in argument.enum]
    return schema


def _enum_value(argument: Argument, item: str) -> Any:
    return int(item) if argument.type == "integer" and _DIGITS.fullmatch(item) else item
