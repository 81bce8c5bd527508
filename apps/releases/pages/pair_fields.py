"""Form fields of mappings: names with a text each, or with a value and its type."""

import json
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from apps.releases.pages import widgets


class TextPairs(forms.Field):
    """Names with a text each."""

    types: list[tuple[str, Any]] = []

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(widget=widgets.Pairs(types=self.types), **kwargs)

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return [(name, *typed_text(item)) for name, item in value.items()]
        return value

    def to_python(self, value: Any) -> dict[str, Any]:
        if isinstance(value, dict):
            return value
        found: dict[str, Any] = {}
        for number, (name, kind, text) in enumerate(value or [], start=1):
            if not name and not text:
                continue
            if not name:
                raise ValidationError(_("Row %(row)s has no name.") % {"row": number})
            if name in found:
                raise ValidationError(_("“%(name)s” stands twice.") % {"name": name})
            no_nul([name, text])
            found[name] = self.typed(kind, text, name)
        return found

    def typed(self, kind: str, text: str, name: str) -> Any:
        return text

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return bool((initial or {}) != self.to_python(data))
        except ValidationError:
            return True


class TypedPairs(TextPairs):
    """Names with a value each; every row says the value's type."""

    def __init__(self, *, types: list[tuple[str, Any]], **kwargs: Any) -> None:
        self.types = types
        super().__init__(**kwargs)

    def typed(self, kind: str, text: str, name: str) -> Any:
        if kind not in dict(self.types):
            raise ValidationError(_("“%(name)s”: choose a type.") % {"name": name})
        if kind in CONSTANTS:
            return CONSTANTS[kind]
        if kind == "text":
            return text
        value = _json(text)
        wanted = (int, float) if kind == "number" else (list, dict)
        if isinstance(value, wanted) and not isinstance(value, bool):
            return value
        raise ValidationError(
            (
                _("“%(name)s” needs a number.")
                if kind == "number"
                else _('“%(name)s” needs a list like [1, 2] or an object like {"a": 1}.')
            )
            % {"name": name}
        )


CONSTANTS: dict[str, Any] = {"true": True, "false": False, "null": None}


def typed_text(value: Any) -> tuple[str, str]:
    """Return the type and the text that a row shows for ``value``."""
    if isinstance(value, str):
        return "text", value
    for kind, constant in CONSTANTS.items():
        if value is constant:
            return kind, ""
    text = json.dumps(value, ensure_ascii=False)
    return ("number" if isinstance(value, (int, float)) else "json"), text


def _json(text: str) -> Any:
    """Return the JSON value of ``text``, or ``None`` when it is none that can be kept."""
    try:
        value = json.loads(text, parse_constant=lambda name: float("nan"))
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return None
    return value


def no_nul(texts: list[str]) -> None:
    """Raise ``ValidationError`` when a text holds a NUL, which no store keeps."""
    if any("\x00" in text for text in texts):
        raise ValidationError(_("Null characters are not allowed."))
