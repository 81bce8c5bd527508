"""What a turn decided, as the console shows it: built from the record alone.

Frozen values with nothing left to decide for a template. What a reader without the trace sees is
what ``record.public_metadata`` lets any caller of the turn see.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.conversations.record import (
    OPERATOR_CODES,
    RAIL_PHASES,
    TRANSACTION_SIGNAL,
    public_metadata,
    trace_metadata,
)

LONGEST_SHOWN = 20_000
"""Characters of one tool result on a page; the API answers with all of it."""


@dataclass(frozen=True)
class Candidate:
    """An intent that could have answered."""

    intent: str
    agent: str
    score: float
    matches: tuple[str, ...]
    chosen: bool


@dataclass(frozen=True)
class StrategyDetails:
    """What one strategy of the routing policy found."""

    name: str
    best: str
    margin: float
    reason: str


@dataclass(frozen=True)
class RouteDetails:
    """Who answered, and why."""

    agent: str
    intent: str
    domain: str
    method: str
    confidence: float | None
    threshold: float | None
    margin: float | None
    reason: str
    tools: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    strategies: tuple[StrategyDetails, ...]


@dataclass(frozen=True)
class ActionDetails:
    """One move of the action that was asked for. ``tool`` is "" where only the status may be seen."""

    tool: str
    status: str
    reason: str
    missing: tuple[str, ...]


@dataclass(frozen=True)
class ToolDetails:
    """One tool call. ``arguments`` and ``result`` are JSON to read, "" when not shown."""

    name: str
    server: str
    status: str
    ok: bool
    latency_ms: float | None
    arguments: str
    result: str
    cut: int
    error: str
    field_errors: tuple[Mapping[str, str], ...]
    action: bool
    replayed: bool
    agent: str


@dataclass(frozen=True)
class DelegationDetails:
    """One time an agent asked another. ``outputs`` is JSON to read, "" for none."""

    kind: str
    caller: str
    agent: str
    role: str
    tool: str
    status: str
    ok: bool
    request: str
    outputs: str
    error: str
    spoke: bool
    model_calls: int
    tool_calls: int
    latency_ms: float


@dataclass(frozen=True)
class RailDetails:
    """One verdict of a rail, or another decision of the turn."""

    phase: str
    code: str
    action: str
    reason: str
    attempt: int


@dataclass(frozen=True)
class ScoreDetails:
    """One judge's number."""

    judge: str
    value: float
    threshold: float | None
    passed: bool | None
    reason: str


@dataclass(frozen=True)
class ModelDetails:
    """One model call. ``no_model``: the scripted provider, which is none."""

    profile: str
    provider: str
    model: str
    operation: str
    input_tokens: int
    output_tokens: int
    estimated: bool
    cost: float | None
    latency_ms: float
    no_model: bool
    replayed: bool


@dataclass(frozen=True)
class Fact:
    """A name and what stands beside it."""

    name: str
    value: Any
    note: str = ""


@dataclass(frozen=True)
class TurnDetails:
    """Everything a page shows of a turn's record."""

    route: RouteDetails | None
    actions: tuple[ActionDetails, ...]
    events: tuple[Fact, ...]
    tools: tuple[ToolDetails, ...]
    delegations: tuple[DelegationDetails, ...]
    rails: tuple[RailDetails, ...]
    notes: tuple[RailDetails, ...]
    scores: tuple[ScoreDetails, ...]
    models: tuple[ModelDetails, ...]
    usage: Mapping[str, Any]
    timings: tuple[Fact, ...]
    identity: tuple[Fact, ...]
    missing: tuple[str, ...]
    state: str
    next_state: str | None
    memory_messages: int
    attempt: int
    code: str
    error_id: str
    waiting_for: str

    @property
    def rails_acted(self) -> tuple[RailDetails, ...]:
        """The verdicts that changed something."""
        return tuple(rail for rail in self.rails if rail.action not in ("allow", "observe"))


