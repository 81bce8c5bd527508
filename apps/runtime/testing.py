"""Fakes for tests of steps: no database, no network."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from apps.runtime.canonical import canonical_json, sha256_text
from apps.runtime.config import KindConfig
from apps.runtime.ports import (
    Grant,
    GrantAnswer,
    LedgerCall,
    LedgerResult,
    LedgerState,
    ModelReply,
    ModelRequest,
    RemoteResult,
    RemoteTool,
    ToolRequest,
)
from apps.runtime.release import Release
from apps.runtime.turn import (
    ChatMessage,
    Inbound,
    ModelCall,
    SessionState,
    ToolCall,
    Turn,
)


def release_of(**items: Mapping[str, KindConfig]) -> Release:
    """Return a release of ``kind={slug: config}``; its sha256 is that of its own content."""
    flat = {(kind, slug): item for kind, entries in items.items() for slug, item in entries.items()}
    content = {
        f"{kind}:{slug}": item.model_dump(mode="json") for (kind, slug), item in flat.items()
    }
    return Release(sha256=sha256_text(canonical_json(content)), items=flat, id="r1", number=1)


def turn_of(text: str = "", *, release: Release | None = None, **changes: Any) -> Turn:
    """Return a turn that says ``text`` in session ``default:agent:s1``."""
    inbound = changes.pop("inbound", None) or Inbound(
        channel="web", text=text, agent=None, message_id="m1", session="s1"
    )
    session = changes.pop("session", None) or SessionState(id="1", key="default:agent:s1")
    return Turn(
        id=changes.pop("id", "t1"),
        tenant=changes.pop("tenant", "acme"),
        release=release or release_of(),
        inbound=inbound,
        session=session,
        text=changes.pop("sanitized", text),
        **changes,
    )


class FakeLedger:
    """Remembers calls in memory with the real ledger's rules."""

    def __init__(self) -> None:
        self.entries: dict[str, str | None] = {}
        self.calls: list[LedgerCall] = []

    async def begin(self, turn: Turn, calls: Sequence[LedgerCall]) -> list[LedgerState]:
        states = []
        for call in calls:
            key = sha256_text(
                f"{turn.id}|{call.kind}|{call.name}|{call.ordinal}|{call.contract}|{call.arguments}"
            )
            self.calls.append(call)
            if key not in self.entries:
                self.entries[key] = None
                states.append(LedgerState(state="fresh", idempotency_key=key))
            elif (result := self.entries[key]) is not None:
                states.append(LedgerState(state="done", idempotency_key=key, result=result))
            elif call.action and not call.idempotent:
                states.append(LedgerState(state="unknown", idempotency_key=key))
            else:
                states.append(LedgerState(state="restarted", idempotency_key=key))
        return states

    async def finish(self, turn: Turn, results: Sequence[LedgerResult]) -> None:
        for result in results:
            self.entries[result.idempotency_key] = result.result


class FakeTransport:
    """Answers tools from ``results``: name -> RemoteResult, exception, or function of arguments."""

    def __init__(self, results: Mapping[str, Any]) -> None:
        self.results = results
        self.calls: list[tuple[str, dict[str, Any], str]] = []

    async def call(
        self, tool: RemoteTool, arguments: Mapping[str, Any], *, idempotency_key: str
    ) -> RemoteResult:
        self.calls.append((tool.name, dict(arguments), idempotency_key))
        answer = self.results[tool.name]
        if isinstance(answer, Exception):
            raise answer
        if callable(answer):
            answer = answer(dict(arguments))
        return answer if isinstance(answer, RemoteResult) else RemoteResult(ok=True, result=answer)

    async def list_tools(self, tool: RemoteTool) -> list[Mapping[str, Any]]:
        return [{"name": name} for name in self.results]


