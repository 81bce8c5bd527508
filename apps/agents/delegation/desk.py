"""What an agent may ask of others, and what becomes of it.

Three kinds (platform facts 14): a consultation is one isolated question with plain text back; a
scoped sub-agent works on a part of the request and reports outputs; a specialist of a
sub-conversation takes the conversation over, which ends the asking agent's part.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from apps.agents.config import AgentConfig, Delegate, PromptConfig
from apps.agents.delegation import functions
from apps.agents.delegation.engine import Engine, OpenQuestion, agent_find
from apps.agents.delegation.reports import (
    report_info,
    report_read,
    report_reminder,
    report_settled,
    report_text,
    scope_note,
)
from apps.agents.delegation.wording import inert_text, unserved
from apps.agents.evidence import inert_json, masked_value
from apps.agents.history import Scene, memory_of
from apps.agents.loop import Conversation, Taken
from apps.agents.tooling import ToolInfo
from apps.runtime.ports import ModelFailed
from apps.runtime.release import Release, UnknownItem
from apps.runtime.turn import Decision, Delegation, Signal, Turn

MAX_DEPTH = 2
"""How far below the agent of the route somebody may still be asked."""

_CONSULTED = (
    "A colleague asks you something, not the customer. Answer the last message in plain text, in a"
    " few sentences, and only for the colleague."
)
_TOLD = "The customer has read this answer. Do not repeat or mention it; answer only the rest."
_FAILURES = {
    "timeout": "no answer in time",
    "content_filter": "the answer was filtered",
    "rate_limited": "too many requests",
}


@dataclass(frozen=True)
class Report:
    """How a scoped sub-agent ended: its outputs, and the text it wrote beside them."""

    outputs: Mapping[str, Any]
    said: str


@dataclass(frozen=True)
class Part:
    """The part of a request that a scoped sub-agent has, when that is what the agent is."""

    delegate: Delegate
    outputs: tuple[str, ...]


class Desk:
    """The ``Control`` of one agent in one run.

    ``chain`` are the agents that are waiting for it, itself included: none of them is asked again
    below it. ``specialist``: it holds a sub-conversation and may end it. ``part``: it is a scoped
    sub-agent and reports. ``deadline``: the loop time by which its own run has to end.
    """

    def __init__(
        self,
        engine: Engine,
        release: Release,
        scene: Scene,
        *,
        chain: tuple[str, ...] = (),
        specialist: bool = False,
        part: Part | None = None,
        deadline: float | None = None,
    ) -> None:
        self._engine = engine
        self._release = release
        self._scene = scene
        self._chain = (*chain, scene.slug)
        self._specialist = specialist
        self._part = part
        self._deadline = deadline
        self._delegates = self._known(scene.agent)
        self._specialists = {
            role: delegate
            for role, delegate in functions.specialists(scene.agent).items()
            if self._asks(delegate)
        }

    def offers(self, *, last: bool) -> Mapping[str, ToolInfo]:
        """See ``Control``. With the budget used up, only what ends the agent's part is left."""
        found: dict[str, ToolInfo] = {}
        if self._specialist:
            found[functions.END] = functions.end_info()
        if self._part is not None:
            found[functions.REPORT] = report_info(self._part.outputs)
        if not last and self._engine.left > 0 and self._depth < MAX_DEPTH:
            for name, delegate in self._delegates.items():
                found[name] = (
                    functions.consult_info(name, delegate.purpose)
                    if delegate.kind == "consult"
                    else functions.scoped_info(name, delegate.purpose, speaks=delegate.speaks)
                )
            leads = self._depth == 0 and not self._specialist
            if leads and self._specialists and self._engine.hops > 0:
                found[functions.REQUEST] = functions.request_info(self._specialists)
        self._engine.names.update(found)
        return found

    @property
    def _depth(self) -> int:
        return len(self._chain) - 1

    def _asks(self, delegate: Delegate) -> bool:
        return (
            delegate.agent not in self._chain
            and agent_find(self._release, delegate.agent) is not None
        )

    def _known(self, agent: AgentConfig) -> dict[str, Delegate]:
        """Return function -> consulted or scoped agent; the first of a name counts.

        Whoever a silent sub-agent asks is silent, too: nobody speaks in its place.
        """
        found: dict[str, Delegate] = {}
        silent = self._part is not None and not self._part.delegate.speaks
        for delegate in agent.delegates:
            if delegate.kind != "sub_conversation" and self._asks(delegate):
                asked = delegate.model_copy(update={"speaks": False}) if silent else delegate
                found.setdefault(functions.function_name(agent, delegate), asked)
        return found

    async def take(self, turn: Turn, name: str, arguments: Mapping[str, Any], said: str) -> Taken:
        """See ``Control``."""
        if name == functions.END:
            return self._end(turn, arguments)
        if name == functions.REPORT and self._part is not None:
            outputs, error = report_read(arguments, self._part.outputs)
            if error:
                return Taken(turn, inert_json({"ok": False, "error": error}), ok=False)
            return Taken(turn, ended=Report(outputs, said))
        if name == functions.REQUEST:
            return self._request(turn, arguments)
        delegate = self._delegates[name]
        argument = functions.QUESTION if delegate.kind == "consult" else functions.SCOPED_REQUEST
        request, error = functions.text_read(arguments, argument)
        if error:
            turn = noted(turn, self._delegation(delegate, name, "refused", error=error))
            return Taken(turn, f"Not taken: {error}", ok=False)
        request = self._engine.mask(request)
        if (name, request) in self._engine.told:
            return Taken(turn, self._engine.told[name, request])
        turn = self._counted(turn, request)
        if delegate.kind == "consult":
            turn, content = await self._consult(turn, name, delegate, request)
        else:
            turn, content = await self._scoped(turn, name, delegate, request)
        self._engine.told[name, request] = content
        return Taken(turn, content)

    def reminder(self, said: str) -> str:
        """See ``Control``: a part ends with a report, an answer takes up what was left open."""
        if self._part is not None:
            if report_text(said, self._part.outputs) is not None:
                return ""
            return report_reminder(speaks=self._part.delegate.speaks)
        if self._depth:
            return ""
        left = still_open(self._engine, said)
        if not left:
            return ""
        listed = inert_json([question.text for question in left])
        return (
            f"Still open, and not in this answer: {listed}. Write the whole answer again with it:"
            " answer it, give it to a colleague, or say that it comes later."
        )

    # -- sub-conversations ---------------------------------------------------------------------

    def _end(self, turn: Turn, arguments: Mapping[str, Any]) -> Taken:
        signal = functions.end_read(arguments, last_user_message=turn.text)
        return self._signalled(turn, functions.END, signal)

    def _request(self, turn: Turn, arguments: Mapping[str, Any]) -> Taken:
        signal = functions.request_read(arguments, self._specialists)
        if signal.type == "SIGNAL_ERROR":
            return self._signalled(turn, functions.REQUEST, signal)
        role = str(signal.details["specialist_role"])
        asked = (functions.REQUEST, f"{role}|{signal.details['initial_context']}")
        if asked in self._engine.told:
            again = functions.Signal(
                "SIGNAL_ERROR",
                {
                    "error": "this specialist was asked exactly this already",
                    "originalArgs": dict(arguments),
                },
            )
            return self._signalled(turn, functions.REQUEST, again)
        self._engine.told[asked] = ""
        self._engine.hops -= 1
        turn = self._counted(turn, asked[1])
        return self._signalled(turn, functions.REQUEST, signal)

    def _signalled(self, turn: Turn, name: str, signal: functions.Signal) -> Taken:
        if signal.type != "SIGNAL_ERROR":
            return Taken(turn, ended=signal)
        refused = Delegation(
            kind="sub_conversation",
            caller=self._scene.slug,
            agent="",
            tool=name,
            status="refused",
            outputs=masked_value(signal.wire, self._engine.mask),
            error=str(signal.details["error"]),
        )
        content = inert_json(masked_value(signal.wire, self._engine.mask))
        return Taken(noted(turn, refused), content, ok=False)

    # -- consultations and scoped sub-agents ---------------------------------------------------

    async def _consult(
        self, turn: Turn, name: str, delegate: Delegate, request: str
    ) -> tuple[Turn, str]:
        """Ask one question in isolation; return the turn and the plain text of the answer."""
        started, before = time.perf_counter(), turn
        try:
            scene = self._scene_of(turn, delegate, request, (_CONSULTED,), "agent.consult")
            infos = self._engine.infos(turn, scene, tools=scene.agent.tools, reads_only=True)
            done = await self._engine.run(
                turn, scene, infos, proposes=False, deadline=self._until(delegate)
            )
        except UnknownItem as missing:
            done = Conversation(turn, failure=ModelFailed(str(missing), code="wrong_model"))
        turn, text, error = done.turn, "", _failure(done)
        if not error and done.reply is not None:
            text = plain_text(done.reply.text)
            error = "" if text else "it gave no answer"
        trace = self._delegation(
            delegate, name, "failed" if error else "ok", request=request, error=error,
            outputs={"text": self._engine.mask(text)} if text else {},
        )  # fmt: skip
        turn = noted(turn, _measured(trace, before, turn, started))
        return turn, inert_text(self._engine.mask(text)) if text else _no_answer(error)

    async def _scoped(
        self, turn: Turn, name: str, delegate: Delegate, request: str
    ) -> tuple[Turn, str]:
        """Let a sub-agent work on ``request``; return the turn and its outputs as JSON text."""
        started, before = time.perf_counter(), turn
        try:
            note = scope_note(speaks=delegate.speaks)
            scene = self._scene_of(turn, delegate, request, (note,), "agent.scoped")
            part = Part(delegate, tuple(scene.agent.outputs))
            deadline = self._until(delegate)
            desk = Desk(
                self._engine, self._release, scene, chain=self._chain, part=part, deadline=deadline
            )
            infos = self._engine.infos(turn, scene, tools=scene.agent.tools)
            done = await self._engine.run(
                turn, scene, infos, control=desk, proposes=delegate.speaks, deadline=deadline
            )
            report, error = _reported(done, part)
        except UnknownItem as missing:
            done, report = Conversation(turn), None
            error = str(missing)
        turn = done.turn
        speech = plain_text(report.said) if report is not None and delegate.speaks else ""
        outputs: dict[str, Any] = {}
        if report is not None:
            outputs = masked_value(
                report_settled(report.outputs, request=request, speech=speech), self._engine.mask
            )
        trace = self._delegation(
            delegate, name, "failed" if error else "ok", request=request, error=error,
            outputs=outputs, spoke=bool(speech),
        )  # fmt: skip
        turn = noted(turn, _measured(trace, before, turn, started))
        if report is None:
            return turn, _no_answer(error)
        if speech:
            self._engine.spoken.append(speech)
        self._engine.open.extend(
            OpenQuestion(question, bool(speech), len(self._engine.requests))
            for question in outputs.get("openQuestions", ())
        )
        return turn, inert_json({**outputs, "note": _TOLD} if outputs["answered"] else outputs)

    def _scene_of(
        self, turn: Turn, delegate: Delegate, request: str, notes: tuple[str, ...], operation: str
    ) -> Scene:
        """Return what ``delegate`` sees: what it is asked, and the conversation only if so set."""
        agent = self._release.get(AgentConfig, delegate.agent)
        return Scene(
            slug=delegate.agent,
            agent=agent,
            prompt=self._release.get(PromptConfig, agent.prompt),
            said=request,
            memory=memory_of(turn) if delegate.pass_history else (),
            notes=notes,
            ledger=delegate.pass_history,
            guided=False,
            operation=operation,
        )

    def _until(self, delegate: Delegate) -> float:
        own = asyncio.get_running_loop().time() + delegate.timeout_seconds
        return own if self._deadline is None else min(own, self._deadline)

    def _counted(self, turn: Turn, request: str) -> Turn:
        """Note a delegation against the budget; say in the turn when it was the last."""
        self._engine.requests.append(request)
        if self._engine.left > 0:
            return turn
        return turn.decide(
            Decision(
                phase="tool",
                code="DELEGATIONS_USED",
                action="observe",
                reason=f"{self._engine.budget} delegations for this message",
            )
        )

    def _delegation(self, delegate: Delegate, name: str, status: str, **more: Any) -> Delegation:
        self._engine.names.add(delegate.agent)
        return Delegation(
            kind=delegate.kind,
            caller=self._scene.slug,
            agent=delegate.agent,
            tool=name,
            status=status,
            **more,
        )


