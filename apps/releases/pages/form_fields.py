"""From a field of a pydantic class to a field of a Django form.

A new shape of configuration is added here, as one more line of ``form_field``; an unknown one
raises when the form class is built, which is at start.
"""

import math
import re
import types
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

import annotated_types
from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from apps.releases.pages import widgets
from apps.releases.pages.choices import ReferenceChoices
from apps.releases.pages.pair_fields import TextPairs, TypedPairs, no_nul
from apps.runtime.config import BindingTo, RefTo

LONG_TEXT = re.compile(r"(^|_)(text|description|style|prompt)$")


class UnknownShape(TypeError):
    """A configuration class has a field that no form field stands for."""


def form_field(name: str, info: FieldInfo) -> forms.Field:
    """Return the form field for ``info``. Raises ``UnknownShape``."""
    annotation, optional = without_none(info.annotation)
    base = described(info, required=info.is_required())
    origin, args = get_origin(annotation), get_args(annotation)
    if reference := _marker(info, annotation, RefTo):
        return (References if origin is list else Reference)(kind=reference.kind, **base)
    if binding := _marker(info, annotation, BindingTo):
        return BindingName(what=binding.what, **base)
    if annotation is bool and not optional:
        return forms.BooleanField(widget=widgets.Switch(), **base | {"required": False})
    if annotation is int:
        return Whole(**_bounds(info, whole=True), **base)
    if annotation is float:
        return Fraction(exclusive=_exclusive(info), **_bounds(info, whole=False), **base)
    if annotation is str:
        return TextLine(optional=optional, widget=_text_widget(name, info), **base)
    if origin is Literal:
        return OneOf(values=args, **base)
    if origin is list and args == (str,):
        return TextRows(multiline=_extra(info, "widget") == "text", **base)
    if origin is list and get_origin(args[0]) is Literal:
        return OptionRows(values=get_args(args[0]), **base)
    if origin is dict and args == (str, str):
        return TextPairs(**base)
    if origin is dict and args == (str, Any):
        return TypedPairs(types=widgets.PAIR_TYPES, **base)
    if origin is dict and set(get_args(args[1])) <= {int, float, str, bool}:
        return TypedPairs(types=widgets.SCALAR_TYPES, **base)
    raise UnknownShape(f"{name}: no form field stands for {info.annotation!r}")


def described(info: FieldInfo, *, required: bool) -> dict[str, Any]:
    """Return label, help text and initial value of ``info`` as arguments of a form field."""
    default = info.get_default(call_default_factory=True, validated_data={})
    return {
        "label": _(info.title or ""),
        "help_text": _(info.description or ""),
        "initial": None if default is PydanticUndefined else default,
        "required": required,
    }


def without_none(annotation: Any) -> tuple[Any, bool]:
    """Return ``X`` and whether None is allowed, of ``X`` or ``X | None``."""
    if get_origin(annotation) in (Union, types.UnionType):
        rest = [arg for arg in get_args(annotation) if arg is not type(None)]
        if len(rest) == 1:
            return rest[0], True
    return annotation, False


class TextLine(forms.CharField):
    """Text kept as typed: blanks at the ends stay, line ends become LF."""

    def __init__(self, *, optional: bool = False, **kwargs: Any) -> None:
        super().__init__(strip=False, empty_value=None if optional else "", **kwargs)

    def to_python(self, value: Any) -> Any:
        return super().to_python(widgets.plain_newlines(str(value)) if value else value)


class BindingName(TextLine):
    """The name of a binding; the known names are suggested."""

    def __init__(self, *, what: str, **kwargs: Any) -> None:
        self.what = what
        super().__init__(widget=widgets.SuggestedLine(), **kwargs)

    def attach(self, choices: ReferenceChoices, current: Any) -> None:
        """Offer the binding names that exist."""
        self.widget.suggestions = choices.binding_names(self.what)


class Whole(forms.IntegerField):
    """A whole number of any size."""

    widget = widgets.Number


class Fraction(forms.FloatField):
    """A number that need not be whole."""

    widget = widgets.Number

    def __init__(self, *, exclusive: tuple[float | None, float | None], **kwargs: Any) -> None:
        self.above, self.below = exclusive
        super().__init__(**kwargs)

    def prepare_value(self, value: Any) -> Any:
        # 30.0 is shown as 30; from 2^53 on a float is no longer the whole number it looks like.
        if (
            isinstance(value, float)
            and value.is_integer()
            and abs(value) < 2**53
            and str(value) != "-0.0"
        ):
            return int(value)
        return value

    def validate(self, value: Any) -> None:
        super().validate(value)
        if value is None:
            return
        if self.above is not None and value <= self.above:
            raise ValidationError(_("Give a value above %(limit)s.") % {"limit": f"{self.above:g}"})
        if self.below is not None and value >= self.below:
            raise ValidationError(_("Give a value below %(limit)s.") % {"limit": f"{self.below:g}"})


class OneOf(forms.TypedChoiceField):
    """One of the values of a ``Literal``."""

    def __init__(self, *, values: tuple[Any, ...], **kwargs: Any) -> None:
        by_text = {str(value): value for value in values}
        options = [(text, text or "—") for text in by_text]
        if kwargs["required"] and kwargs["initial"] is None and "" not in by_text:
            options.insert(0, ("", "—"))
        kwargs["required"] = kwargs["required"] and "" not in by_text
        super().__init__(
            choices=options,
            coerce=by_text.__getitem__,
            empty_value=by_text.get(""),
            widget=widgets.Choice(),
            **kwargs,
        )


