"""Carries out one call of a tool for another system: who may, once, by the rules of a turn.

Both doors (REST and MCP) end here. A refusal is a ``Problem``; a tool that failed is an answer.
"""

import asyncio
import uuid
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from apps.conversations.services import NotDeployed
from apps.conversations.steps.identify import Identify
from apps.gateway.api import not_deployed
from apps.gateway.contract import unknown
from apps.gateway.doors import agent_held, caller_facts
from apps.gateway.problems import Problem, invalid, not_found
from apps.gateway.tools_asking import CODE, Asked
from apps.gateway.tools_offered import agent_may, tool_version, tools_served, ttl_of
from apps.runtime.canonical import canonical_json, sha256_text
from apps.runtime.ports import LeaseLost, ToolPort, ToolRequest
from apps.runtime.release import Release
from apps.runtime.turn import Inbound, SessionState, ToolCall, Turn
from apps.tenants.auth import MissingScope, Principal
from apps.tenants.scope import tenant_scope
from apps.tenants.threads import in_thread
from apps.tools.caching import HIT, MISS
from apps.tools.config import ToolConfig
from apps.tools.invoking import services
from apps.tools.invoking.ledger import InvocationLedger
from apps.tools.invoking.services import Ended, Invocation, Opened
from apps.tools.preparing import Reason
from apps.tools.transactions.validating import validator_verdict

LEASE_MARGIN_SECONDS = 30.0
"""How much longer than the tool may take a call counts as running before another may take it up."""

REFUSALS = {
    Reason.UNKNOWN_TOOL: (404, "NOT_FOUND"),
    Reason.DISABLED: (404, "NOT_FOUND"),
    Reason.UNBOUND: (503, "SERVER_UNAVAILABLE"),
    Reason.INVALID_ARGUMENTS: (422, "INVALID_TOOL_ARGUMENTS"),
    Reason.MISSING_ARGUMENTS: (422, "MISSING_TOOL_ARGUMENTS"),
    Reason.CONFIRMATION_REQUIRED: (409, "CONFIRMATION_REQUIRED"),
    Reason.AGENT_NOT_ALLOWED: (403, "AGENT_NOT_ALLOWED"),
    Reason.CHANNEL_NOT_ALLOWED: (403, "CHANNEL_NOT_ALLOWED"),
    Reason.BUSINESS_KEY_MISSING: (422, "MISSING_BUSINESS_KEYS"),
    Reason.NO_TIME_LEFT: (503, "NO_TIME_LEFT"),
}
"""What a caller is told of a reason of ``preparing``; any other is a policy's 403."""

CARRIED_OUT = (Reason.READY, Reason.CONFIRMATION_REQUIRED)
"""What a checked call's reason is when no rule is against it."""

CACHE_EVENTS = {HIT: "mcp.cache.hit", MISS: "mcp.cache.miss"}

_running_calls: set[asyncio.Task[dict[str, Any]]] = set()


@dataclass(frozen=True)
class Running:
    """What the caller's environment runs."""

    release: Release
    bindings: Mapping[str, str]


@dataclass
class Steps:
    """What happened to one call, in order, as its row keeps it."""

    events: list[dict[str, Any]] = field(default_factory=list)

    def note(self, event: str, **facts: Any) -> None:
        """Add ``event``."""
        self.events.append({"event": event, "at": timezone.now().isoformat(), **facts})


async def running_of(principal: Principal, release_id: uuid.UUID | None = None) -> Running:
    """Return what runs in the caller's environment, or the release named. Raises the 503."""
    try:
        found = await in_thread(import_string(settings.GATEWAY_RUNNING), principal, release_id)
    except NotDeployed:
        raise not_deployed() from None
    return Running(*found)


def port_over(ledger: InvocationLedger) -> AbstractAsyncContextManager[ToolPort]:
    """Return the tool port over ``ledger``, for a while."""
    made: AbstractAsyncContextManager[ToolPort] = import_string(settings.GATEWAY_TOOLS)(ledger)
    return made


def agent_acting(principal: Principal, release: Release, said: str) -> str:
    """Return the agent a request acts for: the key's own, or the one named by who may name any.

    Raises 403 (another agent, or no scope to name one), 422 (none named), 404 (no such agent).
    """
    agent = agent_held(principal, said or None)
    if not principal.agent:
        if not agent:
            message = _("is required: this key is bound to no agent")
            raise invalid("agent_id", message, code=CODE)
        if not principal.has("agent:assert"):
            raise MissingScope(_("This needs the scope %(scope)s.") % {"scope": "agent:assert"})
    if not agent or not import_string(settings.GATEWAY_AGENT_KNOWN)(release, agent):
        raise unknown("agent_id", agent or "", code="UNKNOWN_AGENT")
    return agent


