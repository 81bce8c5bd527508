"""The one identifier in a short answer: an order number, a line, a document."""

import re

# "O número da minha linha é o 11999999999": so many words may stand around a value.
MAX_WORDS = 8
MIN_DIGITS = 3
MAX_CHARS = 40
# A telephone number as people write it, with or without its country's code.
_PHONE = re.compile(
    r"(?<![\w(+.-])(?:\+?\d{1,3}[\s.-]?)?(?:\(\d{2}\)|\d{2})[\s.-]?\d{4,5}[\s.-]?\d{4}(?![\w-])"
)
_TOKEN = re.compile(r"[^\s,;:!?()<>]+")
_IDENTIFIER = re.compile(r"[^\W_][\w.-]*")


def answer_value(text: str) -> str:
    """Return the one identifier that ``text`` (almost) consists of; "" for none or several.

    A telephone number comes out in its digits, anything else as it was written.
    """
    phones = [_digits(found) for found in _PHONE.findall(text)]
    tokens = [token.strip(".'\"") for token in _TOKEN.findall(_PHONE.sub(" ", text))]
    numbered = [token for token in tokens if any(char.isdigit() for char in token)]
    values = [*phones, *numbered]
    if len(values) != 1 or len(tokens) - len(numbered) > MAX_WORDS:
        return ""
    value = values[0]
    enough = len(_digits(value)) >= MIN_DIGITS and len(value) <= MAX_CHARS
    return value if enough and _IDENTIFIER.fullmatch(value) else ""


def _digits(text: str) -> str:
    return "".join(char for char in text if char.isdigit())
