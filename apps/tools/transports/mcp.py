"""MCP servers over streamable HTTP, through the SDK's client session."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import httpx2
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp.types import (
    HEADER_MISMATCH,
    INVALID_REQUEST,
    UNSUPPORTED_PROTOCOL_VERSION,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Implementation,
    ListToolsResult,
    PaginatedRequestParams,
    Tool,
)
from pydantic import ValidationError

from apps.runtime.ports import RemoteResult, RemoteTool, ToolUnavailable
from apps.tools.results import UNCONFIRMED
from apps.tools.transports.connections import (
    AnswerTooLong,
    Connections,
    client_create,
    unavailable,
)
from apps.tools.transports.content import tool_result
from apps.tools.transports.post import HttpRefused, NoAnswer, PostDispatcher, SessionGone

MAX_PAGES = 100
"""Pages of a tool list that are read: a server whose cursor never ends cannot hold a worker."""

_CLIENT = Implementation(name="agentops", version="1")
_NOT_THIS_ERA = {400, 404, 405, 406, 415, 422}
"""How servers of 2025 refuse the discovery of the 2026 protocol: then the handshake is tried."""

_NOT_RUN = {INVALID_REQUEST, UNSUPPORTED_PROTOCOL_VERSION}
"""Errors of the envelope: the request was refused before any tool was looked at."""

_DECLINED = {
    401: "the credential is missing or has expired",
    403: "the credential does not allow it",
    407: "a proxy wants a credential",
    413: "the arguments are too long",
    429: "too many requests",
}
BROKEN = (
    MCPError,
    HttpRefused,
    SessionGone,
    NoAnswer,
    AnswerTooLong,
    httpx2.HTTPError,
    httpx2.InvalidURL,
)
AnswerT = TypeVar("AnswerT")


class Declined(Exception):
    """The server answered, and the answer is no."""


class McpConnection:
    """One server under one credential: its session, the tools it lists, its HTTP client."""

    def __init__(self, address: str, credential: str) -> None:
        self._address = address
        self._http = client_create(credential)
        self._session: ClientSession | None = None
        self._opening = asyncio.Lock()
        self._tools: dict[str, Tool] = {}

    async def aclose(self) -> None:
        """Close the sockets."""
        self._session = None
        await self._http.aclose()

    async def open(self) -> ClientSession:
        """Return the session, negotiated and with its tools listed."""
        if self._session is None:
            async with self._opening:
                if self._session is None:
                    session = ClientSession(
                        dispatcher=PostDispatcher(self._http, self._address), client_info=_CLIENT
                    )
                    await _negotiate(session)
                    await self.list_tools(session)
                    self._session = session
        return self._session

    def forget(self, session: ClientSession | None) -> None:
        """Drop ``session``; the next call negotiates anew (field case 10.1)."""
        if self._session is session:
            self._session = None

    async def list_tools(self, session: ClientSession) -> list[Tool]:
        """Return every page of the server's tools (field case 10.3)."""
        found: dict[str, Tool] = {}
        cursors: set[str] = set()
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            params = PaginatedRequestParams(cursor=cursor) if cursor else None
            page: ListToolsResult = await session.list_tools(params=params)
            found.update((tool.name, tool) for tool in page.tools)
            cursor = page.next_cursor
            if not cursor or cursor in cursors:
                break
            cursors.add(cursor)
        self._tools = found
        return list(found.values())

    async def call(self, session: ClientSession, request: CallToolRequest) -> RemoteResult:
        """Send one tools/call and return its answer, checked against the tool's output schema."""
        name = request.params.name
        try:
            result = await self._send(session, request)
        except ValidationError:
            return _unreadable("The server's answer does not follow the protocol.")
        except AnswerTooLong:
            return _unreadable("The server's answer is too long.")
        if not result.is_error and not await self._conforms(session, name, result):
            return _unreadable("The answer does not have the shape that the tool declares.")
        return tool_result(name, result)

    async def _send(self, session: ClientSession, request: CallToolRequest) -> CallToolResult:
        try:
            return await session.send_request(request, CallToolResult)
        except MCPError as error:
            if error.code != HEADER_MISMATCH:
                raise
        # The server mirrors arguments in headers and our listing of it is stale: it has refused
        # the request unread, so it is listed again and asked once more.
        await self.list_tools(session)
        return await session.send_request(request, CallToolResult)

    async def _conforms(self, session: ClientSession, name: str, result: CallToolResult) -> bool:
        for attempt in range(2):
            tool = self._tools.get(name)
            if tool is None or tool.output_schema is None:
                return True
            try:
                await session.validate_tool_result(name, result)
            except RuntimeError:
                if attempt == 0 and not await self._relisted(session):
                    return False
            else:
                return True
        return False

    async def _relisted(self, session: ClientSession) -> bool:
        """List again: the server may have been replaced by one whose tools answer differently."""
        try:
            await self.list_tools(session)
        except (*BROKEN, ValidationError):
            return False
        return True


