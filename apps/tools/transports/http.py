"""Servers without MCP: POST …/tools/call ``{tool_name, arguments}``, GET …/tools/list."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import httpx2

from apps.runtime.addresses import AllowList
from apps.runtime.i18n import gettext_noop as _
from apps.runtime.ports import RemoteResult, RemoteTool, ToolUnavailable
from apps.tools.results import UNCONFIRMED, NotJson, error_text, json_parse, result_normalise
from apps.tools.transports.connections import (
    AnswerTooLong,
    Connections,
    address_check,
    read_limited,
    unavailable,
)
from apps.tools.transports.guarding import TokenAuth, client_create
from apps.tools.transports.tokens import BoundTokens, TokenSource, needs_sign_in
from apps.tools.transports.watching import answer_seen


class HttpConnection:
    """One server for one caller."""

    def __init__(self, remote: RemoteTool, allowed: AllowList, tokens: TokenSource) -> None:
        self._address = address_check(remote.address)
        self._http = client_create(allowed, TokenAuth(tokens, remote))

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

    def __init__(
        self, *, allowed: AllowList | None = None, tokens: TokenSource | None = None
    ) -> None:
        source = tokens or BoundTokens()
        inside = allowed or AllowList()
        self._connections = Connections(lambda remote: HttpConnection(remote, inside, source))

    async def aclose(self) -> None:
        """Close every connection."""
        await self._connections.aclose()

    async def call(
        self, tool: RemoteTool, arguments: Mapping[str, Any], *, idempotency_key: str
    ) -> RemoteResult:
        """Call ``tool``; the key goes along as header ``Idempotency-Key``."""
        body = {"tool_name": tool.name, "arguments": dict(arguments)}
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        try:
            status, answer = await self._ask(tool, "POST", "/tools/call", content, idempotency_key)
        except AnswerTooLong:
            return _unreadable(_("The server's answer is too long."))
        answer_seen(lambda: {"status": status, "body": answer.decode("utf-8", "replace")})
        if status >= 500 or status in (202, 204, 408):
            text = f"The server answered with HTTP {status}."
            raise ToolUnavailable(text, sent=True, code="broken")
        if status >= 300:
            return RemoteResult(ok=False, error=_refusal(status, answer))
        try:
            return result_normalise(json_parse(answer))
        except NotJson:
            return _unreadable(_("The server's answer is not JSON."))

    async def list_tools(self, tool: RemoteTool) -> list[Mapping[str, Any]]:
        """See ``ToolTransport``."""
        try:
            status, answer = await self._ask(tool, "GET", "/tools/list")
            if status != httpx2.codes.OK:
                raise ToolUnavailable(_refusal(status, answer), sent=False, code="broken")
            return _listed(json_parse(answer))
        except (AnswerTooLong, NotJson):
            raise _unlisted() from None

    async def _ask(
        self, tool: RemoteTool, method: str, path: str, body: bytes | None = None, key: str = ""
    ) -> tuple[int, bytes]:
        with self._connections.using(tool) as server:
            try:
                async with asyncio.timeout(tool.timeout_seconds):
                    status, answer = await server.ask(method, path, body, key)
            except TimeoutError:
                text = _("The server did not answer in time.")
                raise ToolUnavailable(text, sent=True, code="timeout") from None
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                raise unavailable(error) from error
        if status == httpx2.codes.UNAUTHORIZED:
            raise needs_sign_in()
        return status, answer


def _refusal(status: int, answer: bytes) -> str:
    if 300 <= status < 400:
        return _("The server redirects; bind the address it redirects to.")
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
        raise _unlisted()
    return [_shown(tool) for tool in tools if _is_object(tool) and tool.get("name")]


def _shown(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a model may see of ``tool``, absent fields left out."""
    fields = {
        "title": tool.get("title"),
        "output_schema": tool.get("output_schema") or tool.get("outputSchema"),
        "annotations": tool.get("annotations"),
    }
    return {
        "name": str(tool["name"]),
        "description": str(tool.get("description") or ""),
        "input_schema": tool.get("input_schema") or tool.get("inputSchema") or {},
        **{name: value for name, value in fields.items() if value},
    }


def _unlisted() -> ToolUnavailable:
    return ToolUnavailable(_("The server's tool list cannot be read."), sent=False, code="broken")


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _unreadable(message: str) -> RemoteResult:
    return RemoteResult(ok=False, error=message, metadata={UNCONFIRMED: True})
