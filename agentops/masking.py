"""Masks personal data in JSON values that people look at; named by ``PERSONAL_DATA_MASK``."""

from collections.abc import Mapping
from typing import Any

from apps.governance.detection.masking import answer_mask
from apps.governance.vault import Vault


def personal_data_masked(value: Any) -> Any:
    """Return ``value`` (JSON types) with documents, cards, phones and the like masked.

    A field's name is read with its value: many a number says only by its name what it is.
    """
    return _masked("", value)


def _masked(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_text("", str(key)): _masked(str(key), item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(name, item) for item in value]
    if isinstance(value, str):
        return _text(name, value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        written = str(value)
        masked = _text(name, written)
        return value if masked == written else masked
    return value


def _text(name: str, value: str) -> str:
    label = f"{name}: " if name else ""
    masked = answer_mask(f"{label}{value}", Vault())
    return masked.removeprefix(label) if masked.startswith(label) else answer_mask(value, Vault())
