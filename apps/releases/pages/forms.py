"""Typed forms of configuration: built once per kind from its pydantic class.

``ConfigForm`` is the content of an item; ``pages.item_form.py`` has what it is called. A nested class becomes a form
inside the form, a list or mapping of classes becomes rows; ``content()`` puts it all together
again, exactly as it was when nothing was touched.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, cast, get_args, get_origin

from django import forms
from django.core.exceptions import ValidationError
from django.forms.formsets import DELETION_FIELD_NAME, ORDERING_FIELD_NAME
from django.utils.translation import gettext_lazy as _
from pydantic.fields import FieldInfo

from apps.releases.content import FieldError
from apps.releases.pages import widgets
from apps.releases.pages.choices import ReferenceChoices
from apps.releases.pages.form_fields import (
    TextLine,
    UnknownShape,
    described,
    form_field,
    without_none,
)
from apps.releases.pages.item_form import ItemForm, form_errors, form_lock
from apps.runtime.config import Config

# Far above what a person writes; a bound because each row costs memory.
ROWS_MAX = 2000
KEY = "_key"
FORMSET_FIELDS = (DELETION_FIELD_NAME, ORDERING_FIELD_NAME)
PATH_PART = re.compile(r"[^.\[\]]+")


class ConfigForm(forms.Form):
    """The content of one configuration object."""

    part_kind = "form"
    config_class: ClassVar[type[Config]]
    nested_classes: ClassVar[Mapping[str, "Nested"]] = {}
    locked = False

    def __init__(
        self,
        data: Any = None,
        files: Any = None,
        *,
        choices: ReferenceChoices,
        initial: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(data, files, initial=dict(initial or {}), **kwargs)
        for name, field in self.fields.items():
            if hasattr(field, "attach"):
                field.attach(choices, self.get_initial_for_field(field, name))
        self.nested: dict[str, ConfigForm | ConfigRows] = {
            name: nested.bind(self, name, choices) for name, nested in self.nested_classes.items()
        }

    def parts(self) -> Iterator["forms.BoundField | ConfigForm | ConfigRows"]:
        """Yield fields, forms and rows in the order of the configuration class."""
        if KEY in self.fields:
            yield self[KEY]
        for name in self.config_class.model_fields:
            yield self.nested[name] if name in self.nested else self[name]

    @property
    def title(self) -> str:
        """The value that tells this row from its neighbours: its name, else its first field."""
        names = [name for name in self.fields if name not in FORMSET_FIELDS]
        return str(self[names[0]].value() or "") if names else ""

    @property
    def is_off(self) -> bool:
        """Whether the object has a switch and it is off."""
        return "enabled" in self.fields and not self["enabled"].value()

    @property
    def is_spare(self) -> bool:
        """Whether this is the blank row after the filled ones, with nothing typed."""
        return self.empty_permitted and not (self.is_bound and self.has_changed())

    def lock(self) -> None:
        """Show everything and let nothing be changed, for whoever may only look."""
        self.locked = True
        form_lock(self)
        for part in self.nested.values():
            part.lock()

    def is_valid(self) -> bool:
        # Every part is asked, so that all errors are shown at once.
        return all([super().is_valid(), *[part.is_valid() for part in self.nested.values()]])

    def has_changed(self) -> bool:
        return super().has_changed() or any(part.has_changed() for part in self.nested.values())

    @property
    def media(self) -> forms.Media:
        media = super().media
        for part in self.nested.values():
            media += part.media
        return media

    def content(self) -> dict[str, Any]:
        """Return what was typed, after ``is_valid``."""
        return {
            name: self.nested[name].content() if name in self.nested else self.cleaned_data[name]
            for name in self.config_class.model_fields
        }

    def error_add(self, path: Sequence[str], message: str) -> None:
        """Show ``message`` at the field that ``path`` leads to, or as near as there is one."""
        if not path:
            self.add_error(None, message)
        elif path[0] in self.nested:
            self.nested[path[0]].error_add(path[1:], message)
        elif path[0] in self.fields:
            where = ".".join(path[1:])
            self.add_error(path[0], f"{where}: {message}" if where else message)
        else:
            self.add_error(None, f"{'.'.join(path)}: {message}")

    def error_list(self) -> list[tuple[str, str, str]]:
        """Return every error as (id of its field, label, message), for the list above the form."""
        found = form_errors(self)
        for part in self.nested.values():
            found += part.error_list()
        return found


class ConfigRows(forms.BaseFormSet):  # type: ignore[type-arg]
    """A list of configuration objects, or a mapping of names to them."""

    part_kind = "rows"
    label: ClassVar[Any] = ""
    help_text: ClassVar[Any] = ""
    locked = False

    @property
    def is_mapping(self) -> bool:
        return KEY in self.form.base_fields

    def add_fields(self, form: Any, index: int | None) -> None:
        super().add_fields(form, index)
        form.fields[DELETION_FIELD_NAME].widget.attrs["class"] = "ao-delete"
        if ORDERING_FIELD_NAME in form.fields:
            form.fields[ORDERING_FIELD_NAME].widget.attrs["class"] = "ao-order"

    def lock(self) -> None:
        """Show all rows and let nothing be changed."""
        self.locked = True
        for form in self.forms:
            cast("ConfigForm", form).lock()

    def shown_forms(self) -> list[ConfigForm]:
        """Return the rows to show; a locked form has no blank one."""
        forms = cast("list[ConfigForm]", self.forms)
        return [form for form in forms if not (self.locked and form.is_spare)]

    def clean(self) -> None:
        seen = set()
        for form in self.kept_forms():
            key = form.cleaned_data.get(KEY)
            if key is not None and key in seen:
                form.add_error(KEY, ValidationError(_("“%(name)s” stands twice.") % {"name": key}))
            seen.add(key)

    def kept_forms(self) -> list[ConfigForm]:
        """Return the rows that count, in order: neither removed nor left blank."""
        rows = [
            form
            for index, form in enumerate(self.forms)
            if (index < self.initial_form_count() or form.has_changed())
            and not self._should_delete_form(form)  # type: ignore[attr-defined]
        ]
        if self.can_order:
            rows.sort(key=_place)
        return cast("list[ConfigForm]", rows)

    def content(self) -> list[dict[str, Any]] | dict[str, dict[str, Any]]:
        """Return what was typed, after ``is_valid``."""
        rows = self.kept_forms()
        if self.is_mapping:
            return {form.cleaned_data[KEY]: form.content() for form in rows}
        return [form.content() for form in rows]

    def error_add(self, path: Sequence[str], message: str) -> None:
        """Show ``message`` in the row that ``path`` names, else above the rows."""
        for index, form in enumerate(self.kept_forms() if path else []):
            if path[0] == (form.cleaned_data.get(KEY) if self.is_mapping else str(index)):
                form.error_add(path[1:], message)
                return
        self.non_form_errors().append(message)

    def error_list(self) -> list[tuple[str, str, str]]:
        """Return every error as (id of its field, label, message)."""
        found = [(str(self.prefix), str(self.label), str(text)) for text in self.non_form_errors()]
        for form in self.forms:
            found += cast("ConfigForm", form).error_list()
        return found


class Nested:
    """How a field that holds further configuration objects becomes a form or rows."""

    def __init__(self, info: FieldInfo, shape: str, config_class: type[Config]) -> None:
        words = described(info, required=False)
        self.label, self.help_text = words["label"], words["help_text"]
        self.shape, self.initial = shape, _plain(words["initial"])
        form_class = config_form_class(config_class, keyed=shape == "dict")
        self.form_class: Any = type(
            f"{form_class.__name__}Part",
            (form_class,),
            {"label": self.label, "help_text": self.help_text},
        )
        if shape != "one":
            if any(inner.shape != "one" for inner in form_class.nested_classes.values()):
                raise UnknownShape(f"{info.title}: rows inside rows have no form")
            self.form_class = forms.formset_factory(
                form_class,
                formset=type(
                    f"{config_class.__name__}Rows",
                    (ConfigRows,),
                    {"label": self.label, "help_text": self.help_text},
                ),
                extra=1,
                can_delete=True,
                can_order=shape == "list",
                max_num=ROWS_MAX,
                validate_max=True,
            )

    def bind(self, form: ConfigForm, name: str, choices: ReferenceChoices) -> Any:
        """Return the form or rows of field ``name`` of ``form``, with its data or initial value."""
        value = form.initial.get(name, self.initial)
        arguments: dict[str, Any] = {
            "data": form.data if form.is_bound else None,
            "prefix": form.add_prefix(name),
            "auto_id": form.auto_id,
        }
        if self.shape == "one":
            return self.form_class(initial=value or {}, choices=choices, **arguments)
        if self.shape == "dict":
            value = [{KEY: key, **item} for key, item in (value or {}).items()]
        return self.form_class(initial=value or [], form_kwargs={"choices": choices}, **arguments)


@cache
def config_form_class(config_class: type[Config], keyed: bool = False) -> type[ConfigForm]:
    """Return the form of ``config_class``; ``keyed`` adds the name it has in a mapping.

    Raises ``UnknownShape`` when the class has a field that no form field stands for.
    """
    members: dict[str, Any] = {"config_class": config_class, "nested_classes": {}}
    if keyed:
        members[KEY] = TextLine(label=_("Name"), widget=widgets.Line(), max_length=200)
    for name, info in config_class.model_fields.items():
        shape, inner = _nesting(info)
        if inner is not None:
            members["nested_classes"][name] = Nested(info, shape, inner)
        else:
            members[name] = form_field(name, info)
    return type(f"{config_class.__name__}Form", (ConfigForm,), members)


def default_content(config_class: type[Config]) -> dict[str, Any]:
    """Return the defaults of ``config_class`` as JSON types; required fields are left out."""
    return {
        name: _plain(info.get_default(call_default_factory=True, validated_data={}))
        for name, info in config_class.model_fields.items()
        if not info.is_required()
    }


def errors_show(item_form: ItemForm, form: ConfigForm, errors: Iterable[FieldError]) -> None:
    """Show each of ``errors`` (of ``InvalidContent``) at its field."""
    for error in errors:
        path = PATH_PART.findall(error["field"])
        if path and path[0] in item_form.fields and path[0] not in form.config_class.model_fields:
            item_form.add_error(path[0], error["message"])
        else:
            form.error_add(path, error["message"])


def _nesting(info: FieldInfo) -> tuple[str, type[Config] | None]:
    """Return how (one, list, dict) and which configuration class ``info`` nests, if any."""
    annotation, optional = without_none(info.annotation)
    args = get_args(annotation)
    shapes = {list: ("list", args[0] if args else None), dict: ("dict", args[-1] if args else None)}
    shape, inner = shapes.get(cast("Any", get_origin(annotation)), ("one", annotation))
    if isinstance(inner, type) and issubclass(inner, Config):
        if optional:
            raise UnknownShape(f"{info.title}: a nested object that may be missing has no form")
        return shape, inner
    return "", None


def _place(form: Any) -> float:
    place = form.cleaned_data.get(ORDERING_FIELD_NAME) if hasattr(form, "cleaned_data") else None
    return float("inf") if place is None else place


def _plain(value: Any) -> Any:
    """Return ``value`` with configuration objects as JSON types."""
    if isinstance(value, Config):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
