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
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(c for c in decomposed if not unicodedata.combining(c)).casefold()


def words(text: str) -> list[str]:
    """Return the folded words of ``text`` in order; digits count as words, punctuation does not."""
    return _WORD.findall(fold(text))


# What a plural ending becomes, longest first; what is left is brought to one spelling by
# _SINGULARS, so that both numbers of a word meet whichever rule each of them took.
_PLURALS = (
    ("sses", "ss"), ("shes", "sh"), ("ches", "ch"), ("oes", "ao"), ("aes", "ao"), ("aos", "ao"),
    ("ais", "al"), ("eis", "el"), ("ois", "ol"), ("uis", "ul"), ("ies", "y"), ("res", "r"),
    ("zes", "z"), ("xes", "x"), ("ses", "s"), ("ones", "on"), ("enes", "en"), ("dades", "dad"),
    ("les", "l"), ("ns", "m"), ("s", ""),
)  # fmt: skip
_SINGULARS = (
    ("che", "ch"), ("ie", "y"), ("re", "r"), ("ze", "z"), ("xe", "x"), ("se", "s"), ("one", "on"),
    ("ene", "en"), ("dade", "dad"), ("le", "l"), ("il", "el"), ("n", "m"),
)  # fmt: skip
# No plurals, or irregular ones, that the endings would send to another word ("mais" is not "mal").
_IRREGULAR = {
    "mais": "mais", "demais": "demais", "jamais": "jamais", "pais": "pais", "paises": "pais",
    "depois": "depois", "dois": "dois", "pois": "pois", "seis": "seis", "reis": "rei",
    "does": "does", "goes": "goes", "shoes": "shoe", "males": "mal", "paes": "pao", "caes": "cao",
    "lapis": "lapis", "onibus": "onibus", "consules": "consul", "care": "care", "more": "more",
    "here": "here", "sure": "sure", "tres": "tres", "analysis": "analysis", "planes": "plam",
}  # fmt: skip


@lru_cache(maxsize=65_536)
def stem_plural(word: str) -> str:
    """Return the stem that the singular and the plural of a folded ``word`` share.

    Portuguese, English and Spanish endings (``-s``, ``-es``, ``-ões/-ãos/-ães``, ``-ais``,
    ``-eis``, ``-ns``, ``-ies``, ``-ones``, ``-les``); only number is taken away, so ``conta`` never
    meets ``contato`` nor ``contar`` (field cases 4.7, 4.8). A stem is for comparing, it need not be
    a word. Words of three letters and fewer are left as they are.
    """
    while len(word) > 3:
        if word in _IRREGULAR:
            return _IRREGULAR[word]
        shorter = _cut(word, _PLURALS) if not word.endswith("ss") else word
        if shorter == word:
            shorter = _cut(word, _SINGULARS)
        if shorter == word:
            break
        word = shorter
    return word


def _cut(word: str, endings: tuple[tuple[str, str], ...]) -> str:
    for ending, replacement in endings:
        if word.endswith(ending) and len(word) - len(ending) >= 2:
            return word[: -len(ending)] + replacement
    return word
