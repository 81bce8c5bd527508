"""What changed between two texts, word by word. Pure."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal

Mark = Literal["same", "removed", "added"]
Piece = tuple[Mark, str]
LINE = re.compile(r"[^\n]*\n|[^\n]+")
SENTENCE = re.compile(r"[^.!?;:]*[.!?;:]+\s*|[^.!?;:]+")
# A word or a sign (at the very beginning: nothing), and the blanks behind it.
WORD = re.compile(r"(\w+|[^\w\s]|(?=\s))(\s*)")
# Comparing is quadratic in the worst case: longer stretches of words are not told apart, and of
# parts that are everywhere (so many pairs of equal ones) only the rare ones are looked for.
MAX_TOKENS = 2000
MAX_PAIRS = 500_000


def word_diff(before: str, after: str) -> list[Piece]:
    """Return the pieces of both texts in order: what stayed, what went, what came.

    Pieces marked ``same`` and ``removed`` joined give ``before``; ``same`` and ``added`` give
    ``after``. Lines are compared first, then sentences of lines that changed, then their words.
    """
    return [
        (mark, "".join(text for _mark, text in pieces))
        for mark, pieces in groupby(filter(_is_text, _lines(before, after)), key=_mark)
    ]


def _is_text(piece: Piece) -> bool:
    return bool(piece[1])


def _mark(piece: Piece) -> Mark:
    return piece[0]


def _lines(before: str, after: str) -> Iterator[Piece]:
    for same, removed, added in _parts(before, after, LINE):
        if same:
            yield "same", same
        elif max(_words(removed), _words(added)) <= MAX_TOKENS:
            yield from _word_by_word(removed, added)
        else:
            yield from _sentences(removed, added)


def _sentences(before: str, after: str) -> Iterator[Piece]:
    for same, removed, added in _parts(before, after, SENTENCE):
        if same:
            yield "same", same
        elif max(_words(removed), _words(added)) <= MAX_TOKENS:
            yield from _word_by_word(removed, added)
        else:
            yield from _ends_apart(removed, added)


def _ends_apart(before: str, after: str) -> Iterator[Piece]:
    """Yield what both begin and end with, and between it what changed, by words when it is short."""
    old, new = ([word + blanks for word, blanks in WORD.findall(text)] for text in (before, after))
    head = _length_common(old, new)
    tail = _length_common(old[head:][::-1], new[head:][::-1])
    middle = [side[head : len(side) - tail] for side in (old, new)]
    removed, added = map("".join, middle)
    yield "same", "".join(old[:head])
    if max(map(len, middle)) <= MAX_TOKENS:
        yield from _word_by_word(removed, added)
    else:
        yield from _replaced(removed, added)
    yield "same", "".join(old[len(old) - tail :])


def _word_by_word(before: str, after: str) -> Iterator[Piece]:
    old, new = WORD.findall(before), WORD.findall(after)
    words = [word for word, _blanks in old], [word for word, _blanks in new]
    for is_same, start, end, new_start, new_end in _opcodes(*words):
        if not is_same:
            yield from _replaced(
                "".join(map("".join, old[start:end])), "".join(map("".join, new[new_start:new_end]))
            )
            continue
        for (word, was), (_word, now) in zip(old[start:end], new[new_start:new_end], strict=True):
            yield "same", word
            yield from _replaced(was, now)


def _words(text: str) -> int:
    return sum(1 for _ in WORD.finditer(text))


def _replaced(removed: str, added: str) -> Iterator[Piece]:
    """Yield what went and what came; blanks that both begin or end with stayed."""
    head = _length_common(_blanks(removed), _blanks(added))
    yield "same", removed[:head]
    removed, added = removed[head:], added[head:]
    tail = _length_common(_blanks(removed[::-1]), _blanks(added[::-1]))
    yield "removed", removed[: len(removed) - tail]
    yield "added", added[: len(added) - tail]
    yield "same", removed[len(removed) - tail :]


def _blanks(text: str) -> str:
    """Return the blanks that ``text`` begins with."""
    return text[: len(text) - len(text.lstrip())]


def _length_common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many parts both begin with."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _parts(before: str, after: str, part: re.Pattern[str]) -> Iterator[tuple[str, str, str]]:
    """Yield (same, removed, added), either the first or one or both of the others filled."""
    old, new = part.findall(before), part.findall(after)
    for is_same, start, end, new_start, new_end in _opcodes(old, new):
        removed, added = "".join(old[start:end]), "".join(new[new_start:new_end])
        yield (removed, "", "") if is_same else ("", removed, added)


def _opcodes(old: list[str], new: list[str]) -> Iterator[tuple[bool, int, int, int, int]]:
    here, there = Counter(old), Counter(new)
    pairs = sum(count * there[part] for part, count in here.items())
    matcher = SequenceMatcher(None, old, new, autojunk=pairs > MAX_PAIRS)
    for operation, start, end, new_start, new_end in matcher.get_opcodes():
        yield operation == "equal", start, end, new_start, new_end
