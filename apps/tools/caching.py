"""Answers of read-only tools, kept for a while and used again for the same customer's same question.

What a key is made of: tenant, environment, server and how it is reached, the tool's whole
configuration, the customer, the caller, and the arguments as they are sent. It is a keyed digest: a
document number cannot be found out from it, and an edited tool is another key (field case 5.10).
"""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from apps.runtime.canonical import canonical_json, sha256_text
from apps.runtime.release import Release
from apps.runtime.turn import ToolCall, Turn
from apps.tools.config import ParameterMappingConfig, ToolServerConfig
from apps.tools.mapping import customer_keys, sources_of
from apps.tools.preparing import Prepared

HIT = "IC.MCP_CACHE_HIT"
MISS = "IC.MCP_CACHE_MISS"
SET = "IC.MCP_CACHE_SET"
NOT_STORED = "IC.MCP_CACHE_NOT_STORED"
BYPASS = "IC.MCP_CACHE_BYPASS"
DEDUPED = "IC.MCP_TOOL_DEDUPED"
_ASKED = {"miss": MISS, "bypass": BYPASS}

LONGEST = 200_000
"""Characters of an answer that is kept; a longer one is cheaper to ask for than to store."""


@dataclass(frozen=True)
class Kept:
    """One answer to keep. ``scope``: whose it is, to drop it when something of theirs changed."""

    key: str
    scope: str
    tool: str
    text: str
    seconds: int


class AnswerCache(Protocol):
    """Keeps answers of one tenant at a time; ``tenant`` is its primary key."""

    async def find(self, tenant: int, keys: Sequence[str]) -> Mapping[str, str]:
        """Return key -> text of those that are there and not expired."""
        ...

    async def keep(self, tenant: int, answers: Sequence[Kept]) -> None: ...

    async def drop(self, tenant: int, scopes: Sequence[str]) -> None: ...


@dataclass(frozen=True)
class Look:
    """What is known before a call. ``off``: its answers are not kept. ``text``: that of a ``hit``."""

    state: Literal["off", "bypass", "miss", "hit"]
    key: str = ""
    text: str = ""


class Answers:
    """The cache as the caller of tools uses it; ``tag_key`` keys the digests."""

    def __init__(self, cache: AnswerCache | None, tag_key: str) -> None:
        self._cache = cache
        self._tag_key = tag_key

    async def look(self, turn: Turn, items: Sequence[Prepared]) -> list[Look]:
        """Return what is kept for each of ``items``; one read for all of them."""
        keys = [self.key(turn, item) if self._keeps(item) else "" for item in items]
        wanted = [key for key in keys if key]
        if self._cache is None or not wanted:
            return [Look("off") for _ in items]
        if _bypassed(turn):
            return [Look("bypass", key) if key else Look("off") for key in keys]
        found = await self._cache.find(int(turn.tenant), wanted)
        return [
            Look("hit", key, found[key]) if key in found else Look("miss" if key else "off", key)
            for key in keys
        ]

    async def after(
        self,
        turn: Turn,
        items: Sequence[Prepared],
        looks: Sequence[Look],
        done: Sequence[tuple[ToolCall, str]],
    ) -> list[ToolCall]:
        """Keep what may be kept of ``done`` (call, text), drop what an action made doubtful; return
        the calls with their events."""
        calls: list[ToolCall] = []
        kept: list[Kept] = []
        for item, look, (call, text) in zip(items, looks, done, strict=True):
            if look.state in _ASKED:
                stored = call.ok and len(text) <= LONGEST
                events = (*call.events, _ASKED[look.state], SET if stored else NOT_STORED)
                call = replace(call, events=events)
                if stored:
                    seconds = item.tool.cache.ttl_seconds
                    kept.append(Kept(look.key, self.scope(turn, item), call.tool, text, seconds))
            calls.append(call)
        if self._cache is not None:
            acted = {self.scope(turn, item) for item in items if item.call.action}
            if acted:
                await self._cache.drop(int(turn.tenant), sorted(acted))
            if kept:
                await self._cache.keep(int(turn.tenant), kept)
        return calls

    def key(self, turn: Turn, item: Prepared) -> str:
        """Return the name of ``item``'s answer."""
        remote, slug = item.remote, item.call.name
        keys = {
            key
            for names in sources_of(turn.release, slug, item.tool).context.values()
            for key in names
        }
        return self._digest(
            "answer",
            turn.tenant,
            turn.environment,
            [remote.server, remote.transport, remote.address, remote.name, remote.credential],
            [item.call.contract, _configuration(turn.release, slug, remote.server)],
            _values(turn, customer_keys(turn.release) | keys),
            [turn.inbound.caller.principal, remote.principal],
            dict(item.real),
        )

    def scope(self, turn: Turn, item: Prepared) -> str:
        """Return the name of everything kept of one server for one customer."""
        customer = _values(turn, customer_keys(turn.release))
        return self._digest("scope", turn.tenant, turn.environment, item.remote.server, customer)

    def _digest(self, *parts: Any) -> str:
        text = canonical_json(list(parts)).encode("utf-8", "surrogatepass")
        return hmac.new(self._tag_key.encode(), text, hashlib.sha256).hexdigest()

    def _keeps(self, item: Prepared) -> bool:
        return item.tool.cache.enabled and not item.call.action and not item.key


def hit(item: Prepared, answered: ToolCall) -> ToolCall:
    """Return ``answered``, read from a kept text, as the answer of ``item``."""
    metadata = {**answered.metadata, "cache": "hit"}
    return replace(answered, metadata=metadata, replayed=True, events=(*answered.events, HIT))


def _values(turn: Turn, keys: set[str]) -> dict[str, str]:
    return {key: value for key in sorted(keys) if (value := turn.business_context.get(key))}


def _configuration(release: Release, slug: str, server: str) -> str:
    """Return the sha256 of all that is configured of a tool; made once per release."""
    name = f"tools:answer:{slug}"
    if name not in release.derived:
        items = {
            f"{kind}:{key}": item.model_dump(mode="json")
            for (kind, key), item in release.items.items()
            if (kind, key) in (("tool", slug), (ToolServerConfig.kind, server))
            or kind == ParameterMappingConfig.kind
        }
        release.derived[name] = sha256_text(canonical_json(items))
    return str(release.derived[name])


def _bypassed(turn: Turn) -> bool:
    metadata = turn.inbound.payload.get("metadata")
    return isinstance(metadata, Mapping) and metadata.get("cache_bypass") is True
