"""Inputs of configuration forms: each works without JavaScript and gets easier with it.

A browser drops line breaks from ``<input>`` and the first one of a ``<textarea>``; the templates
choose the element by the value, so that opening and saving a form changes nothing.
"""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.datastructures import MultiValueDict
from django.utils.translation import gettext, gettext_lazy
from unfold.widgets import (
    INPUT_CLASSES,
    SELECT_CLASSES,
    TEXTAREA_CLASSES,
    UnfoldAdminSelect2Widget,
    UnfoldAdminSelectWidget,
    UnfoldBooleanSwitchWidget,
)

Option = tuple[str, str]
# Blank rows shown after the filled ones, for whoever has no script to add more.
SPARE_ROWS = 2
EDITOR_SCRIPT = "vendor/codemirror/codemirror.js"
SEARCH_MEDIA = UnfoldAdminSelect2Widget().media


class Line(forms.TextInput):
    """One line of text; becomes a text area when the stored value has several."""

    template_name = "releases/widgets/line.html"

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        super().__init__({"class": " ".join(INPUT_CLASSES), "autocomplete": "off", **(attrs or {})})

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        context["widget"]["multiline"] = "\n" in (context["widget"]["value"] or "")
        return context


class SuggestedLine(Line):
    """A line with a list of known values; anything else may be typed too."""

    template_name = "releases/widgets/suggested_line.html"
    suggestions: Sequence[str] = ()

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        context["widget"]["suggestions"] = self.suggestions
        context["widget"]["list_id"] = f"{context['widget']['attrs'].get('id', name)}_list"
        return context


class Text(forms.Textarea):
    """Text of several lines; grows with what is typed."""

    template_name = "releases/widgets/text.html"

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        classes = " ".join([*TEXTAREA_CLASSES, "ao-grow"])
        super().__init__({"class": classes, "rows": 3, **(attrs or {})})


class Code(Text):
    """A text area that becomes a code editor where there is JavaScript."""

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        super().__init__(
            {"rows": 16, "spellcheck": "false", "data-editor": "jinja", **(attrs or {})}
        )
        self.attrs["class"] += " ao-code"

    @property
    def media(self) -> forms.Media:
        return forms.Media(js=[EDITOR_SCRIPT])


class Number(forms.NumberInput):
    """A number; ``step`` is ``any`` for fractions."""

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        super().__init__({"class": " ".join([*INPUT_CLASSES, "ao-number"]), **(attrs or {})})


class Switch(UnfoldBooleanSwitchWidget):
    """On or off."""


class Choice(UnfoldAdminSelectWidget):
    """One of a few values."""


class ReferenceOptions:
    """What a reference widget offers: all items when they are few, else a search on the server.

    A chosen slug without an item stays in the list, marked, so that nothing is lost on save.
    """

    offered: Sequence[Option] = ()
    search_url: str = ""

    def chosen_first(self, slugs: Sequence[str]) -> list[Option]:
        """Return the options, the chosen ones first and in their order."""
        known = dict(self.offered)
        chosen = [(slug, known.get(slug) or missing_label(slug)) for slug in slugs if slug]
        return [*chosen, *[option for option in self.offered if option[0] not in slugs]]


def missing_label(slug: str) -> str:
    """Return how a slug without an item is shown in a list of choices."""
    return gettext("%(slug)s — missing") % {"slug": slug}


class Reference(ReferenceOptions, forms.Select):
    """One item of a kind: a plain list when there are few, a search when there are many."""

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        current = str(value or "")
        self.choices = [("", "—"), *sorted(self.chosen_first([current]))]
        if self.search_url:
            self.attrs.update(_search_attrs(self.search_url))
        else:
            self.template_name = "unfold/widgets/select.html"
            self.attrs["class"] = " ".join(SELECT_CLASSES)
        return super().get_context(name, current, attrs)

    @property
    def media(self) -> forms.Media:
        return SEARCH_MEDIA if self.search_url else forms.Media()