async def invoke(principal: Principal, asked: Asked) -> dict[str, Any]:
    """Return the ToolResult of ``asked``. Raises ``Problem`` and DRF's refusals.

    Goes on when the caller goes away: what was sent has an end that somebody may ask for.
    """
    task = asyncio.ensure_future(_invoke(principal, asked))
    _running_calls.add(task)
    task.add_done_callback(_running_calls.discard)
    return await asyncio.shield(task)


async def _invoke(principal: Principal, asked: Asked) -> dict[str, Any]:
    now = await running_of(principal)
    agent = agent_acting(principal, now.release, asked.agent)
    tool = tools_served(now.release).get(asked.tool)
    if tool is None:
        raise not_found()
    with tenant_scope(principal.tenant_id):
        opened = await _open(principal, asked, agent, now.release, tool)
        if opened.answer is not None:
            return _replayed(opened.answer)
        if str(opened.release_id) != now.release.id:
            now = await running_of(principal, opened.release_id)
        call = _Call(principal, replace(asked, agent=agent), now, opened)
        try:
            return await call.carry_out()
        except LeaseLost:
            raise still_running() from None


async def _open(
    principal: Principal, asked: Asked, agent: str, release: Release, tool: ToolConfig
) -> Opened:
    timeout = tool.timeout_seconds or 600.0
    try:
        return await in_thread(
            services.invocation_open,
            Invocation(
                tenant_id=principal.tenant_id,
                caller=principal.name,
                agent=agent,
                tool=asked.tool,
                server=tool.mcp_server,
                channel=asked.channel,
                door=asked.door,
                request_id=asked.request_id,
                trace_id=asked.trace_id,
                digest=asked.digest,
                environment=principal.environment,
                release_id=uuid.UUID(release.id),
            ),
            lease_seconds=timeout + LEASE_MARGIN_SECONDS,
        )
    except services.RequestIdReused:
        name, message = "metadata.request_id", _("was sent before with another body; use a new id")
        raise Problem(
            409, "REQUEST_ID_REUSED", f"{name}: {message}",
            errors=[{"field": name, "message": message}],
        ) from None  # fmt: skip
    except services.StillRunning:
        raise still_running() from None


def still_running() -> Problem:
    """Return the 409 of a request that is being carried out."""
    text = _("This request is being carried out. Ask again under the same request id.")
    return Problem(409, "REQUEST_RUNNING", text, headers={"Retry-After": "1"})