class Reference(forms.Field):
    """One item of a kind, by slug."""

    widget = widgets.Reference

    def __init__(self, *, kind: str, **kwargs: Any) -> None:
        self.kind, self.choices, self.kept = kind, ReferenceChoices(), ""
        super().__init__(**kwargs)

    def attach(self, choices: ReferenceChoices, current: Any) -> None:
        """Offer the tenant's items; ``current`` stays allowed though its item may be gone."""
        self.choices, self.kept = choices, current or ""
        _offer(self.widget, choices, self.kind, [self.kept])

    def to_python(self, value: Any) -> str:
        return str(value or "")

    def validate(self, value: Any) -> None:
        super().validate(value)
        _all_exist(self.choices, self.kind, [value], kept=[self.kept])


class References(forms.Field):
    """Several items of a kind, by slug, in order."""

    widget = widgets.References

    def __init__(self, *, kind: str, **kwargs: Any) -> None:
        self.kind, self.choices, self.kept = kind, ReferenceChoices(), [""]
        super().__init__(**kwargs)

    def attach(self, choices: ReferenceChoices, current: Any) -> None:
        """Offer the tenant's items; those of ``current`` stay allowed though they may be gone."""
        self.choices, self.kept = choices, list(current or [])
        _offer(self.widget, choices, self.kind, self.kept)

    def to_python(self, value: Any) -> list[str]:
        return [str(slug) for slug in value or []]

    def validate(self, value: Any) -> None:
        super().validate(value)
        _all_exist(self.choices, self.kind, value, kept=self.kept)

    def has_changed(self, initial: Any, data: Any) -> bool:
        return list(initial or []) != list(data or [])


class TextRows(forms.Field):
    """A list of texts."""

    def __init__(self, *, multiline: bool = False, **kwargs: Any) -> None:
        super().__init__(widget=widgets.Rows(multiline=multiline), **kwargs)

    def to_python(self, value: Any) -> list[str]:
        return [row for row in value or [] if row]

    def validate(self, value: Any) -> None:
        super().validate(value)
        no_nul(value)

    def has_changed(self, initial: Any, data: Any) -> bool:
        return self.to_python(initial) != self.to_python(data)


class OptionRows(TextRows):
    """A list of values of a ``Literal``, in order."""

    def __init__(self, *, values: tuple[Any, ...], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.values = [str(value) for value in values]
        self.widget = widgets.Rows(options=[(value, value) for value in self.values])

    def validate(self, value: Any) -> None:
        super().validate(value)
        for row in value:
            if row not in self.values:
                raise ValidationError(_("“%(value)s” is not one of the choices.") % {"value": row})


def _offer(widget: Any, choices: ReferenceChoices, kind: str, chosen: list[str]) -> None:
    options = choices.options(kind)
    widget.search_url = "" if options is not None else choices.search_url(kind)
    widget.offered = options if options is not None else choices.labels(kind, chosen)


def _all_exist(choices: ReferenceChoices, kind: str, slugs: list[str], kept: list[str]) -> None:
    wanted = [slug for slug in slugs if slug and slug not in kept]
    known = {slug for slug, _label in choices.labels(kind, wanted)}
    for slug in wanted:
        if slug not in known:
            raise ValidationError(_("There is no “%(slug)s” to choose.") % {"slug": slug})


def _marker(info: FieldInfo, annotation: Any, marker: type[Any]) -> Any:
    found = [item for item in info.metadata if isinstance(item, marker)]
    for arg in get_args(annotation):
        if get_origin(arg) is Annotated:
            found += [item for item in arg.__metadata__ if isinstance(item, marker)]
    return found[0] if found else None


def _bounds(info: FieldInfo, *, whole: bool) -> dict[str, Any]:
    bounds: dict[str, Any] = {}
    for item in info.metadata:
        if isinstance(item, annotated_types.Ge):
            bounds["min_value"] = item.ge
        elif isinstance(item, annotated_types.Le):
            bounds["max_value"] = item.le
        elif whole and isinstance(item, annotated_types.Gt):
            bounds["min_value"] = math.floor(cast("float", item.gt)) + 1
        elif whole and isinstance(item, annotated_types.Lt):
            bounds["max_value"] = math.ceil(cast("float", item.lt)) - 1
    return bounds


def _exclusive(info: FieldInfo) -> tuple[Any, Any]:
    above = next((i.gt for i in info.metadata if isinstance(i, annotated_types.Gt)), None)
    below = next((i.lt for i in info.metadata if isinstance(i, annotated_types.Lt)), None)
    return above, below


def _text_widget(name: str, info: FieldInfo) -> forms.Widget:
    wanted = _extra(info, "widget")
    if wanted == "code":
        return widgets.Code()
    if wanted == "text" or LONG_TEXT.search(name):
        return widgets.Text()
    return widgets.Line()


def _extra(info: FieldInfo, key: str) -> Any:
    extra = info.json_schema_extra
    return extra.get(key) if isinstance(extra, dict) else None
