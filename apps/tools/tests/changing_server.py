"""An MCP server whose tools are what a file says at the moment they are asked for.

``python -m apps.tools.tests.changing_server FILE`` is the process; ``changing(folder)`` starts one
and gives a test the handle to change its tools while it runs.
"""

import contextlib
import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
_LISTENING = re.compile(r"listening on (\d+)")

BALANCE: dict[str, Any] = {
    "name": "consultar_saldo",
    "title": "Saldo",
    "description": "Consulta o saldo de uma linha.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "msisdn": {"type": "string", "description": "Número da linha"},
            "periodo": {"type": "string", "enum": ["hoje", "mes"], "description": "De quando"},
        },
        "required": ["msisdn"],
        "additionalProperties": False,
    },
    "outputSchema": {
        "type": "object",
        "properties": {"saldo": {"type": "number"}, "titular": {"type": "string"}},
        "required": ["saldo"],
    },
    "annotations": {"readOnlyHint": True},
}
BLOCK: dict[str, Any] = {
    "name": "bloquear_linha",
    "description": "Bloqueia uma linha.",
    "inputSchema": {
        "type": "object",
        "properties": {"msisdn": {"type": "string"}},
        "required": ["msisdn"],
    },
}


class ChangingServer:
    """The handle of a running server: its tools, what it was called with, its address."""

    def __init__(self, folder: Path) -> None:
        self._tools = folder / "tools.json"
        self._calls = folder / "calls.jsonl"
        self._process: subprocess.Popen[str] | None = None
        self.port = 0
        self.offer(BALANCE, BLOCK)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def offer(self, *tools: dict[str, Any], page: int = 50) -> None:
        """Offer exactly ``tools`` from now on, ``page`` of them at a time."""
        text = json.dumps({"tools": tools, "page": page})
        fresh = self._tools.with_suffix(".new")
        fresh.write_text(text)
        fresh.replace(self._tools)

    def calls(self) -> list[dict[str, Any]]:
        """Return every tools/call so far: ``name``, ``arguments``."""
        if not self._calls.exists():
            return []
        return [json.loads(line) for line in self._calls.read_text().splitlines()]

    def forget(self) -> None:
        """Forget the calls so far."""
        self._calls.unlink(missing_ok=True)

    def start(self) -> None:
        """Start it, on the port it had before."""
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(self._tools), str(self._calls), str(self.port)],
            cwd=ROOT, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        found = _LISTENING.search(process.stdout.readline())
        assert found is not None, "the server did not say where it listens"
        self.port = int(found[1])
        self._process = process

    def kill(self) -> None:
        """End it without a goodbye."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


@contextlib.contextmanager
def changing(folder: Path) -> Iterator[ChangingServer]:
    """Run a server whose tools the block may change."""
    server = ChangingServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()


def _serve(tools: Path, calls: Path, port: int) -> None:
    import uvicorn
    from mcp.server.lowlevel import Server
    from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool

    def offered_now() -> dict[str, Any]:
        offered: dict[str, Any] = json.loads(tools.read_text())
        return offered

    async def list_tools(_context: Any, params: Any) -> ListToolsResult:
        offered = offered_now()
        start = int(params.cursor) if params and params.cursor else 0
        end = start + offered["page"]
        more = str(end) if end < len(offered["tools"]) else None
        shown = [Tool.model_validate(tool) for tool in offered["tools"][start:end]]
        return ListToolsResult(tools=shown, next_cursor=more)

    def note(name: str, arguments: Any) -> None:
        with calls.open("a") as log:
            log.write(json.dumps({"name": name, "arguments": arguments}) + "\n")

    async def call_tool(_context: Any, params: Any) -> CallToolResult:
        note(params.name, params.arguments)
        answer = {"saldo": 12.5, "titular": "Maria, CPF 529.982.247-25"}
        return CallToolResult(
            content=[TextContent(type="text", text=json.dumps(answer))], structured_content=answer
        )

    server = Server("changing", on_list_tools=list_tools, on_call_tool=call_tool)
    listener = socket.create_server(("127.0.0.1", port))
    print(f"listening on {listener.getsockname()[1]}", flush=True)
    app = server.streamable_http_app(json_response=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
