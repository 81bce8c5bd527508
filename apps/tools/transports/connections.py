"""Kept connections: one per (address, credential), bounded, with one TLS context per process."""

import asyncio
import ssl
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Generic, Protocol, TypeVar

import httpx2

from apps.runtime.ports import ToolUnavailable

CONNECT_SECONDS = 5.0
"""Longest wait for a TCP and TLS connection; the call's own deadline may be shorter."""

MAX_ANSWER_BYTES = 4 * 1024 * 1024
"""Longest answer read from a server: what the SDK's servers accept as a request."""

MAX_KEPT = 256
"""Connections kept per worker; the one unused for longest is closed first."""

_LIMITS = httpx2.Limits(max_connections=64, max_keepalive_connections=32, keepalive_expiry=60.0)
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


@lru_cache(maxsize=1)
def tls_context() -> ssl.SSLContext:
    """Return the process's TLS context: building one takes longer than twenty calls."""
    return httpx2.create_ssl_context()


def client_create(credential: str) -> httpx2.AsyncClient:
    """Return a client that sends ``credential`` as bearer token and follows no redirect.

    Its cookies and pool belong to one server and credential, so that one tenant's slow server or
    session never meets another's. Calls set their own deadline; only connecting has one here.
    """
    headers = {"authorization": f"Bearer {credential}"} if credential else {}
    return httpx2.AsyncClient(
        headers=headers,
        verify=tls_context(),
        limits=_LIMITS,
        timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS, pool=CONNECT_SECONDS),
        follow_redirects=False,
    )


def address_check(address: str) -> str:
    """Return ``address`` without a closing slash. Raises ``ToolUnavailable`` unless it is http(s)
    with a host and without a user name: secrets are credentials, not parts of addresses."""
    try:
        url = httpx2.URL(address)
    except httpx2.InvalidURL:
        raise ToolUnavailable("The server's address is not a URL.", sent=False) from None
    if url.scheme not in ("http", "https") or not url.host or url.userinfo:
        raise ToolUnavailable("The server's address must be http(s)://host.", sent=False)
    return address.rstrip("/")


def unavailable(error: Exception) -> ToolUnavailable:
    """Return ``error`` of the HTTP client as the port's own, with what is known of the sending."""
    sent = not isinstance(error, _NEVER_SENT)
    text = "The server broke off." if sent else "The server cannot be reached."
    return ToolUnavailable(f"{text} ({type(error).__name__})", sent=sent)


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


class Connections(Generic[ConnectionT]):
    """The kept connections of one event loop, made by ``make(address, credential)`` when first used.

    Raises ``RuntimeError`` on another loop than the first: sockets belong to the loop that opened
    them.
    """

    def __init__(
        self, make: Callable[[str, str], ConnectionT], *, max_kept: int = MAX_KEPT
    ) -> None:
        self._make = make
        self._max_kept = max_kept
        self._kept: OrderedDict[tuple[str, str], ConnectionT] = OrderedDict()
        self._in_use: dict[tuple[str, str], int] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    @contextmanager
    def using(self, address: str, credential: str) -> Iterator[ConnectionT]:
        """Hold the connection to ``address``; while held it is not closed."""
        self._same_loop()
        key = (address_check(address), credential)
        connection = self._kept.get(key)
        if connection is None:
            connection = self._kept[key] = self._make(*key)
        self._kept.move_to_end(key)
        self._in_use[key] = self._in_use.get(key, 0) + 1
        try:
            yield connection
        finally:
            self._in_use[key] -= 1
            self._shrink()

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

    def _shrink(self) -> None:
        if len(self._kept) <= self._max_kept:
            return
        idle = next((key for key in self._kept if not self._in_use.get(key)), None)
        if idle is not None:
            self._in_use.pop(idle, None)
            task = asyncio.ensure_future(self._kept.pop(idle).aclose())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
