"""What a browser would send for a page's form, by the rules of HTML."""

import re
from html.parser import HTMLParser
from typing import Any

from django.http import QueryDict
from django.test import Client


def submission(html: str) -> QueryDict:
    """Return the successful controls of ``html``, as a browser posts them.

    By the HTML standard: the first line feed of a text area is dropped, line ends become CRLF, an
    ``<input>`` loses its line breaks, an unchecked box is not sent, templates are no controls.
    """
    parser = _Controls()
    parser.feed(html)
    data = QueryDict(mutable=True)
    for name, value in parser.sent:
        data.appendlist(name, re.sub(r"\r\n|\r|\n", "\r\n", value))
    return data


def send(client: Client, url: str, data: QueryDict, **options: Any) -> Any:
    """Post ``data`` with every value of every name."""
    return client.post(url, dict(data.lists()), **options)


def editable(html: str) -> list[str]:
    """Return the names of the controls of ``html`` that a person can change."""
    parser = _Controls()
    parser.feed(html)
    return parser.changeable


class _Controls(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.sent: list[tuple[str, str]] = []
        self.changeable: list[str] = []
        self.templates = 0
        self.area: tuple[str, list[str]] | None = None
        self.select: tuple[str, bool, list[tuple[str, bool]]] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "template":
            self.templates += 1
        if self.templates or "disabled" in given:
            return
        name = given.get("name", "")
        if tag in ("input", "textarea", "select") and given.get("type") != "hidden":
            self.changeable += [] if "readonly" in given else [name]
        if tag == "input" and name:
            self._input(name, given)
        elif tag == "textarea":
            self.area = (name, [])
        elif tag == "select":
            self.select = (name, "multiple" in given, [])
        elif tag == "option" and self.select:
            self.select[2].append((given["value"], "selected" in given))

    def _input(self, name: str, given: dict[str, str]) -> None:
        kind = given.get("type", "text")
        if kind in ("checkbox", "radio"):
            if "checked" in given:
                self.sent.append((name, given.get("value", "on")))
        elif kind not in ("submit", "button"):
            self.sent.append((name, re.sub(r"[\r\n]", "", given.get("value", ""))))

    def handle_data(self, data: str) -> None:
        if self.area:
            self.area[1].append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "template":
            self.templates -= 1
        elif tag == "textarea" and self.area:
            name, parts = self.area
            text = re.sub(r"\r\n|\r", "\n", "".join(parts))
            self.sent.append((name, text.removeprefix("\n")))
            self.area = None
        elif tag == "select" and self.select:
            name, multiple, options = self.select
            chosen = [value for value, selected in options if selected]
            if not multiple:
                chosen = chosen[-1:] or [value for value, _selected in options[:1]]
            self.sent += [(name, value) for value in chosen]
            self.select = None