class McpTransport:
    """The ``ToolTransport`` for ``streamable_http``. One instance belongs to one event loop."""

    def __init__(self) -> None:
        self._connections = Connections(McpConnection)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._connections.aclose()

    async def call(
        self, tool: RemoteTool, arguments: Mapping[str, Any], *, idempotency_key: str
    ) -> RemoteResult:
        """Call ``tool``; the key goes along as ``_meta.idempotency_key`` and as a header."""
        request = CallToolRequest(
            params=CallToolRequestParams(
                name=tool.name,
                arguments=dict(arguments),
                _meta={"idempotency_key": idempotency_key} if idempotency_key else None,
            )
        )
        try:
            return await self._ask(tool, lambda server, session: server.call(session, request))
        except Declined as error:
            return RemoteResult(ok=False, error=str(error))

    async def list_tools(self, tool: RemoteTool) -> list[Mapping[str, Any]]:
        """Return the tools of ``tool``'s server: name, description, input_schema, output_schema."""
        try:
            tools = await self._ask(tool, lambda server, session: server.list_tools(session))
        except Declined as error:
            raise ToolUnavailable(str(error), sent=False) from error
        return [
            {
                "name": found.name,
                "description": found.description or "",
                "input_schema": found.input_schema,
                "output_schema": found.output_schema,
            }
            for found in tools
        ]

    async def _ask(
        self, tool: RemoteTool, ask: Callable[[McpConnection, ClientSession], Awaitable[AnswerT]]
    ) -> AnswerT:
        """Return what ``ask`` does within the deadline. Raises ``ToolUnavailable``, ``Declined``."""
        with self._connections.using(tool.address, tool.credential) as server:
            session: ClientSession | None = None
            try:
                async with asyncio.timeout(tool.timeout_seconds):
                    session = await server.open()
                    return await ask(server, session)
            except TimeoutError:
                late = "The server did not answer in time."
                raise ToolUnavailable(late, sent=session is not None) from None
            except (*BROKEN, ValidationError) as error:
                failure = _failure(error)
                if isinstance(failure, ToolUnavailable) and not failure.sent:
                    server.forget(session)
                if isinstance(failure, ToolUnavailable) and session is None:
                    failure = ToolUnavailable(str(failure), sent=False)
                raise failure from error


def _failure(error: Exception) -> ToolUnavailable | Declined:
    """Return what ``error`` means to a caller: refused for good, or no answer and how far it got."""
    match error:
        case MCPError(code=code) if code in _NOT_RUN:
            return ToolUnavailable(f"The server refused the request: {error}", sent=False)
        case MCPError():
            return Declined(str(error) or f"The server answered with error {error.code}.")
        case SessionGone():
            return ToolUnavailable("The server has forgotten the session.", sent=False)
        case HttpRefused(status=status) if status in _DECLINED:
            return Declined(f"{error} ({_DECLINED[status]})")
        case HttpRefused(status=status):
            # Below 300 and from 500 on the tool may have run; so it may behind a 408.
            ran = status < 300 or status >= 500 or status == httpx2.codes.REQUEST_TIMEOUT
            return ToolUnavailable(str(error), sent=ran)
        case NoAnswer():
            return ToolUnavailable(str(error), sent=True)
        case httpx2.HTTPError() | httpx2.InvalidURL():
            return unavailable(error)
    return ToolUnavailable("The server does not speak MCP.", sent=True)


async def _negotiate(session: ClientSession) -> None:
    """Agree on a protocol version: the stateless one of 2026, else the handshake of 2025.

    The same rule as the SDK's ``mode="auto"``: only an outage or a refused credential is not taken
    for an older server. Raises what the dispatcher raises, ``NoAnswer`` for an unknown version.
    """
    try:
        await session.discover()
    except HttpRefused as error:
        if error.status not in _NOT_THIS_ERA:
            raise
    except (MCPError, NoAnswer, ValidationError, RuntimeError):
        pass
    else:
        return
    try:
        await session.initialize()
    except RuntimeError as error:
        raise NoAnswer("It speaks no protocol version that we know.") from error


def _unreadable(message: str) -> RemoteResult:
    """An answer came; whether the tool did its work cannot be read from it (field case 10.7)."""
    return RemoteResult(ok=False, error=message, metadata={UNCONFIRMED: True})
