"""What a binding may hold: an address without secrets, the name of a secret, never a secret."""

import re
from urllib.parse import parse_qsl, urlsplit

from django.utils.translation import gettext as _

from apps.releases.content import slug_is_valid

# Names of query parameters that carry secrets (OAuth 2.0 RFC 6749 and common API keys).
SECRET_WORDS = ("key", "token", "secret", "pass", "pwd", "sig", "auth", "credential")
ENVIRONMENT_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,119}")
# Prefixes of access key ids that would pass as a name: AWS documents AKIA, ASIA, AROA, ... + 16.
ACCESS_KEY_ID = re.compile(r"A[A-Z]{2}A[A-Z0-9]{16}")
# The platform's own secrets: a tenant that could name them could have them sent to its address.
OWN_SECRETS = re.compile(
    r"SECRET_KEY|(MIGRATION_)?DATABASE_URL|REDIS_URL|CELERY_.*|DJANGO_.*|PG[A-Z]+|POSTGRES_.*|AGENTOPS_.*"
)


class InvalidBinding(ValueError):
    """A binding's value is not acceptable; the message says why, without repeating the value."""


def binding_check(*, what: str, name: str, value: str) -> None:
    """Raise ``InvalidBinding`` unless ``name`` may be bound to ``value`` as a ``what``."""
    if not slug_is_valid(name):
        raise InvalidBinding(_("The name uses letters, digits, and . _ : - only, at most 120."))
    if what == "address":
        address_check(value)
    elif what == "credential":
        credential_check(value)
    else:
        raise InvalidBinding(_("A binding is an address or a credential."))


def address_check(value: str) -> None:
    """Raise ``InvalidBinding`` unless ``value`` is an http(s) URL without anything secret in it."""
    if len(value) > 500 or re.search(r"[\s\x00-\x1f\x7f]", value):
        raise InvalidBinding(_("An address has at most 500 characters and no blanks."))
    try:
        parts = urlsplit(value)
        host, _port = parts.hostname, parts.port
    except ValueError:
        raise InvalidBinding(_("This is not a valid address.")) from None
    if parts.scheme not in ("http", "https") or not host:
        raise InvalidBinding(_("An address starts with http:// or https:// and names a host."))
    if "@" in parts.netloc:
        raise InvalidBinding(_("An address carries no user name or password; bind a credential."))
    if parts.fragment:
        raise InvalidBinding(_("An address has no #fragment."))
    names = [name.lower() for name, _value in parse_qsl(parts.query, keep_blank_values=True)]
    if any(word in name for name in names for word in SECRET_WORDS):
        raise InvalidBinding(_("An address carries no key or token; bind a credential."))


def credential_check(value: str) -> None:
    """Raise ``InvalidBinding`` unless ``value`` is the name of an environment variable."""
    if not ENVIRONMENT_NAME.fullmatch(value):
        raise InvalidBinding(
            _("Give the name of an environment variable (A-Z, 0-9, _), never the secret itself.")
        )
    if ACCESS_KEY_ID.fullmatch(value) or _looks_random(value):
        raise InvalidBinding(_("This looks like a secret itself; give the variable's name."))
    if OWN_SECRETS.fullmatch(value):
        raise InvalidBinding(_("This variable belongs to the platform and cannot be bound."))


def _looks_random(value: str) -> bool:
    """A long run of letters and digits mixed is a secret; words of a name are set apart by ``_``."""
    return any(
        len(word) >= 20 and sum(character.isdigit() for character in word) >= 2
        for word in value.split("_")
    )
