"""Encrypts what must be kept but never shown: a message before the rails, restricted values, tokens."""

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings

from apps.runtime.canonical import canonical_json


@lru_cache(maxsize=4)
def _fernet(secrets: tuple[str, ...]) -> MultiFernet:
    keys = [
        base64.urlsafe_b64encode(hashlib.sha256(b"agentops.seal:" + secret.encode()).digest())
        for secret in secrets
    ]
    return MultiFernet([Fernet(key) for key in keys])


def _current() -> MultiFernet:
    return _fernet((settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS))


def seal(value: Mapping[str, Any]) -> str:
    """Return ``value`` encrypted with the process's key; empty for an empty mapping."""
    return _current().encrypt(canonical_json(dict(value)).encode()).decode() if value else ""


def unseal(text: str) -> dict[str, Any]:
    """Return what ``seal`` was given. Raises ``cryptography.fernet.InvalidToken`` for another key."""
    return dict(json.loads(_current().decrypt(text.encode()))) if text else {}
