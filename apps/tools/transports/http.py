"""Servers without MCP: POST …/tools/call ``{tool_name, arguments}``, GET …/tools/list."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import httpx2

from apps.runtime.ports import RemoteResult, RemoteTool, ToolUnavailable
from apps.tools.results import UNCONFIRMED, NotJson, error_text, json_parse, result_normalise
from apps.tools.transports.connections import (
    AnswerTooLong,
    Connections,
    client_create,
    read_limited,
    unavailable,
)


class HttpConnection:
    """One server under one credential."""

    def __init__(self, address: str, credential: str) -> None:
        self._address = address
        self._http = client_create(credential)

    async def aclose(self) -> None:
        """Close the sockets."""
        await self._http.aclose()

    async def ask(
        self, method: str, path: str, body: bytes | None = None, key: str = ""
    ) -> tuple[int, bytes]:
        """Return status and body. Raises what the HTTP client raises, and ``AnswerTooLong``."""
        headers = {"content-type": "application/json", "accept": "application/json"}
        if key:
            headers["idempotency-key"] = key
        async with self._http.stream(
            method, f"{self._address}{path}", content=body, headers=headers
        ) as response:
            return response.status_code, await read_limited(response)


class HttpTransport:
    """The ``ToolTransport`` for ``http``. One instance belongs to one event loop."""

    def __init__(self) -> None:
        self._connections = Connections(HttpConnection)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._connections.aclose()

    async def call(
        self, tool: RemoteTool, arguments: Mapping[str, Any], *, idempotency_key: str
    ) -> RemoteResult:
        """Call ``tool``; the key goes along as header ``Idempotency-Key``."""
        body = {"tool_name": tool.name, "arguments": dict(arguments)}
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        try:
            status, answer = await self._ask(tool, "POST", "/tools/call", text, idempotency_key)
        except AnswerTooLong:
            return _unreadable("The server's answer is too long.")
        if status >= 500 or status in (202, 204, 408):
            raise ToolUnavailable(f"The server answered with HTTP {status}.", sent=True)
        if status >= 300:
            return RemoteResult(ok=False, error=_refusal(status, answer))
        try:
            return result_normalise(json_parse(answer))
        except NotJson:
            return _unreadable("The server's answer is not JSON.")

    async def list_tools(self, tool: RemoteTool) -> list[Mapping[str, Any]]:
        """Return the tools of ``tool``'s server: name, description, input_schema."""
        try:
            status, answer = await self._ask(tool, "GET", "/tools/list")
            if status != httpx2.codes.OK:
                raise ToolUnavailable(_refusal(status, answer), sent=False)
            return _listed(json_parse(answer))
        except (AnswerTooLong, NotJson):
            raise ToolUnavailable("The server's tool list cannot be read.", sent=False) from None

    async def _ask(
        self, tool: RemoteTool, method: str, path: str, body: bytes | None = None, key: str = ""
    ) -> tuple[int, bytes]:
        with self._connections.using(tool.address, tool.credential) as server:
            try:
                async with asyncio.timeout(tool.timeout_seconds):
                    return await server.ask(method, path, body, key)
            except TimeoutError:
                raise ToolUnavailable("The server did not answer in time.", sent=True) from None
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                raise unavailable(error) from error


def _refusal(status: int, answer: bytes) -> str:
    if 300 <= status < 400:
        return "The server redirects; bind the address it redirects to."
    try:
        value = json_parse(answer)
    except NotJson:
        value = None
    detail = error_text(value) if isinstance(value, Mapping) else ""
    return f"The server answered with HTTP {status}. {detail}".strip()


def _listed(value: Any) -> list[Mapping[str, Any]]:
    """Servers write a list of tools, ``{tools: list}``, or an object by name."""
    tools = value.get("tools", value) if isinstance(value, Mapping) else value
    if isinstance(tools, Mapping):
        tools = [{"name": name, **entry} for name, entry in tools.items() if _is_object(entry)]
    if not isinstance(tools, list):
        raise ToolUnavailable("The server's tool list cannot be read.", sent=False)
    return [
        {
            "name": str(tool["name"]),
            "description": str(tool.get("description") or ""),
            "input_schema": tool.get("input_schema") or tool.get("inputSchema") or {},
        }
        for tool in tools
        if _is_object(tool) and tool.get("name")
    ]


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _unreadable(message: str) -> RemoteResult:
    return RemoteResult(ok=False, error=message, metadata={UNCONFIRMED: True})
