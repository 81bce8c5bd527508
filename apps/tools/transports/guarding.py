"""The HTTP client of every request that leaves for an address a tenant named."""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from functools import lru_cache
from typing import Any

import httpcore2
import httpx2

from apps.runtime.addresses import AddressRefused, AllowList, addresses_check
from apps.runtime.ports import RemoteTool
from apps.tools.transports.tokens import TokenSource

CONNECT_SECONDS = 5.0
"""Longest wait for a name, a TCP and a TLS connection; the call's own deadline may be shorter."""

_LIMITS = httpx2.Limits(max_connections=64, max_keepalive_connections=32, keepalive_expiry=60.0)

Resolve = Callable[[str, int], Awaitable[list[str]]]


class AddressForbidden(httpx2.ConnectError):
    """The address is inside, and no operator allows it. Nothing was sent."""


@lru_cache(maxsize=1)
def tls_context() -> ssl.SSLContext:
    """Return the process's TLS context: building one takes longer than twenty calls."""
    return httpx2.create_ssl_context()


async def addresses_of(host: str, port: int) -> list[str]:
    """Return what ``host`` resolves to. Raises ``OSError`` or ``UnicodeError``."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Resolves a name once, checks every address of it, and connects to one that was checked.

    TLS is done later under the name itself, so certificates are verified as ever.
    """

    def __init__(self, allowed: AllowList, resolve: Resolve = addresses_of) -> None:
        self._allowed = allowed
        self._resolve = resolve
        self._inner: httpcore2.AsyncNetworkBackend = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's own signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Return a connection to ``host``. Raises ``AddressForbidden``, and what the library does."""
        try:
            async with asyncio.timeout(timeout):
                addresses = await self._checked(host, port)
                return await self._first(addresses, port, local_address, socket_options)
        except TimeoutError:
            raise httpcore2.ConnectTimeout("connecting took too long") from None

    async def connect_unix_socket(self, *_args: Any, **_more: Any) -> httpcore2.AsyncNetworkStream:
        """No address leads to a socket file."""
        raise AddressForbidden("no socket files")

    async def sleep(self, seconds: float) -> None:
        """See the library."""
        await asyncio.sleep(seconds)

    async def _checked(self, host: str, port: int) -> tuple[str, ...]:
        try:
            resolved = [host] if _is_address(host) else await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore2.ConnectError(f"the name does not resolve: {error}") from error
        try:
            return addresses_check(host, port, resolved, self._allowed)
        except AddressRefused as refused:
            raise AddressForbidden(str(refused)) from None

    async def _first(
        self,
        addresses: tuple[str, ...],
        port: int,
        local_address: str | None,
        socket_options: Iterable[Any] | None,
    ) -> httpcore2.AsyncNetworkStream:
        failure: httpcore2.ConnectError | None = None
        for address in dict.fromkeys(addresses):
            try:
                return await self._inner.connect_tcp(
                    address, port, None, local_address, socket_options
                )
            except httpcore2.ConnectError as error:
                failure = error
        raise failure or httpcore2.ConnectError("no address")


class GuardedTransport(httpx2.AsyncHTTPTransport):
    """The library's transport over ``GuardedBackend``; proxies of the environment are not used."""

    def __init__(self, allowed: AllowList, resolve: Resolve = addresses_of) -> None:
        super().__init__(verify=tls_context(), limits=_LIMITS, trust_env=False)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=tls_context(),
            max_connections=_LIMITS.max_connections,
            max_keepalive_connections=_LIMITS.max_keepalive_connections,
            keepalive_expiry=_LIMITS.keepalive_expiry,
            network_backend=GuardedBackend(allowed, resolve),
        )


class TokenAuth(httpx2.Auth):
    """Asks ``source`` for the token of each request; a 401 is answered with another one, once."""

    def __init__(self, source: TokenSource, remote: RemoteTool) -> None:
        self._source = source
        self._remote = remote

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """See the library. Raises ``ToolUnavailable`` of the source."""
        token = await self._source.token(self._remote)
        _authorise(request, token)
        response = yield request
        if response.status_code != httpx2.codes.UNAUTHORIZED:
            return
        again = await self._source.token(self._remote, rejected=token)
        if again and again != token:
            _authorise(request, again)
            yield request


def client_create(allowed: AllowList, auth: httpx2.Auth | None = None) -> httpx2.AsyncClient:
    """Return a client that reaches only what ``allowed`` and the public internet hold.

    It follows no redirect and reads no proxy, password or certificate file of the environment's.
    Its cookies and pool belong to one server and credential, so that one tenant's slow server or
    session never meets another's. Calls set their own deadline; only connecting has one here.
    """
    return httpx2.AsyncClient(
        transport=GuardedTransport(allowed),
        auth=auth,
        trust_env=False,
        timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS, pool=CONNECT_SECONDS),
        follow_redirects=False,
    )


def _authorise(request: httpx2.Request, token: str) -> None:
    if token:
        request.headers["authorization"] = f"Bearer {token}"


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True