def still_open(engine: Engine, said: str) -> list[OpenQuestion]:
    """Return what sub-agents left open and neither ``said`` nor a later delegation takes up."""
    return [
        question
        for question in engine.open
        if unserved([question.text], [said, *engine.requests[question.after :]])
    ]


def noted(turn: Turn, delegation: Delegation) -> Turn:
    """Return ``turn`` with ``delegation`` in its trace, and as an event for operators."""
    data = {
        "kind": delegation.kind,
        "agent": delegation.agent,
        "caller": delegation.caller,
        "status": delegation.status,
    }
    code = "NOC.DELEGATION_FAILED" if delegation.error else "IC.DELEGATION"
    event = Signal(code=code, component="agents", data=data)
    return turn.evolve(delegations=(*turn.delegations, delegation), signals=(*turn.signals, event))


def plain_text(value: Any) -> str:
    """Return what a model said as plain text, whatever form it came in; "" for nothing."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, Mapping):
        return plain_text(value.get("content", value.get("text")))
    if isinstance(value, (list, tuple)):
        return "\n".join(part for part in map(plain_text, value) if part)
    for name in ("content", "text"):
        if hasattr(value, name):
            return plain_text(getattr(value, name))
    return str(value).strip()


def _measured(trace: Delegation, before: Turn, after: Turn, started: float) -> Delegation:
    return replace(
        trace,
        model_calls=len(after.model_calls) - len(before.model_calls),
        tool_calls=len(after.tool_calls) - len(before.tool_calls),
        latency_ms=round((time.perf_counter() - started) * 1000, 3),
    )


def _reported(done: Conversation, part: Part) -> tuple[Report | None, str]:
    """Return the report of a scoped run, or why there is none.

    A speaking sub-agent that only wrote has answered. The words of a silent one are never used.
    """
    if isinstance(done.ended, Report):
        return done.ended, ""
    if error := _failure(done):
        return None, error
    text = plain_text(done.reply.text) if done.reply is not None else ""
    if (outputs := report_text(text, part.outputs)) is not None:
        return Report(outputs, ""), ""
    if done.turn.prepared is not None:
        return Report({"answered": False}, ""), ""
    if part.delegate.speaks and text:
        return Report({"answered": True, "interactionSummary": text}, text), ""
    return None, "it gave no report"


def _failure(done: Conversation) -> str:
    """Return why a run has no answer, in words without a name or an address; "" when it has."""
    if done.failure is not None:
        return _FAILURES.get(done.failure.code, "it could not be reached")
    if done.reply is not None and done.reply.finish_reason == "content_filter":
        return _FAILURES["content_filter"]
    return ""


def _no_answer(error: str) -> str:
    return (
        f"Your colleague gave no answer: {error}. Go on with what you know; do not mention the"
        " colleague."
    )
