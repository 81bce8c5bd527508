"""A server over streamable HTTP says that its tools changed: in an answer, or on a stream."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from apps.runtime.ports import RemoteTool, ToolUnavailable
from apps.tools.tests.fake_mcp import TOOL, text
from apps.tools.tests.servers import LOCAL
from apps.tools.transports import listening
from apps.tools.transports.dispatch import Transports

CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


class Server2025:
    """Sessions, and the stream of a session. ``stream``: how it answers the GET."""

    def __init__(self, *, stream: str = "events", in_answer: bool = False) -> None:
        self.stream = stream
        self.in_answer = in_answer
        self.streams: list[asyncio.Queue[str]] = []
        self.gets = 0
        self.asked: list[str] = []
        self.tools: list[dict[str, Any]] = [dict(TOOL)]

    def say(self, event: str) -> None:
        for queue in self.streams:
            queue.put_nowait(event)

    async def get(self, request: Request) -> Response:
        self.gets += 1
        if self.stream != "events" or request.headers["mcp-session-id"] != "s1":
            return Response(status_code=405)
        queue: asyncio.Queue[str] = asyncio.Queue()
        self.streams.append(queue)

        async def events() -> AsyncIterator[str]:
            yield ": open\n\n"
            while event := await queue.get():
                yield event

        return StreamingResponse(events(), media_type="text/event-stream")

    async def post(self, request: Request) -> Response:
        message = json.loads(await request.body())
        method = message["method"]
        self.asked.append(method)
        if method == "server/discover":
            return Response(status_code=400)
        if "id" not in message:
            return Response(status_code=202)
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": self.result(method)}
        if method == "tools/call" and self.in_answer:
            body = "".join(f"data: {json.dumps(part)}\n\n" for part in (CHANGED, answer))
            return Response(body, media_type="text/event-stream")
        return JSONResponse(answer, headers={"mcp-session-id": "s1"})

    def result(self, method: str) -> dict[str, Any]:
        if method == "initialize":
            capabilities = {"tools": {"listChanged": True}}
            info = {"name": "x", "version": "1"}
            return {
                "protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info,
            }  # fmt: skip
        return {"tools": self.tools} if method == "tools/list" else text("ok")


@contextlib.asynccontextmanager
async def serving(app: Any) -> AsyncIterator[str]:
    """Serve ``app`` on the test's own loop; yield its address."""
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        task = asyncio.create_task(server.serve(sockets=[bound]))
        while not server.started:  # noqa: ASYNC110 - it has no event for it
            await asyncio.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}/mcp"
        finally:
            server.should_exit = True
            await task


def app_of(server: Server2025) -> Starlette:
    return Starlette(
        routes=[
            Route("/mcp", server.get, methods=["GET"]),
            Route("/mcp", server.post, methods=["POST"]),
        ]
    )


def remote(address: str) -> RemoteTool:
    return RemoteTool(
        server="crm", transport="streamable_http", address=address, name="saldo", tenant="1",
        timeout_seconds=5,
    )  # fmt: skip


class Told:
    """Transports whose listener writes down what it is told."""

    def __init__(self) -> None:
        self.changes: list[tuple[str, str]] = []
        self.transports = Transports(allowed=LOCAL, on_changed=self.changed)

    async def changed(self, tenant: str, server: str) -> None:
        self.changes.append((tenant, server))

    async def ask(self, address: str) -> None:
        assert (await self.transports.call(remote(address), {}, idempotency_key="k")).ok

    async def until(self, count: int) -> None:
        async with asyncio.timeout(5):
            while len(self.changes) < count:  # noqa: ASYNC110 - another task changes it
                await asyncio.sleep(0.01)


async def test_notice__within_an_answer__is_heard_and_the_next_call_lists_again():
    server, told = Server2025(stream="none", in_answer=True), Told()
    async with serving(app_of(server)) as address:
        for _ in range(2):
            await told.ask(address)
        await told.until(1)
        await told.transports.aclose()

    assert told.changes == [("1", "crm")]
    assert server.asked.count("tools/list") == 2


async def test_notice__on_the_sessions_own_stream__is_heard_without_a_call(monkeypatch):
    monkeypatch.setattr(listening, "FIRST_PAUSE_SECONDS", 0.05)
    server, told = Server2025(), Told()
    async with serving(app_of(server)) as address:
        await told.ask(address)
        await asyncio.sleep(0.2)
        server.say(f"data: {json.dumps(CHANGED)}\n\n")
        await told.until(1)
        # The stream ends, as behind a proxy; it is opened again.
        server.say("")
        server.streams.clear()
        await asyncio.sleep(0.3)
        server.say(f"data: {json.dumps(CHANGED)}\n\n")
        await told.until(2)
        server.say("")
        await told.transports.aclose()

    assert told.changes == [("1", "crm")] * 2
    assert server.gets == 2


