"""Values read out of the customer's words without a model.

What could mean two things is not read at all. The text is the sanitised one: a masked value is met
as its placeholder and comes out as that.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from apps.runtime.release import Release
from apps.runtime.text import fold, words
from apps.tools.config import Argument, Extraction, ParameterMappingConfig, ToolConfig
from apps.tools.patterns import PatternInvalid, pattern
from apps.tools.validation import Refused, value_check

MAX_TEXT = 8_000
MONTHS = (
    "janeiro", "fevereiro", "marco", "abril", "maio", "junho", "julho", "agosto", "setembro",
    "outubro", "novembro", "dezembro",
)  # fmt: skip
DETERMINISTIC = ("regex", "month_name_pt", "date", "amount", "hybrid")
WITH_MODEL = ("llm", "hybrid")

_DAYS = {"anteontem": -2, "ontem": -1, "hoje": 0, "amanha": 1}
_AFTER_TOMORROW = re.compile(r"\bdepois de amanha\b")
_WRITTEN = re.compile(
    rf"\b(\d{{1,2}})(?:o|º)?\s+de\s+({'|'.join(MONTHS)})\b(?:\s+(?:de|do)\s+(?:ano\s+de\s+)?(\d{{4}})\b)?"
)
_NUMERIC = re.compile(r"(?<![\d/.\-])(\d{1,2})[/.\-](\d{1,2})[/.\-](\d{4}|\d{2})(?![\d/\-])")
_SHORT = re.compile(r"(?<![\d/.,\-])(\d{1,2})/(\d{1,2})(?![\d/])")
_ISO = re.compile(r"(?<![\d\-])(\d{4})-(\d{2})-(\d{2})(?![\d\-])")
_MONEY = re.compile(
    r"(-\s?)?r\$\s*(-\s?)?(\d[\d.,]*)|(?<![\w/.,\-])(-\s?)?(\d[\d.,]*)\s*rea(?:is|l)\b"
)
_PLAIN = re.compile(r"(?<![\w/.,\-])(-\s?)?(\d[\d.,]*)(?![\w/\-])")


def value_extract(
    extraction: Extraction, text: str, today: date, vault: Mapping[str, str] | None = None
) -> Any:
    """Return what ``extraction`` reads in ``text``; ``None`` for nothing, or for several things.

    ``vault`` is given for restricted arguments: a pattern is then tried on the masked values that
    ``text`` names, and the answer is the placeholder. Models are not asked here.
    """
    text = text[:MAX_TEXT]
    match extraction.strategy:
        case "regex" | "hybrid":
            return _by_pattern(extraction, text, vault or {})
        case "month_name_pt":
            return month_read(text)
        case "date":
            found = date_read(text, today, extraction.year)
            return found.isoformat() if found else None
        case "amount":
            return amount_read(text)
    return None


def values_read(
    tool: ToolConfig,
    mapping: ParameterMappingConfig | None,
    text: str,
    today: date,
    names: Iterable[str],
    vault: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return argument -> value for those of ``names`` whose configured extraction reads one.

    Values are in the declared types; what does not fit them was not read. ``mapping`` is the tool's.
    """
    found: dict[str, Any] = {}
    for name in names:
        extraction = mapping.extract.get(name) if mapping else None
        argument = tool.args_schema.get(name)
        if extraction is None or argument is None:
            continue
        value = value_extract(extraction, text, today, vault if argument.restricted else None)
        typed = typed_value(argument, value)
        if typed is not None:
            found[name] = typed
    return found


def typed_value(argument: Argument, value: Any) -> Any:
    """Return ``value`` in the argument's type, ``None`` when there is none or it does not fit."""
    if value is None or value == "":
        return None
    try:
        return value_check(argument, value)
    except Refused:
        return None


Clock = Callable[[ZoneInfo | None], datetime]


def today_in(release: Release, clock: Clock = datetime.now) -> date:
    """Return the day it is at the tenant's place (field case 14.1): the time zone of its ``_global``
    mapping, else that of the installation, which is the process's own."""
    shared = release.find(ParameterMappingConfig, "_global")
    zone = ZoneInfo(shared.time_zone) if shared and shared.time_zone else None
    return clock(zone).date()


# -- patterns ----------------------------------------------------------------------------------


