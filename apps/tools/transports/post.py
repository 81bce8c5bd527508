"""MCP over streamable HTTP: one POST is one request and its answer.

The SDK's session sits on a ``Dispatcher``; its own one pumps two memory streams in background tasks,
and a dead server takes the pumps and with them the session down. This one sends the request in the
caller's task, so a failure is that call's exception and nothing else, and the client needs about a
third less CPU per call. An answer stream that ends early is taken up again where its server numbers
its events; any other counts as sent and unanswered.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx2
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp.types import METHOD_NOT_FOUND, REQUEST_TIMEOUT

from apps.tools.transports import connections
from apps.tools.transports.rpc import (
    HttpRefused,
    NoAnswer,
    Notified,
    SessionGone,
    Wire,
    answer_of,
    decode,
    encode,
    error_in,
    headers_of,
    notification_message,
    reply_message,
    request_message,
    session_lost,
)

MAX_RESUMED = 100
"""How often one answer's stream is taken up again; the call's deadline usually ends it first."""

FIRST_PAUSE_SECONDS = 1.0
MAX_PAUSE_SECONDS = 60.0

_STREAM = "text/event-stream"
_SESSION = "mcp-session-id"
_VERSION = "mcp-protocol-version"
_HEADERS = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
}


class _Place:
    """Where in a stream its reader is, and how long it pauses before reading on."""

    def __init__(self) -> None:
        self.event = ""
        self.pause = FIRST_PAUSE_SECONDS

    def note(self, event: httpx2.ServerSentEvent) -> None:
        """Remember ``event`` as the last that came."""
        self.event = event.id or self.event
        if event.retry is not None:
            self.pause = min(MAX_PAUSE_SECONDS, event.retry / 1000)


class PostWire(Wire):
    """Speaks to ``address``. What raises is told in ``Wire``; below it is the HTTP client."""

    def __init__(self, http: httpx2.AsyncClient, address: str, notified: Notified) -> None:
        self._http = http
        self._address = address
        self._notified = notified
        self._ids = 0
        self._session_id = ""
        self._version = ""

    @property
    def has_session(self) -> bool:
        """Whether the server gave us a session: those of 2026 give none."""
        return bool(self._session_id)

    async def start(self) -> None:
        """Nothing is open between requests."""

    async def aclose(self) -> None:
        """Nothing is open between requests. The session ends by its server's own clock."""

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Return the ``result`` of the answer to ``method``."""
        self._ids += 1
        options: CallOptions = opts or {}
        message = request_message(self._ids, method, params)
        try:
            async with asyncio.timeout(options.get("timeout")):
                return await self._request(message, headers_of(params, options))
        except TimeoutError:
            raise MCPError(code=REQUEST_TIMEOUT, message="The server did not answer.") from None

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Send a message that has no answer. A cancelled request needs none: its POST is closed."""
        if method != "notifications/cancelled":
            headers = (opts or {}).get("headers", {})
            await self._post_back(notification_message(method, params), headers)

    async def listen(self) -> None:
        """Hear what the server of a session says unasked, until it ends the stream.

        Raises ``HttpRefused`` when it offers no such stream, and as requests do.
        """
        headers = self._with_session({"accept": "text/event-stream", _VERSION: self._version})
        async with self._http.stream("GET", self._address, headers=headers) as response:
            if response.status_code != httpx2.codes.OK:
                await self._refused(response)
            if _kind(response) != _STREAM:
                raise HttpRefused(response.status_code, "The server offers no stream.")
            try:
                async for event in httpx2.EventSource(
                    response, max_event_size=connections.MAX_ANSWER_BYTES
                ):
                    if event.event == "message" and event.data:
                        await self._heard(decode(event.data), {})
            except httpx2.SSEError as error:
                raise NoAnswer("The server's stream cannot be read.") from error

    async def _request(self, message: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
        async with self._http.stream(
            "POST", self._address, content=encode(message), headers=self._with_session(headers)
        ) as response:
            if response.status_code != httpx2.codes.OK:
                await self._refused(response)
            if message["method"] == "initialize":
                self._session_id = response.headers.get(_SESSION, "")
            kind = _kind(response)
            if kind == "application/json":
                return self._answered(decode(await connections.read_limited(response)), message)
            if kind == _STREAM:
                return self._answered(await self._from_stream(response, message, headers), message)
            raise NoAnswer(f"The server answered with {kind or 'no content type'}.")

    def _answered(self, answer: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
        result = answer_of(answer)
        if request["method"] == "initialize":
            self._version = str(result.get("protocolVersion") or "")
        return result

    async def _from_stream(
        self, response: httpx2.Response, request: dict[str, Any], headers: dict[str, str]
    ) -> dict[str, Any]:
        place = _Place()
        try:
            answer = await self._until_answer(response, place, headers)
        except httpx2.TransportError:
            if not place.event:
                raise
            answer = None
        for _ in range(MAX_RESUMED):
            if answer is not None or not place.event:
                break
            await asyncio.sleep(place.pause)
            answer = await self._resumed(place, headers)
        if answer is None:
            raise NoAnswer(f"The stream ended without the answer to request {request['id']}.")
        return answer

    async def _until_answer(
        self, response: httpx2.Response, place: "_Place", headers: dict[str, str]
    ) -> dict[str, Any] | None:
        """Return the answer, ``None`` when the stream ends before it."""
        try:
            async for event in httpx2.EventSource(
                response, max_event_size=connections.MAX_ANSWER_BYTES
            ):
                place.note(event)
                if event.event != "message" or not event.data:
                    continue
                message = decode(event.data)
                if "method" not in message:
                    return message
                await self._heard(message, headers)
        except httpx2.SSEError as error:
            raise NoAnswer("The server's answer stream cannot be read.") from error
        return None

    async def _resumed(self, place: "_Place", headers: Mapping[str, str]) -> dict[str, Any] | None:
        """Read on after the last event that came. The request itself is long sent."""
        kept = {name: value for name, value in headers.items() if name != "idempotency-key"}
        wanted = {**kept, "accept": "text/event-stream", "last-event-id": place.event}
        try:
            async with self._http.stream(
                "GET", self._address, headers=self._with_session(wanted)
            ) as response:
                if response.status_code != httpx2.codes.OK or _kind(response) != _STREAM:
                    raise NoAnswer("The server ended its answer stream and does not take it up.")
                return await self._until_answer(response, place, dict(headers))
        except httpx2.HTTPError as error:
            raise NoAnswer(f"The server broke off. ({type(error).__name__})") from error

    async def _heard(self, message: dict[str, Any], headers: dict[str, str]) -> None:
        """Take a message of the server's own."""
        if "method" not in message:
            return
        if "id" in message:
            await self._post_back(reply_message(message), headers)
        else:
            self._notified(str(message["method"]))

    async def _post_back(self, message: dict[str, Any], headers: Mapping[str, str]) -> None:
        async with self._http.stream(
            "POST", self._address, content=encode(message), headers=self._with_session(headers)
        ) as response:
            if response.status_code >= httpx2.codes.BAD_REQUEST:
                raise HttpRefused(response.status_code, f"HTTP {response.status_code}")

    async def _refused(self, response: httpx2.Response) -> None:
        """Raise what a status other than 200 means."""
        status = response.status_code
        error = error_in(await connections.read_limited(response))
        if self._session_id and _forgotten(status, error):
            raise SessionGone
        if error is not None:
            raise error
        if 300 <= status < 400:
            raise HttpRefused(status, "The server redirects; bind the address it redirects to.")
        raise HttpRefused(status, f"The server answered with HTTP {status}.")

    def _with_session(self, headers: Mapping[str, str]) -> dict[str, str]:
        session = {_SESSION: self._session_id} if self._session_id else {}
        return {**_HEADERS, **session, **headers}


def _forgotten(status: int, error: MCPError | None) -> bool:
    """Whether the session we named is unknown: 404 by the protocol, 400 by servers that differ."""
    if status == httpx2.codes.NOT_FOUND:
        return error is None or error.code != METHOD_NOT_FOUND
    if status != httpx2.codes.BAD_REQUEST or error is None:
        return False
    return session_lost(error) or "session" in (error.message or "").lower()


def _kind(response: httpx2.Response) -> str:
    return str(response.headers.get("content-type", "").partition(";")[0].strip().lower())