def turn_details(record: Mapping[str, Any], *, trace: bool) -> TurnDetails:
    """Return what ``record`` holds. ``trace``: the reader may see reasons, arguments and results.

    Tolerates a record of a turn that no worker survived, and the empty one of an open turn.
    """
    shown = trace_metadata(record)["trace"] if trace else _public(record)
    outcome = shown.get("outcome") or {}
    session = shown.get("session") or {}
    context = shown.get("business_context") or {}
    sources = context.get("sources") or {}
    decisions = [_rail(decision) for decision in shown.get("decisions") or []]
    return TurnDetails(
        route=_route(shown.get("route")),
        actions=tuple(
            _action(signal["data"])
            for signal in shown.get("signals") or []
            if signal["code"] == TRANSACTION_SIGNAL
        ),
        events=tuple(
            Fact(signal["code"], _told(signal.get("data") or {}))
            for signal in shown.get("signals") or []
            if signal["code"] != TRANSACTION_SIGNAL
        ),
        tools=tuple(_tool(call) for call in shown.get("tool_calls") or []),
        delegations=tuple(_delegation(trace) for trace in shown.get("delegations") or []),
        rails=tuple(decision for decision in decisions if _is_rail(decision)),
        notes=tuple(d for d in decisions if not _is_rail(d) and d.phase != "judge"),
        scores=tuple(_score(score) for score in shown.get("scores") or []),
        models=tuple(_model(call) for call in shown.get("model_calls") or []),
        usage=shown.get("usage") or {},
        timings=tuple(
            Fact(name, value)
            for name, value in sorted((shown.get("timings_ms") or {}).items(), key=lambda i: -i[1])
        ),
        identity=tuple(
            Fact(key, value, sources.get(key, ""))
            for key, value in sorted((context.get("values") or {}).items())
        ),
        missing=tuple(context.get("missing") or ()),
        state=session.get("state") or "",
        next_state=session.get("next_state"),
        memory_messages=int((shown.get("memory") or {}).get("messages") or 0),
        attempt=int(shown.get("attempt") or 0),
        code=outcome.get("code") or outcome.get("reason") or "",
        error_id=outcome.get("error_id") or "",
        waiting_for=outcome.get("waiting_for") or "",
    )


