"""Says tool results as plain sentences: field names become words, values are never changed.

Used where no model writes: the scripted provider, and the answer built from results when a model
failed. Nothing here knows a tool by name.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from apps.agents import labels
from apps.runtime.text import fold, strip_invisible

MAX_ITEMS = 10
MAX_VALUE_CHARS = 300
MAX_ANSWER_CHARS = 4_000
MAX_DEPTH = 4

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_DATE = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}:\d{2})(?::\d{2}(?:\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?"
)
_MONTH = re.compile(r"(\d{4})-(\d{2})")
_CODE = re.compile(r"[A-Z][A-Z_]+")
_AMOUNT = re.compile(r"-?\d+(\.\d{1,2})?")


@dataclass(frozen=True)
class Voice:
    """How things are said: Portuguese when ``portuguese``, else English."""

    portuguese: bool

    def pick(self, pair: tuple[str, str]) -> str:
        return pair[0] if self.portuguese else pair[1]

    def say(self, key: str, **values: Any) -> str:
        return self.pick(labels.SAYINGS[key]).format(**values)


def compose(results: Iterable[Any], *, language: str) -> str:
    """Return ``results`` (JSON values) as sentences in ``language``, one line per result.

    "" when they hold nothing that can be said. Longer answers are cut at a line's end.
    """
    voice = Voice(portuguese=language.lower().startswith("pt"))
    lines: list[str] = []
    used = 0
    for result in results:
        for line in _sentences(result, "", voice):
            if used + len(line) > MAX_ANSWER_CHARS and lines:
                return "\n".join(lines)
            lines.append(line[:MAX_ANSWER_CHARS])
            used += len(line)
    return "\n".join(lines)


def nothing_to_say(*, language: str) -> str:
    """Return the sentence for "there is no evidence" in ``language``."""
    return Voice(portuguese=language.lower().startswith("pt")).say("nothing")


def _sentences(value: Any, noun: str, voice: Voice, depth: int = 0) -> list[str]:
    if depth > MAX_DEPTH:
        return []
    if isinstance(value, Mapping):
        return _record_sentences(value, noun, voice, depth)
    if isinstance(value, (list, tuple)):
        return [_list_sentence(value, noun, voice)] if noun or value else []
    said = _value("", value, voice, {})
    return [_closed(f"{noun} {said}".strip())] if said else []


def _record_sentences(record: Mapping[str, Any], noun: str, voice: Voice, depth: int) -> list[str]:
    """One sentence for the record's own fields, then one for each record or list inside it."""
    spoken = _spoken(record)
    clause = _clause(record, noun, voice)
    lines = [_closed(clause)] if clause and clause != noun else []
    for key, value in spoken.items():
        if _is_structure(value):
            lines.extend(_sentences(value, label(key, voice), voice, depth + 1))
    return lines


def _clause(record: Mapping[str, Any], noun: str, voice: Voice, depth: int = 0) -> str:
    """Return "Title value: field value, field value"; inside a list the fields are in brackets."""
    spoken = _spoken(record)
    title_key, title = _title(spoken, noun, voice)
    fields = []
    for key, value in spoken.items():
        if key == title_key or (depth == 0 and _is_structure(value)):
            continue
        said = _value(key, value, voice, record, depth)
        if said:
            fields.append(f"{label(key, voice)} {said}")
    if title and fields:
        return f"{title} ({', '.join(fields)})" if depth else f"{title}: {', '.join(fields)}"
    return title or ", ".join(fields)


def _title(spoken: Mapping[str, Any], noun: str, voice: Voice) -> tuple[str, str]:
    """Return the field that names the record, and how it is said; ("", noun) when none does."""
    plain = {key: value for key, value in spoken.items() if isinstance(value, (str, int))}
    for key, value in plain.items():
        words = _words(key)
        rest = [w for w in words if w not in labels.ID_WORDS]
        if len(rest) < len(words) and (rest or key == "id"):
            name = label("_".join(rest), voice) if rest else noun
            return key, f"{name or 'id'} {_text(value)}"
    for key, value in plain.items():
        if key in labels.ENTITIES:
            return key, f"{label(key, voice)} {_text(value)}"
    for key in labels.NAME_FIELDS:
        if key in plain:
            return key, f"{noun} {_text(plain[key])}".strip()
    return "", noun


def _list_sentence(items: Sequence[Any], noun: str, voice: Voice) -> str:
    if not items:
        return _closed(f"{noun}: {voice.say('none')}")
    shown = [_item(item, voice) for item in items[:MAX_ITEMS]]
    if len(items) > MAX_ITEMS:
        shown.append(voice.say("more", count=len(items) - MAX_ITEMS))
    separator = "; " if any(isinstance(item, Mapping) for item in items) else ", "
    said = separator.join(part for part in shown if part)
    return _closed(f"{noun}: {said}" if noun else said)


def _item(item: Any, voice: Voice, depth: int = 1) -> str:
    if isinstance(item, Mapping):
        return _clause(item, "", voice, depth)
    return _value("", item, voice, {}, depth)


