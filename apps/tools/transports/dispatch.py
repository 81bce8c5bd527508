"""Which transport speaks to a tool's server, and whether it is asked at all."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from apps.runtime.addresses import AllowList
from apps.runtime.ports import RemoteResult, RemoteTool, ToolTransport
from apps.tools.transports.changes import Changed, Changes, nobody
from apps.tools.transports.circuit import Circuits, CircuitState
from apps.tools.transports.http import HttpTransport
from apps.tools.transports.programs import Program
from apps.tools.transports.tokens import BoundTokens, TokenSource

if TYPE_CHECKING:
    from apps.tools.transports.mcp import McpTransport


class Transports:
    """The ``ToolTransport`` of a worker: picks by ``RemoteTool.transport``.

    ``allowed``: addresses inside that an operator lets be reached. ``programs``: what a ``stdio``
    server may name. ``tokens``: where bearer tokens come from. ``on_changed``: told of a server
    whose tools changed. Its connections stay open between turns. One instance belongs to one event
    loop.
    """

    def __init__(
        self,
        *,
        allowed: AllowList | None = None,
        programs: Mapping[str, Program] | None = None,
        tokens: TokenSource | None = None,
        on_changed: Changed = nobody,
    ) -> None:
        self._allowed = allowed or AllowList()
        self._programs = programs or {}
        self._tokens = tokens or BoundTokens()
        self._on_changed = on_changed
        self._circuits = Circuits()
        self._mcp: McpTransport | None = None
        self._http = HttpTransport(allowed=self._allowed, tokens=self._tokens)

    async def call(
        self, tool: RemoteTool, arguments: Mapping[str, Any], *, idempotency_key: str
    ) -> RemoteResult:
        """See the transport of the tool. Raises ``ToolUnavailable``."""
        with self._circuits.trying(tool):
            chosen = self._chosen(tool)
            return await chosen.call(tool, arguments, idempotency_key=idempotency_key)

    async def list_tools(self, tool: RemoteTool) -> list[Mapping[str, Any]]:
        """See the transport of the tool. Raises ``ToolUnavailable``."""
        with self._circuits.trying(tool):
            return await self._chosen(tool).list_tools(tool)

    def states(self) -> list[CircuitState]:
        """Return the servers that failed lately in this process, and which of them are paused."""
        return self._circuits.states()

    async def aclose(self) -> None:
        """Close every connection."""
        closing = [self._http.aclose()]
        if self._mcp is not None:
            closing.append(self._mcp.aclose())
        await asyncio.gather(*closing)

    def _chosen(self, tool: RemoteTool) -> ToolTransport:
        if tool.transport == "http":
            return self._http
        if self._mcp is None:
            # The SDK takes over a second to import: a process that starts is ready before that.
            from apps.tools.transports.mcp import McpTransport

            self._mcp = McpTransport(
                allowed=self._allowed,
                programs=self._programs,
                tokens=self._tokens,
                changes=Changes(self._on_changed),
            )
        return self._mcp
