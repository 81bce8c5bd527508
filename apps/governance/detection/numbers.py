"""Personal numbers: documents, cards, phones, postal codes.

The scan visits each written number once and tries the readings in order; every pattern is anchored
and bounded, so time grows with the length of the text and no faster. A number without a label
needs a proof of its own: check digits (CPF, CNPJ), Luhn and an issuer's prefix (cards), an area
code and the mobile nine (phones), or an unmistakable punctuation.
"""

import re
from collections.abc import Callable, Iterator

from stdnum import luhn
from stdnum.br import cnpj, cpf

from apps.governance.detection.labels import label_before
from apps.governance.detection.spans import Span

# Area codes in use, Anatel Resolution 749/2022 (Brazilian numbering plan).
AREA_CODES = frozenset(
    [
        "11",
        "12",
        "13",
        "14",
        "15",
        "16",
        "17",
        "18",
        "19",
        "21",
        "22",
        "24",
        "27",
        "28",
        "31",
        "32",
        "33",
        "34",
        "35",
        "37",
        "38",
        "41",
        "42",
        "43",
        "44",
        "45",
        "46",
        "47",
        "48",
        "49",
        "51",
        "53",
        "54",
        "55",
        "61",
        "62",
        "63",
        "64",
        "65",
        "66",
        "67",
        "68",
        "69",
        "71",
        "73",
        "74",
        "75",
        "77",
        "79",
        "81",
        "82",
        "83",
        "84",
        "85",
        "86",
        "87",
        "88",
        "89",
        "91",
        "92",
        "93",
        "94",
        "95",
        "96",
        "97",
        "98",
        "99",
    ]
)

_ALL_DIGITS = frozenset("0123456789")

_NO_DIGIT = re.compile(r"\D+")
_START = re.compile(r"(?<![\w+])\+?\(?\+?\d")
_GLUED = re.compile(r"[+(]*\d+(?:[.,/\-:]\d+)*")
_END = r"(?![\d\w]|[.,]\d)"

_CPF_FORMATTED = re.compile(r"\d{3}\.\d{3}\.\d{3}[-–]\d{2}" + _END)
_CPF_LOOSE = re.compile(r"\d{3}[.\s-]?\d{3}[.\s-]?\d{3}[-–./\s]{0,3}\d{2}" + _END)
_CNPJ_FORMATTED = re.compile(r"\d{2}\.\d{3}\.\d{3}/\d{4}[-–]\d{2}" + _END)
_CNPJ_LOOSE = re.compile(r"\d{2}[.\s]?\d{3}[.\s]?\d{3}[/\s]?\d{4}[-–\s]?\d{2}" + _END)
_CARD = re.compile(r"\d(?:([ .\-\u00a0])?\d)(?:[ .\-\u00a0]{0,2}\d){10,17}")
_INTERNATIONAL = re.compile(r"\(?\+\d(?:[\s().\-]{0,2}\d){7,14}(?:\s?x\d{1,5})?" + _END)
# Numbers of companies, never of a person: toll-free and shared-cost service codes (Anatel).
_SERVICE = re.compile(r"\(?0[3589]00|(?:400[0-9]|300[3-9])[\s.\-]?\d{4}(?!\d)")
_BR_PHONE = re.compile(
    r"(?:55\s?)?\(?0?(\d{2})\)?[\s.\-]{0,3}(9?[\s.]?\d{4})[\s.\-]?(\d{4})" + _END
)
_BR_LOCAL = re.compile(r"9\d{4}-\d{4}" + _END)
_US_PHONE = re.compile(
    r"(?:1[\s.\-])?(?:\([2-9]\d{2}\)[\s.\-]?|[2-9]\d{2}[.\-])[2-9]\d{2}[.\-]\d{4}(?:\s?x\d{1,5})?"
    + _END
)
_ANY_PHONE = re.compile(r"\(?\d(?:[\s().\-]{0,2}\d){5,14}(?:\s?x\d{1,5})?" + _END)
_CEP = re.compile(r"(?:\d{5}|\d{2}\.\d{3})-\d{3}" + _END)
_POSTAL = re.compile(r"\d{5}[-\s]?\d{3}" + _END + r"|\d{3,5}(?:[-\s]\d{2,4})?" + _END)
_SSN = re.compile(r"\d{3}-\d{2}-\d{4}" + _END)
_DOCUMENT = re.compile(r"\d(?:[\s.\-/]?\d){3,13}(?:[.\-]?[\dXx])?(?!\w)")


def numbers_find(text: str) -> Iterator[Span]:
    """Yield every personal number of ``text``, in order, without overlaps."""
    position = 0
    while found := _START.search(text, position):
        span = _read(text, found.start())
        if span is not None:
            yield span
            position = span.end
        else:
            glued = _GLUED.match(text, found.start())
            position = glued.end() if glued else found.end()


