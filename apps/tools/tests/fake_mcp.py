"""A small MCP server inside the test's own HTTP client, for what real servers seldom do."""

import json
from collections.abc import Callable
from typing import Any

import httpx2

from apps.runtime.ports import RemoteTool

Answer = dict[str, Any] | httpx2.Response
TOOL = {"name": "saldo", "inputSchema": {"type": "object"}}
OUTPUT = {"type": "object", "properties": {"saldo": {"type": "number"}}, "required": ["saldo"]}
REMOTE = RemoteTool(
    server="crm", transport="streamable_http", address="http://crm.test/mcp", name="saldo",
    credential="tok", timeout_seconds=5,
)  # fmt: skip


def text(value: str, **more: Any) -> dict[str, Any]:
    """Return a tools/call result that holds ``value`` as text."""
    return {"content": [{"type": "text", "text": value}], "isError": False, **more}


class FakeMcp:
    """Speaks one era; ``call`` answers tools/call with a result, or a whole HTTP response."""

    def __init__(
        self,
        call: Callable[[dict[str, Any]], Answer] | Answer,
        *,
        era: str = "2026",
        pages: Callable[[str | None], dict[str, Any]] | None = None,
        output: dict[str, Any] | None = None,
    ) -> None:
        self.call = call
        self.era = era
        self.output = output
        self.pages = pages or self._one_page
        self.sessions: set[str] = set()
        self.requests: list[tuple[str, httpx2.Request]] = []

    def count(self, method: str) -> int:
        """Return how often ``method`` was asked for."""
        return sum(1 for asked, _ in self.requests if asked == method)

    def forget_sessions(self) -> None:
        """As after a restart."""
        self.sessions.clear()

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        message = json.loads(request.content)
        method = message.get("method", "reply")
        self.requests.append((method, request))
        if "id" not in message or method == "reply":
            return httpx2.Response(202)
        if self.era == "2025" and (refusal := self._without_session(method, request)):
            return refusal
        answer = self._answer(method, message.get("params") or {})
        if isinstance(answer, httpx2.Response):
            return answer
        result = {"jsonrpc": "2.0", "id": message["id"], "result": answer}
        return httpx2.Response(200, json=result, headers=self._new_session(method))

    def _without_session(self, method: str, request: httpx2.Request) -> httpx2.Response | None:
        if method == "server/discover":
            return rpc_error(-32600, "Bad Request: Missing session ID", status=400)
        if method == "initialize":
            return None
        session = request.headers.get("mcp-session-id", "")
        if session not in self.sessions:
            return rpc_error(-32600, "Session not found", status=404 if session else 400)
        return None

    def _new_session(self, method: str) -> dict[str, str]:
        if method != "initialize":
            return {}
        self.sessions.add(session := f"s{len(self.requests)}")
        return {"mcp-session-id": session}

    def _answer(self, method: str, params: dict[str, Any]) -> Answer:
        if method == "server/discover":
            return {
                "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                "resultType": "complete", "ttlMs": 0, "cacheScope": "public",
            }  # fmt: skip
        if method == "initialize":
            return {
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "crm", "version": "1"},
            }  # fmt: skip
        if method == "tools/list":
            page = self.pages(params.get("cursor"))
            modern = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}
            return {**page, **(modern if self.era == "2026" else {})}
        answer = self.call(params) if callable(self.call) else self.call
        if isinstance(answer, dict) and self.era == "2026":
            answer.setdefault("resultType", "complete")
        return answer

    def _one_page(self, cursor: str | None) -> dict[str, Any]:
        tool = {**TOOL, "outputSchema": self.output} if self.output else TOOL
        return {"tools": [tool]}


def rpc_error(code: int, message: str, *, status: int = 200) -> httpx2.Response:
    """Return a JSON-RPC error under an HTTP status."""
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    return httpx2.Response(status, json=body)


def stream(*messages: dict[str, Any]) -> httpx2.Response:
    """Return a stream of server-sent events."""
    body = "".join(f"event: message\ndata: {json.dumps(message)}\n\n" for message in messages)
    return httpx2.Response(200, text=body, headers={"content-type": "text/event-stream"})
