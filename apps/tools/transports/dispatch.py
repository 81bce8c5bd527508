"""Which transport speaks to a tool's server."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from apps.runtime.ports import RemoteResult, RemoteTool, ToolTransport
from apps.tools.transports.http import HttpTransport

if TYPE_CHECKING:
    from apps.tools.transports.mcp import McpTransport


class Transports:
    """The ``ToolTransport`` of a worker: picks by ``RemoteTool.transport``.

    Its connections stay open between turns. One instance belongs to one event loop.
    """

    def __init__(self) -> None:
        self._mcp: McpTransport | None = None
        self._http = HttpTransport()

    async def call(
        self, tool: RemoteTool, arguments: Mapping[str, Any], *, idempotency_key: str
    ) -> RemoteResult:
        """See the transport of the tool."""
        chosen = self._chosen(tool)
        return await chosen.call(tool, arguments, idempotency_key=idempotency_key)

    async def list_tools(self, tool: RemoteTool) -> list[Mapping[str, Any]]:
        """See the transport of the tool."""
        return await self._chosen(tool).list_tools(tool)

    async def aclose(self) -> None:
        """Close every connection."""
        kept = (
            [self._http.aclose()]
            if self._mcp is None
            else [self._mcp.aclose(), self._http.aclose()]
        )
        await asyncio.gather(*kept)

    def _chosen(self, tool: RemoteTool) -> ToolTransport:
        if tool.transport == "http":
            return self._http
        if self._mcp is None:
            # The SDK takes over a second to import: a process that starts is ready before that.
            from apps.tools.transports.mcp import McpTransport

            self._mcp = McpTransport()
        return self._mcp
