"""Signs what leaves the platform as evidence: Ed25519 over canonical text.

The key comes from ``settings.RELEASE_SIGNING_KEY`` (32 bytes, base64), or is derived from
``SECRET_KEY``. Whoever has the public key can verify without any secret.
"""

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.utils.translation import gettext as _

from apps.runtime.canonical import canonical_json, sha256_text

ALGORITHM = "Ed25519"
PURPOSE = b"agentops release records"


class SignatureRefused(ValueError):
    """The text is not what a known key signed. The sentence says what is wrong."""


def signed_text(document: Mapping[str, Any]) -> str:
    """Return ``document`` and its signature as canonical text with a line end."""
    key = _signing_key()
    public = _public_text(key.public_key())
    signature = {
        "algorithm": ALGORITHM,
        "key_id": key_id(public),
        "public_key": public,
        "value": _encoded(key.sign(_bytes(canonical_json(document)))),
    }
    return canonical_json({"document": document, "signature": signature}) + "\n"


def signed_read(text: str | bytes, *, public_keys: Iterable[str] | None = None) -> dict[str, Any]:
    """Return the document of a ``signed_text``; raise ``SignatureRefused`` unless it is unchanged.

    Every byte counts: the text must be canonical, so that there is one way to write it. The key
    inside the text proves nothing by itself; it must be one of ``public_keys`` (without: ours, our
    former ones, and those of ``settings.RELEASE_TRUSTED_KEYS``).
    """
    whole = _parsed(text)
    document, signature = whole["document"], whole["signature"]
    trusted = list(public_keys) if public_keys is not None else trusted_keys()
    if signature["public_key"] not in trusted:
        raise SignatureRefused(
            _("It was signed with the key %(key)s, which is not trusted here.")
            % {"key": str(signature["key_id"])[:16]}
        )
    expected = {"algorithm": ALGORITHM, "key_id": key_id(signature["public_key"])}
    if {name: signature[name] for name in expected} != expected:
        raise SignatureRefused(_("Its signature does not describe itself correctly."))
    key = Ed25519PublicKey.from_public_bytes(_decoded(signature["public_key"]))
    try:
        key.verify(_decoded(signature["value"]), _bytes(canonical_json(document)))
    except InvalidSignature:
        raise SignatureRefused(_("It was changed after it was signed.")) from None
    return dict(document)


def public_key() -> str:
    """Return the public key that our signatures are verified with, as base64."""
    return _public_text(_signing_key().public_key())


def trusted_keys() -> list[str]:
    """Return the public keys whose signatures count here: ours first."""
    former = [] if settings.RELEASE_SIGNING_KEY else settings.SECRET_KEY_FALLBACKS
    return [
        public_key(),
        *(_public_text(_derived(secret).public_key()) for secret in former),
        *settings.RELEASE_TRUSTED_KEYS,
    ]


def key_id(public: str) -> str:
    """Return the short name of a public key."""
    return sha256_text(public)[:16]


def _parsed(text: str | bytes) -> dict[str, Any]:
    unreadable = SignatureRefused(_("It is not a signed record, or was cut or changed."))
    try:
        written = text.decode("utf-8", "surrogatepass") if isinstance(text, bytes) else text
        whole = json.loads(written)
        canonical = canonical_json(whole) + "\n"
        signature = whole["signature"]
        complete = isinstance(whole["document"], dict) and all(
            isinstance(signature[name], str)
            for name in ("algorithm", "key_id", "public_key", "value")
        )
        # Compared as objects too: a name more, in either, would not be signed.
        complete = complete and len(whole) == 2 and len(signature) == 4
    except (ValueError, TypeError, KeyError, RecursionError):
        raise unreadable from None
    if not complete or canonical != written:
        raise unreadable
    return dict(whole)


def _signing_key() -> Ed25519PrivateKey:
    given = settings.RELEASE_SIGNING_KEY
    if given:
        return Ed25519PrivateKey.from_private_bytes(base64.b64decode(given))
    return _derived(settings.SECRET_KEY)


def _derived(secret: str) -> Ed25519PrivateKey:
    seed = HKDF(algorithm=SHA256(), length=32, salt=None, info=PURPOSE).derive(secret.encode())
    return Ed25519PrivateKey.from_private_bytes(seed)


def _public_text(key: Ed25519PublicKey) -> str:
    return _encoded(key.public_bytes_raw())


def _encoded(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def _decoded(text: str) -> bytes:
    """Return the bytes; base64 has spare bits, so only the one canonical spelling is taken."""
    refused = SignatureRefused(_("Its signature is not readable."))
    try:
        value = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise refused from None
    if _encoded(value) != text:
        raise refused
    return value


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
