"""Replaces personal data: by placeholders on the way in, by masks on the way out."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator

from apps.governance.detection.masks import mask_of
from apps.governance.detection.personal_data import personal_data_find
from apps.governance.detection.spans import Span, without_overlaps
from apps.governance.vault import PLACEHOLDER, Vault, canonical

_NOT_ALNUM = re.compile(r"[\W_]+")
_LITERAL = ("EMAIL", "TOKEN", "SECRET")
# What may stand between two digits of a document; Unicode has several hyphens.
_BETWEEN = r"[\s.\-/()\u2010-\u2014\u2212]{0,2}"
# Shorter values would hit amounts and order numbers that only look the same.
_SHORTEST_KNOWN = 6
# What a conversation is about (the line, the address) may be named; documents and cards may not.
_NAMEABLE = ("PHONE", "CEP", "EMAIL")


def text_mask(text: str, vault: Vault, skip: Collection[str] = ()) -> str:
    """Return ``text`` with placeholders; ``vault`` learns the values. Masking twice changes nothing.

    A value that the session already keeps is found again without its label.
    """
    spans = _personal(text, vault, skip)
    return _replaced(text, spans, lambda s: vault.placeholder(s.entity, s.value))


def answer_mask(
    text: str, vault: Vault, *, skip: Collection[str] = (), nameable: Collection[str] = ()
) -> str:
    """Return an answer as the customer may read it: placeholders and real values become masks.

    ``nameable`` holds values that may stand in clear when they are a phone, a postal code or an
    e-mail: what the turn is about, and the tenant's own contacts.
    """
    free = {_key(value) for value in nameable} - {""}

    def shown(entity: str, value: str) -> str:
        clear = entity in _NAMEABLE and (_key(value) in free or _domain(value) in free)
        return value if clear else mask_of(entity, value)

    text = PLACEHOLDER.sub(
        lambda m: (
            shown(m.group(1), vault.values[m.group()]) if m.group() in vault.values else m.group()
        ),
        text,
    )
    return _replaced(text, _personal(text, vault, skip), lambda s: shown(s.entity, s.value))


def _personal(text: str, vault: Vault, skip: Collection[str]) -> list[Span]:
    known = (span for span in _known(text, vault) if span.entity not in skip)
    return without_overlaps([*known, *personal_data_find(text, skip)])


def _known(text: str, vault: Vault) -> Iterator[Span]:
    compact = _NOT_ALNUM.sub("", text).casefold()
    for _, entity, value in vault.entries():
        key = canonical(entity, value)
        if len(key) < _SHORTEST_KNOWN or _NOT_ALNUM.sub("", key).casefold() not in compact:
            continue
        for found in _spellings(entity, key).finditer(text):
            yield Span(found.start(), found.end(), entity, found.group())


def _spellings(entity: str, key: str) -> re.Pattern[str]:
    if entity in _LITERAL:
        body, before, after = re.escape(key), r"(?<![\w.,])", r"(?!\w|[.,]\d)"
    else:
        body = _BETWEEN.join(map(re.escape, key))
        before, after = r"(?<![^\W_])(?<!\d\.)", r"(?![^\W_]|[.,]\d{1,2}(?!\d))"
    flags = 0 if entity in ("TOKEN", "SECRET") else re.IGNORECASE
    return re.compile(before + body + after, flags)


def _replaced(text: str, spans: Iterable[Span], by: Callable[[Span], str]) -> str:
    out: list[str] = []
    position = 0
    for span in spans:
        out += (text[position : span.start], by(span))
        position = span.end
    return "".join((*out, text[position:]))


def _key(value: str) -> str:
    """Return what a nameable value is compared by; Brazil's country code does not count."""
    value = value.strip().casefold()
    if "@" in value:
        return value
    digits = _NOT_ALNUM.sub("", value)
    return digits[2:] if len(digits) in (12, 13) and digits.startswith("55") else digits


def _domain(value: str) -> str:
    return "@" + value.rpartition("@")[2].casefold() if "@" in value else ""
