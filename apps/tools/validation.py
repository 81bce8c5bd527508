"""Arguments against the declared schema, with errors that say what to send instead.

A value is accepted, written in the declared type without loss, or refused; it is never replaced by
another one (field cases 1.3, 1.6, 1.8, 1.10, 1.11).
"""

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from apps.runtime.canonical import canonical_json
from apps.runtime.i18n import gettext_noop as _
from apps.runtime.numbers import Inexact
from apps.runtime.release import Release
from apps.runtime.text import fold
from apps.tools.config import Argument, ToolConfig

if TYPE_CHECKING:
    from apps.tools.schemas import Misfit, Schema

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


@dataclass(frozen=True)
class Rules:
    """What a tool's arguments must fit beyond their types, compiled once per release.

    ``arguments``: argument -> its own schema. ``whole``: the server's schema of all of them.
    """

    arguments: Mapping[str, "Schema"] = field(default_factory=dict)
    whole: "Schema | None" = None


def rules_of(release: Release, slug: str, tool: ToolConfig) -> Rules:
    """Return the rules of tool ``slug``; compiled once per release."""
    key = f"tools:rules:{slug}"
    if key not in release.derived:
        release.derived[key] = rules_compile(tool)
    compiled: Rules = release.derived[key]
    return compiled


def rules_compile(tool: ToolConfig) -> Rules:
    """Return the compiled schemas of ``tool``. A server's schema that is none is its own affair."""
    named = {name: arg for name, arg in tool.args_schema.items() if arg.json_schema}
    if not named and not tool.contract.input_schema:
        return Rules()
    from apps.tools.schemas import SchemaInvalid, schema_of  # takes a while; few processes need it

    try:
        whole = schema_of(tool.contract.input_schema) if tool.contract.input_schema else None
    except SchemaInvalid:
        whole = None
    return Rules({name: schema_of(argument.json_schema) for name, argument in named.items()}, whole)


def arguments_check(
    tool: ToolConfig, arguments: Mapping[str, Any], rules: Rules | None = None
) -> Checked:
    """Return ``arguments`` (declared names only) as ``tool`` wants them, or the field errors.

    Every ``requires`` name must be there: it is tested here, after the mapping. An error's ``path``
    is the place inside the field, where that is not the field itself.
    """
    rules = rules_compile(tool) if rules is None else rules
    checked: dict[str, Any] = {}
    errors: list[Mapping[str, str]] = []
    for name, argument in tool.args_schema.items():
        if name in arguments:
            try:
                checked[name] = value_check(argument, arguments[name])
            except Refused as reason:
                errors.append(field_error(name, argument, str(reason)))
                continue
            errors.extend(_beyond_type(name, argument, checked[name], rules))
        elif name in tool.requires:
            errors.append(field_error(name, argument, _("This field is required.")))
    if rules.whole is not None:
        wrong = {error["field"] for error in errors}
        found = [_misfitting(tool, misfit) for misfit in rules.whole.misfits(checked)]
        errors.extend(error for error in found if error["field"] not in wrong)
    return Checked(checked, tuple(errors))


def _beyond_type(
    name: str, argument: Argument, value: Any, rules: Rules
) -> Iterator[Mapping[str, str]]:
    if name in rules.arguments and not (value is None and argument.nullable):
        for misfit in rules.arguments[name].misfits(value):
            yield _placed(name, misfit.path, misfit, argument)


def _misfitting(tool: ToolConfig, misfit: "Misfit") -> Mapping[str, str]:
    """Return a misfit of the server's own schema as an error of the argument it is in."""
    name, *inner = misfit.path or ("",)
    return _placed(str(name), tuple(inner), misfit, tool.args_schema.get(str(name)))


def _placed(
    name: str, inner: tuple[str | int, ...], misfit: "Misfit", argument: Argument | None
) -> Mapping[str, str]:
    accepted = misfit.accepted or (_accepted(argument) if argument else "")
    error = {"field": name, "message": misfit.message, "accepted": accepted}
    if inner:
        error["path"] = path_text(name, inner)
    return error


def path_text(name: str, inner: tuple[str | int, ...]) -> str:
    """Return a place as people write it: ``pedido.itens[2].sku``."""
    return name + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in inner)