class References(ReferenceOptions, forms.SelectMultiple):
    """Several items of a kind, in the order in which they were chosen."""

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        chosen = [str(slug) for slug in value or []]
        self.choices = self.chosen_first(chosen)
        self.attrs.update(_search_attrs(self.search_url))
        return super().get_context(name, chosen, {**(attrs or {}), "size": 6})

    @property
    def media(self) -> forms.Media:
        return SEARCH_MEDIA


def _search_attrs(url: str) -> dict[str, str]:
    attrs = {
        "class": "unfold-admin-autocomplete admin-autocomplete",
        "data-theme": "admin-autocomplete",
        "data-width": "100%",
        "data-placeholder": "—",
    }
    if url:
        attrs |= {
            "data-ajax--url": url,
            "data-ajax--delay": "200",
            "data-ajax--cache": "true",
            "data-allow-clear": "true",
        }
    return attrs


class Rows(forms.Widget):
    """A list of texts, or of choices when ``options`` is given: one row each, in order.

    Rows left blank are dropped.
    """

    template_name = "releases/widgets/rows.html"
    use_fieldset = True

    def __init__(self, *, options: Sequence[Option] = (), multiline: bool = False) -> None:
        super().__init__()
        self.options, self.multiline = list(options), multiline

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        context = super().get_context(name, None, attrs)
        rows = [str(item) for item in value or []]
        context["widget"] |= {
            "rows": [*rows, *[""] * SPARE_ROWS],
            "options": self.options,
            "values": [option for option, _label in self.options],
            "multiline": self.multiline or any("\n" in row for row in rows),
            "input_class": " ".join(INPUT_CLASSES),
            "select_class": " ".join(SELECT_CLASSES),
        }
        return context

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[str]:
        return values(data, name)

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return False

    def id_for_label(self, id_: str) -> str:
        return f"{id_}_0" if id_ else ""


class Pairs(forms.Widget):
    """Names with a text each. The value is a list of (name, type, text); rows left blank are dropped.

    With ``types`` each row says what its text is: a text, a number, yes, no, nothing or JSON.
    """

    template_name = "releases/widgets/pairs.html"
    use_fieldset = True

    def __init__(self, *, types: Sequence[tuple[str, Any]] = ()) -> None:
        super().__init__()
        self.types = list(types)

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        context = super().get_context(name, None, attrs)
        rows = [*(value or []), *[("", "text", "")] * SPARE_ROWS]
        context["widget"] |= {
            "rows": [(*row, "\n" in row[0]) for row in rows],
            "types": self.types,
            "input_class": " ".join(INPUT_CLASSES),
            "select_class": " ".join(SELECT_CLASSES),
            "text_class": " ".join([*TEXTAREA_CLASSES, "ao-grow"]),
        }
        return context

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[tuple[str, str, str]]:
        names, texts = values(data, f"{name}-name"), values(data, f"{name}-text")
        types = values(data, f"{name}-type") if self.types else []
        size = max(len(names), len(texts))
        return [
            (_at(names, index, ""), _at(types, index, "text"), _at(texts, index, ""))
            for index in range(size)
        ]

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return False

    def id_for_label(self, id_: str) -> str:
        return f"{id_}_0_name" if id_ else ""


def values(data: Any, name: str) -> list[str]:
    """Return every value posted under ``name``, line ends as LF."""
    found = data.getlist(name) if isinstance(data, MultiValueDict) else data.get(name, [])
    return [plain_newlines(str(item)) for item in found]


def plain_newlines(text: str) -> str:
    """Return ``text`` with LF line ends: browsers send CRLF for every line of a text area."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _at(items: Sequence[str], index: int, default: str) -> str:
    return items[index] if index < len(items) else default


PAIR_TYPES = [
    ("text", gettext_lazy("Text")),
    ("number", gettext_lazy("Number")),
    ("true", gettext_lazy("Yes")),
    ("false", gettext_lazy("No")),
    ("null", gettext_lazy("Nothing")),
    ("json", gettext_lazy("List or object")),
]
SCALAR_TYPES = PAIR_TYPES[:4]
