"""An MCP server whose one tool answers with the request as it came over the wire.

``python -m apps.tools.tests.echo_server`` is the process; ``echoing()`` starts one.
"""

import contextlib
import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
MARK = "received "


@contextlib.contextmanager
def echoing() -> Iterator[str]:
    """Run the server; give its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", __name__], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        found = re.search(r"listening on (\d+)", process.stdout.readline())
        assert found is not None, "the server did not say where it listens"
        yield f"http://127.0.0.1:{found[1]}/mcp"
    finally:
        process.kill()
        process.communicate()


def received(result: Any) -> dict[str, Any]:
    """Return the arguments of a call from the server's answer, numbers as the digits that came."""
    assert isinstance(result, str)
    assert result.startswith(MARK)
    message = json.loads(result.removeprefix(MARK), parse_float=Decimal)
    arguments: dict[str, Any] = message["params"]["arguments"]
    return arguments


def _serve() -> None:
    import uvicorn
    from mcp.server.lowlevel import Server
    from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool

    async def list_tools(_context: Any, _params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="echo", input_schema={"type": "object"})])

    async def call_tool(context: Any, _params: Any) -> CallToolResult:
        raw = (await context.request.body()).decode()
        return CallToolResult(content=[TextContent(type="text", text=MARK + raw)])

    server = Server("echo", on_list_tools=list_tools, on_call_tool=call_tool)
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"listening on {listener.getsockname()[1]}", flush=True)
    app = server.streamable_http_app(json_response=True)
    config = uvicorn.Config(app, log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    _serve()
