"""MCP over streamable HTTP without streams: one POST is one request and its answer.

The SDK's session sits on a ``Dispatcher``; its own one pumps two memory streams in background tasks,
and a dead server takes the pumps and with them the session down. This one sends the request in the
caller's task, so a failure is that call's exception and nothing else, and the client needs about a
third less CPU per call. Not supported: resuming a broken answer stream with Last-Event-ID (the call
then counts as sent and unanswered) and the server's own GET stream (nothing here listens to it).
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import anyio
import anyio.abc
import httpx2
from mcp.shared.dispatcher import CallOptions, Dispatcher, OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.exceptions import MCPError
from mcp.shared.transport_context import TransportContext
from mcp.types import METHOD_NOT_FOUND, REQUEST_TIMEOUT

from apps.tools.results import NotJson, json_parse
from apps.tools.transports.connections import MAX_ANSWER_BYTES, read_limited

_SESSION = "mcp-session-id"
_HEADERS = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
}


class NoAnswer(Exception):
    """The server took the request and its answer never came, or cannot be read."""


class SessionGone(Exception):
    """The server does not know our session any more, so it has not looked at the request."""


class HttpRefused(Exception):
    """An HTTP status instead of an answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class PostDispatcher(Dispatcher[TransportContext]):
    """Carries the requests of one ``ClientSession`` to ``address``.

    Methods raise ``MCPError`` for an error the server answered with, the exceptions above, and what
    the HTTP client raises.
    """

    def __init__(self, http: httpx2.AsyncClient, address: str) -> None:
        self._http = http
        self._address = address
        self._ids = 0
        self._session_id = ""

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Part of the SDK's protocol: there is no stream to drive."""
        task_status.started()
        await anyio.sleep_forever()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Return the ``result`` of the answer to ``method``."""
        self._ids += 1
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": self._ids, "method": method}
        if params:
            message["params"] = params
        options: CallOptions = opts or {}
        try:
            async with asyncio.timeout(options.get("timeout")):
                return await self._request(message, _headers(params, options))
        except TimeoutError:
            raise MCPError(code=REQUEST_TIMEOUT, message="The server did not answer.") from None

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Send a message that has no answer. A cancelled request needs none: its POST is closed."""
        if method == "notifications/cancelled":
            return
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params:
            message["params"] = params
        await self._post_back(message, (opts or {}).get("headers", {}))

    async def _request(self, message: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
        async with self._http.stream(
            "POST", self._address, content=_encode(message), headers=self._with_session(headers)
        ) as response:
            if response.status_code != httpx2.codes.OK:
                await self._refused(response)
            if message["method"] == "initialize":
                self._session_id = response.headers.get(_SESSION, "")
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind == "application/json":
                return _answer(_decode(await read_limited(response)))
            if kind == "text/event-stream":
                return await self._from_stream(response, message["id"], headers)
            raise NoAnswer(f"The server answered with {kind or 'no content type'}.")

    async def _from_stream(
        self, response: httpx2.Response, number: int, headers: dict[str, str]
    ) -> dict[str, Any]:
        try:
            async for event in httpx2.EventSource(response, max_event_size=MAX_ANSWER_BYTES):
                if event.event != "message" or not event.data:
                    continue
                message = _decode(event.data)
                if "method" not in message:
                    return _answer(message)
                if "id" in message:
                    await self._decline(message, headers)
        except httpx2.SSEError as error:
            raise NoAnswer("The server's answer stream cannot be read.") from error
        raise NoAnswer(f"The stream ended without the answer to request {number}.")

    async def _decline(self, request: dict[str, Any], headers: dict[str, str]) -> None:
        """Answer a request of the server's own: we offered it nothing to ask for but a ping."""
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        if request["method"] == "ping":
            reply["result"] = {}
        else:
            reply["error"] = {"code": METHOD_NOT_FOUND, "message": "Not offered by this client."}
        await self._post_back(reply, headers)

    async def _post_back(self, message: dict[str, Any], headers: dict[str, str]) -> None:
        response = await self._http.post(
            self._address, content=_encode(message), headers=self._with_session(headers)
        )
        if response.status_code >= httpx2.codes.BAD_REQUEST:
            raise HttpRefused(response.status_code, f"HTTP {response.status_code}")

    async def _refused(self, response: httpx2.Response) -> None:
        """Raise what a status other than 200 means."""
        status = response.status_code
        error = _rpc_error(await read_limited(response))
        known = error is not None and error.code == METHOD_NOT_FOUND
        if status == httpx2.codes.NOT_FOUND and self._session_id and not known:
            raise SessionGone
        if error is not None:
            raise error
        if 300 <= status < 400:
            raise HttpRefused(status, "The server redirects; bind the address it redirects to.")
        raise HttpRefused(status, f"The server answered with HTTP {status}.")

    def _with_session(self, headers: Mapping[str, str]) -> dict[str, str]:
        session = {_SESSION: self._session_id} if self._session_id else {}
        return {**_HEADERS, **session, **headers}


def _headers(params: Mapping[str, Any] | None, options: CallOptions) -> dict[str, str]:
    """The idempotency key of a request's ``_meta`` goes into the header of the same meaning too."""
    headers = dict(options.get("headers") or {})
    key = ((params or {}).get("_meta") or {}).get("idempotency_key")
    if key:
        headers["idempotency-key"] = str(key)
    return headers


def _encode(message: dict[str, Any]) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


def _decode(body: bytes | str) -> dict[str, Any]:
    try:
        message = json_parse(body)
    except NotJson:
        raise NoAnswer("The server's answer is not JSON.") from None
    if not isinstance(message, dict):
        raise NoAnswer("The server's answer is not a JSON-RPC message.")
    return message


def _answer(message: dict[str, Any]) -> dict[str, Any]:
    if (error := _error_of(message)) is not None:
        raise error
    result = message.get("result")
    if not isinstance(result, dict):
        raise NoAnswer("The server's answer has no result.")
    return result


def _rpc_error(body: bytes) -> MCPError | None:
    try:
        message = json_parse(body) if body else None
    except NotJson:
        return None
    return _error_of(message) if isinstance(message, dict) else None


def _error_of(message: dict[str, Any]) -> MCPError | None:
    error = message.get("error")
    if not isinstance(error, dict) or not isinstance(error.get("code"), int):
        return None
    return MCPError(
        code=error["code"], message=str(error.get("message") or ""), data=error.get("data")
    )
