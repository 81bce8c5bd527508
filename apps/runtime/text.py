"""Folding and splitting of user text, shared by routing and rails.

Both sides of every comparison are folded the same way (field cases 4.5, 7.5, 7.6).
"""

import re
import unicodedata
from functools import lru_cache

_WORD = re.compile(r"[^\W_]+", re.UNICODE)
_INVISIBLE = {"Cf", "Co", "Cn"}


def strip_invisible(text: str) -> str:
    """Return ``text`` without format characters (zero width, bidi marks, tag block).

    A zero-width joiner between two symbols (emoji sequences) stays.
    """
    out: list[str] = []
    for index, char in enumerate(text):
        if unicodedata.category(char) not in _INVISIBLE:
            out.append(char)
        elif char == "\u200d" and 0 < index < len(text) - 1:
            before, after = text[index - 1], text[index + 1]
            if not before.isalnum() and not after.isalnum():
                out.append(char)
    return "".join(out)


def fold(text: str) -> str:
    """Return ``text`` lower-cased, compatibility-normalised and without accents."""
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(c for c in decomposed if not unicodedata.combining(c)).casefold()


def words(text: str) -> list[str]:
    """Return the folded words of ``text`` in order; digits count as words, punctuation does not."""
    return _WORD.findall(fold(text))


@lru_cache(maxsize=65_536)
def stem_plural(word: str) -> str:
    """Return the singular-like stem of a folded Portuguese or English ``word``.

    Only plural endings are cut, so that ``conta`` never meets ``contato`` (field cases 4.7, 4.8).
    """
    if len(word) <= 3:
        return word
    for ending, replacement in (
        ("oes", "ao"), ("aes", "ao"), ("aos", "ao"), ("ais", "al"), ("eis", "el"), ("ois", "ol"),
        ("ns", "m"), ("res", "r"), ("zes", "z"), ("ies", "y"), ("s", ""),
    ):  # fmt: skip
        if word.endswith(ending) and not word.endswith("ss"):
            return word[: -len(ending)] + replacement
    return word
