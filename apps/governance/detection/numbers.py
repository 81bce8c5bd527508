"""Personal numbers: documents, cards, phones, postal codes.

The scan visits each written number once and tries the readings in order; every pattern is anchored
and bounded, so time grows with the length of the text and no faster. A number without a label
needs a proof of its own: check digits (CPF, CNPJ), Luhn and an issuer's prefix (cards), an area
code and the mobile nine (phones), or an unmistakable punctuation. What only surrounds a number
(brackets, underscores, the next number of a list, its glued label) does not hide it.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from stdnum import luhn
from stdnum.br import cnpj, cpf

from apps.governance.detection.labels import label_before
from apps.governance.detection.payment_lines import payment_line_end
from apps.governance.detection.spans import Span

# Area codes in use: second digits by the first one, Anatel Resolution 749/2022 (numbering plan).
_SECOND_DIGITS = {
    "1": "123456789",
    "2": "12478",
    "3": "1234578",
    "4": "123456789",
    "5": "1345",
    "6": "123456789",
    "7": "134579",
    "8": "123456789",
    "9": "123456789",
}
AREA_CODES = frozenset(
    first + second for first, seconds in _SECOND_DIGITS.items() for second in seconds
)

_ALL_DIGITS = frozenset("0123456789")

_NO_DIGIT = re.compile(r"\D+")
# One character for one, so that places stay: hyphens and dashes, blanks, full-width digits.
_PLAIN = str.maketrans(
    "\u2010\u2011\u2012\u2013\u2014\u2212\ufe63\uff0d\u00a0\u2007\u2009\u202f\u3000\uff0e０１２３４５６７８９",
    "--------     .0123456789",
)
_START = re.compile(r"(?<![\d+])(?:(?<![^\W_])\+?\(?\+?)?\d")
_DIGITS = re.compile(r"\d+")
_WORD_BEFORE = 20
# A number that was no personal data is left whole; the next one of a list is not part of it.
_LISTED = r"(?!\d{3}\.\d{3}\.\d{3}-|\d{2}\.\d{3}\.\d{3}/|\d{4}[ -]\d{4}[ -]|\d{11})"
_GLUED = re.compile(rf"[+(]*\d+(?:[.\-/]\d+|[,:]{_LISTED}\d+)*")
# One or two digits after a comma are cents; more are the next number.
_END = r"(?![^\W_]|[.,]\d{1,2}(?!\d))"

_CPF_FORMATTED = re.compile(r"\d{3}\.\d{3}\.\d{3}-\d{2}(?!\d)")
_CPF_LOOSE = re.compile(r"\d{3}[.\s-]?\d{3}[.\s-]?\d{3}[-./\s]{0,3}\d{2}" + _END)
_CPF_SPACED = re.compile(r"\d(?:[\s.\-]{1,2}\d){10}(?!\s\d(?!\d))" + _END)
_CPF_LABELLED = re.compile(r"\d(?:[\s.\-/]{0,3}\d){10}" + _END)
_CNPJ_FORMATTED = re.compile(r"\d{2}\.\d{3}\.\d{3}/\d{4}-\d{2}(?!\d)")
_CNPJ_LOOSE = re.compile(r"\d{2}[.\s]?\d{3}[.\s]?\d{3}[/\s]?\d{4}[-\s]?\d{2}" + _END)
_CNPJ_LABELLED = re.compile(r"\d(?:[\s.\-/]{0,3}\d){13}" + _END)
_CARD = re.compile(r"\d(?:([ .\-])?\d)(?:[ .\-]{0,2}\d){10,17}")
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
_DOCUMENT = re.compile(r"\d(?:[\s.\-/]?\d){3,13}(?:[.\-]?[\dXx])?(?![^\W_])")


def numbers_find(text: str) -> Iterator[Span]:
    """Yield every personal number of ``text``, in order, without overlaps."""
    plain = text.translate(_PLAIN)
    position = 0
    while found := _START.search(plain, position):
        start, digit = found.start(), found.end() - 1
        if (line := payment_line_end(plain, digit)) is not None:
            position = line
        elif (read := _read(plain, start, digit)) is not None:
            begin, end, entity = read
            yield Span(begin, end, entity, text[begin:end])
            position = end
        else:
            whole = _DIGITS if _word_before(plain, digit) else _GLUED
            rest = whole.match(plain, start)
            position = rest.end() if rest else found.end()


Reading = Callable[[str, int, str], tuple[str, int] | None]


def _read(text: str, start: int, digit: int) -> tuple[int, int, str] | None:
    """Return begin, end and entity; ``start`` stands before a bracket or plus, ``digit`` after."""
    word = _word_before(text, digit)
    label = label_before(word, len(word)) if word else label_before(text, digit)
    glued = bool(word) or (start > 1 and text[start - 1] in "-._" and text[start - 2].isalpha())
    if glued and label in ("", "OTHER"):
        # PED-1001, v.2026: part of an identifier, unless the punctuation leaves no doubt
        return _first(text, ((digit, _formatted),), label)
    phone, proven = (start, _phone), tuple((digit, reading) for reading in _PROVEN)
    dialled = "+" in text[start:digit]
    ordered = (phone, *proven) if dialled else (*proven, phone)
    return _first(text, (*ordered, *((digit, reading) for reading in _UNPROVEN)), label)


def _first(
    text: str, readings: Iterable[tuple[int, Reading]], label: str
) -> tuple[int, int, str] | None:
    for begin, reading in readings:
        if (found := reading(text, begin, label)) is not None:
            entity, end = found
            return begin, end, entity
    return None


def _word_before(text: str, digit: int) -> str:
    """Return the letters that touch the number ("CPF52998224725"), or ""."""
    begin = digit
    while begin > 0 and digit - begin < _WORD_BEFORE and text[begin - 1].isalpha():
        begin -= 1
    return text[begin:digit]


def _digits(text: str) -> str:
    return _NO_DIGIT.sub("", text)


def _real(digits: str) -> bool:
    return len(set(digits)) > 1


def _labelled_document(text: str, start: int, label: str) -> tuple[str, int] | None:
    if label not in ("CNH", "PIS", "VOTER", "SSN", "RG"):
        return None
    found = _DOCUMENT.match(text, start)
    return (label, found.end()) if found else None


def _formatted(text: str, start: int, label: str) -> tuple[str, int] | None:
    """A mistyped document is masked as well when its punctuation is unmistakable."""
    for entity, pattern in (("CPF", _CPF_FORMATTED), ("CNPJ", _CNPJ_FORMATTED)):
        found = pattern.match(text, start)
        if found and _real(_digits(found.group())):
            return entity, found.end()
    return None


def _cpf(text: str, start: int, label: str) -> tuple[str, int] | None:
    """Labelled, a mistyped CPF is masked as well; bare digits need check digits."""
    if label in ("OTHER", "PHONE"):
        return None
    if label == "CPF":
        found = _CPF_LABELLED.match(text, start)
    else:
        found = _CPF_LOOSE.match(text, start) or _CPF_SPACED.match(text, start)
    digits = _digits(found.group()) if found else ""
    if found and _real(digits) and (label == "CPF" or cpf.is_valid(digits)):
        return "CPF", found.end()
    return None


def _cnpj(text: str, start: int, label: str) -> tuple[str, int] | None:
    if label == "OTHER":
        return None
    found = (_CNPJ_LABELLED if label == "CNPJ" else _CNPJ_LOOSE).match(text, start)
    digits = _digits(found.group()) if found else ""
    if found and _real(digits) and (label == "CNPJ" or cnpj.is_valid(digits)):
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
    placed = text[start - 1 : start] == "_"  # <CEP_100> is a placeholder
    labelled = label == "CEP" and not placed
    pattern = _POSTAL if labelled else _CEP if label != "OTHER" else None
    found = pattern.match(text, start) if pattern else None
    return ("CEP", found.end()) if found else None


def _ssn(text: str, start: int, label: str) -> tuple[str, int] | None:
    found = _SSN.match(text, start) if label != "OTHER" else None
    return ("SSN", found.end()) if found else None


_PROVEN: tuple[Reading, ...] = (_labelled_document, _formatted, _cpf, _cnpj, _card)
_UNPROVEN: tuple[Reading, ...] = (_postal, _ssn)
