"""What of an answer may be said: nothing twice, nothing internal, nothing left out in silence."""

import re
from collections.abc import Iterable, Sequence

from apps.agents.labels import SAYINGS
from apps.agents.tooling import stems
from apps.runtime.text import stem_plural

_SENTENCE = re.compile(r"[^.!?\n]*(?:[.!?](?=\S)[^.!?\n]*)*[.!?…]*\n*\s*", re.UNICODE)
_NUMBER = re.compile(r"\d")
_TELLING_LENGTH = 4
_NEGATIONS = frozenset({"nao", "nem", "nunca", "not", "no", "never", "sem", "without"})
# Words that only point back at what was said.
_POINTING = frozenset(
    stem_plural(word)
    for word in [
        "como",
        "conforme",
        "ja",
        "disse",
        "dito",
        "falei",
        "expliquei",
        "mencionei",
        "mencionado",
        "informei",
        "informado",
        "acima",
        "anteriormente",
        "as",
        "already",
        "said",
        "told",
        "mentioned",
        "explained",
        "above",
        "earlier",
        "como",
        "dije",
        "expliqué",
    ]
)
# Two sentences say the same when this share of the one's words is in the other.
SAME = 0.8
# A question is served when this share of its telling words is in the answer.
SERVED = 0.5
_FEWEST_WORDS = 3


def sentences(text: str) -> list[str]:
    """Return ``text`` cut into sentences, each with what follows it; joined they are ``text``."""
    return [part for part in _SENTENCE.findall(text) if part]


def without_repeats(text: str, told: Iterable[str]) -> str:
    """Return ``text`` without the sentences that say again what ``told`` said."""
    known = [_bare(sentence) for said in told for sentence in sentences(said)]
    if not known:
        return text
    kept = [part for part in sentences(text) if not _repeats(part, known)]
    return "".join(kept).strip()


def _bare(sentence: str) -> list[str]:
    """Return the words of ``sentence`` without those that only point back at what was said."""
    return [word for word in stems(sentence) if word not in _POINTING]


def _repeats(sentence: str, known: Sequence[Sequence[str]]) -> bool:
    """Whether ``sentence`` adds nothing to one of ``known``: words, numbers, yes and no."""
    said = _bare(sentence)
    if not said:
        return bool(stems(sentence))  # it only points back
    words = {word for word in said if len(word) > 1 or word.isdigit()}
    for one in known:
        other = set(one)
        if said == one:
            return True
        numbers = {word for word in words if _NUMBER.search(word)}
        if len(said) < _FEWEST_WORDS or not numbers <= other:
            continue
        if bool(words & _NEGATIONS) != bool(other & _NEGATIONS):
            continue
        if len(words & other) >= SAME * len(words):
            return True
    return False


def unserved(questions: Iterable[str], served_by: Iterable[str]) -> list[str]:
    """Return the ``questions`` that none of the texts ``served_by`` takes up."""
    texts = [set(stems(text)) for text in served_by]
    left = []
    for question in dict.fromkeys(questions):
        telling = {word for word in stems(question) if len(word) >= _TELLING_LENGTH}
        if telling and any(len(telling & text) >= SERVED * len(telling) for text in texts):
            continue
        left.append(question)
    return left


def open_mention(questions: Sequence[str], language: str) -> str:
    """Return the sentence that tells the customer what is still open."""
    said = SAYINGS["open"][0 if language.lower().startswith("pt") else 1]
    return said.format(items="; ".join(question.rstrip(".!?… ") for question in questions))


def without_names(text: str, names: Iterable[str]) -> str:
    """Return ``text`` without the sentences that name an internal function or agent.

    Only names that are no ordinary words (``consult_billing``) count. When nothing else is left the
    names alone are taken out.
    """
    internal = [re.escape(name) for name in names if "_" in name]
    if not internal:
        return text
    found = re.compile(rf"(?<!\w)(?:{'|'.join(internal)})(?!\w)", re.IGNORECASE)
    if not found.search(text):
        return text
    kept = "".join(part for part in sentences(text) if not found.search(part)).strip()
    return kept or " ".join(found.sub("", text).split())


def inert_text(text: str) -> str:
    """Return plain ``text`` in which no token of a chat template can open or close a message."""
    for raw, harmless in (("<|", "< |"), ("[INST", "[ INST"), ("[/INST", "[ /INST")):
        text = text.replace(raw, harmless)
    return text.encode("utf-8", "replace").decode("utf-8")
