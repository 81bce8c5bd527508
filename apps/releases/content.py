"""From what an editor typed to the canonical text a revision keeps."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, TypedDict

from django.utils.translation import gettext as _
from pydantic import TypeAdapter, ValidationError

from apps.runtime.canonical import canonical_json, sha256_text
from apps.runtime.config import KINDS, BindingTo, KindConfig, RefTo, Slug, bindings, references

SLUG = TypeAdapter(Slug)
# What no store keeps: NUL is refused by PostgreSQL, a lone surrogate has no UTF-8.
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class FieldError(TypedDict):
    """One thing that is wrong: ``field`` is a dotted path, e.g. ``input[0].code``."""

    field: str
    message: str


class InvalidContent(ValueError):
    """Content does not fit its kind. ``errors`` says what is wrong, field by field."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        self.errors = list(errors)
        super().__init__("; ".join(f"{e['field']}: {e['message']}" for e in self.errors))


@dataclass(frozen=True)
class ValidContent:
    """Content that fits its kind: parsed, as canonical text, and the text's sha256."""

    config: KindConfig
    text: str
    digest: str


def content_validate(
    *, kind: str, slug: str, content: Mapping[str, Any] | KindConfig
) -> ValidContent:
    """Return ``content`` checked and in canonical form, defaults written out.

    Defaults are part of the text, so the same meaning has the same digest; what is stored is what
    is hashed, so a default that a class gains later changes no old digest. Raises
    ``InvalidContent``.
    """
    if kind not in KINDS:
        raise InvalidContent([_error("kind", _("There is no kind of that name."))])
    if not slug_is_valid(slug):
        raise InvalidContent([_error("slug", _slug_message())])
    try:
        document = content.model_dump() if isinstance(content, KindConfig) else content
        _raise_if([*_unstorable(document, "")])
        config = KINDS[kind].model_validate(
            dict(document) if isinstance(document, Mapping) else document
        )
        # Again: "inf" given as text is a number by now, and would become null in JSON.
        _raise_if([*_unstorable(config.model_dump(), ""), *_bad_names(config)])
        text = canonical_json(config.model_dump(mode="json"))
    except ValidationError as error:
        raise InvalidContent(field_errors(error)) from None
    except RecursionError:
        raise InvalidContent([_error("", _("The content is nested too deeply."))]) from None
    except (ValueError, TypeError) as error:
        if isinstance(error, InvalidContent):
            raise
        raise InvalidContent(
            [_error("", _("The content holds a value that JSON cannot express."))]
        ) from None
    return ValidContent(config=config, text=text, digest=sha256_text(text))


def config_errors(slug: str, config: KindConfig) -> list[FieldError]:
    """Return what is wrong with parsed content that its class alone does not see."""
    slug_errors = [] if slug_is_valid(slug) else [_error("slug", _slug_message())]
    return [*slug_errors, *_bad_names(config)]


def labels_validate(**labels: str | None) -> dict[str, str]:
    """Return the labels that are given (not ``None``); raise ``InvalidContent`` for unfit ones.

    ``note`` holds 500 characters, every other one 200: the widths of their columns.
    """
    given = {field: value for field, value in labels.items() if value is not None}
    limits = {field: 500 if field == "note" else 200 for field in given}
    errors = [
        _error(field, _("At most %(limit)s characters.") % {"limit": limits[field]})
        for field, value in given.items()
        if len(value) > limits[field]
    ]
    _raise_if([*errors, *_unstorable(given, "")])
    return given


def content_same(kind: str, stored: str, valid: ValidContent) -> bool:
    """Return whether ``stored`` canonical text means the same as ``valid``.

    A text from before a field was added means the same when the new field has its default.
    """
    if stored == valid.text:
        return True
    try:
        before = KINDS[kind].model_validate_json(stored)
    except ValidationError:
        return False
    return canonical_json(before.model_dump(mode="json")) == valid.text


def slug_is_valid(slug: object) -> bool:
    """Return whether ``slug`` may name an item."""
    try:
        SLUG.validate_python(slug, strict=True)
    except ValidationError:
        return False
    return True


def field_errors(error: ValidationError, prefix: str = "") -> list[FieldError]:
    """Return pydantic's errors as field paths with plain messages, without the values given."""
    return [
        _error(_path(prefix, found["loc"]), _message(found["type"], found["msg"]))
        for found in error.errors(include_url=False, include_context=False, include_input=False)
    ]


def _raise_if(errors: list[FieldError]) -> None:
    if errors:
        raise InvalidContent(errors)


def _error(field: str, message: str) -> FieldError:
    return FieldError(field=field, message=message)


def _slug_message() -> str:
    return _("Use letters, digits, and . _ : - (the first one a letter, digit or _), at most 120.")


def _path(prefix: str, location: tuple[int | str, ...]) -> str:
    path = prefix
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        else:
            path += f".{part}" if path else part
    return path


def _message(kind: str, message: str) -> str:
    plain = {
        "missing": _("This field is required."),
        "extra_forbidden": _("This field is not known here."),
        # What form that is stands with the field; a regular expression tells few people.
        "string_pattern_mismatch": _("This is not in the form that the field asks for."),
    }
    return plain.get(kind) or message.removeprefix("Value error, ")


def _unstorable(value: Any, path: str) -> Iterator[FieldError]:
    """Yield what no store or no JSON keeps as it is: NUL, lone surrogates, NaN, infinities."""
    if isinstance(value, str):
        if UNSTORABLE.search(value):
            yield _error(path, _("The text holds a NUL or characters that are not valid Unicode."))
    elif isinstance(value, float):
        if not isfinite(value):
            yield _error(path, _("This is not a finite number."))
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if UNSTORABLE.search(str(key)):
                yield _error(path, _("A name holds a NUL or is not valid Unicode."))
            else:
                yield from _unstorable(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _unstorable(item, f"{path}[{index}]")


def _bad_names(config: KindConfig) -> Iterator[FieldError]:
    """Yield references and bindings that could never name anything."""
    for name, field in type(config).model_fields.items():
        names_something = any(isinstance(marker, RefTo | BindingTo) for marker in field.metadata)
        if names_something and field.is_required() and getattr(config, name) == "":
            yield _error(name, _("This field is required."))
    for reference in references(config):
        if not slug_is_valid(reference.slug):
            yield _error(reference.path, _slug_message())
    for binding in bindings(config):
        if not slug_is_valid(binding.name):
            yield _error(binding.path, _slug_message())
