"""Payment lines, barcodes and fiscal keys: long public numbers that a customer must read whole.

A *boleto* is paid by its line of 47 digits (FEBRABAN, fields of 10, 11, 11, 1 and 14), a utility
bill by one of 48 (four blocks of 11 and a check digit, the first digit an 8), both by a barcode of
44; the key of an NF-e has 44 digits as well. Parts of them look like documents and cards by
chance, so they are recognised before any other reading.
"""

import re

from stdnum import luhn
from stdnum.br import cpf

_NO_DIGIT = re.compile(r"\D+")
_GAP = r"[\s.\-]{0,2}"
_BANK = rf"\d{{5}}{_GAP}\d{{5}}{_GAP}(?:\d{{5}}{_GAP}\d{{6}}{_GAP}){{2}}\d{_GAP}\d{{14}}"
_UTILITY = rf"8\d{{10}}{_GAP}\d(?:{_GAP}\d{{11}}{_GAP}\d){{3}}"
# No list of whole documents or cards can be grouped like these.
_LINE = re.compile(rf"(?:{_BANK}|{_UTILITY}|\d{{44}})(?!\d)")
# These could be such a list: they need a check digit as well.
_GROUPED = re.compile(r"(?:\d{4}(?:[\s.\-]\d{4}){10}|8\d{10}(?:[\s.\-]\d{11}){3})(?![\s.\-]?\d)")


def payment_line_end(text: str, start: int) -> int | None:
    """Return where the payment line, barcode or fiscal key that begins at ``start`` ends."""
    if found := _LINE.match(text, start):
        return found.end()
    found = _GROUPED.match(text, start)
    if found is None or not _checked(_NO_DIGIT.sub("", found.group())):
        return None
    documents = any(cpf.is_valid(group) for group in _NO_DIGIT.split(found.group()))
    return None if documents else found.end()


def _checked(digits: str) -> bool:
    """Check digit at place 4 (utility bill), 5 (bank) or last (NF-e key)."""
    if digits[0] == "8":
        rest = digits[:3] + digits[4:]
        modulo_10 = digits[2] in "67"
        return digits[3] == (luhn.calc_check_digit(rest) if modulo_10 else _modulo_11(rest, "0"))
    return digits[4] == _modulo_11(digits[:4] + digits[5:], "1") or digits[-1] == _modulo_11(
        digits[:-1], "0"
    )


def _modulo_11(digits: str, otherwise: str) -> str:
    """Weights 2 to 9 from the right; ``otherwise`` stands for a result that is no digit 1 to 9."""
    total = sum(int(digit) * (2 + place % 8) for place, digit in enumerate(reversed(digits)))
    check = 11 - total % 11
    return str(check) if check < 10 else otherwise