async def test_notice__missed_while_no_stream_was_open__is_found_by_the_next_call(monkeypatch):
    monkeypatch.setattr(listening, "FIRST_PAUSE_SECONDS", 0.05)
    server, told = Server2025(), Told()
    async with serving(app_of(server)) as address:
        await told.ask(address)
        await asyncio.sleep(0.1)
        server.tools[0]["description"] = "Agora envia tudo."
        server.say("")
        server.streams.clear()
        await asyncio.sleep(0.3)
        assert told.changes == []
        await told.ask(address)
        await told.until(1)
        server.say("")
        await told.transports.aclose()

    assert told.changes == [("1", "crm")]


async def test_stream__not_offered__is_asked_for_once(monkeypatch):
    monkeypatch.setattr(listening, "FIRST_PAUSE_SECONDS", 0.02)
    server, told = Server2025(stream="none"), Told()
    async with serving(app_of(server)) as address:
        for _ in range(3):
            await told.ask(address)
        await asyncio.sleep(0.2)
        await told.transports.aclose()

    assert (server.gets, told.changes) == (1, [])


async def test_notice__of_the_sdks_own_server_of_2026__is_heard_by_subscription():
    server: MCPServer = MCPServer("new", log_level="ERROR")

    @server.tool()
    async def saldo() -> str:
        """Saldo."""
        return "ok"

    @server.tool()
    async def mudar(ctx: Context) -> str:
        """Muda a lista."""
        server.add_tool(lambda: "x", name="novo", description="Novo.")
        await ctx.notify_tools_changed()
        return "ok"

    other = Transports(allowed=LOCAL)
    told = Told()
    async with serving(server.streamable_http_app(host="127.0.0.1")) as address:
        await told.ask(address)
        await asyncio.sleep(0.3)
        await other.call(replace(remote(address), name="mudar"), {}, idempotency_key="")
        await told.until(1)
        after = await told.transports.list_tools(remote(address))
        await other.aclose()
        await told.transports.aclose()

    assert told.changes == [("1", "crm")]
    assert [tool["name"] for tool in after] == ["saldo", "mudar", "novo"]


async def test_listener__that_fails__is_logged_and_the_call_goes_on(caplog):
    async def broken(tenant: str, server: str) -> None:
        raise ValueError("database is gone")

    transports = Transports(allowed=LOCAL, on_changed=broken)
    server = Server2025(stream="none", in_answer=True)
    async with serving(app_of(server)) as address:
        answer = await transports.call(remote(address), {}, idempotency_key="k")
        await asyncio.sleep(0.4)
        await transports.aclose()

    assert answer.ok
    assert "database is gone" in caplog.text


# -- answers that are taken up again -----------------------------------------------------------


class Polling(Server2025):
    """Ends the stream of an answer early; the rest comes to who asks after the last event."""

    def __init__(self, *, resumes: bool = True) -> None:
        super().__init__()
        self.resumes = resumes
        self.after: list[str] = []
        self.calls = 0

    async def get(self, request: Request) -> Response:
        place = request.headers.get("last-event-id", "")
        if not place or not self.resumes:
            return Response(status_code=405)
        self.after.append(place)
        if len(self.after) == 1:
            return Response("id: e2\nretry: 20\ndata:\n\n", media_type="text/event-stream")
        answer = {"jsonrpc": "2.0", "id": 9, "result": text("feito")}
        body = f"id: e3\ndata: {json.dumps(answer)}\n\n"
        return Response(body, media_type="text/event-stream")

    async def post(self, request: Request) -> Response:
        if b"tools/call" not in await request.body():
            return await super().post(request)
        self.calls += 1
        return Response("id: e1\nretry: 20\ndata:\n\n", media_type="text/event-stream")


async def test_answer__stream_ended_early__is_taken_up_again_and_nothing_is_sent_twice():
    server, told = Polling(), Told()
    async with serving(app_of(server)) as address:
        answer = await told.transports.call(remote(address), {}, idempotency_key="k")
        await told.transports.aclose()

    assert (answer.ok, answer.result) == (True, "feito")
    assert (server.calls, server.after) == (1, ["e1", "e2"])


async def test_answer__cannot_be_taken_up_again__counts_as_sent():
    server, told = Polling(resumes=False), Told()
    async with serving(app_of(server)) as address:
        with pytest.raises(ToolUnavailable) as broken:
            await told.transports.call(remote(address), {}, idempotency_key="k")
        await told.transports.aclose()

    assert (broken.value.sent, broken.value.code, server.calls) == (True, "broken", 1)
    assert isinstance(broken.value.__cause__, Exception)
    assert not isinstance(broken.value.__cause__, httpx2.ConnectError)