def _read(text: str, start: int) -> Span | None:
    label = label_before(text, start)
    glued = start > 1 and text[start - 1] in "-." and text[start - 2].isalpha()
    if glued and label in ("", "OTHER"):
        return None  # PED-1001, v.2026: part of an identifier
    for reading in _READINGS:
        if (found := reading(text, start, label)) is not None:
            entity, end = found
            return Span(start, end, entity, text[start:end])
    return None


Reading = Callable[[str, int, str], tuple[str, int] | None]


def _digits(text: str) -> str:
    return _NO_DIGIT.sub("", text)


def _real(digits: str) -> bool:
    return len(set(digits)) > 1


def _labelled_document(text: str, start: int, label: str) -> tuple[str, int] | None:
    if label not in ("CNH", "PIS", "VOTER", "SSN", "RG"):
        return None
    found = _DOCUMENT.match(text, start)
    return (label, found.end()) if found else None


def _cpf(text: str, start: int, label: str) -> tuple[str, int] | None:
    """Formatted or labelled, a mistyped CPF is masked as well; bare digits need check digits."""
    found = _CPF_FORMATTED.match(text, start)
    if found and _real(_digits(found.group())):
        return "CPF", found.end()
    found = _CPF_LOOSE.match(text, start)
    if found is None or label in ("OTHER", "PHONE"):
        return None
    digits = _digits(found.group())
    if _real(digits) and (label == "CPF" or cpf.is_valid(digits)):
        return "CPF", found.end()
    return None


def _cnpj(text: str, start: int, label: str) -> tuple[str, int] | None:
    found = _CNPJ_FORMATTED.match(text, start)
    if found and _real(_digits(found.group())):
        return "CNPJ", found.end()
    found = _CNPJ_LOOSE.match(text, start)
    if found is None or label == "OTHER":
        return None
    digits = _digits(found.group())
    if _real(digits) and (label == "CNPJ" or cnpj.is_valid(digits)):
        return "CNPJ", found.end()
    return None


def _card(text: str, start: int, label: str) -> tuple[str, int] | None:
    """A card: one kind of separator, a prefix in use (ISO/IEC 7812), and a right Luhn digit."""
    found = _CARD.match(text, start)
    if found is None or label == "OTHER":
        return None
    body = found.group()
    if len(set(body) - _ALL_DIGITS) > 1:
        return None
    digits = _digits(body)
    if label != "CARD" and not any(_issued(digits[:size]) for size in range(len(digits), 12, -1)):
        return None
    ends = [i for i, char in enumerate(body, start + 1) if char.isdigit()]
    for size in range(len(digits), 11, -1):
        end, number = ends[size - 1], digits[:size]
        if text[end : end + 1].isdigit() or not (label == "CARD" or _issued(number)):
            continue
        if _real(number) and luhn.is_valid(number):
            return "CARD", end
    return None


def _issued(digits: str) -> bool:
    """Tell whether length and prefix are those of a large card scheme."""
    size, first = len(digits), digits[0]
    if first == "4":
        return size in (13, 16, 19)
    if first not in "12356":
        return False
    two, four = int(digits[:2]), int(digits[:4])
    if first == "5" or 2221 <= four <= 2720:
        return size == 16
    if two in (34, 37):
        return size == 15
    if two in (30, 36, 38, 39):
        return size in (14, 16)
    if four in (2131, 1800):
        return size == 15
    return (digits[0] == "6" and 16 <= size <= 19) or (two == 35 and size == 16)


def _phone(text: str, start: int, label: str) -> tuple[str, int] | None:
    if found := _INTERNATIONAL.match(text, start):
        return "PHONE", found.end()
    if label == "OTHER" or _SERVICE.match(text, start):
        return None
    if (found := _BR_PHONE.match(text, start)) and _brazilian(found, label):
        return "PHONE", found.end()
    for pattern in (_BR_LOCAL, _US_PHONE):
        if found := pattern.match(text, start):
            return "PHONE", found.end()
    if label == "PHONE" and (found := _ANY_PHONE.match(text, start)):
        return "PHONE", found.end()
    return None


def _brazilian(found: re.Match[str], label: str) -> bool:
    """Area code in use, then the mobile nine; a landline must be written or labelled as a phone."""
    if found.group(1) not in AREA_CODES:
        return False
    number = _digits(found.group(2)) + found.group(3)
    if len(number) == 9:
        return True
    written = found.group()
    formatted = "(" in written or ("-" in written and written[:2].isdigit() and " " in written)
    return number[0] in "2345" and (formatted or label == "PHONE")


def _postal(text: str, start: int, label: str) -> tuple[str, int] | None:
    pattern = _POSTAL if label == "CEP" else _CEP if label != "OTHER" else None
    found = pattern.match(text, start) if pattern else None
    return ("CEP", found.end()) if found else None


def _ssn(text: str, start: int, label: str) -> tuple[str, int] | None:
    found = _SSN.match(text, start) if label != "OTHER" else None
    return ("SSN", found.end()) if found else None


_READINGS: tuple[Reading, ...] = (_labelled_document, _cpf, _cnpj, _card, _phone, _postal, _ssn)