def _replayed(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {**answer, "metadata": {**answer.get("metadata", {}), "replayed": True}}


@dataclass
class _Call:
    """One opened invocation on its way to its end."""

    principal: Principal
    asked: Asked
    now: Running
    opened: Opened
    steps: Steps = field(default_factory=Steps)

    async def carry_out(self) -> dict[str, Any]:
        """Return the ToolResult and write the end. Raises ``Problem`` for a refusal."""
        asked = self.asked
        self.steps.note(
            "mcp.tool.requested", tool=asked.tool, agent=asked.agent, channel=asked.channel
        )
        shown: ToolCall | None = None
        try:
            self._access_check()
            turn = await Identify()(self._turn())
            ledger = InvocationLedger(
                self.principal.tenant_id, self.opened.id, self.opened.fence, asked.tool
            )
            async with port_over(ledger) as port:
                shown = await port.check(turn, self._request())
                if shown.metadata.get("reason") not in CARRIED_OUT:
                    raise self._refusal(shown)
                if await self._possible(port, turn):
                    shown = _asked_for(shown)
                grant = await self._authorised(shown)
                shown = await self._sent(port, turn, grant)
        except Problem as problem:
            return await self._refused(problem, shown)
        return await self._answered(shown)

    def _tool(self) -> ToolConfig | None:
        return tools_served(self.now.release).get(self.asked.tool)

    def _access_check(self) -> None:
        """Raise the 403 of an agent the tool is not for, and of what only a conversation does."""
        tool, asked = self._tool(), self.asked
        if tool is None:
            raise not_found()
        if not agent_may(self.now.release, asked.agent, asked.tool, tool):
            text = _("The agent may not use this tool.")
            raise Problem(403, "AGENT_NOT_ALLOWED", text)
        if tool.execution.mode == "workflow":
            text = _("This action is carried out by a workflow, in a conversation.")
            raise Problem(403, "WORKFLOW_ONLY", text)

    def _turn(self) -> Turn:
        """Return the turn that the rules read: the caller's identity, no conversation."""
        asked, principal = self.asked, self.principal
        return Turn(
            id=str(self.opened.id),
            tenant=str(principal.tenant_id),
            release=self.now.release,
            inbound=Inbound(
                channel=asked.channel,
                text="",
                agent=asked.agent,
                message_id=asked.request_id,
                session=asked.request_id,
                payload={
                    "business_context": dict(asked.business_context),
                    "metadata": {"cache_bypass": asked.cache_bypass},
                },
                caller=caller_facts(principal),
                request_id=asked.request_id,
            ),
            session=SessionState(
                key=f"{principal.tenant_slug}:{asked.agent}:{asked.request_id}", agent=asked.agent
            ),
            environment=principal.environment,
            bindings=self.now.bindings,
        )

    def _request(self, confirmation: str = "") -> ToolRequest:
        return ToolRequest(
            tool=self.asked.tool,
            arguments=self.asked.arguments,
            confirmation=confirmation,
            asked=bool(confirmation),
            agent=self.asked.agent,
        )

    async def _possible(self, port: ToolPort, turn: Turn) -> bool:
        """Ask the tool that says whether the action is possible, as a conversation would.

        Return whether it wants somebody's yes to this one. Raises the 409 of one that is not
        possible, or not with these arguments.
        """
        tool = self._tool_there()
        if not tool.transactional or not tool.pre_validation.tool:
            return False
        asked = replace(self._request(), tool=tool.pre_validation.tool)
        call = (await port.call(turn, [asked]))[0]
        verdict = validator_verdict(call, fail_open=tool.pre_validation.fail_open)
        if verdict.stop:
            text = verdict.message or _("The tool that checks this action does not allow it.")
            reason = "validator_unavailable" if verdict.unavailable else verdict.reason
            raise Problem(409, "ACTION_NOT_POSSIBLE", text, extra={"reason": reason})
        given = self.asked.arguments
        other = {name: value for name, value in verdict.values.items() if given.get(name) != value}
        if other or (verdict.target and verdict.target != self.asked.tool):
            text = _("The action is possible with other values; ask again with these.")
            extra = {
                "reason": "resolved_differently",
                "resolved_arguments": dict(verdict.values),
                "target_tool": verdict.target or self.asked.tool,
            }
            raise Problem(409, "RESOLVED_DIFFERENTLY", text, extra=extra)
        return verdict.reconfirm

    async def _authorised(self, shown: ToolCall) -> str:
        """Return the id of the question whose yes lets the call happen, "" when none is needed.

        Raises the ``Problem`` of anything that is missing.
        """
        reason = shown.metadata.get("reason")
        grant = ""
        if reason == Reason.CONFIRMATION_REQUIRED:
            grant = await self._confirmation(shown)
        elif reason != Reason.READY:
            raise self._refusal(shown)
        self.steps.note("mcp.tool.authorized", confirmation=grant or None)
        return grant

    async def _confirmation(self, shown: ToolCall) -> str:
        said = self.asked.confirmation
        contract, arguments = str(shown.metadata["contract"]), str(shown.metadata["arguments"])
        exact = said is not None and (said.contract, said.arguments_sha256) == (
            contract,
            sha256_text(arguments),
        )
        if said is None or not exact:
            raise self._refusal(shown, "mismatch" if said else "absent")
        if not self.principal.has("tool:confirm"):
            raise Problem(
                403,
                "MISSING_SCOPE",
                _("This needs the scope %(scope)s.") % {"scope": "tool:confirm"},
            )
        if said.id:
            return said.id
        return await in_thread(
            services.confirmation_find,
            tenant_id=self.principal.tenant_id,
            caller=self.principal.name,
            agent=self.asked.agent,
            tool=self.asked.tool,
            contract=contract,
            arguments_sha256=said.arguments_sha256,
        ) or str(uuid.UUID(int=0))

    async def _sent(self, port: ToolPort, turn: Turn, grant: str) -> ToolCall:
        self.steps.note("mcp.tool.started")
        done = (await port.call(turn, [self._request(grant)]))[0]
        if done.status == "refused":
            raise self._refusal(done, str(done.metadata.get("confirmation", "")))
        for code, event in CACHE_EVENTS.items():
            if code in done.events:
                self.steps.note(event)
        return done

    def _tool_there(self) -> ToolConfig:
        tool = self._tool()
        assert tool is not None
        return tool

    def _version(self) -> str:
        return tool_version(self.now.release, self.asked.tool, self._tool_there())

    def _refusal(self, call: ToolCall, confirmation: str = "") -> Problem:
        """Return the problem of a call that ``preparing`` refused."""
        reason = str(call.metadata.get("reason", ""))
        status, code = REFUSALS.get(reason, (403, f"TOOL_{reason.upper()}"))
        if status == 404:
            return not_found()
        extra: dict[str, Any] = {"reason": reason}
        if reason == Reason.BUSINESS_KEY_MISSING:
            names = (e["field"].rpartition(".")[2] for e in call.field_errors)
            extra["missing_business_keys"] = list(names)
        if reason == Reason.CONFIRMATION_REQUIRED:
            return self._question(call, confirmation)
        text = _(call.error) if call.error else code
        return Problem(status, code, text, errors=_field_errors(call), extra=extra)

    def _question(self, call: ToolCall, answer: str) -> Problem:
        """Return the 409 that says what would run; its row is the question."""
        arguments = str(call.metadata.get("arguments") or canonical_json(dict(call.arguments)))
        expires_at = timezone.now() + timedelta(seconds=self._tool_there().confirmation_seconds)
        described = {
            "id": str(self.opened.id),
            "tool": self.asked.tool,
            "contract": str(call.metadata.get("contract") or self._version()),
            "arguments": dict(call.arguments),
            "arguments_sha256": sha256_text(arguments),
            "expires_at": expires_at.isoformat(),
        }
        text = _("Somebody has to say yes to exactly this call first.")
        extra = {"reason": Reason.CONFIRMATION_REQUIRED, "confirmation": described}
        if answer and answer != "absent":
            extra["answer"] = answer
        return Problem(409, "CONFIRMATION_REQUIRED", text, extra=extra)

    async def _refused(self, problem: Problem, shown: ToolCall | None) -> dict[str, Any]:
        """Write the refusal and raise it; what an earlier process had sent already is unknown."""
        reason = str(problem.extra.get("reason") or problem.code.lower())
        if self.opened.started and shown is not None and shown.action:
            text = _("It was sent and no answer came: whether it was carried out is not known.")
            return await self._answered(replace(shown, status="unknown", error=text))
        self.steps.note("mcp.tool.denied", status=problem.status, code=problem.code, reason=reason)
        question = problem.extra.get("confirmation") or {}
        expires_at = question.get("expires_at")
        await self._end(
            Ended(
                status="denied",
                answer=problem.body(),
                reason=reason,
                arguments=_arguments(shown),
                contract=str(question.get("contract") or ""),
                events=self.steps.events,
                expires_at=datetime.fromisoformat(expires_at) if expires_at else None,
            )
        )
        raise problem

    async def _answered(self, done: ToolCall) -> dict[str, Any]:
        failed = {"error": done.metadata.get("unavailable") or done.status} if not done.ok else {}
        self.steps.note("mcp.tool.completed" if done.ok else "mcp.tool.failed", **failed)
        answer = self._result(done)
        status = done.status if done.status in ("ok", "unknown") else "error"
        await self._end(
            Ended(
                status=status,
                answer=answer,
                reason=str(failed.get("error", "")),
                arguments=_arguments(done),
                contract=str(answer["version"]),
                events=self.steps.events,
                milliseconds=done.latency_ms,
            )
        )
        return answer

    def _result(self, done: ToolCall) -> dict[str, Any]:
        tool, asked, release = self._tool_there(), self.asked, self.now.release
        metadata: dict[str, Any] = {
            "server": done.server or tool.mcp_server,
            "source": "cache" if _is_hit(done) else "tool_gateway",
            "status": done.status,
            "invocation_id": str(self.opened.id),
            "request_id": asked.request_id,
            "trace_id": asked.trace_id or None,
            "agent_id": asked.agent,
            "release": {"number": release.number, "sha256": release.sha256},
        }
        if code := done.metadata.get("unavailable"):
            metadata["code"] = code
        return {
            "tool_name": asked.tool,
            "version": self._version(),
            "ok": done.ok,
            "data": done.result,
            "error": (_(done.error) if done.error else None),
            "cache": {
                "hit": _is_hit(done),
                # It is a digest that leads nowhere outside.
                "key": None,
                "ttl_seconds": ttl_of(tool),
            },
            "latency_ms": done.latency_ms,
            "metadata": metadata,
        }

    async def _end(self, ended: Ended) -> None:
        await in_thread(
            services.invocation_end,
            tenant_id=self.principal.tenant_id,
            pk=self.opened.id,
            fence=self.opened.fence,
            ended=ended,
        )


def _asked_for(shown: ToolCall) -> ToolCall:
    """Return the checked call as one that needs somebody's yes."""
    return replace(shown, metadata={**shown.metadata, "reason": Reason.CONFIRMATION_REQUIRED})


def _is_hit(call: ToolCall) -> bool:
    return call.metadata.get("cache") == "hit"


def _field_errors(call: ToolCall) -> list[dict[str, str]]:
    """Return the errors of a refused call by the field of the body that is wrong."""
    found = []
    for error in call.field_errors:
        name = str(error.get("path") or error["field"])
        where = name if name.startswith("policy.") else f"arguments.{name}"
        found.append({"field": where, "message": _(error["message"])})
    return found


def _arguments(call: ToolCall | None) -> str:
    if call is None:
        return "{}"
    prepared = call.metadata.get("arguments")
    return prepared if isinstance(prepared, str) else canonical_json(dict(call.arguments))