def _by_pattern(extraction: Extraction, text: str, vault: Mapping[str, str]) -> str | None:
    try:
        compiled = pattern(extraction.pattern)
    except PatternInvalid:
        return None
    for placeholder, real in vault.items():
        if placeholder in text and compiled.search(real) is not None:
            return placeholder
    said = {(match.group(extraction.group) or "").strip() for match in compiled.all(text)} - {""}
    return said.pop() if len(said) == 1 else None


# -- months and dates --------------------------------------------------------------------------


def month_read(text: str) -> int | None:
    """Return the number of the one month that ``text`` names."""
    named = {MONTHS.index(word) + 1 for word in words(text) if word in MONTHS}
    return named.pop() if len(named) == 1 else None


def date_read(text: str, today: date, year: str = "this") -> date | None:
    """Return the one day that ``text`` names; a day that no calendar has is none.

    ``year`` says which year is meant by a day and month alone.
    """
    found = set(_dates(fold(text), today, year))
    return found.pop() if len(found) == 1 else None


def _dates(text: str, today: date, year: str) -> Iterator[date | None]:
    for match in _ISO.finditer(text):
        yield _day(int(match[1]), int(match[2]), int(match[3]))
    for match in _NUMERIC.finditer(text):
        long = int(match[3]) + (2000 if len(match[3]) == 2 else 0)
        yield _day(long, int(match[2]), int(match[1]))
    for match in _WRITTEN.finditer(text):
        month = MONTHS.index(match[2]) + 1
        if match[3]:
            yield _day(int(match[3]), month, int(match[1]))
        else:
            yield _without_year(month, int(match[1]), today, year)
    for match in _SHORT.finditer(_NUMERIC.sub(" ", text)):
        yield _without_year(int(match[2]), int(match[1]), today, year)
    rest, later = _AFTER_TOMORROW.subn(" ", text)
    if later:
        yield today + timedelta(days=2)
    for word in words(rest):
        if word in _DAYS:
            yield today + timedelta(days=_DAYS[word])


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _without_year(month: int, day: int, today: date, year: str) -> date | None:
    this = _day(today.year, month, day)
    if year == "past" and (this is None or this > today):
        return _day(today.year - 1, month, day)
    if year == "future" and (this is None or this < today):
        return _day(today.year + 1, month, day)
    return this


# -- amounts -----------------------------------------------------------------------------------


def amount_read(text: str) -> str | None:
    """Return the one amount in ``text`` as exact decimal text (``1234.56``).

    One with a currency counts before bare numbers. ``1.234`` and ``1,234`` are one thousand or one
    and a bit: with ``R$`` the point separates thousands, without it nothing is read.
    """
    said = fold(text)
    money = [(bool(m[1] or m[2] or m[4]), m[3] or m[5]) for m in _MONEY.finditer(said)]
    bare = [] if money else [(bool(m[1]), m[2]) for m in _PLAIN.finditer(_without_dates(said))]
    read = {_amount(number, minus, bool(money)) for minus, number in money or bare}
    return read.pop() if len(read) == 1 else None


def _without_dates(text: str) -> str:
    for form in (_ISO, _NUMERIC, _SHORT, _WRITTEN):
        text = form.sub(" ", text)
    return text


_GROUPED_PT = re.compile(r"\d{1,3}(\.\d{3})+,\d{1,2}")
_GROUPED_EN = re.compile(r"\d{1,3}(,\d{3})+\.\d{1,2}")
_POINTS = re.compile(r"\d{1,3}(\.\d{3})+")
_COMMA = re.compile(r"\d+,\d{1,2}")
_POINT = re.compile(r"\d+\.\d{1,2}")


def _amount(number: str, minus: bool, money: bool) -> str | None:
    number = number.rstrip(".,")
    if _GROUPED_PT.fullmatch(number):
        number = number.replace(".", "").replace(",", ".")
    elif _GROUPED_EN.fullmatch(number):
        number = number.replace(",", "")
    elif _COMMA.fullmatch(number):
        number = number.replace(",", ".")
    elif _POINTS.fullmatch(number) and (money or number.count(".") > 1):
        number = number.replace(".", "")
    elif not (_POINT.fullmatch(number) or number.isdecimal()):
        return None
    whole, point, fraction = number.partition(".")
    exact = f"{whole.lstrip('0') or '0'}{point}{fraction}"
    return f"-{exact}" if minus else exact
