"""Kept connections: one per server, tenant, person and credential, bounded in number."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

import httpx2

from apps.runtime.i18n import gettext_noop as _
from apps.runtime.ports import RemoteTool, ToolUnavailable
from apps.tools.transports.guarding import AddressForbidden

MAX_ANSWER_BYTES = 4 * 1024 * 1024
"""Longest answer read from a server: what the SDK's servers accept as a request."""

MAX_KEPT = 256
"""Connections kept per worker; the one unused for longest is closed first."""

_NEVER_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
    httpx2.LocalProtocolError,
    httpx2.InvalidURL,
)


class AnswerTooLong(Exception):
    """The server's answer has more than ``MAX_ANSWER_BYTES``; the rest was not read."""


def address_check(address: str) -> str:
    """Return ``address`` without a closing slash. Raises ``ToolUnavailable`` unless it is http(s)
    with a host and without a user name: secrets are credentials, not parts of addresses."""
    try:
        url = httpx2.URL(address)
    except httpx2.InvalidURL:
        raise ToolUnavailable(_("The server's address is not a URL."), sent=False) from None
    if url.scheme not in ("http", "https") or not url.host or url.userinfo:
        raise ToolUnavailable(_("The server's address must be http(s)://host."), sent=False)
    return address.rstrip("/")


def unavailable(error: Exception) -> ToolUnavailable:
    """Return ``error`` of the HTTP client as the port's own, with what is known of the sending."""
    if isinstance(error, AddressForbidden):
        text = _("The server's address is inside; an operator allows it by TOOL_ALLOW_PRIVATE.")
        return ToolUnavailable(text, sent=False, code="forbidden_address")
    sent = not isinstance(error, _NEVER_SENT)
    text = "The server broke off." if sent else "The server cannot be reached."
    code = "broken" if sent else "unreachable"
    return ToolUnavailable(f"{text} ({type(error).__name__})", sent=sent, code=code)


async def read_limited(response: httpx2.Response) -> bytes:
    """Return the body. Raises ``AnswerTooLong``."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.aiter_bytes():
        size += len(chunk)
        if size > MAX_ANSWER_BYTES:
            raise AnswerTooLong
        chunks.append(chunk)
    return b"".join(chunks)


class Closable(Protocol):
    """A connection that can be closed."""

    async def aclose(self) -> None: ...


ConnectionT = TypeVar("ConnectionT", bound=Closable)
Key = tuple[object, ...]


class Connections(Generic[ConnectionT]):
    """The kept connections of one event loop, made by ``make(remote)`` when first used.

    ``strict``: no more than ``max_kept`` even while all are in use; then ``using`` raises
    ``ToolUnavailable``. Raises ``RuntimeError`` on another loop than the first: sockets belong to
    the loop that opened them.
    """

    def __init__(
        self,
        make: Callable[[RemoteTool], ConnectionT],
        *,
        max_kept: int = MAX_KEPT,
        strict: bool = False,
    ) -> None:
        self._make = make
        self._max_kept = max_kept
        self._strict = strict
        self._kept: OrderedDict[Key, ConnectionT] = OrderedDict()
        self._in_use: dict[Key, int] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    @contextmanager
    def using(self, remote: RemoteTool) -> Iterator[ConnectionT]:
        """Hold the connection to ``remote``'s server; while held it is not closed."""
        self._same_loop()
        key = _key(remote)
        connection = self._kept.get(key)
        if connection is None:
            self._make_room()
            connection = self._kept[key] = self._make(remote)
        self._kept.move_to_end(key)
        self._in_use[key] = self._in_use.get(key, 0) + 1
        try:
            yield connection
        finally:
            self._in_use[key] -= 1
            if not self._in_use[key]:
                del self._in_use[key]
            if len(self._kept) > self._max_kept:
                self._close_oldest()

    async def aclose(self) -> None:
        """Close every connection."""
        kept = list(self._kept.values())
        self._kept.clear()
        await asyncio.gather(*(connection.aclose() for connection in kept), *self._closing)

    def _same_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        elif self._loop is not loop:
            raise RuntimeError("kept connections are used on the event loop that opened them")

    def _make_room(self) -> None:
        if not self._strict or len(self._kept) < self._max_kept or self._close_oldest():
            return
        raise ToolUnavailable(_("Too many programs are at work; try again."), sent=False)

    def _close_oldest(self) -> bool:
        idle = next((key for key in self._kept if key not in self._in_use), None)
        if idle is None:
            return False
        task = asyncio.ensure_future(self._kept.pop(idle).aclose())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return True


def _key(remote: RemoteTool) -> Key:
    """Whatever makes two callers' connections different: no tenant meets another's session."""
    return (
        remote.tenant, remote.server, remote.principal, remote.transport,
        remote.address.rstrip("/"), remote.credential, remote.auth, remote.client_id, remote.scopes,
    )  # fmt: skip