def field_error(name: str, argument: Argument, message: str) -> dict[str, str]:
    """Return one field error; ``accepted`` lists the values of an enumeration, or the type."""
    return {"field": name, "message": message, "accepted": _accepted(argument)}


def _accepted(argument: Argument) -> str:
    accepted = ", ".join(argument.enum) if argument.enum else argument.type
    if argument.items and not argument.enum:
        accepted = f"array of {argument.items}"
    return f"{accepted} or null" if argument.nullable else accepted


def value_check(argument: Argument, value: Any) -> Any:
    """Return ``value`` in the declared type. Raises ``Refused``."""
    if value is None:
        if argument.nullable:
            return None
        raise Refused(_("This may not be null; leave the field out instead."))
    typed = _TYPES[argument.type](value)
    if argument.items:
        _items(argument.items, typed)
    if not argument.enum:
        return typed
    if isinstance(typed, list):
        return [_enum(argument, item) for item in typed]
    return _enum(argument, typed)


def _items(kind: str, values: list[Any]) -> None:
    """Entries are not rewritten: what is inside a list goes out as it came in, or not at all."""
    for value in values:
        try:
            same = _TYPES[kind](value) == value and not isinstance(value, str) ^ (kind == "string")
        except Refused:
            same = False
        if not same:
            raise Refused(_("An entry of this list has another type than declared."))


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


_TOO_MANY_DIGITS = _("This number has more digits than can be sent without rounding it.")


def _exact(text: str) -> float:
    """Return the float that is written like ``text``; rounding is never our decision."""
    value = float(text)
    if Decimal(text) != Decimal(repr(value)):
        raise Refused(_TOO_MANY_DIGITS)
    return value


def _number(value: Any) -> int | float:
    if isinstance(value, str) and _DECIMAL.fullmatch(value) and len(value) <= 40:
        value = _exact(value) if "." in value else int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Refused(_("This must be a number, with a point before decimals."))
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, Inexact):
        raise Refused(_TOO_MANY_DIGITS)
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
        rounded = _rounded(value)
    except (ValueError, TypeError, RecursionError):
        raise Refused(_("This holds a value that JSON text cannot hold.")) from None
    if rounded:
        raise Refused(_TOO_MANY_DIGITS)


def _rounded(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_rounded(item) for item in value.values())
    if isinstance(value, list | tuple):
        return any(_rounded(item) for item in value)
    return isinstance(value, Inexact)


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
    that no model is tempted to make one up, and so are those that are not a model's to fill at all.
    """
    shown = {
        name: argument
        for name, argument in tool.args_schema.items()
        if argument.for_model and name not in filled
    }
    declared = tool.contract.input_schema.get("properties")
    servers = declared if isinstance(declared, Mapping) else {}
    schema = {
        "type": "object",
        "properties": {n: _property(arg, servers.get(n)) for n, arg in shown.items()},
        "required": [name for name in tool.requires if name in shown],
        "additionalProperties": False,
    }
    definitions = tool.contract.input_schema.get("$defs")
    if definitions and "#/$defs/" in canonical_json(schema["properties"]):
        schema["$defs"] = definitions
    return schema


_OURS = ("title", "default", "enum", "description")
"""Of a server's property these are the tool's own to say."""


def _property(argument: Argument, server: Any) -> dict[str, Any]:
    """Return the argument's schema: its own, over what the server declares of it."""
    of_server = server if isinstance(server, Mapping) and not argument.json_schema else {}
    schema = {key: value for key, value in of_server.items() if key not in _OURS}
    schema.update(argument.json_schema)
    schema["type"] = [argument.type, "null"] if argument.nullable else argument.type
    if argument.description or argument.label:
        schema["description"] = argument.description or argument.label
    if argument.items and "items" not in schema:
        schema["items"] = {"type": argument.items}
    if argument.enum and argument.type == "array":
        schema["items"] = {"type": "string", "enum": list(argument.enum)}
    elif argument.enum:
        values = [_enum_value(argument, item) for item in argument.enum]
        schema["enum"] = [*values, None] if argument.nullable else values
    return schema


def _enum_value(argument: Argument, item: str) -> Any:
    if argument.type in ("integer", "number") and _DIGITS.fullmatch(item):
        return int(item)
    return float(item) if argument.type == "number" and _DECIMAL.fullmatch(item) else item
