"""Real restricted values go to the tool; everything that is kept sees a stand-in."""

import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import Any

from apps.runtime.canonical import canonical_json
from apps.tools.config import ToolConfig


def arguments_unmask(
    tool: ToolConfig, arguments: Mapping[str, Any], vault: Mapping[str, str]
) -> dict[str, Any]:
    """Return ``arguments`` with the vault's values in place of placeholders, restricted ones only."""
    return {
        name: _unmask(value, vault) if tool.args_schema[name].restricted else value
        for name, value in arguments.items()
    }


def arguments_mask(
    tool: ToolConfig, real: Mapping[str, Any], vault: Mapping[str, str], key: str
) -> dict[str, Any]:
    """Return ``real`` as ledger, record and events may keep it.

    A restricted value is written as its placeholder; one the vault does not hold (a client sent it
    as a tool argument) as a tag that differs by value and cannot be turned back without ``key``.
    """
    return {
        name: _mask(value, vault, key) if tool.args_schema[name].restricted else value
        for name, value in real.items()
    }


def _unmask(value: Any, vault: Mapping[str, str]) -> Any:
    if isinstance(value, str) and vault and "<" in value:
        names = "|".join(re.escape(name) for name in sorted(vault, key=len, reverse=True))
        return re.sub(names, lambda found: vault[found.group()], value)
    if isinstance(value, list):
        return [_unmask(item, vault) for item in value]
    return value


def _mask(value: Any, vault: Mapping[str, str], key: str) -> Any:
    if isinstance(value, list):
        return [_mask(item, vault, key) for item in value]
    text = value if isinstance(value, str) else canonical_json(value)
    known = next((name for name, real in vault.items() if real == text), None)
    if known is not None:
        return known
    tag = hmac.new(key.encode(), text.encode("utf-8", "surrogatepass"), hashlib.sha256)
    return f"<RESTRICTED:{tag.hexdigest()[:16]}>"
