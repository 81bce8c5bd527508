"""The checkable facts of a text: amounts, numbers, dates, times, identifiers, statuses.

A fact carries every reading of what was written, as keys that can be compared: ``R$ 129,90`` and
``129.9`` share ``n:129.9``, ``10/05/2026`` and ``2026-05-10`` share ``d:2026-05-10``.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Literal

from apps.governance.detection.masks import MASKED
from apps.governance.vault import PLACEHOLDER
from apps.runtime.text import fold

Kind = Literal["money", "number", "date", "time", "id", "status"]


@dataclass(frozen=True)
class Fact:
    """One fact: as written, and the keys under which evidence may hold it."""

    kind: Kind
    written: str
    keys: frozenset[str]


_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "janeiro jan january enero", "fevereiro fev february feb febrero", "marco mar march marzo",
            "abril abr april apr", "maio mai may mayo", "junho jun june junio", "julho jul july julio",
            "agosto ago august aug", "setembro set september sep sept septiembre",
            "outubro out october oct octubre", "novembro nov november noviembre",
            "dezembro dez december dec diciembre",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))

# List numbers, and ways to say "always".
_NO_FACT = re.compile(
    r"^[ \t]{0,20}\d{1,2}[.)\-](?=\s)|\b24/7\b|\b24 ?(?:h|horas|hours)\b", re.MULTILINE
)
_ISO_DATE = re.compile(
    r"(?<!\d)(\d{4})-(\d{2})-(\d{2})(?:[t ](\d{2}):(\d{2})[\d:.]*z?(?:[+-]\d{2}:?\d{2})?)?(?!\d)"
)
_WRITTEN_DATE = re.compile(
    rf"\b(\d{{1,2}})(?:o|st|nd|rd|th)?(?: de | of |[ /\-])({_MONTH})\b(?:(?: de |, | |/|-)(\d{{4}}))?"
    rf"|\b({_MONTH})\.? (\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)(?:,? (\d{{4}}))?"
    rf"|\b({_MONTH})(?: de | |/|-|, )(\d{{4}})\b"
)
_NUMERIC_DATE = re.compile(
    r"(?<![\d/.,\-])(\d{1,2})([/.\-])(\d{1,2})(?:\2(\d{4}|\d{2}))?(?![\d/]|[.,\-]\d)"
)
_MONTH_YEAR = re.compile(r"(?<![\d/])(\d{1,2})/(\d{4})(?!\d)")
_TIME = re.compile(r"(?<![\d:])([01]?\d|2[0-3])(?::|h)([0-5]\d)(?::[0-5]\d)?(?!\d)")
_GROUPED = re.compile(
    r"(?<!\d)(?:\d{3}\.\d{3}\.\d{3}-\d{2}|\d{2}\.\d{3}\.\d{3}/\d{4}-\d{2}"
    r"|0[3589]00[ \-]?\d{3}[ \-]?\d{4}|(?:\+\d{1,3} ?)?(?:\(\d{2,3}\) ?|\d{2,3}[ \-])?\d{3,5}-\d{3,4})(?!\d)"
)
_IDENTIFIER = re.compile(
    r"(?<![\w.,\-/])(?=[\w\-/]{0,60}\d)(?=[\w\-/]{0,60}[a-z])[a-z0-9]{1,60}(?:[\-_/][a-z0-9]{1,60}){0,6}(?!\w)"
)
_DIGIT = re.compile(r"\d")
_QUANTITY = re.compile(r"\d+(?:[.,]\d+)?[a-z]{1,4}")
_NUMBER = re.compile(
    r"(?P<money>(?:r\$|us\$|\$|€|£|brl|usd|eur) ?)?(?<![\w.])-?(?P<body>\d+(?:[.,]\d+)*)(?: ?(?P<unit>%|reais|real|dolares|dollars|euros))?"
)
_CONSTANT = re.compile(r"\b[A-Z]{2,}(?:_[A-Z]{2,})+\b")

_LONGEST_NUMBER = 40  # longer ones are codes

STATUSES = {
    "paid": r"pag[oa]s?|quitad[oa]s?|compensad[oa]s?|liquidad[oa]s?|paid|settled",
    "confirmed": r"confirmad[oa]s?|aprovad[oa]s?|autorizad[oa]s?|confirmed|approved|authori[sz]ed",
    "open": r"abert[oa]s?|open|pendentes?|pending|unpaid|outstanding",
    "overdue": r"vencid[oa]s?|atrasad[oa]s?|overdue|inadimplentes?",
    "cancelled": r"cancelad[oa]s?|cancell?ed",
    "delivered": r"entregues?|delivered",
    "shipped": r"enviad[oa]s?|despachad[oa]s?|postad[oa]s?|shipped|dispatched|transito|transit",
    "refused": r"recusad[oa]s?|negad[oa]s?|rejeitad[oa]s?|denied|refused|rejected|declined",
    "active": r"ativ[oa]s?|active|habilitad[oa]s?|enabled",
    "blocked": r"bloquead[oa]s?|suspens[oa]s?|blocked|suspended",
    "refunded": r"estornad[oa]s?|reembolsad[oa]s?|refunded",
    "returned": r"devolvid[oa]s?|returned",
}  # fmt: skip
_STATUS_WORD = re.compile("|".join(f"(?P<{name}>{words})" for name, words in STATUSES.items()))
_ANY_STATUS = "|".join(STATUSES.values())
_STATUS_CLAIM = re.compile(
    rf"\b(?:esta|estao|foi|foram|consta|constam|status|situacao|encontra-se|is|are|was|were|has been|have been)\b(?P<gap>[^.!?\n,;]{{0,25}}?)\b(?P<status>{_ANY_STATUS})\b"
)  # fmt: skip
_NEGATION = re.compile(r"\b(?:nao|not|nunca|never|sem)\b")


def facts_find(text: str) -> list[Fact]:
    """Return the facts of ``text``. Masked values, placeholders and list numbers are none."""
    text = _NO_FACT.sub(" ", MASKED.sub(" ", PLACEHOLDER.sub(" ", text)))
    constants = [_constant(found.group()) for found in _CONSTANT.finditer(text)]
    folded = fold(_CONSTANT.sub(" ", text))
    facts = list(_statuses(folded, text))
    # Every other reading begins with a digit somewhere.
    for pattern, read in _READINGS if _DIGIT.search(folded) else ():
        found: list[Fact] = []
        folded = pattern.sub(lambda m, f=found, r=read: _taken(m, f, r), folded)  # type: ignore[misc]
        facts += found
    return list({(fact.kind, fact.keys): fact for fact in (*constants, *facts)}.values())


def _taken(match: re.Match[str], found: list[Fact], read: Callable[..., Fact | None]) -> str:
    """Blank out what was read, so that a date is not read again as three numbers."""
    fact = read(match)
    if fact is None:
        return match.group()
    found.append(fact)
    return " | "


def status_keys(words: list[str]) -> Iterator[str]:
    """Yield the keys of the statuses among folded ``words``."""
    for word in words:
        if found := _STATUS_WORD.fullmatch(word):
            yield f"s:{found.lastgroup}"


def number_key(value: Decimal) -> str:
    """Return the key of a number: no trailing zeros, no sign."""
    return f"n:{abs(value).normalize():f}"


def decimals_of(written: str) -> list[Decimal]:
    """Return what ``written`` may mean: "1.234" is 1234 in Portuguese and 1.234 in English."""
    marks = {mark for mark in ".," if mark in written}
    if len(marks) == 2:
        decimal = max(marks, key=written.rfind)
        thousands = (marks - {decimal}).pop()
        readings = [written.replace(thousands, "").replace(decimal, ".")]
    elif marks:
        mark = marks.pop()
        readings = (
            [written.replace(mark, "")]
            if re.search(rf"^\d{{1,3}}(?:\{mark}\d{{3}})+$", written)
            else []
        )
        if written.count(mark) == 1:
            readings.append(written.replace(mark, "."))
    else:
        readings = [written]
    out: list[Decimal] = []
    for reading in readings:
        try:
            out.append(Decimal(reading))
        except InvalidOperation:
            continue
    return out


def date_keys(year: int | None, month: int, day: int | None) -> set[str]:
    """Return the keys of one date, empty when there is no such day."""
    if not 1 <= month <= 12 or (day is not None and not 1 <= day <= 31):
        return set()
    if day is None:
        return {f"m:{year}-{month:02}"}
    if year is None:
        return {f"d:--{month:02}-{day:02}"}
    return {f"d:{year}-{month:02}-{day:02}"}


def _fact(kind: Kind, match: re.Match[str], keys: set[str]) -> Fact | None:
    return Fact(kind, match.group().strip(), frozenset(keys)) if keys else None


def _iso_date(match: re.Match[str]) -> Fact | None:
    year, month, day = (int(match.group(i)) for i in (1, 2, 3))
    return _fact("date", match, date_keys(year, month, day))


def _written_date(match: re.Match[str]) -> Fact | None:
    day, month, year, month2, day2, year2, month3, year3 = match.groups()
    if month:
        return _fact(
            "date", match, date_keys(int(year) if year else None, _MONTHS[month], int(day))
        )
    if month2:
        found = date_keys(int(year2) if year2 else None, _MONTHS[month2], int(day2))
        return _fact("date", match, found)
    return _fact("date", match, date_keys(int(year3), _MONTHS[month3], None))


def _numeric_date(match: re.Match[str]) -> Fact | None:
    first, mark, second, last = (
        int(match.group(1)),
        match.group(2),
        int(match.group(3)),
        match.group(4),
    )
    if last is None and mark != "/":
        return None
    year = None if last is None else int(last) + (2000 if len(last) == 2 else 0)
    return _fact("date", match, date_keys(year, second, first) | date_keys(year, first, second))


def _month_year(match: re.Match[str]) -> Fact | None:
    return _fact("date", match, date_keys(int(match.group(2)), int(match.group(1)), None))


def _time(match: re.Match[str]) -> Fact | None:
    return _fact("time", match, {f"t:{int(match.group(1)):02}:{match.group(2)}"})


def _grouped(match: re.Match[str]) -> Fact | None:
    return _fact("id", match, {f"i:{re.sub(r'[^0-9]', '', match.group())}"})


def _identifier(match: re.Match[str]) -> Fact | None:
    written = match.group()
    if _QUANTITY.fullmatch(written):
        return None  # "50gb", "3x": a number with its unit
    return _fact("id", match, {f"i:{re.sub(r'[^a-z0-9]', '', written)}"})


def _number(match: re.Match[str]) -> Fact | None:
    body, unit = match.group("body"), match.group("unit") or ""
    values = decimals_of(body) if len(body) <= _LONGEST_NUMBER else []
    keys = {number_key(value) for value in values}
    if unit == "%":
        keys |= {number_key(value / 100) for value in values}
    if body.isdigit() and len(body) > 4:
        keys.add(f"i:{body}")
    money = bool(match.group("money")) or unit not in ("", "%")
    return _fact("money" if money else "number", match, keys)


def _statuses(folded: str, text: str) -> Iterator[Fact]:
    for match in _STATUS_CLAIM.finditer(folded):
        if not _NEGATION.search(match.group("gap")) and not _negated(folded, match.start()):
            yield Fact(
                "status", match.group("status"), frozenset(status_keys([match.group("status")]))
            )
    for word in re.findall(r"\b[A-ZÀ-Ü]{4,}\b", text):
        if keys := frozenset(status_keys([fold(word)])):
            yield Fact("status", word, keys)


def _negated(folded: str, start: int) -> bool:
    return _NEGATION.search(folded, max(0, start - 5), start) is not None


def _constant(written: str) -> Fact:
    return Fact("status", written, frozenset({f"w:{fold(written)}"}))


_READINGS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Fact | None]], ...] = (
    (_ISO_DATE, _iso_date),
    (_WRITTEN_DATE, _written_date),
    (_NUMERIC_DATE, _numeric_date),
    (_MONTH_YEAR, _month_year),
    (_TIME, _time),
    (_GROUPED, _grouped),
    (_IDENTIFIER, _identifier),
    (_NUMBER, _number),
)