class FakeTools:
    """A ToolPort that answers from ``results``: tool -> result; missing ones are refused."""

    def __init__(self, results: Mapping[str, Any] | None = None) -> None:
        self.results = results or {}
        self.requests: list[ToolRequest] = []

    async def call(self, turn: Turn, requests: Sequence[ToolRequest]) -> list[ToolCall]:
        self.requests.extend(requests)
        return [
            ToolCall(
                tool=r.tool,
                server="fake",
                arguments=r.arguments,
                status="ok" if r.tool in self.results else "refused",
                result=self.results.get(r.tool),
                ordinal=r.ordinal,
            )
            for r in requests
        ]

    async def check(self, turn: Turn, request: ToolRequest) -> ToolCall:
        arguments = canonical_json(dict(request.arguments))
        return ToolCall(
            tool=request.tool,
            server="fake",
            arguments=request.arguments,
            status="refused",
            ordinal=request.ordinal,
            metadata={"reason": "ready", "contract": "c0", "arguments": arguments},
        )

    def functions(self, turn: Turn, tools: Sequence[str]) -> list[Mapping[str, Any]]:
        schema = {"type": "object", "properties": {}}
        return [{"name": slug, "description": "", "parameters": schema} for slug in tools]


class FakeConfirmations:
    """A ConfirmationPort in memory with the real one's rules; ``ask`` notes what a turn asked."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, str]] = {}
        self.expired: set[str] = set()

    def ask(self, turn: Turn) -> None:
        asked = turn.dialogue.transaction
        if asked is not None and asked.status == "AWAITING_CONFIRMATION" and asked.ask is not None:
            self.rows.setdefault(
                asked.confirmation,
                {
                    "session": turn.session.key,
                    "release": turn.release.sha256,
                    "tool": asked.tool,
                    "contract": asked.ask.contract,
                    "arguments": asked.ask.arguments,
                    "used": "",
                },
            )

    async def use(self, turn: Turn, grant: Grant) -> GrantAnswer:
        row = self.rows.get(grant.id)
        if row is None or row["session"] != turn.session.key:
            return "absent"
        fits = (grant.tool, grant.contract, grant.arguments, turn.release.sha256) == (
            row["tool"], row["contract"], row["arguments"], row["release"],
        )  # fmt: skip
        if row["used"]:
            return "granted" if row["used"] == turn.id and fits else "used"
        if not fits:
            return "mismatch"
        if grant.id in self.expired:
            return "expired"
        row["used"] = turn.id
        return "granted"


class FakeModel:
    """A ModelPort that gives ``replies`` in turn (text or ModelReply) and keeps the requests."""

    def __init__(self, *replies: str | ModelReply) -> None:
        self.replies = list(replies)
        self.requests: list[ModelRequest] = []

    async def complete(self, turn: Turn, request: ModelRequest) -> tuple[ModelReply, ModelCall]:
        self.requests.append(request)
        reply = self.replies.pop(0) if self.replies else "ok"
        if isinstance(reply, str):
            reply = ModelReply(text=reply, provider="fake", model="fake")
        call = ModelCall(
            profile=request.profile, provider=reply.provider, model=reply.model,
            operation=request.operation, usage=reply.usage, finish_reason=reply.finish_reason,
        )  # fmt: skip
        return reply, call


class FakeHistory:
    """A HistoryPort over a fixed list."""

    def __init__(self, *messages: ChatMessage) -> None:
        self.messages = messages

    async def recent(self, turn: Turn, limit: int) -> tuple[ChatMessage, ...]:
        return self.messages[-limit:] if limit else ()


class FakeStore:
    """A TurnStore that keeps what was settled and delivered."""

    def __init__(self) -> None:
        self.settled: list[Turn] = []
        self.delivered: list[Turn] = []

    async def settle(self, turn: Turn) -> None:
        self.settled.append(turn)

    async def deliver(self, turn: Turn) -> None:
        self.delivered.append(turn)


def parsed(text: str) -> Any:
    """Return canonical text as a value."""
    return json.loads(text)
