"""JSON-RPC messages, and what every wire to an MCP server has in common."""

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import anyio
import anyio.abc
from mcp.shared.dispatcher import CallOptions, Dispatcher, OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.exceptions import MCPError
from mcp.shared.transport_context import TransportContext
from mcp.types import INVALID_REQUEST, METHOD_NOT_FOUND

from apps.tools.results import NotJson, json_parse

Notified = Callable[[str], None]
"""Told the method of each notification a server sends."""


class NoAnswer(Exception):
    """The server took the request and its answer never came, or cannot be read."""


class SessionGone(Exception):
    """The server does not know our session any more, so it has not looked at the request."""


class HttpRefused(Exception):
    """An HTTP status instead of an answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Wire(Dispatcher[TransportContext]):
    """Carries the requests of one ``ClientSession`` to one server.

    Methods raise ``MCPError`` for an error the server answered with, the exceptions above, and what
    the channel below raises.
    """

    alive: bool = True
    """Whether it is worth asking; once ``False`` a new wire is needed."""

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Part of the SDK's protocol: there is no stream for the session to drive."""
        task_status.started()
        await anyio.sleep_forever()

    @abstractmethod
    async def start(self) -> None:
        """Open what lies below. Raises as requests do."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close what ``start`` opened; never raises."""


def request_message(number: int, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return request ``number``."""
    return {**notification_message(method, params), "id": number}


def notification_message(method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a message that has no answer."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    return {**message, "params": params} if params else message


def reply_message(request: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a request of the server's own: we offered it nothing to ask for but a ping."""
    reply: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
    if request["method"] == "ping":
        return {**reply, "result": {}}
    error = {"code": METHOD_NOT_FOUND, "message": "Not offered by this client."}
    return {**reply, "error": error}


def headers_of(params: Mapping[str, Any] | None, options: CallOptions) -> dict[str, str]:
    """The idempotency key of a request's ``_meta`` goes into the header of the same meaning too."""
    headers = dict(options.get("headers") or {})
    key = ((params or {}).get("_meta") or {}).get("idempotency_key")
    if key:
        headers["idempotency-key"] = str(key)
    return headers


def encode(message: Mapping[str, Any]) -> bytes:
    """Return ``message`` on one line."""
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:  # Half of a surrogate pair: JSON can say it, UTF-8 cannot.
        return json.dumps(message, separators=(",", ":")).encode()


def decode(body: bytes | str) -> dict[str, Any]:
    """Return the message in ``body``. Raises ``NoAnswer``."""
    try:
        message = json_parse(body)
    except NotJson:
        raise NoAnswer("The server's answer is not JSON.") from None
    if not isinstance(message, dict):
        raise NoAnswer("The server's answer is not a JSON-RPC message.")
    return message


def answer_of(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result. Raises ``MCPError``, ``NoAnswer``, ``SessionGone``."""
    if (error := error_of(message)) is not None:
        raise SessionGone if session_lost(error) else error
    result = message.get("result")
    if not isinstance(result, dict):
        raise NoAnswer("The server's answer has no result.")
    return result


def error_in(body: bytes) -> MCPError | None:
    """Return the error in an HTTP body, ``None`` when there is none."""
    try:
        message = json_parse(body) if body else None
    except NotJson:
        return None
    return error_of(message) if isinstance(message, dict) else None


def error_of(message: Mapping[str, Any]) -> MCPError | None:
    """Return the error in ``message``."""
    error = message.get("error")
    if not isinstance(error, dict) or not isinstance(error.get("code"), int):
        return None
    return MCPError(
        code=error["code"], message=str(error.get("message") or ""), data=error.get("data")
    )


def session_lost(error: MCPError) -> bool:
    """Whether a server says by ``error`` that it does not know the session."""
    words = (error.message or "").lower()
    gone = any(word in words for word in ("not found", "terminated", "expired", "unknown"))
    return error.code == INVALID_REQUEST and "session" in words and gone
