"""A server of 2024 (HTTP+SSE) on a socket of its own, for what real servers seldom do."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

TOOL = {"name": "saldo", "inputSchema": {"type": "object"}}
Call = Callable[[Mapping[str, Any]], Any]


class FakeSse:
    """``call`` answers tools/call with a result or an exception's worth of silence (``None``).

    ``endpoint``: what the stream names as address for requests; ``token``: the only one let in.
    """

    def __init__(self, call: Call, *, endpoint: str = "/messages", token: str = "") -> None:
        self.call = call
        self.endpoint = endpoint
        self.token = token
        self.tools = [TOOL]
        self.sessions: dict[str, asyncio.Queue[str]] = {}
        self.opened = 0
        self.asked: list[str] = []
        self.headers: list[Mapping[str, str]] = []
        self.comments = 0.0
        self.port = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/sse"

    def end_streams(self) -> None:
        """As a restart does: every stream ends, every session is forgotten."""
        for queue in self.sessions.values():
            queue.put_nowait("")
        self.sessions.clear()

    def say(self, message: Mapping[str, Any]) -> None:
        """Send a message of the server's own on every stream."""
        for queue in self.sessions.values():
            queue.put_nowait(f"event: message\ndata: {json.dumps(message)}\n\n")

    async def stream(self, request: Request) -> Response:
        if self.token and request.headers.get("authorization") != f"Bearer {self.token}":
            return Response(status_code=401)
        self.opened += 1
        session = f"s{self.opened}"
        queue: asyncio.Queue[str] = asyncio.Queue()
        self.sessions[session] = queue

        async def events() -> AsyncIterator[str]:
            yield f"event: endpoint\ndata: {self.endpoint}?sessionId={session}\n\n"
            while True:
                try:
                    async with asyncio.timeout(self.comments or None):
                        event = await queue.get()
                except TimeoutError:
                    event = ": still here\n\n"
                if not event:
                    return
                yield event

        return StreamingResponse(events(), media_type="text/event-stream")

    async def message(self, request: Request) -> Response:
        queue = self.sessions.get(request.query_params["sessionId"])
        if queue is None:
            return Response("Could not find session", status_code=404)
        message = json.loads(await request.body())
        self.asked.append(message.get("method", "reply"))
        self.headers.append(dict(request.headers))
        if "id" in message and "method" in message:
            result = self.answer(message["method"], message.get("params") or {})
            if result is not None:
                answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
                queue.put_nowait(f"event: message\ndata: {json.dumps(answer)}\n\n")
        return Response("Accepted", status_code=202)

    def answer(self, method: str, params: Mapping[str, Any]) -> Any:
        if method == "initialize":
            return {
                "protocolVersion": "2024-11-05", "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "old", "version": "1"},
            }  # fmt: skip
        return {"tools": self.tools} if method == "tools/list" else self.call(params)


@contextlib.asynccontextmanager
async def serving(fake: FakeSse) -> AsyncIterator[FakeSse]:
    """Serve ``fake`` on the test's own loop."""
    app = Starlette(
        routes=[
            Route("/sse", fake.stream),
            Route("/messages", fake.message, methods=["POST"]),
        ]
    )
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1, lifespan="off")
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        fake.port = listening.getsockname()[1]
        task = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started:  # noqa: ASYNC110 - it has no event for it
            await asyncio.sleep(0.01)
        try:
            yield fake
        finally:
            fake.end_streams()
            server.should_exit = True
            await task
