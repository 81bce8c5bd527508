"""MCP servers over streamable HTTP, HTTP+SSE or a program's pipes, through the SDK's session."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
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

from apps.runtime.addresses import AllowList
from apps.runtime.i18n import gettext_noop
from apps.runtime.ports import RemoteResult, RemoteTool, ToolUnavailable
from apps.tools.results import UNCONFIRMED
from apps.tools.transports.changes import Changes
from apps.tools.transports.connections import (
    AnswerTooLong,
    Connections,
    address_check,
    unavailable,
)
from apps.tools.transports.content import tool_result
from apps.tools.transports.guarding import TokenAuth, client_create
from apps.tools.transports.listening import listen
from apps.tools.transports.post import PostWire
from apps.tools.transports.programs import Program
from apps.tools.transports.rpc import HttpRefused, NoAnswer, Notified, SessionGone, Wire
from apps.tools.transports.sse import SseWire
from apps.tools.transports.stdio import MAX_PROGRAMS, StdioWire, Supervisor
from apps.tools.transports.tokens import BoundTokens, TokenSource, needs_sign_in
from apps.tools.transports.watching import answer_seen

MAX_PAGES = 100
"""Pages of a tool list that are read: a server whose cursor never ends cannot hold a worker."""

TOOLS_CHANGED = "notifications/tools/list_changed"

_CLIENT = Implementation(name="agentops", version="1")
_NOT_THIS_ERA = {400, 404, 405, 406, 415, 422}
"""How servers of 2025 refuse the discovery of the 2026 protocol: then the handshake is tried."""

_NOT_RUN = {INVALID_REQUEST, UNSUPPORTED_PROTOCOL_VERSION}
"""Errors of the envelope: the request was refused before any tool was looked at."""

_DECLINED = {
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


@dataclass(frozen=True)
class Channel:
    """How wires to one server are made; what they share is kept here."""

    wire: Callable[[Notified], Wire]
    http: httpx2.AsyncClient | None = None
    kept: bool = True
    """It stays open, and others' calls are on it. Such channels are the older protocol's own: some of
    their servers never answer a discovery, so the handshake comes first."""


class McpConnection:
    """One server for one caller: its session, the tools it lists, what lies below."""

    def __init__(self, channel: Channel, changed: Callable[[], None]) -> None:
        self._channel = channel
        self._changed = changed
        self._session: ClientSession | None = None
        self._wire: Wire | None = None
        self._listener: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()
        self._tools: dict[str, Tool] | None = None
        self._stale = False

    async def aclose(self) -> None:
        """Close the session, what it runs on, and the sockets."""
        self._drop()
        await asyncio.gather(*self._closing, return_exceptions=True)
        if self._channel.http is not None:
            await self._channel.http.aclose()

    async def open(self) -> ClientSession:
        """Return the session, negotiated and with its tools listed."""
        async with self._opening:
            if self._session is not None and self._wire is not None and not self._wire.alive:
                self._drop()
            if self._session is None:
                self._session = await self._opened()
            elif self._stale:
                await self.list_tools(self._session)
            return self._session

    def forget(self, session: ClientSession | None) -> None:
        """Drop ``session``; the next call negotiates anew (field case 10.1)."""
        if session is not None and self._session is session:
            self._drop()

    def refused(self, session: ClientSession | None) -> None:
        """A request was refused unread: another server may be there now. Where the channel is kept
        there is none, and other calls are on it."""
        if not self._channel.kept:
            self.forget(session)

    async def list_tools(self, session: ClientSession) -> list[Tool]:
        """Return every page of the server's tools (field case 10.3).

        Raises ``NoAnswer`` for a list that does not end.
        """
        self._stale = False
        found: dict[str, Tool] = {}
        cursors: set[str] = set()
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            params = PaginatedRequestParams(cursor=cursor) if cursor else None
            page: ListToolsResult = await session.list_tools(params=params)
            found.update((tool.name, tool) for tool in page.tools)
            cursor = page.next_cursor
            if not cursor:
                self._listed(found)
                return list(found.values())
            if cursor in cursors:
                raise NoAnswer(
                    gettext_noop("The server's tool list does not end: a page leads to itself.")
                )
            cursors.add(cursor)
        raise NoAnswer(f"The server's tool list has more than {MAX_PAGES} pages.")

    async def call(self, session: ClientSession, request: CallToolRequest) -> RemoteResult:
        """Send one tools/call and return its answer, checked against the tool's output schema."""
        name = request.params.name
        try:
            result = await self._send(session, request)
        except ValidationError:
            return _unreadable(gettext_noop("The server's answer does not follow the protocol."))
        except AnswerTooLong:
            return _unreadable(gettext_noop("The server's answer is too long."))
        answer_seen(lambda: result.model_dump(mode="json", by_alias=True, exclude_none=True))
        if not result.is_error and not await self._conforms(session, name, result):
            return _unreadable(
                gettext_noop("The answer does not have the shape that the tool declares.")
            )
        return tool_result(name, result)

    async def _opened(self) -> ClientSession:
        wire = self._channel.wire(self._noticed)
        try:
            await wire.start()
            session = ClientSession(dispatcher=wire, client_info=_CLIENT)
            await _negotiate(session, handshake_first=self._channel.kept)
            await self.list_tools(session)
        except BaseException:
            self._later(wire.aclose())
            raise
        self._wire = wire
        if isinstance(wire, PostWire):
            self._listener = asyncio.create_task(listen(session, wire, self._missed))
        return session

    def _drop(self) -> None:
        self._session = None
        if self._listener is not None:
            self._listener.cancel()
            self._later(_ended(self._listener))
            self._listener = None
        if self._wire is not None:
            self._later(self._wire.aclose())
            self._wire = None

    def _later(self, closing: Awaitable[None]) -> None:
        """Close in the background: whoever opens anew does not wait for a program to end."""
        task = asyncio.ensure_future(closing)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _noticed(self, method: str) -> None:
        if method == TOOLS_CHANGED:
            self._stale = True
            self._changed()

    def _missed(self) -> None:
        """The next call lists again."""
        self._stale = True

    def _listed(self, found: dict[str, Tool]) -> None:
        """Keep the list; one that differs from the last is a change nobody may have told us of."""
        changed = self._tools is not None and found != self._tools
        self._tools = found
        if changed:
            self._changed()

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
            tool = (self._tools or {}).get(name)
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
    """The ``ToolTransport`` for ``streamable_http``, ``sse`` and ``stdio``.

    ``allowed``: addresses inside that may be reached. ``programs``: what ``stdio`` servers may name.
    One instance belongs to one event loop.
    """

    def __init__(
        self,
        *,
        allowed: AllowList | None = None,
        programs: Mapping[str, Program] | None = None,
        tokens: TokenSource | None = None,
        changes: Changes | None = None,
    ) -> None:
        self._allowed = allowed or AllowList()
        self._programs = programs or {}
        self._tokens = tokens or BoundTokens()
        self._changes = changes or Changes()
        self._connections = Connections(self._connection)
        self._runs = Connections(self._connection, max_kept=MAX_PROGRAMS, strict=True)

    async def aclose(self) -> None:
        """Close every connection."""
        await asyncio.gather(
            self._connections.aclose(), self._runs.aclose(), self._changes.aclose()
        )

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
            return await self._ask(
                tool, lambda server, session: server.call(session, request), twice=tool.repeatable
            )
        except Declined as error:
            return RemoteResult(ok=False, error=str(error))

    async def list_tools(self, tool: RemoteTool) -> list[Mapping[str, Any]]:
        """See ``ToolTransport``."""
        try:
            tools = await self._ask(
                tool, lambda server, session: server.list_tools(session), twice=True
            )
        except Declined as error:
            raise ToolUnavailable(str(error), sent=False, code="broken") from error
        return [_shown(found) for found in tools]

    async def _ask(
        self,
        tool: RemoteTool,
        ask: Callable[[McpConnection, ClientSession], Awaitable[AnswerT]],
        *,
        twice: bool,
    ) -> AnswerT:
        """Return what ``ask`` does within the deadline. Raises ``ToolUnavailable``, ``Declined``.

        ``twice``: it may be asked again under a new session when the server forgot the old one.
        """
        kept = self._runs if tool.transport == "stdio" else self._connections
        with kept.using(tool) as server:
            session: ClientSession | None = None
            try:
                # One deadline over all of it: no keep-alive, comment or progress moves it.
                async with asyncio.timeout(tool.timeout_seconds):
                    session = await server.open()
                    try:
                        return await ask(server, session)
                    except SessionGone:
                        server.forget(session)
                        if not twice:
                            raise
                    session = None
                    session = await server.open()
                    return await ask(server, session)
            except TimeoutError:
                raise _late(sent=session is not None) from None
            except (*BROKEN, ValidationError) as error:
                failure = _failure(error)
                if isinstance(failure, ToolUnavailable):
                    if not failure.sent:
                        server.refused(session)
                    if session is None:
                        failure.sent = False
                raise failure from error

    def _connection(self, remote: RemoteTool) -> McpConnection:
        return McpConnection(self._channel(remote), lambda: self._changes.noticed(remote))

    def _channel(self, remote: RemoteTool) -> Channel:
        if remote.transport == "stdio":
            return self._program_channel(remote)
        address = address_check(remote.address)
        http = client_create(self._allowed, TokenAuth(self._tokens, remote))

        def post(notified: Notified) -> Wire:
            return PostWire(http, address, notified)

        def sse(notified: Notified) -> Wire:
            return SseWire(http, address, notified)

        if remote.transport == "sse":
            return Channel(sse, http)
        return Channel(post, http, kept=False)

    def _program_channel(self, remote: RemoteTool) -> Channel:
        program = self._programs.get(remote.address)
        if program is None:
            text = gettext_noop(
                "No program of this name is registered; an operator does it by STDIO_PROGRAMS."
            )
            raise ToolUnavailable(text, sent=False, code="forbidden_address")
        supervisor = Supervisor()
        return Channel(
            lambda notified: StdioWire(
                remote.address, program, remote.credential, supervisor, notified
            )
        )


