"""Canonical text: the one way bytes that are hashed or compared are written.

Manifests, tool arguments and raw results are stored as this *text*, never as ``jsonb``: PostgreSQL
reorders keys, rewrites numbers and refuses NUL there.
"""

import hashlib
import json
from typing import Any


def canonical_json(value: Any) -> str:
    """Return ``value`` (JSON types only) as UTF-8 JSON text: keys sorted, no blanks, no ASCII escapes.

    Raises ``ValueError`` for NaN and infinities, ``TypeError`` for anything JSON has no type for.
    """
    return json.dumps(
        value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
    )


def sha256_text(text: str) -> str:
    """Return the hexadecimal sha256 of ``text`` encoded as UTF-8."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
