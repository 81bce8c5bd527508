"""Real restricted values and secrets go to the tool; everything that is kept sees a stand-in."""

import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import Any

from apps.runtime.canonical import canonical_json
from apps.runtime.ports import RemoteResult
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
    if isinstance(value, Mapping):
        return {key: _unmask(item, vault) for key, item in value.items()}
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


_TAG = re.compile(r"<RESTRICTED:[0-9a-f]{16}>|<[A-Z]{2,16}_[1-9]\d{0,5}>")


def is_lost(value: Any) -> bool:
    """Whether ``value``, unmasked, still holds a stand-in: a tag, which nobody can turn back, or a
    placeholder of no vault, which a later message might give another meaning."""
    return _TAG.search(value if isinstance(value, str) else repr(value)) is not None


def secret_mark(binding: str) -> str:
    """Return what is kept in place of the secret that ``binding`` names."""
    return f"<SECRET:{binding}>"


SHORTEST_INSIDE = 4
"""A shorter secret is only recognised when a text is nothing else."""


def result_scrub(result: RemoteResult, secrets: Mapping[str, str]) -> RemoteResult:
    """Return ``result`` with the marks of ``secrets`` (value -> mark) in place of their values: a
    server may repeat what it was sent."""
    if not secrets:
        return result
    return RemoteResult(
        ok=result.ok,
        result=value_scrub(result.result, secrets),
        error=text_scrub(result.error, secrets),
        metadata=value_scrub(dict(result.metadata), secrets),
    )


def text_scrub(text: str, secrets: Mapping[str, str]) -> str:
    """Return ``text`` with marks in place of secrets; the longest are looked for first."""
    for value in sorted(secrets, key=len, reverse=True):
        if text == value or len(value) >= SHORTEST_INSIDE:
            text = text.replace(value, secrets[value])
    return text


def value_scrub(value: Any, secrets: Mapping[str, str]) -> Any:
    """Return ``value`` with marks in place of secrets, wherever they stand in it."""
    if isinstance(value, str):
        return text_scrub(value, secrets)
    if isinstance(value, list | tuple):
        return [value_scrub(item, secrets) for item in value]
    if isinstance(value, Mapping):
        return {
            text_scrub(str(k), secrets): value_scrub(item, secrets) for k, item in value.items()
        }
    return value
