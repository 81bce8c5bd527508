"""What changed between two texts, word by word. Pure."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal

Mark = Literal["same", "removed", "added"]
Piece = tuple[Mark, str]
TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
# Comparing is quadratic in the worst case: longer stretches are told apart line by line only.
MAX_TOKENS = 2000


def word_diff(before: str, after: str) -> list[Piece]:
    """Return the pieces of both texts in order: what stayed, what went, what came.

    Pieces marked ``same`` and ``removed`` joined give ``before``; ``same`` and ``added`` give
    ``after``. Lines are compared first and words only inside lines that changed.
    """
    return [
        (mark, "".join(text for _mark, text in pieces))
        for mark, pieces in groupby(_lines(before, after), key=lambda piece: piece[0])
    ]


def _lines(before: str, after: str) -> Iterator[Piece]:
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    for same, removed, added in _blocks(old, new):
        if same:
            yield "same", same
            continue
        words = TOKEN.findall(removed), TOKEN.findall(added)
        if not removed or not added or max(map(len, words)) > MAX_TOKENS:
            yield from _replaced(removed, added)
            continue
        for kept, gone, came in _blocks(*words):
            if kept:
                yield "same", kept
            else:
                yield from _replaced(gone, came)


def _replaced(removed: str, added: str) -> Iterator[Piece]:
    if removed:
        yield "removed", removed
    if added:
        yield "added", added


def _blocks(old: list[str], new: list[str]) -> Iterator[tuple[str, str, str]]:
    """Yield (same, removed, added), either the first or one or both of the others filled."""
    matcher = SequenceMatcher(None, old, new, autojunk=len(old) + len(new) > 2 * MAX_TOKENS)
    for operation, start, end, new_start, new_end in matcher.get_opcodes():
        if operation == "equal":
            yield "".join(old[start:end]), "", ""
        else:
            yield "", "".join(old[start:end]), "".join(new[new_start:new_end])
