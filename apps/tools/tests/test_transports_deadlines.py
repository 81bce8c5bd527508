"""A call ends in time whatever a server does."""

import asyncio
import contextlib
import time
from dataclasses import replace

import pytest

from apps.runtime.ports import RemoteTool, ToolUnavailable
from apps.tools.tests.servers import LOCAL
from apps.tools.transports.dispatch import Transports

HEADERS = b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\ntransfer-encoding: chunked\r\n\r\n"
DISCOVERED = (
    b'{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":'
    b'{"tools":{}},"resultType":"complete","ttlMs":0,"cacheScope":"public"}}'
)
LISTED = (
    b'{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}],'
    b'"resultType":"complete","ttlMs":0,"cacheScope":"public"}}'
)


class Dripping:
    """Answers everything but tools/call; that one it starts to answer and never ends.

    ``drip``: what it sends every 20 ms after the headers; empty: silence. ``dies``: it closes.
    """

    def __init__(self, kind: bytes, drip: bytes, *, dies: bool = False) -> None:
        self.kind = kind
        self.drip = drip
        self.dies = dies
        self.calls = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = [
                    int(line.split(b":")[1])
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length")
                ]
                body = await reader.readexactly(size[0]) if size else b""
                if b"server/discover" in body:
                    await self.answer(writer, DISCOVERED)
                elif head.startswith(b"GET"):
                    await self.answer(writer, b'{"tools":[]}')
                elif b"tools/list" in body:
                    await self.answer(writer, LISTED)
                else:
                    self.calls += 1
                    await self.drag(writer)
                    return
        writer.close()

    async def answer(self, writer: asyncio.StreamWriter, body: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        writer.write(head % len(body) + body)
        await writer.drain()

    async def drag(self, writer: asyncio.StreamWriter) -> None:
        writer.write(HEADERS % self.kind)
        await writer.drain()
        while not self.dies:
            if self.drip:
                writer.write(b"%x\r\n%s\r\n" % (len(self.drip), self.drip))
                await writer.drain()
            await asyncio.sleep(0.02)
        writer.close()


@contextlib.asynccontextmanager
async def dripping(server: Dripping):
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    transports = Transports(allowed=LOCAL)
    try:
        yield transports, f"http://127.0.0.1:{port}/mcp"
    finally:
        await transports.aclose()
        listening.close()


PROGRESS = b'data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}\n\n'


@pytest.mark.parametrize(
    ("transport", "kind", "drip"),
    [
        ("streamable_http", b"text/event-stream", b": keep-alive\n\n"),
        ("streamable_http", b"text/event-stream", PROGRESS),
        ("streamable_http", b"text/event-stream", b""),
        ("streamable_http", b"application/json", b" "),
        ("streamable_http", b"application/json", b""),
        ("http", b"application/json", b" "),
        ("http", b"application/json", b""),
    ],
)
async def test_call__server_that_starts_to_answer_and_never_ends__meets_the_deadline(
    transport, kind, drip
):
    server = Dripping(kind, drip)
    async with dripping(server) as (transports, address):
        remote = RemoteTool(
            server="x", transport=transport, address=address, name="t", timeout_seconds=0.6,
            repeatable=True,
        )  # fmt: skip
        # The SDK is imported and the session is open: only the call is measured.
        await transports.list_tools(replace(remote, timeout_seconds=20))
        began = time.monotonic()

        with pytest.raises(ToolUnavailable) as late:
            await transports.call(remote, {}, idempotency_key="k")
        took = time.monotonic() - began

    assert (late.value.sent, late.value.code, server.calls) == (True, "timeout", 1)
    assert 0.5 < took < 1.1


@pytest.mark.parametrize("transport", ["streamable_http", "http"])
async def test_call__server_dies_after_the_headers__fails_at_once_as_sent(transport):
    server = Dripping(b"application/json", b"", dies=True)
    async with dripping(server) as (transports, address):
        remote = RemoteTool(
            server="x", transport=transport, address=address, name="t", timeout_seconds=20
        )
        began = time.monotonic()

        with pytest.raises(ToolUnavailable) as broken:
            await transports.call(remote, {}, idempotency_key="k")

    assert (broken.value.sent, broken.value.code, server.calls) == (True, "broken", 1)
    assert time.monotonic() - began < 2