def _late(*, sent: bool) -> ToolUnavailable:
    return ToolUnavailable(
        gettext_noop("The server did not answer in time."), sent=sent, code="timeout"
    )


def _shown(tool: Tool) -> dict[str, Any]:
    """Return what a model may see of ``tool``, absent fields left out."""
    annotations = tool.annotations
    fields = {
        "title": tool.title,
        "output_schema": tool.output_schema,
        "annotations": annotations.model_dump(mode="json", by_alias=True, exclude_none=True)
        if annotations
        else None,
    }
    return {
        "name": tool.name,
        "description": tool.description or "",
        "input_schema": tool.input_schema,
        **{name: value for name, value in fields.items() if value},
    }


def _failure(error: Exception) -> ToolUnavailable | Declined:
    """Return what ``error`` means to a caller: refused for good, or no answer and how far it got."""
    match error:
        case MCPError(code=code) if code in _NOT_RUN:
            text = f"The server refused the request: {error}"
            return ToolUnavailable(text, sent=False, code="broken")
        case MCPError():
            return Declined(str(error) or f"The server answered with error {error.code}.")
        case SessionGone():
            text = gettext_noop("The server has forgotten the session.")
            return ToolUnavailable(text, sent=False, code="broken")
        case HttpRefused(status=httpx2.codes.UNAUTHORIZED):
            return needs_sign_in()
        case HttpRefused(status=status) if status in _DECLINED:
            return Declined(f"{error} ({_DECLINED[status]})")
        case HttpRefused(status=status):
            # Below 300 and from 500 on the tool may have run; so it may behind a 408.
            ran = status < 300 or status >= 500 or status == httpx2.codes.REQUEST_TIMEOUT
            return ToolUnavailable(str(error), sent=ran, code="broken")
        case NoAnswer():
            return ToolUnavailable(str(error), sent=True, code="broken")
        case httpx2.HTTPError() | httpx2.InvalidURL():
            return unavailable(error)
    return ToolUnavailable(gettext_noop("The server does not speak MCP."), sent=True, code="broken")


async def _negotiate(session: ClientSession, *, handshake_first: bool) -> None:
    """Agree on a protocol version: the stateless one of 2026, else the handshake of 2025.

    The same rule as the SDK's ``mode="auto"``: only an outage or a refused credential is not taken
    for an older server. Raises what the wire raises, ``NoAnswer`` for an unknown version.
    """
    if not handshake_first:
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


async def _ended(task: asyncio.Task[None]) -> None:
    with contextlib.suppress(asyncio.CancelledError):
        await task


def _unreadable(message: str) -> RemoteResult:
    """An answer came; whether the tool did its work cannot be read from it (field case 10.7)."""
    return RemoteResult(ok=False, error=message, metadata={UNCONFIRMED: True})
