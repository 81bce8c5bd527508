"""Everything in a text that must not be stored, logged or shown to a model in clear."""

import re
from collections.abc import Collection, Iterator

from stdnum import iban
from stdnum.br import cnpj

from apps.governance.detection.numbers import numbers_find
from apps.governance.detection.secrets import secrets_find
from apps.governance.detection.spans import Span, without_overlaps

_LOCAL_PART = frozenset("abcdefghijklmnopqrstuvwxyz0123456789._%+-'")
_DOMAIN = re.compile(r"[\w-]{1,63}(?:\.[\w-]{1,63}){1,6}")
_DIGIT = re.compile(r"\d")
_ALPHANUMERIC_CNPJ = re.compile(
    r"(?<![A-Za-z0-9])(?:[A-Z0-9]{2}\.[A-Z0-9]{3}\.[A-Z0-9]{3}/[A-Z0-9]{4}-\d{2}"
    r"|[A-Z0-9]{12}\d{2})(?![A-Za-z0-9])"
)
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{2,4}){3,8}(?![A-Za-z0-9])")


def personal_data_find(text: str, skip: Collection[str] = ()) -> list[Span]:
    """Return the personal data and secrets of ``text`` in order, without overlaps.

    ``skip`` names entities of ``spans.ENTITIES`` that are left alone. Linear in the text's length.
    """
    found = [span for span in _all(text) if span.entity not in skip]
    return without_overlaps(found)


def _all(text: str) -> Iterator[Span]:
    yield from secrets_find(text)
    if "@" in text:
        yield from _emails(text)
    if _DIGIT.search(text):
        yield from _companies(text)
        yield from _ibans(text)
        yield from numbers_find(text)


def _emails(text: str) -> Iterator[Span]:
    """Expand every ``@`` to both sides, so that a long run of letters costs nothing."""
    at = text.find("@")
    while at != -1:
        start = at
        while start > 0 and at - start < 64 and text[start - 1].lower() in _LOCAL_PART:
            start -= 1
        while start < at and text[start] in ".'":
            start += 1
        domain = _DOMAIN.match(text, at + 1)
        if start < at and domain:
            yield Span(start, domain.end(), "EMAIL", text[start : domain.end()])
        at = text.find("@", at + 1)


def _companies(text: str) -> Iterator[Span]:
    """The alphanumeric CNPJ of July 2026 (Receita Federal, IN RFB 2.229/2024)."""
    for found in _ALPHANUMERIC_CNPJ.finditer(text):
        value = found.group()
        if not value.isdigit() and ("/" in value or cnpj.is_valid(value)):
            yield Span(found.start(), found.end(), "CNPJ", value)


def _ibans(text: str) -> Iterator[Span]:
    for found in _IBAN.finditer(text):
        if iban.is_valid(found.group(), check_country=False):
            yield Span(found.start(), found.end(), "IBAN", found.group())
