"""Where MCP clients come in: ``/mcp``, beside Django. The credential is checked here, per request.

The SDK's session manager runs in a task of its own for as long as the web process lives. It is
started by the first request, because the SDK takes a second to import.
"""

import asyncio
import contextvars
import io
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse
from django.utils import translation
from django.utils.translation import gettext as _
from rest_framework.exceptions import APIException

from apps.gateway.problems import Problem, refusal
from apps.tenants.auth import CallerRefused, Principal, principal_of
from apps.tenants.threads import in_thread

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

PATH = "/mcp"


def is_mcp(scope: Any) -> bool:
    """Return whether a connection goes to the MCP server."""
    return scope["path"] in (PATH, PATH + "/")


class McpDoor:
    """The ASGI application of ``/mcp``. One instance belongs to one event loop at a time."""

    def __init__(self) -> None:
        self._running: _Running | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = ASGIRequest(scope, io.BytesIO())
        language = translation.get_language_from_request(request)
        with translation.override(language):
            try:
                principal = await entered(request)
            except Problem as problem:
                await respond(problem.response(), send)
                return
            except APIException as error:
                await respond(refusal(error).response(), send)
                return
        from apps.gateway.mcp_server import CALLER, McpCaller

        caller = McpCaller(principal, request.GET.get("agent_id", ""), language)
        manager = await self._manager()
        await manager.handle_request({**scope, CALLER: caller}, receive, send)

    async def aclose(self) -> None:
        """End the session manager; a later request starts another."""
        running, self._running = self._running, None
        if running is not None:
            await running.aclose()

    async def _manager(self) -> "StreamableHTTPSessionManager":
        loop = asyncio.get_running_loop()
        if self._running is None or self._running.loop is not loop:
            self._running = _Running(loop)
        return await self._running.manager()


class _Running:
    """A session manager and the task that has entered it: it must be left where it was entered."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._ready: asyncio.Future[StreamableHTTPSessionManager] = loop.create_future()
        self._stop = asyncio.Event()
        self._task = loop.create_task(self._run(), context=contextvars.Context())

    async def manager(self) -> "StreamableHTTPSessionManager":
        return await asyncio.shield(self._ready)

    async def aclose(self) -> None:
        self._stop.set()
        await self._task

    async def _run(self) -> None:
        try:
            from apps.gateway.mcp_server import manager_create

            manager = manager_create()
            async with manager.run():
                self._ready.set_result(manager)
                await self._stop.wait()
        except BaseException as error:
            if not self._ready.done():
                self._ready.set_exception(error)
            raise


async def entered(request: HttpRequest) -> Principal:
    """Return who sends ``request``, by key. Raises ``Problem`` and DRF's refusals.

    A page of another site cannot come in: a browser's login does not count here, and an ``Origin``
    must be our own or one that is trusted.
    """
    try:
        host = request.get_host()
    except SuspiciousOperation:
        raise Problem(400, "BAD_REQUEST", _("The request is not valid.")) from None
    if settings.SECURE_SSL_REDIRECT and not request.is_secure():
        raise Problem(403, "HTTPS_REQUIRED", _("Use https."))
    origin = request.headers.get("origin")
    if origin and urlsplit(origin).netloc != host and origin not in settings.CSRF_TRUSTED_ORIGINS:
        raise Problem(403, "FOREIGN_ORIGIN", _("The page's origin is not trusted."))
    if request.method != "POST":
        text = _("Use %(methods)s.") % {"methods": "POST"}
        raise Problem(405, "METHOD_NOT_ALLOWED", text, headers={"Allow": "POST"})
    if not ({"authorization", "x-api-key"} & {name.lower() for name in request.headers}):
        raise CallerRefused(_("A key is needed."), "missing_credential")
    principal = await in_thread(principal_of, request)
    if not (principal.has("tool:read") or principal.has("tool:invoke")):
        principal.require("tool:read")
    return principal


async def respond(response: HttpResponse, send: Any) -> None:
    """Send a whole response of Django's."""
    headers = [(name.lower().encode(), value.encode()) for name, value in response.items()]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": response.content})
