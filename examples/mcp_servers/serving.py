"""Serves a set of tools in one process: MCP over streamable HTTP and the plain HTTP contract.

Both doors run the same tool functions through ``Calls``, so a call is logged, delayed and made once
in the same way whichever way it came in.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import uvicorn
from mcp.server import MCPServer
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import CallToolResult
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from examples.mcp_servers.store import Store, digest

_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


@dataclass(frozen=True)
class Current:
    """The call being served."""

    number: int
    tool: str
    key: str
    sha256: str


ResultT = TypeVar("ResultT")
_current: ContextVar[Current] = ContextVar("current_call")


@dataclass(frozen=True)
class Delays:
    """Milliseconds to sleep before (a range) and after a tool runs: for tests of slow servers."""

    before: tuple[int, int] = (0, 0)
    after: int = 0

    async def sleep_before(self) -> None:
        low, high = self.before
        if high:
            await asyncio.sleep(random.uniform(low, high) / 1000)  # noqa: S311

    async def sleep_after(self) -> None:
        if self.after:
            await asyncio.sleep(self.after / 1000)


class Calls:
    """Logs, delays and runs calls; ``once`` is what an action wraps its effect in."""

    def __init__(self, store: Store, delays: Delays) -> None:
        self.store = store
        self.delays = delays

    async def run(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        key: str,
        call_next: Callable[[], Awaitable[ResultT]],
    ) -> ResultT:
        """Note the call, wait as told, and return what ``call_next`` returns."""
        number = self.store.call_started(tool=tool, key=key, arguments=arguments)
        _current.set(Current(number, tool, key, digest(arguments)))
        await self.delays.sleep_before()
        result = await call_next()
        await self.delays.sleep_after()
        return result

    def once(self, effect: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Run ``effect`` once per idempotency key of the current call."""
        call = _current.get()
        return self.store.once(
            tool=call.tool, key=call.key, sha256=call.sha256, call=call.number, effect=effect
        )


class _Middleware:
    """Sends every tools/call that came over MCP through ``Calls``."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls

    async def __call__(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        if ctx.method != "tools/call" or not ctx.params:
            return await call_next(ctx)
        key = (ctx.meta or {}).get("idempotency_key") or _header_key(ctx.request)
        return await self.calls.run(
            str(ctx.params.get("name")),
            ctx.params.get("arguments") or {},
            str(key or ""),
            lambda: call_next(ctx),
        )


def _header_key(request: Request | None) -> str:
    return request.headers.get("idempotency-key", "") if request is not None else ""


def server_create(name: str, calls: Calls, tools: list[Callable[..., Any]]) -> MCPServer[Any]:
    """Return an MCP server called ``name`` that offers ``tools`` and the plain routes."""
    server: MCPServer[Any] = MCPServer(
        name, version="1.0.0", log_level="WARNING", middleware=[_Middleware(calls)]
    )
    for tool in tools:
        server.add_tool(tool, structured_output=True)
    plain = PlainContract(server, calls)
    for path in ("/health", "/ready"):
        server.custom_route(path, methods=["GET"])(plain.health)
    for prefix in ("", "/mcp"):
        server.custom_route(f"{prefix}/tools/list", methods=["GET"])(plain.list_tools)
        server.custom_route(f"{prefix}/tools/call", methods=["POST"])(plain.call_tool)
    return server


class PlainContract:
    """GET …/tools/list and POST …/tools/call ``{tool_name, arguments}`` for callers without MCP."""

    def __init__(self, server: MCPServer[Any], calls: Calls) -> None:
        self.server = server
        self.calls = calls

    async def health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok", "server": self.server.name})

    async def list_tools(self, request: Request) -> Response:
        tools = [
            {"name": t.name, "description": t.description, "input_schema": t.input_schema}
            for t in await self.server.list_tools()
        ]
        return JSONResponse({"server": self.server.name, "tools": tools})

    async def call_tool(self, request: Request) -> Response:
        if "origin" in request.headers:
            # A web page the user happens to visit must not act on a server of this machine.
            return self._answer("", error="Só programas chamam ferramentas.", status=403)
        call = await _body(request)
        if call is None:
            return self._answer("", error="O corpo deve ser {tool_name, arguments}.", status=422)
        tool, arguments = call
        try:
            result = await self.calls.run(
                tool,
                arguments,
                _header_key(request),
                lambda: self.server.call_tool(tool, arguments),
            )
        except UnexpectedToolError as error:
            return self._answer(tool, error=str(error))
        except ToolError as error:
            return self._answer(tool, error=_readable(error))
        if not isinstance(result, CallToolResult):
            return self._answer(tool, error="A ferramenta pediu mais dados.")
        return self._answer(tool, result=result.structured_content)

    def _answer(
        self, tool: str, *, result: Any = None, error: str | None = None, status: int = 200
    ) -> Response:
        body = {
            "tool_name": tool,
            "server_name": self.server.name,
            "ok": error is None,
            "result": result,
            "error": error,
            "metadata": {"server": self.server.name},
        }
        return JSONResponse(body, status_code=status)


def _readable(error: ToolError) -> str:
    cause = error.__cause__
    if isinstance(cause, ValidationError):
        return "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in cause.errors())
    return str(cause or error)


async def _body(request: Request) -> tuple[str, dict[str, Any]] | None:
    try:
        body = json.loads(await request.body())
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, dict):
        return None
    tool, arguments = body.get("tool_name"), body.get("arguments") or {}
    if not isinstance(tool, str) or not isinstance(arguments, dict):
        return None
    return tool, arguments


def arguments_parse(name: str, port: int) -> argparse.Namespace:
    """Return the command line of the server ``name``; its usual port is ``port``."""
    parser = argparse.ArgumentParser(prog=f"examples.mcp_servers.{name}")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=port, help="0 takes a free one and prints it")
    parser.add_argument("--db", type=Path, default=Path(f"{name}.sqlite3"))
    parser.add_argument("--delay-ms", type=_range, default=(0, 0), metavar="MIN-MAX")
    parser.add_argument("--delay-after-ms", type=int, default=0)
    parser.add_argument(
        "--exit-with-stdin", action="store_true", help="end when standard input is closed"
    )
    parser.add_argument(
        "--allowed-host", action="append", default=[], help="Host header to accept, NAME:PORT"
    )
    return parser.parse_args()


def _range(text: str) -> tuple[int, int]:
    low, _, high = text.partition("-")
    return int(low), int(high or low)


def app_create(server: MCPServer[Any], options: argparse.Namespace) -> Starlette:
    """Return the ASGI application. Answers are plain JSON: no tool here streams."""
    security = None
    if options.host not in _LOOPBACK:
        hosts = ["127.0.0.1:*", "localhost:*", *options.allowed_host]
        security = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[])
    return server.streamable_http_app(
        json_response=True, host=options.host, transport_security=security
    )


def serve(server: MCPServer[Any], options: argparse.Namespace) -> None:
    """Listen and serve until a signal; print the address first, so that port 0 is of use."""
    if options.exit_with_stdin:
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    listener = socket.create_server((options.host, options.port), family=family, backlog=512)
    port = listener.getsockname()[1]
    print(f"{server.name} listening on http://{options.host}:{port}", flush=True)
    config = uvicorn.Config(
        app_create(server, options),
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=2,
    )
    uvicorn.Server(config).run(sockets=[listener])


def _end_with_stdin() -> None:
    """Whoever started this process holds the other end; when it is gone, so are we."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)
