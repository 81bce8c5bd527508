"""A tool's contract: everything a model sees of it, and the one hash over all of that. Pure.

A hash that leaves the description out misses the change that matters most: the same schema with
words that make a model do something else.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from apps.runtime.canonical import canonical_json, sha256_text
from apps.tools.config import PinnedContract, ToolConfig

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class Unreadable(ValueError):
    """What a server lists cannot be written as JSON text."""


@dataclass(frozen=True)
class Contract:
    """What a server declares of one tool. Absent and empty are the same."""

    name: str
    title: str = ""
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict)
    output_schema: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def text(self) -> str:
        """Every model-visible field as canonical text."""
        return canonical_json(self.fields())

    @cached_property
    def sha256(self) -> str:
        """The hash of ``text``."""
        return sha256_text(self.text)

    def fields(self) -> dict[str, Any]:
        """Return the fields that are hashed, by their names."""
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "input_schema": dict(self.input_schema),
            "output_schema": dict(self.output_schema),
            "annotations": dict(self.annotations),
        }

    def pinned(self) -> dict[str, Any]:
        """Return the content of ``ToolConfig.contract`` that pins this contract."""
        shown = self.fields()
        del shown["name"]
        return {"sha256": self.sha256, **shown}


def contracts_listed(listed: Sequence[Mapping[str, Any]]) -> list[Contract]:
    """Return what ``ToolTransport.list_tools`` returned as contracts, by name; a name that is listed
    twice is what it is listed as last. Raises ``Unreadable``."""
    found: dict[str, Contract] = {}
    for tool in listed:
        try:
            contract = _contract(clean(tool))
            found[contract.name] = contract
            _ = contract.sha256
        except (KeyError, ValueError, TypeError, RecursionError) as error:
            raise Unreadable(type(error).__name__) from None
    return [found[name] for name in sorted(found)]


def contract_parse(fields: Mapping[str, Any]) -> Contract:
    """Return the contract that ``Contract.fields`` wrote."""
    return Contract(**fields)


def contract_pinned(slug: str, tool: ToolConfig) -> Contract | None:
    """Return the contract that ``tool`` pins, ``None`` when it pins none."""
    pinned = tool.contract
    if not pinned.sha256:
        return None
    return _of_pin(tool.remote_name or slug, pinned)


def pin_holds(slug: str, tool: ToolConfig) -> bool:
    """Return whether the pinned hash is that of the pinned fields; true without a pin."""
    contract = contract_pinned(slug, tool)
    return contract is None or contract.sha256 == tool.contract.sha256


def clean(value: Any) -> Any:
    """Return ``value`` (JSON types) without what no store keeps: NUL, lone surrogates, NaN.

    A server's words are hashed as they can be pinned, or a pin would differ from what was seen.
    """
    if isinstance(value, str):
        return _UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {_UNSTORABLE.sub("\ufffd", str(key)): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    return value


def _of_pin(name: str, pinned: PinnedContract) -> Contract:
    return Contract(
        name=name,
        title=pinned.title,
        description=pinned.description,
        input_schema=pinned.input_schema,
        output_schema=pinned.output_schema,
        annotations=pinned.annotations,
    )


def _contract(tool: Mapping[str, Any]) -> Contract:
    hints = _object(tool.get("annotations"))
    return Contract(
        name=str(tool["name"]),
        title=str(tool.get("title") or ""),
        description=str(tool.get("description") or ""),
        input_schema=_object(tool.get("input_schema")),
        output_schema=_object(tool.get("output_schema")),
        annotations={name: hint for name, hint in hints.items() if hint is not None},
    )


def _object(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}
