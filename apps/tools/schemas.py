"""JSON Schema as tenants and servers write it, checked without surprises.

Patterns are matched in linear time, references outside the document are never fetched, and an error
names the place and what is accepted, never the value.
"""

import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import extend
from jsonschema_specifications import REGISTRY
from referencing.exceptions import Unresolvable

from apps.runtime.canonical import canonical_json
from apps.runtime.i18n import gettext_noop as _
from apps.tools.patterns import PatternInvalid, pattern

MAX_ERRORS = 20
MAX_ACCEPTED = 300

_CALENDAR_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})")
_CLOCK = re.compile(r"\d{2}:\d{2}:\d{2}(\.\d{1,6})?([Zz]|[+-]\d{2}:\d{2})?")
_EMAIL = re.compile(r"[^@\s]{1,64}@[^@\s.]+(\.[^@\s.]+)+")


class SchemaInvalid(ValueError):
    """The schema itself cannot be used; the text says where."""


@dataclass(frozen=True)
class Misfit:
    """``path``: keys and indexes to the place; ``accepted``: what the schema wants there."""

    path: tuple[str | int, ...]
    message: str
    accepted: str


class Schema:
    """One compiled schema. Raises ``SchemaInvalid`` for what is none."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        try:
            Draft202012Validator.check_schema(dict(schema))
        except SchemaError as error:
            place = "/".join(map(str, error.absolute_path))
            raise SchemaInvalid(f"{place or 'schema'}: {error.message[:200]}") from None
        except RecursionError:
            raise SchemaInvalid("the schema is nested too deeply") from None
        self._validator = _Validator(dict(schema), registry=REGISTRY, format_checker=_FORMATS)

    def misfits(self, value: Any) -> list[Misfit]:
        """Return where ``value`` (JSON types only) does not fit, at most ``MAX_ERRORS``."""
        found: list[Misfit] = []
        try:
            for error in self._validator.iter_errors(value):
                found.extend(_misfits(error))
                if len(found) >= MAX_ERRORS:
                    break
        except (Unresolvable, PatternInvalid):
            return [Misfit((), _("The schema of this field cannot be used."), "")]
        except RecursionError:
            return [Misfit((), _("This is nested too deeply."), "")]
        return found[:MAX_ERRORS]


def schema_of(schema: Mapping[str, Any]) -> Schema:
    """Return the compiled ``schema``; one that was seen before is not checked again. Raises
    ``SchemaInvalid``."""
    return _compiled(canonical_json(schema))


@lru_cache(maxsize=1024)
def _compiled(text: str) -> Schema:
    return Schema(json.loads(text))


def _misfits(error: ValidationError) -> Iterator[Misfit]:
    path = tuple(error.absolute_path)
    keyword = str(error.validator)
    wanted: Any = error.validator_value
    schema: Any = error.schema
    if keyword == "required" and isinstance(error.instance, Mapping):
        for name in wanted:
            if name not in error.instance:
                yield Misfit((*path, name), _("This field is required."), _wanted(schema, name))
        return
    if keyword in ("enum", "const"):
        values = wanted if keyword == "enum" else [wanted]
        accepted = ", ".join(v if isinstance(v, str) else canonical_json(v) for v in values)
        yield Misfit(path, _("This is none of the accepted values."), accepted[:MAX_ACCEPTED])
        return
    accepted = canonical_json({keyword: wanted})
    if keyword == "type":
        accepted = wanted if isinstance(wanted, str) else " or ".join(wanted)
    elif keyword in ("additionalProperties", "unevaluatedProperties"):
        accepted = ", ".join(schema.get("properties", {}))
    yield Misfit(
        path, _MESSAGES.get(keyword, _("This does not fit the schema.")), accepted[:MAX_ACCEPTED]
    )


def _wanted(schema: Mapping[str, Any], name: str) -> str:
    declared = schema.get("properties", {}).get(name, {})
    wanted: str | list[str] = declared.get("type", "") if isinstance(declared, Mapping) else ""
    return wanted if isinstance(wanted, str) else " or ".join(wanted)


_MESSAGES = {
    "type": _("This has another type than declared."),
    "format": _("This does not have the declared format."),
    "pattern": _("This does not have the declared form."),
    "minimum": _("This number is too small."),
    "exclusiveMinimum": _("This number is too small."),
    "maximum": _("This number is too large."),
    "exclusiveMaximum": _("This number is too large."),
    "multipleOf": _("This number is no multiple of the declared step."),
    "minLength": _("This text is too short."),
    "maxLength": _("This text is too long."),
    "minItems": _("This list has too few entries."),
    "maxItems": _("This list has too many entries."),
    "uniqueItems": _("An entry of this list is there twice."),
    "additionalProperties": _("This has a field that is not declared."),
    "unevaluatedProperties": _("This has a field that is not declared."),
}


def _pattern_keyword(
    validator: Any, source: str, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if isinstance(instance, str) and pattern(source).search(instance) is None:
        yield ValidationError("pattern")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    for source, inner in patterns.items():
        for name, value in instance.items():
            if pattern(source).search(name) is not None:
                yield from validator.descend(value, inner, path=name, schema_path=source)


def _additional(
    validator: Any, allowed: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    patterns = [pattern(source) for source in schema.get("patternProperties", {})]
    known = schema.get("properties", {})
    extra = [
        name
        for name in instance
        if name not in known and not any(one.search(name) is not None for one in patterns)
    ]
    if isinstance(allowed, dict):
        for name in extra:
            yield from validator.descend(instance[name], allowed, path=name)
    elif not allowed and extra:
        yield ValidationError("additional properties")


_Validator = extend(
    Draft202012Validator,
    {
        "pattern": _pattern_keyword,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional,
    },
)


def _reads(form: re.Pattern[str], parse: Callable[[str], Any]) -> Callable[[object], bool]:
    def check(value: object) -> bool:
        if not isinstance(value, str):
            return True
        if form.fullmatch(value) is None:
            return False
        parse(value)
        return True

    return check


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(re.sub(r"\.\d+", "", text.upper()))


def _nothing(text: str) -> None:
    return None


_ANY = re.compile(r"[^\s]+")
_FORMATS = FormatChecker(formats=())
for _name, _check in {
    "date": _reads(_CALENDAR_DATE, date.fromisoformat),
    "date-time": _reads(_MOMENT, _moment),
    "time": _reads(_CLOCK, lambda text: time.fromisoformat(text.upper())),
    "email": _reads(_EMAIL, _nothing),
    "uuid": _reads(re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"), uuid.UUID),
    "ipv4": _reads(_ANY, IPv4Address),
    "ipv6": _reads(_ANY, IPv6Address),
}.items():
    _FORMATS.checks(_name, raises=ValueError)(_check)
