"""A stretch of text that is personal data or a secret."""

from collections.abc import Iterable
from dataclasses import dataclass

ENTITIES = (
    "CPF", "CNPJ", "EMAIL", "PHONE", "CARD", "CEP", "RG", "CNH", "PIS", "VOTER", "SSN", "IBAN",
    "TOKEN", "SECRET",
)  # fmt: skip


@dataclass(frozen=True)
class Span:
    """``text[start:end]`` is ``value``, an ``entity`` of ``ENTITIES``."""

    start: int
    end: int
    entity: str
    value: str


def without_overlaps(spans: Iterable[Span]) -> list[Span]:
    """Return ``spans`` in order of place; of two that overlap the earlier, then longer, stays."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
    return kept
