"""One walk through a run: what is recorded is read, the rest is carried out. Pure.

A walk begins at the first node every time. What a node did is in its row, so a node that ended is
never run again, by no turn and no worker; the way through is the same because it follows from rows.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from apps.runtime.canonical import canonical_json, sha256_text
from apps.runtime.ports import (
    NodeCall,
    ToolPort,
    ToolRequest,
    WorkflowNodeRow,
    WorkflowRunState,
    WorkflowStore,
)
from apps.runtime.text import fold
from apps.runtime.turn import ToolCall, Turn
from apps.tools.config import ToolConfig, WorkflowConfig, WorkflowNode, WorkflowPause
from apps.tools.transactions.outcome import items_of
from apps.tools.workflows.interface import (
    Code,
    ErrorDetails,
    Items,
    NodeTrace,
    WorkflowResult,
)
from apps.tools.workflows.paths import arguments_of, condition_met, condition_parse, text_filled
from apps.tools.workflows.records import call_dump, row_call, status_code

MAX_STEPS = 500
"""Nodes one run may reach, all its turns together: whoever asks in a circle ends some day."""

MAX_BACKOFF_SECONDS = 10.0
_ORDINALS = 10_000
"""Where the ordinals of nodes begin, clear of those an agent gives its calls in the same turn."""

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True)
class Effect:
    """How a node's tool ended, now or before."""

    call: ToolCall
    status: str
    attempts: int

    @property
    def done(self) -> bool:
        """Whether it had its effect; of several items one is enough."""
        return self.status == "ok"


@dataclass(frozen=True)
class Done:
    """A node that had its effect, to be taken back if it comes to that."""

    node: WorkflowNode
    visit: int
    result: Any


def node_key(run: str, kind: str, node: str, visit: int) -> str:
    """Return a node's idempotency key: the same in every turn, worker and attempt."""
    return sha256_text("\x1f".join((run, kind, node, str(visit))))


def answer_of(pause: WorkflowPause, text: str) -> str:
    """Return the accepted answer that ``text`` literally is, "" when it is none."""
    said = text.strip()
    if not pause.allowed_values:
        return said
    plain = fold(said).strip(" .,!?;:")
    return next((value for value in pause.allowed_values if fold(value).strip() == plain), "")


