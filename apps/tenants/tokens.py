"""Signed session tokens: what lets a visitor's browser talk in one session, for a while.

A token is readable by who holds it and cannot be changed. Rotating the signing key:
put the old one into SECRET_KEY_FALLBACKS until the last token has expired.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core import signing

PREFIX = "st_"
_SALT = "agentops.session-token.v1"
# A visitor never names the customer, debugs, or reads more than a customer may.
TOKEN_SCOPES = frozenset({"message:write", "session:read"})


class InvalidToken(ValueError):
    """The token was not signed here, or was changed."""


class ExpiredToken(ValueError):
    """The token's time is over."""


@dataclass(frozen=True)
class SessionToken:
    """What a token says: whose it is, the one session it opens, and the customer it was issued for."""

    tenant_id: int
    tenant_slug: str
    session: str
    principal: str
    environment: str
    scopes: frozenset[str] = TOKEN_SCOPES
    customer: Mapping[str, str] = field(default_factory=dict)


def session_token_issue(
    *,
    tenant_id: int,
    tenant_slug: str,
    session: str,
    principal: str,
    environment: str,
    customer: Mapping[str, str] | None = None,
    scopes: Iterable[str] = TOKEN_SCOPES,
    lifetime: timedelta | None = None,
) -> str:
    """Return a token for ``session`` (its full key). ``customer``: canonical keys the issuer vouches
    for. ``lifetime`` is cut at SESSION_TOKEN_MAX_AGE_SECONDS, which is also its default.

    Scopes outside ``TOKEN_SCOPES`` are left out, whatever the issuer holds.
    """
    longest = settings.SESSION_TOKEN_MAX_AGE_SECONDS
    seconds = longest if lifetime is None else min(longest, int(lifetime.total_seconds()))
    said = {
        "t": tenant_id,
        "n": tenant_slug,
        "s": session,
        "p": principal,
        "e": environment,
        "c": dict(customer or {}),
        "o": sorted(TOKEN_SCOPES.intersection(scopes)),
        "l": seconds,
    }
    return PREFIX + signing.dumps(said, salt=_SALT)


def session_token_read(text: str) -> SessionToken:
    """Return what ``text`` says. Raises ``InvalidToken`` and ``ExpiredToken``."""
    try:
        signed = text.removeprefix(PREFIX)
        said: Any = signing.loads(signed, salt=_SALT)
        signing.loads(signed, salt=_SALT, max_age=said["l"])
    except signing.SignatureExpired as error:
        raise ExpiredToken from error
    except (signing.BadSignature, ValueError, TypeError, KeyError) as error:
        raise InvalidToken from error
    return SessionToken(
        tenant_id=said["t"],
        tenant_slug=said["n"],
        session=said["s"],
        principal=said["p"],
        environment=said["e"],
        scopes=TOKEN_SCOPES.intersection(said["o"]),
        customer=said["c"],
    )