def _value(key: str, value: Any, voice: Voice, record: Mapping[str, Any], depth: int = 0) -> str:
    """Return one value as it is read out; "" for nothing."""
    if value is None or depth > MAX_DEPTH:
        return ""
    if isinstance(value, bool):
        return voice.say("yes" if value else "no")
    if isinstance(value, Mapping):
        inner = _clause(value, "", voice, depth + 1)
        return f"({inner})" if inner else ""
    if isinstance(value, (list, tuple)):
        shown = [_item(item, voice, depth + 1) for item in value[:MAX_ITEMS]]
        return ", ".join(part for part in shown if part)
    if _is_money(key, value, record):
        return _money(key, value, voice, record)
    if isinstance(value, (float, Decimal)):
        return _number(value, voice) + _unit(key)
    if isinstance(value, int):
        return f"{value}{_unit(key)}"
    text = _text(value)
    if _CODE.fullmatch(text) and set(_words(key)) & labels.STATE_WORDS:
        return text.replace("_", " ").lower()
    return _date(text, voice)


def _spoken(record: Mapping[str, Any]) -> dict[str, Any]:
    return {
        str(key): value
        for key, value in record.items()
        if str(key).lower() not in labels.UNSPOKEN and value is not None and value != ""
    }


def _is_structure(value: Any) -> bool:
    return isinstance(value, (Mapping, list, tuple))


def label(key: str, voice: Voice) -> str:
    """Return the words of the field name ``key``; Portuguese words get their accents."""
    words = [w for w in _words(key) if w not in labels.SIZE_WORDS] or _words(key)
    known = labels.FIELDS.get("_".join(words))
    if known is not None:
        return voice.pick(known)
    singles = [labels.FIELDS.get(word) for word in words]
    if all(singles) or not voice.portuguese:
        return " ".join(
            voice.pick(pair) if pair else word for pair, word in zip(singles, words, strict=True)
        )
    return " ".join(labels.ACCENTS.get(word, word) for word in words)


def _words(key: str) -> list[str]:
    return [w for w in re.split(r"[^0-9a-z]+", fold(_CAMEL.sub("_", key))) if w]


def _closed(sentence: str) -> str:
    sentence = sentence[:1].upper() + sentence[1:]
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."


def _text(value: Any) -> str:
    if not isinstance(value, str):
        return str(value)
    flat = "".join(c for c in " ".join(strip_invisible(value).split()) if c.isprintable())
    return flat if len(flat) <= MAX_VALUE_CHARS else f"{flat[: MAX_VALUE_CHARS - 1]}…"


def _date(text: str, voice: Voice) -> str:
    """Return an ISO date as dd/mm/yyyy in Portuguese; the clock time is kept as written."""
    if not voice.portuguese:
        return text
    if found := _DATE.fullmatch(text):
        year, month, day, clock, _zone = found.groups()
        return f"{day}/{month}/{year}" + (f" {clock}" if clock else "")
    if found := _MONTH.fullmatch(text):
        return f"{found[2]}/{found[1]}"
    return text


def _is_money(key: str, value: Any, record: Mapping[str, Any]) -> bool:
    if isinstance(value, str):
        if not _AMOUNT.fullmatch(value):
            return False
    elif not isinstance(value, (int, float, Decimal)):
        return False
    words = set(_words(key))
    if words & labels.UNIT_WORDS:
        return False
    if words & labels.MONEY_WORDS or words & labels.CENTS_WORDS:
        return True
    if "total" not in words or not words <= labels.TOTAL_COMPANIONS:
        return False
    counts_a_list = isinstance(value, int) and any(isinstance(v, list) for v in record.values())
    return not counts_a_list


def _money(key: str, value: Any, voice: Voice, record: Mapping[str, Any]) -> str:
    amount = _decimal(value)
    if amount is None:
        return _text(value)
    if set(_words(key)) & labels.CENTS_WORDS:
        amount = amount / 100
    code = next((str(record[f]).upper() for f in labels.CURRENCY_FIELDS if record.get(f)), "")
    symbol = labels.SYMBOLS.get(code, code) or ("R$" if voice.portuguese else "")
    places = max(2, -int(amount.as_tuple().exponent))
    said = f"{abs(amount):,.{places}f}"
    if voice.portuguese:
        said = said.translate(str.maketrans(",.", ".,"))
    sign = "-" if amount < 0 else ""
    return f"{sign}{symbol} {said}".strip() if symbol else f"{sign}{said}"


def _number(value: float | Decimal, voice: Voice) -> str:
    amount = _decimal(value)
    if amount is None:
        return str(value)
    said = format(amount, "f")
    return said.replace(".", ",") if voice.portuguese else said


def _unit(key: str) -> str:
    words = set(_words(key))
    if words & labels.PERCENT_WORDS:
        return "%"
    return "".join(f" {unit.upper()}" for unit in labels.SIZE_WORDS & words)


def _decimal(value: Any) -> Decimal | None:
    """Return the exact decimal of a JSON number or of an amount written as text."""
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return None
    return amount if amount.is_finite() else None
