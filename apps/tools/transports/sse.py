"""MCP over HTTP+SSE, as servers of 2024 speak it: answers come up one kept event stream."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx2

from apps.tools.transports import connections
from apps.tools.transports.duplex import DuplexWire
from apps.tools.transports.rpc import (
    HttpRefused,
    NoAnswer,
    Notified,
    SessionGone,
    decode,
    encode,
    error_in,
)

_LOST = (httpx2.codes.NOT_FOUND, httpx2.codes.GONE)


class SseWire(DuplexWire):
    """One event stream from ``address``; requests are posted to the address it names."""

    def __init__(self, http: httpx2.AsyncClient, address: str, notified: Notified) -> None:
        super().__init__(notified)
        self._http = http
        self._address = address
        self._posting = ""

    async def _own(self) -> None:
        headers = {"accept": "text/event-stream", "cache-control": "no-store"}
        async with self._http.stream("GET", self._address, headers=headers) as response:
            if response.status_code != httpx2.codes.OK:
                status = response.status_code
                raise HttpRefused(status, f"The server answered with HTTP {status}.")
            try:
                await self._events(response)
            except httpx2.SSEError as error:
                raise NoAnswer("The server's event stream cannot be read.") from error
        raise NoAnswer("The server ended its event stream.")

    async def _events(self, response: httpx2.Response) -> None:
        async for event in httpx2.EventSource(
            response, max_event_size=connections.MAX_ANSWER_BYTES
        ):
            if event.event == "endpoint":
                self._posting = self._endpoint(event.data)
                self._opened()
            elif event.event == "message" and event.data:
                self._heard(decode(event.data))

    def _endpoint(self, data: str) -> str:
        """Return where requests go; never to another origin than the one that was bound."""
        target = urljoin(self._address, data.strip())
        bound, named = urlsplit(self._address), urlsplit(target)
        if (bound.scheme, bound.netloc) != (named.scheme, named.netloc):
            raise NoAnswer("The server names an address on another origin.")
        return target

    async def _write(self, message: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        async with self._http.stream(
            "POST",
            self._posting,
            content=encode(message),
            headers={"content-type": "application/json", **headers},
        ) as response:
            status = response.status_code
            if status < httpx2.codes.MULTIPLE_CHOICES:
                return
            error = error_in(await connections.read_limited(response))
            said = (error.message if error is not None else "").lower()
            if status in _LOST or (status == httpx2.codes.BAD_REQUEST and "session" in said):
                raise SessionGone
            raise error or HttpRefused(status, f"The server answered with HTTP {status}.")
