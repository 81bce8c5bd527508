"""One answer of several: nothing twice, nothing against what the tools said, no headings, no names."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from apps.agents.delegation.wording import sentences, without_names, without_repeats
from apps.agents.tooling import stems
from apps.runtime.turn import ToolCall

_HEADING = re.compile(r"\s*(?:#{1,6}\s.*|\*\*[^*\n]+\*\*:?|__[^_\n]+__:?)\s*")
_NUMBER = re.compile(r"\d[\d.,/:-]*")
_GROUPS = re.compile(r"[/:-]")
_NEGATIONS = frozenset({"nao", "nem", "nunca", "not", "no", "never", "sem", "without", "sin"})
MAX_DEPTH = 12
# Fewer words are no statement that another one could contradict.
_FEWEST_WORDS = 2

_CLOSING = {
    "pt": "Depois seguimos com: {topics}.",
    "es": "Después seguimos con: {topics}.",
    "en": "Then we can go on with: {topics}.",
}


def one_voice(text: str, calls: Sequence[ToolCall], names: Iterable[str]) -> str:
    """Return ``text`` without headings, internal names, repeated and contradicting sentences."""
    lines = [line for line in text.splitlines() if not _HEADING.fullmatch(line)]
    plain = "\n".join(lines).strip()
    for name in names:
        plain = plain.replace(f"[{name}]", "").strip()
    return _consistent(without_names(plain, names), evidenced(calls))


def joined(texts: Iterable[str]) -> str:
    """Return ``texts`` as paragraphs, each without what those before it said."""
    told: list[str] = []
    for text in texts:
        rest = without_repeats(text, told) if told else text.strip()
        if rest:
            told.append(rest)
    return "\n\n".join(told)


def closing(topics: Sequence[str], language: str, text: str = "") -> str:
    """Return the sentence that says what is kept for later, in the customer's words; "" for nothing.

    ``text`` is the tenant's own, with ``{topics}`` in it.
    """
    said = [
        topic
        for topic in dict.fromkeys(" ".join(t.split()).strip(" .,;:") for t in topics)
        if topic
    ]
    if not said:
        return ""
    template = text or _CLOSING.get(language.lower()[:2], _CLOSING["en"])
    return template.replace("{topics}", "; ".join(f"“{topic}”" for topic in said))


def evidenced(calls: Iterable[ToolCall]) -> set[str]:
    """Return the numbers that the tools' results hold, however they are written."""
    found: set[str] = set()
    for call in calls:
        if call.ok:
            for value in _values(call.result):
                found |= _numbers(str(value))
    return found


def _values(result: Any, depth: int = 0) -> Iterator[Any]:
    """Yield the single values of a result, whatever they stand in."""
    if depth > MAX_DEPTH:
        return
    if isinstance(result, Mapping):
        result = [*result, *result.values()]
    if isinstance(result, (list, tuple)):
        for item in result:
            yield from _values(item, depth + 1)
    else:
        yield result


def _consistent(text: str, known: set[str]) -> str:
    """Leave out what is said again, and of two statements that differ in their numbers, or in yes
    and no, the one that no tool bears out; when neither or both are borne out by numbers, both stay.
    """
    kept: list[str] = []
    for part in sentences(text):
        if not without_repeats(part, kept):
            continue
        rival = next((i for i, other in enumerate(kept) if _contradicts(part, other)), None)
        if rival is None:
            kept.append(part)
        elif _numbers(part) == _numbers(kept[rival]):
            continue
        elif (_numbers(part) <= known) == (_numbers(kept[rival]) <= known):
            kept.append(part)
        elif _numbers(part) <= known:
            kept[rival] = part
    return "".join(kept).strip()


def _contradicts(one: str, other: str) -> bool:
    """Whether two sentences have the same words but for numbers, or but for a "not"."""
    first, second = _skeleton(one), _skeleton(other)
    if first != second or len(first) < _FEWEST_WORDS:
        return False
    denied = [bool(_NEGATIONS.intersection(stems(text))) for text in (one, other)]
    return _numbers(one) != _numbers(other) or denied[0] != denied[1]


def _skeleton(sentence: str) -> tuple[str, ...]:
    words = stems(_NUMBER.sub(" ", sentence))
    return tuple(word for word in words if word not in _NEGATIONS)


def _numbers(text: str) -> set[str]:
    """Return the numbers of ``text`` without separators and outer zeros: 129,90 and 129.9 are one."""
    groups = (group for token in _NUMBER.findall(text) for group in _GROUPS.split(token))
    bare = (re.sub(r"[.,]", "", group).strip("0") for group in groups if group)
    return {number or "0" for number in bare}