@dataclass
class Walk:
    """Carries one run as far as it goes. ``answer``: what the customer said, ``None`` for nothing."""

    turn: Turn
    run: WorkflowRunState
    tools: ToolPort
    store: WorkflowStore
    sleep: Sleep = asyncio.sleep
    answer: str | None = None
    abandoning: bool = False
    trace: list[NodeTrace] = field(default_factory=list)
    outputs: dict[str, Any] = field(default_factory=dict)
    done: list[Done] = field(default_factory=list)
    items: Items | None = None
    asked_again: bool = False

    def __post_init__(self) -> None:
        self.workflow = WorkflowConfig.model_validate_json(self.run.definition)
        self.nodes = {node.id: node for node in self.workflow.nodes}
        self.places = {node.id: place for place, node in enumerate(self.workflow.nodes)}
        self.inputs: dict[str, Any] = json.loads(self.run.inputs)
        self.seen: dict[str, Any] = {}
        self.rows = {(row.kind, row.node, row.visit): row for row in self.run.nodes}
        self.visits: Counter[str] = Counter()
        given = any(row.kind == "pause" and row.turn == self.turn.id for row in self.run.nodes)
        waiting = self.run.status == "PAUSED" or self.run.holder == self.turn.id
        if given or not waiting:
            # It answers the question the customer saw, once: an earlier try of this turn may have
            # given it, and a run that a lost turn left behind may ask something else by now.
            self.answer = None

    async def go(self) -> WorkflowResult:
        """Return how far the run came. Raises ``LeaseLost``."""
        name = self.workflow.start
        while name:
            node = self.nodes[name]
            self.visits[name] += 1
            if self.visits.total() > MAX_STEPS:
                return await self._failed(node, Code.TOO_LONG, "the workflow took too many steps")
            if node.when and not condition_met(condition_parse(node.when), self.inputs, self.seen):
                self._told(node, "skipped")
                name = node.otherwise or node.next
                continue
            ended = await self._node(node)
            if isinstance(ended, WorkflowResult):
                return ended
            name = ended
        return self._completed()

    async def _node(self, node: WorkflowNode) -> WorkflowResult | str:
        """Return the next node's name, or how the run stands."""
        if node.tool:
            if await self._given_up(node):
                return await self._failed(node, Code.ABANDONED, ABANDONED)
            effect = await self._call(node, "call", node.tool, node.params, self.visits[node.id])
            self._told(node, _trace_status(effect), effect)
            if effect.status == "unknown":
                return self._unknown(node, effect)
            if not effect.done:
                return await self._after_failure(node, effect)
            self._keep(node, effect)
        if node.pause.key and (waiting := await self._asked(node)):
            return waiting
        return node.next

    # -- a tool --------------------------------------------------------------------------------

    async def _given_up(self, node: WorkflowNode) -> bool:
        """Whether the run was given up before this tool was called; from then on it stays so."""
        visit = self.visits[node.id]
        if ("call", node.id, visit) in self.rows:
            return False
        if ("pause", node.id, visit) in self.rows:
            return True
        if self.abandoning:
            await self._answered(node, visit, "", "abandoned")
        return self.abandoning

    async def _call(
        self,
        node: WorkflowNode,
        kind: Any,
        slug: str,
        params: Mapping[str, str],
        visit: int,
        seen: Mapping[str, Any] | None = None,
    ) -> Effect:
        """Return how the tool of a node ended; it is called only when no row says that."""
        row = self.rows.get((kind, node.id, visit))
        tool = self.run.release.find(ToolConfig, slug)
        if row is not None and row.status != "begun":
            return Effect(row_call(row, tool), row.status, row.attempts)
        repeatable = tool is None or not tool.transactional or tool.idempotent
        fresh = WorkflowNodeRow(
            kind=kind,
            node=node.id,
            visit=visit,
            status="begun",
            key=node_key(self.run.id, kind, node.id, visit),
            tool=slug,
            turn=self.turn.id,
        )
        if row is not None and row.turn != self.turn.id and not repeatable:
            # Begun by a turn whose ledger is not this one's: nobody knows how it ended.
            return await self._ended(replace(row, turn=self.turn.id), lost_call(row), "unknown")
        arguments = arguments_of(
            params, self.inputs, seen or self.seen, type_of=lambda name: _type(tool, name)
        )
        attempts = 1 + (node.retries if repeatable else 0)
        attempt = row.attempts if row is not None else 1
        while True:
            fresh = replace(fresh, attempts=attempt)
            await self.store.note(self.turn, self.run.id, fresh)
            call = await self._send(node, fresh, arguments)
            status = _status(call)
            last = attempt >= attempts or status in ("ok", "refused")
            if last:
                return await self._ended(fresh, call, status)
            attempt += 1
            await self.sleep(backoff_seconds(node, attempt))

    async def _send(
        self, node: WorkflowNode, row: WorkflowNodeRow, arguments: Mapping[str, Any]
    ) -> ToolCall:
        """Call the tool under the release the run began with."""
        running = self.turn.evolve(release=self.run.release)
        request = ToolRequest(
            tool=row.tool,
            arguments=arguments,
            ordinal=self._ordinal(node, row),
            agent=self.run.agent,
            node=NodeCall(self.run.id, row.key, node.timeout_seconds or 0),
        )
        [call] = await self.tools.call(running, [request])
        self.turn = self.turn.evolve(tool_calls=(*self.turn.tool_calls, call))
        return call

    def _ordinal(self, node: WorkflowNode, row: WorkflowNodeRow) -> int:
        """Return the call's place in its turn's ledger: another attempt is another call there."""
        turned = 2 * row.visit + (row.kind == "compensation")
        return _ORDINALS + (turned * 1_000 + self.places[node.id]) * 16 + row.attempts

    async def _ended(self, row: WorkflowNodeRow, call: ToolCall, status: Any) -> Effect:
        ended = replace(
            row,
            status=status,
            arguments=canonical_json(dict(call.arguments)),
            result=call_dump(call),
        )
        await self.store.note(self.turn, self.run.id, ended)
        return Effect(call, status, row.attempts)

    def _keep(self, node: WorkflowNode, effect: Effect) -> None:
        """Remember what a node brought, and that it has something to take back."""
        self.outputs[node.id] = self.seen[node.id] = effect.call.result
        self.done.append(Done(node, self.visits[node.id], effect.call.result))
        if self._authoritative(node):
            self.items = items_read(effect.call) or self.items

    def _authoritative(self, node: WorkflowNode) -> bool:
        """Whether ``node`` is named like the tool that the run carries out."""
        tool = self.run.tool or node.tool
        return node.id == "".join(char if char.isalnum() else "_" for char in tool)

    # -- a question ----------------------------------------------------------------------------

    async def _asked(self, node: WorkflowNode) -> WorkflowResult | None:
        """Return how the run stands while a question is open, ``None`` when it is answered."""
        visit = self.visits[node.id]
        row = self.rows.get(("pause", node.id, visit))
        answer = json.loads(row.result) if row is not None else ""
        if row is None and self.abandoning:
            row = await self._answered(node, visit, "", "abandoned")
        if row is not None and row.status == "abandoned":
            return await self._failed(node, Code.ABANDONED, ABANDONED)
        if row is None and self.answer is not None and node.id == self.run.node:
            answer = answer_of(node.pause, self.answer)
            self.asked_again, self.answer = not answer, None
            if answer:
                row = await self._answered(node, visit, answer, "answered")
        if row is None:
            self._told(node, "asked")
            return self._paused(node)
        self._told(node, "answered")
        self.inputs[node.pause.key] = answer
        return None

    async def _answered(
        self, node: WorkflowNode, visit: int, answer: str, status: Any
    ) -> WorkflowNodeRow:
        row = WorkflowNodeRow(
            kind="pause",
            node=node.id,
            visit=visit,
            status=status,
            result=canonical_json(answer),
            turn=self.turn.id,
        )
        await self.store.note(self.turn, self.run.id, row)
        return row

    # -- how it stands -------------------------------------------------------------------------

    def _result(self, status: Any, **more: Any) -> WorkflowResult:
        return WorkflowResult(
            status=status,
            execution_id=self.run.id,
            workflow=self.run.workflow,
            outputs=dict(self.outputs),
            trace=tuple(self.trace),
            items=self.items,
            **more,
        )

    def _paused(self, node: WorkflowNode) -> WorkflowResult:
        pause = node.pause
        text = pause.reprompt if self.asked_again and pause.reprompt else pause.question
        return self._result(
            "PAUSED",
            node=node.id,
            question=text_filled(text, self.inputs, self.seen),
            allowed_values=tuple(pause.allowed_values),
            reprompted=self.asked_again,
        )

    def _completed(self, **more: Any) -> WorkflowResult:
        text = text_filled(self.workflow.done_text, self.inputs, self.seen)
        return self._result("COMPLETED", text=text, **more)

    def _unknown(self, node: WorkflowNode, effect: Effect) -> WorkflowResult:
        """Stop: what was done stays, since what is unknown may build upon it."""
        return self._result(
            "FAILED",
            node=node.id,
            code=Code.NODE_UNKNOWN,
            error=effect.call.error,
            error_details=_details(effect),
            unknown=True,
        )

    async def _after_failure(self, node: WorkflowNode, effect: Effect) -> WorkflowResult | str:
        if node.on_failure:
            self.seen[node.id] = {"error": effect.call.error, "result": effect.call.result}
            return node.on_failure
        if self.items is not None and self.items.succeeded:
            # What was done of several items stands, whatever fails afterwards (fault 38).
            return self._completed(
                node=node.id, secondary_error=effect.call.error, error_details=_details(effect)
            )
        if self._authoritative(node):
            self.items = items_read(effect.call)
        return await self._failed(
            node, Code.NODE_FAILED, effect.call.error, error_details=_details(effect)
        )

    async def _failed(
        self, node: WorkflowNode, code: str, error: str, **more: Any
    ) -> WorkflowResult:
        """Take back what was done, newest first, and say how that went."""
        back: list[str] = []
        left: list[str] = []
        for done in reversed(self.done):
            if not done.node.compensate_tool:
                continue
            effect = await self._call(
                done.node,
                "compensation",
                done.node.compensate_tool,
                done.node.compensate_params,
                done.visit,
                {**self.seen, done.node.id: done.result},
            )
            status = _COMPENSATED.get(effect.status, "compensation_failed")
            self._told(done.node, status, effect, visit=done.visit)
            (back if effect.done else left).append(done.node.id)
        return self._result(
            "FAILED",
            node=node.id,
            code=code,
            error=error,
            compensated=tuple(back),
            uncompensated=tuple(left),
            **more,
        )

    def _told(
        self, node: WorkflowNode, status: Any, effect: Effect | None = None, *, visit: int = 0
    ) -> None:
        self.trace.append(
            NodeTrace(
                node=node.id,
                status=status,
                tool=effect.call.tool if effect else "",
                visit=visit or self.visits[node.id],
                attempts=effect.attempts if effect else 0,
                error=effect.call.error if effect else "",
            )
        )


