"""How a restricted value is shown to the customer: enough to recognise, not enough to use.

Bullets, not asterisks: chat clients read asterisks as Markdown.
"""

import re

BULLET = "\u2022"
MASKED = re.compile(rf"(?<!\S)[^\s{BULLET}]{{0,80}}{BULLET}{{2,}}\S*")
# The last characters left readable, as card and document receipts print them.
_SHOWN = {"CARD": 4, "PHONE": 4, "IBAN": 4, "CPF": 2, "CNPJ": 2}


def mask_of(entity: str, value: str) -> str:
    """Return ``value`` with bullets for what is hidden; separators stay."""
    if entity in ("TOKEN", "SECRET"):
        return BULLET * 6
    if entity == "EMAIL":
        local, _, domain = value.partition("@")
        return f"{local[:1]}{BULLET * 5}@{domain}"
    left = sum(c.isalnum() for c in value) - _SHOWN.get(entity, 0)
    out: list[str] = []
    for char in value:
        hidden = char.isalnum() and left > 0
        left -= char.isalnum()
        out.append(BULLET if hidden else char)
    return "".join(out)
