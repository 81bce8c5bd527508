"""The short way to the doors: no sessions, messages or pages for callers with a key.

Django's middleware is made for pages; on an async path most of it hops to a thread and back, which
costs an API call several milliseconds. A door needs none of it: ``tenants.auth`` reads the
credential, ``gateway.doors`` writes problems. A request with a login cookie takes the long way.
"""

import asyncio
import tempfile
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import set_script_prefix

from agentops.mcp_door import McpDoor, is_mcp

DOORS = (
    "/gateway/", "/sessions/", "/agents", "/debug/", "/health", "/ready", "/version", "/v1/tools",
    "/v1/discovery/",
)  # fmt: skip


def is_door(scope: Any) -> bool:
    """Return whether a connection goes to a door without a login cookie."""
    if not scope["path"].startswith(DOORS):
        return False
    cookie = settings.SESSION_COOKIE_NAME.encode()
    return not any(name == b"cookie" and cookie in value for name, value in scope["headers"])


class DoorHandler(ASGIHandler):
    """Django's handler without middleware and request signals."""

    def load_middleware(self, is_async: bool = True) -> None:
        self._view_middleware: list[Any] = []
        self._template_response_middleware: list[Any] = []
        self._exception_middleware: list[Any] = []
        self._middleware_chain = convert_exception_to_response(self._checked)

    async def _checked(self, request: HttpRequest) -> HttpResponseBase:
        request.get_host()  # ALLOWED_HOSTS: raises what becomes a 400
        response: HttpResponseBase = await self._get_response_async(request)  # type: ignore[attr-defined]
        return response

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        set_script_prefix(get_script_prefix(scope))
        request, refused = self.create_request(scope, body)
        try:
            if request is None:
                assert refused is not None
                await self.send_response(refused, send)
                return
            await self._answer(request, receive, send)
        finally:
            body.close()

    async def read_body(self, receive: Any) -> "tempfile.SpooledTemporaryFile[bytes]":
        """Return the body, of one that is too large no more than its 413 needs: a byte too many.

        Django's own would write gigabytes to the disk before a view could refuse them.
        """
        body = tempfile.SpooledTemporaryFile(settings.MESSAGE_MAX_BYTES + 1)  # noqa: SIM115  # closed by the caller
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                body.close()
                raise RequestAborted
            left = settings.MESSAGE_MAX_BYTES + 1 - body.tell()
            body.write(message.get("body", b"")[:left])
            more = message.get("more_body", False)
        body.seek(0)
        return body

    async def _answer(self, request: Any, receive: Any, send: Any) -> None:
        """Answer, and let go of the view when the client goes away."""
        answering = asyncio.ensure_future(self._respond(request, send))
        leaving = asyncio.ensure_future(self.listen_for_disconnect(receive))
        await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
        for task in (answering, leaving):
            task.cancel()
        for result in await asyncio.gather(answering, leaving, return_exceptions=True):
            if isinstance(result, Exception) and not isinstance(result, RequestAborted):
                raise result

    async def _respond(self, request: Any, send: Any) -> None:
        response = await self.get_response_async(request)
        response.headers.setdefault("X-Content-Type-Options", "nosniff")
        try:
            await self.send_response(response, send)
        finally:
            response.close()


class Doorway:
    """Sends doors the short way and everything else, and all of plain HTTP where HTTPS is forced,
    the long way; MCP clients beside both."""

    def __init__(self, pages: ASGIHandler, mcp: McpDoor) -> None:
        self._pages = pages
        self._mcp = mcp
        self._doors = DoorHandler()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if is_mcp(scope):
            await self._mcp(scope, receive, send)
            return
        short = is_door(scope) and not settings.SECURE_SSL_REDIRECT
        await (self._doors if short else self._pages)(scope, receive, send)