def _public(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of ``record`` that any caller of the turn may see, in the record's shape."""
    seen = public_metadata(record)
    outcome = record.get("outcome") or {}
    route = {
        "agent": seen["route"],
        "intent": seen["intent"],
        "domain": seen["domain"],
        "tools": seen["mcp_tools"],
        **seen["route_decision"],
    }
    return {
        "route": route if seen["intent"] is not None else None,
        "tool_calls": [{"tool": tool["name"], "ok": tool["ok"]} for tool in seen["tools"]],
        "decisions": [
            {"phase": RAIL_PHASES[0], "code": rail["code"], "action": rail["status"]}
            for rail in seen["guardrails"]
        ],
        "scores": [{"judge": judge["name"], "value": judge["score"]} for judge in seen["judges"]],
        "signals": [
            {"code": TRANSACTION_SIGNAL, "data": {"status": status}}
            for status in [seen["transaction_status"]]
            if status
        ],
        "business_context": {"missing": seen["identity_missing"]},
        "memory": seen["memory"],
        "outcome": {key: outcome[key] for key in ("waiting_for",) if key in outcome},
    }


def _route(route: Mapping[str, Any] | None) -> RouteDetails | None:
    if not route:
        return None
    return RouteDetails(
        agent=route.get("agent") or "",
        intent=route.get("intent") or "",
        domain=route.get("domain") or "",
        method=route.get("method") or "",
        confidence=route.get("confidence"),
        threshold=route.get("threshold"),
        margin=route.get("margin"),
        reason=route.get("reason") or "",
        tools=tuple(route.get("tools") or ()),
        candidates=tuple(
            Candidate(
                intent=candidate["intent"],
                agent=candidate["agent"],
                score=candidate["score"],
                matches=tuple(candidate.get("matches") or ()),
                chosen=candidate["intent"] == route.get("intent"),
            )
            for candidate in route.get("candidates") or []
        ),
        strategies=tuple(
            StrategyDetails(
                name=found["name"],
                best=found.get("best") or "",
                margin=float(found.get("margin") or 0),
                reason=found.get("reason") or "",
            )
            for found in (route.get("metadata") or {}).get("strategies") or []
        ),
    )


def _action(data: Mapping[str, Any]) -> ActionDetails:
    return ActionDetails(
        tool=data.get("tool") or "",
        status=data.get("status") or "",
        reason=data.get("reason") or "",
        missing=tuple(data.get("missing") or ()),
    )


def _told(data: Mapping[str, Any]) -> str:
    """Return the plain values of an event in one line."""
    plain = ((k, v) for k, v in data.items() if isinstance(v, str | int | float) and v != "")
    return ", ".join(f"{key} {value}" for key, value in plain)


def _tool(call: Mapping[str, Any]) -> ToolDetails:
    result = _json(call["result"]) if call.get("result") is not None else ""
    return ToolDetails(
        name=call["tool"],
        server=call.get("server") or "",
        status=call.get("status") or ("ok" if call["ok"] else "error"),
        ok=call["ok"],
        latency_ms=call.get("latency_ms"),
        arguments=_json(call["arguments"]) if "arguments" in call else "",
        result=result[:LONGEST_SHOWN],
        cut=max(0, len(result) - LONGEST_SHOWN),
        error=call.get("error") or "",
        field_errors=tuple(call.get("field_errors") or ()),
        action=bool(call.get("action")),
        replayed=bool(call.get("replayed")),
        agent=call.get("agent") or "",
    )


def _delegation(trace: Mapping[str, Any]) -> DelegationDetails:
    outputs = dict(trace.get("outputs") or {})
    role = str(outputs.pop("role", ""))
    return DelegationDetails(
        kind=trace["kind"],
        caller=trace["caller"],
        agent=trace["agent"],
        role=role if role != trace["agent"] else "",
        tool=trace["tool"],
        status=trace["status"],
        ok=trace["status"] in ("ok", "started", "completed"),
        request=trace.get("request") or "",
        outputs=_json(outputs)[:LONGEST_SHOWN] if outputs else "",
        error=trace.get("error") or "",
        spoke=bool(trace.get("spoke")),
        model_calls=int(trace.get("model_calls") or 0),
        tool_calls=int(trace.get("tool_calls") or 0),
        latency_ms=float(trace.get("latency_ms") or 0),
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _rail(decision: Mapping[str, Any]) -> RailDetails:
    return RailDetails(
        phase=decision["phase"],
        code=decision["code"],
        action=decision["action"],
        reason=decision.get("reason") or "",
        attempt=int((decision.get("metadata") or {}).get("attempt") or 0),
    )


def _is_rail(decision: RailDetails) -> bool:
    return decision.phase in RAIL_PHASES and not decision.code.startswith(OPERATOR_CODES)


def _score(score: Mapping[str, Any]) -> ScoreDetails:
    return ScoreDetails(
        judge=score["judge"],
        value=score["value"],
        threshold=score.get("threshold"),
        passed=score.get("passed"),
        reason=score.get("reason") or "",
    )


def _model(call: Mapping[str, Any]) -> ModelDetails:
    usage = call.get("usage") or {}
    return ModelDetails(
        profile=call["profile"],
        provider=call["provider"],
        model=call["model"],
        operation=call["operation"],
        input_tokens=usage.get("input_tokens", 0),
        output_tokens=usage.get("output_tokens", 0),
        estimated=bool(usage.get("estimated")),
        cost=usage.get("cost"),
        latency_ms=call["latency_ms"],
        no_model=bool((call.get("metadata") or {}).get("no_model")),
        replayed=bool(call.get("replayed")),
    )
