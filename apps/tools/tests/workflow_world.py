"""A workflow, its tools and a store in memory, for the tests of workflows."""

import asyncio
from dataclasses import replace
from typing import Any

from apps.agents.config import AgentConfig
from apps.runtime.ports import (
    LeaseLost,
    RemoteResult,
    ToolUnavailable,
    WorkflowNodeRow,
    WorkflowOpening,
    WorkflowRunState,
)
from apps.runtime.release import Release
from apps.runtime.testing import FakeLedger, FakeTransport, release_of, turn_of
from apps.runtime.turn import BusinessContext, SessionState, Turn
from apps.tools.calling import ToolCaller
from apps.tools.config import Argument, ToolConfig, ToolServerConfig, WorkflowConfig
from apps.tools.workflows.engine import Workflows

ANY = {
    name: Argument(type="string") for name in ("order_id", "reason", "protocol", "reservation", "x")
}


def tool(*, action: bool = True, idempotent: bool = False, **changes: Any) -> ToolConfig:
    changes.setdefault("args_schema", ANY)
    return ToolConfig(
        mcp_server="shop",
        tool_type="action" if action else "read_only",
        idempotent=idempotent,
        **changes,
    )


TOOLS = {
    "consultar": tool(action=False),
    "reservar": tool(),
    "liberar": tool(idempotent=True),
    "trocar": tool(idempotent=True),
    "avisar": tool(),
}


def workflow(*nodes: dict[str, Any], **changes: Any) -> WorkflowConfig:
    """Return the workflow of ``nodes``, which begins with the first of them."""
    return WorkflowConfig(start=nodes[0]["id"], nodes=list(nodes), **changes)


def release(config: WorkflowConfig, **tools: ToolConfig) -> Release:
    return release_of(
        agent={"a": AgentConfig(prompt="p", tools=[*TOOLS, *tools])},
        tool_server={"shop": ToolServerConfig(endpoint="shop_url")},
        tool={**TOOLS, **tools},
        workflow={"troca": config},
    )


def turn(config: WorkflowConfig | None = None, **changes: Any) -> Turn:
    """Return a turn of customer C-1 in session s1; ``tools`` are added to the release's."""
    tools = changes.pop("tools", {})
    changes.setdefault("session", SessionState(id="s1", key="default:a:s1", agent="a"))
    changes.setdefault("business_context", BusinessContext(values={"customer_key": "C-1"}))
    if config is not None:
        changes["release"] = release(config, **tools)
    return turn_of("oi", bindings={"address:shop_url": "http://shop.test"}, **changes)


class MemoryStore:
    """A ``WorkflowStore`` and ``CoveragePort`` with the rules of the database's."""

    def __init__(self) -> None:
        self.runs: dict[str, WorkflowRunState] = {}
        self.openings: dict[str, WorkflowOpening] = {}
        self.sessions: dict[str, str] = {}
        self.dies_at: int | None = None
        self.writes = 0

    def _write(self) -> None:
        """Count a write; the worker may die right before it."""
        if self.dies_at is not None and self.writes >= self.dies_at:
            raise Died
        self.writes += 1

    async def open(self, turn: Turn, opening: WorkflowOpening) -> WorkflowRunState:
        self._write()
        for run in self.runs.values():
            same = self.openings[run.id].identity == opening.identity
            if same and run.status in ("RUNNING", "PAUSED", "COMPLETED", "UNKNOWN"):
                return self._taken(turn, run)
        run = WorkflowRunState(
            id=opening.id,
            workflow=opening.workflow,
            status="RUNNING",
            definition=opening.definition,
            inputs=opening.inputs,
            release=turn.release,
            tool=opening.tool,
            agent=opening.agent,
            began=turn.id,
            holder=turn.id,
        )
        self.runs[run.id], self.openings[run.id] = run, opening
        self.sessions[run.id] = turn.session.id
        return run

    async def take(self, turn: Turn, run_id: str) -> WorkflowRunState | None:
        run = self.runs.get(run_id)
        if run is None or self.sessions[run_id] != turn.session.id:
            return None
        return self._taken(turn, run)

    def _taken(self, turn: Turn, run: WorkflowRunState) -> WorkflowRunState:
        if run.status in ("RUNNING", "PAUSED"):
            self.runs[run.id] = replace(run, status="RUNNING", holder=turn.id)
        return run

    async def peek(self, turn: Turn, run_id: str) -> WorkflowRunState | None:
        return self.runs.get(run_id)

    async def note(self, turn: Turn, run_id: str, row: WorkflowNodeRow) -> None:
        self._write()
        run = self.runs[run_id]
        if run.holder != turn.id:
            raise LeaseLost
        name = (row.kind, row.node, row.visit)
        kept = {(r.kind, r.node, r.visit): r for r in run.nodes} | {name: row}
        self.runs[run_id] = replace(run, nodes=tuple(kept.values()))

    async def close(self, turn: Turn, run_id: str, **closing: Any) -> None:
        self._write()
        closing.pop("error")
        self.runs[run_id] = replace(self.runs[run_id], **closing)

    async def covers(self, turn: Turn, run_id: str, tool: str) -> bool:
        return self.openings[run_id].confirmed


class Died(BaseException):
    """The worker is gone."""


class Server(FakeTransport):
    """Carries out calls: notes every effect, keeps those of idempotent tools by key.

    ``results``: tool -> result, exception, or a list of them in turn. ``dies_at``: the worker dies
    right after so many effects, before it learns of the last one's end.
    """

    def __init__(self, results: dict[str, Any] | None = None, keeps: Any = ("liberar", "trocar")):
        super().__init__(results or {})
        self.keeps = keeps
        self.effects: list[str] = []
        self.by_key: dict[str, RemoteResult] = {}
        self.dies_at: int | None = None

    async def call(self, tool: Any, arguments: Any, *, idempotency_key: str) -> RemoteResult:
        self.calls.append((tool.name, dict(arguments), idempotency_key))
        if tool.name in self.keeps and idempotency_key in self.by_key:
            return self.by_key[idempotency_key]
        answer = self.results.get(tool.name, {"done": tool.name})
        if isinstance(answer, list):
            answer = answer.pop(0)
        if isinstance(answer, ToolUnavailable):
            if answer.sent:
                self.effects.append(tool.name)
            raise answer
        if isinstance(answer, RemoteResult) and not answer.ok:
            return answer
        self.effects.append(tool.name)
        done = answer if isinstance(answer, RemoteResult) else RemoteResult(ok=True, result=answer)
        self.by_key[idempotency_key] = done
        if self.dies_at is not None and len(self.effects) >= self.dies_at:
            self.dies_at = None
            raise Died
        return done


async def no_sleep(seconds: float) -> None:
    await asyncio.sleep(0)


def engine(
    server: Server, store: MemoryStore, ledger: FakeLedger | None = None, **more: Any
) -> Workflows:
    tools = ToolCaller(
        server,
        ledger or FakeLedger(),
        lambda name: "",
        tag_key="key",
        coverage=store,
        confirmations=more.get("confirmations"),
    )
    more.setdefault("sleep", no_sleep)
    return Workflows(tools, store, tag_key="key", **more)


FAILS = RemoteResult(ok=False, error="Fora do prazo.", result={"code": "LATE"}, metadata={"status_code": 422})  # fmt: skip