ABANDONED = "the customer gave it up"
_COMPENSATED = {"ok": "compensated", "unknown": "compensation_unknown"}


def items_read(call: ToolCall) -> Items | None:
    """Return how each item of ``call`` fared, ``None`` for a call that was about one thing."""
    counted = items_of(call.result)
    if not counted.count:
        return None
    status = "PARTIAL_SUCCESS" if counted.succeeded else "FAILED"
    return Items(
        status="SUCCESS" if not counted.failed else status,  # type: ignore[arg-type]
        items=tuple(call.result["results"]),
        original_ok=call.ok,
    )


def backoff_seconds(node: WorkflowNode, attempt: int) -> float:
    """Return how long to wait before ``attempt`` (2 is the first that waits)."""
    doubled: float = node.backoff_ms / 1000 * 2.0 ** (attempt - 2)
    return min(doubled, MAX_BACKOFF_SECONDS)


def lost_call(row: WorkflowNodeRow) -> ToolCall:
    """Return what is known of a call that another turn began and did not see the end of."""
    return ToolCall(
        tool=row.tool,
        server="",
        arguments=json.loads(row.arguments),
        status="unknown",
        error="It was begun before and no end is recorded: whether it was carried out is not known.",
        action=True,
        replayed=True,
    )


def _status(call: ToolCall) -> str:
    """Return how a node ended. Some items done are an effect, whatever is said of the whole; items
    that all failed are none."""
    if call.status in ("ok", "error") and (counted := items_of(call.result)).count:
        return "ok" if counted.succeeded else "failed"
    return {"error": "failed"}.get(call.status, call.status)


def _trace_status(effect: Effect) -> str:
    return effect.status


def _details(effect: Effect) -> ErrorDetails:
    call = effect.call
    return ErrorDetails(
        status_code=status_code(call), body=call.result or call.error, attempts=effect.attempts
    )


def _type(tool: ToolConfig | None, name: str) -> str:
    argument = tool.args_schema.get(name) if tool is not None else None
    return argument.type if argument is not None else "string"
