"""Secrets: keys and tokens by their issuers' shapes, passwords only when a value follows.

"senha: abc123" holds a secret; "esqueci minha senha do app" does not.
"""

import re
from collections.abc import Iterator

from apps.governance.detection.spans import Span

# Prefixes as the issuers document them (OpenAI, AWS, GitHub, GitLab, Slack, Google, Stripe, JWT).
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9_])(?:"
    r"sk-[A-Za-z0-9][A-Za-z0-9_-]{4,200}"
    r"|(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{8,200}"
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}"
    r"|gh[pousr]_[A-Za-z0-9]{16,255}"
    r"|github_pat_[A-Za-z0-9_]{20,255}"
    r"|glpat-[A-Za-z0-9_-]{16,64}"
    r"|xox[abeprs]-[A-Za-z0-9-]{8,255}"
    r"|AIza[A-Za-z0-9_-]{30,40}"
    r"|eyJ[A-Za-z0-9_-]{6,4096}\.[A-Za-z0-9_-]{6,4096}(?:\.[A-Za-z0-9_-]{0,4096})?"
    r"|-----BEGIN [A-Z ]{0,24}PRIVATE KEY-----[A-Za-z0-9+/=\s]{0,8192}(?:-----END [A-Z ]{0,24}PRIVATE KEY-----)?"
    r"|[Bb]earer\s+(?=[A-Za-z._~+/-]{0,40}\d)[A-Za-z0-9._~+/-]{12,4096}={0,2}"
    r")"
)
_KEY_SHAPE = re.compile(
    r"sk-|[sprk]{2}_(?:live|test)_|AKIA|ASIA|gh[pousr]_|github_pat_|glpat-|xox|AIza|eyJ|-----BEGIN|[Bb]earer"
)
_LABEL = re.compile(
    r"(?<![a-z0-9])(?:senhas?|passwords?|passwd|pwd|passphrase|passcode|secrets?|client_secret|"
    r"api[ _-]?keys?|access[ _-]?keys?|chave (?:de )?(?:api|acesso)|contraseña|tokens?|otp|"
    r"(?P<short>cvv2?|cvc|pin))(?![a-z0-9])",
    re.IGNORECASE,
)
_LINK = re.compile(
    r"(?:\s+(?:de acesso|do app|do cartao|do cartão|atual|nova|antiga|code|provisória|temporária))?"
    r"(?P<strong>\s*(?:[:=]|->|=>)\s*|\s+(?:é|eh|is|foi|era|was)\s*[:=]?\s+)?"
    r"(?P<direct>\s+)?[\"'“`]?",
    re.IGNORECASE,
)
_VALUE = re.compile(r"[^\s\"'”`,;<>]{3,128}")
_STATES = frozenset(
    [
        "bloqueada",
        "bloqueado",
        "expirada",
        "expirou",
        "expirado",
        "incorreta",
        "incorreto",
        "invalida",
        "inválida",
        "errada",
        "esquecida",
        "esqueci",
        "perdida",
        "vencida",
        "não",
        "nao",
        "sim",
        "ok",
        "wrong",
        "expired",
        "invalid",
        "locked",
        "forgotten",
        "lost",
        "incorrect",
        "reset",
        "required",
        "missing",
        "null",
        "none",
        "obrigatoria",
        "obrigatória",
        "fraca",
        "forte",
    ]
)
_SPECIAL = frozenset("!@#$%&*_+^~?/|")


def secrets_find(text: str) -> Iterator[Span]:
    """Yield every token and every value that follows a password's label."""
    if _KEY_SHAPE.search(text):
        for found in _TOKEN.finditer(text):
            yield Span(found.start(), found.end(), "TOKEN", found.group())
    for label in _LABEL.finditer(text):
        if (span := _labelled(text, label)) is not None:
            yield span


def _labelled(text: str, label: re.Match[str]) -> Span | None:
    link = _LINK.match(text, label.end())
    if link is None or not (link.group("strong") or link.group("direct")):
        return None
    found = _VALUE.match(text, link.end())
    if found is None:
        return None
    value = found.group().rstrip(".!?)]}:")
    end = found.start() + len(value)
    sign = (link.group("strong") or "").strip()[:1] in (":", "=", "-") and bool(
        link.group("strong")
    )
    if label.group("short"):
        secret = value.isdigit() and 3 <= len(value) <= 8
    else:
        secret = _looks_secret(value) or (sign and _stands_alone(text, end, value))
    return Span(found.start(), end, "SECRET", value) if secret else None


def _looks_secret(value: str) -> bool:
    if len(value) >= 4 and any(c.isdigit() for c in value):
        return True
    return len(value) >= 6 and any(c in _SPECIAL for c in value) and any(c.isalpha() for c in value)


def _stands_alone(text: str, end: int, value: str) -> bool:
    """Tell whether a plain word after "senha:" is the whole rest of its line, so a value."""
    rest = text[end : end + 2].lstrip(".!")
    return len(value) >= 4 and value.casefold() not in _STATES and rest[:1] in ("", "\n", "\r")
