"""What is kept of a turn, and how much of it an answer shows.

The record holds everything that a turn decided. ``public_metadata`` is what any caller of the
turn sees; ``trace_metadata`` is added for scope ``trace:read``. A rail's matched pattern is shown
to nobody: it would teach how to get past the rail.
"""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from apps.runtime.turn import ModelCall, Turn

FORMAT = 1
TRANSACTION_SIGNAL = "IC.TRANSACTION_STATUS"
# Business context that this turn's payload did not say: carried over, or a credential's own.
NOT_SAID = ("session", "credential")
# Phases of decisions that are rails; others have fields of their own.
RAIL_PHASES = ("input", "output", "tool", "supervisor")
# Codes for operators (IC., NOC., GRL.: reference facts, section 12) are no rails.
OPERATOR_CODES = ("IC.", "NOC.", "GRL.")
# Keys of a decision's metadata that would show what a rail matched.
PATTERN_KEYS = frozenset(
    {"pattern", "patterns", "match", "matched", "matches", "rule", "span", "spans"}
)


def turn_record(turn: Turn) -> dict[str, Any]:
    """Return everything ``turn`` decided, in JSON types; restricted values are never in it."""
    record: dict[str, Any] = _plain(
        {
            "format": FORMAT,
            "release": {
                "id": turn.release.id,
                "number": turn.release.number,
                "sha256": turn.release.sha256,
            },
            "environment": turn.environment,
            "channel": turn.inbound.channel,
            "request_id": turn.inbound.request_id,
            "session": {
                "key": turn.session.key,
                "agent": turn.session.agent,
                "turn_number": turn.session.turn_number,
                "state": turn.session.next_state,
                "next_state": turn.next_state,
            },
            "attempt": turn.attempt,
            "guidance": turn.guidance,
            "route": turn.route,
            "decisions": turn.decisions,
            "tool_calls": [{**_fields(call), "ok": call.ok} for call in turn.tool_calls],
            "model_calls": turn.model_calls,
            "usage": _usage(turn.model_calls),
            "delegations": turn.delegations,
            "signals": turn.signals,
            "scores": turn.scores,
            "business_context": turn.business_context,
            "reading": turn.reading.model_dump(mode="json", exclude_defaults=True),
            "dialogue": turn.dialogue.model_dump(mode="json", exclude_defaults=True),
            "memory": {
                "messages": len(turn.memory),
                "characters": sum(len(message.text) for message in turn.memory),
            },
            "draft": turn.draft,
            "outcome": turn.outcome,
            "timings_ms": turn.timings,
        }
    )
    return record


def public_metadata(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what any caller may know of a settled turn.

    A blocked turn shows its rails only: no route, tools or scores, as if it had gone no further
    (reference facts 6.4). Tolerates a record of a turn that no worker survived.
    """
    outcome = record.get("outcome") or {}
    blocked = outcome.get("kind") == "blocked"
    route = {} if blocked else record.get("route") or {}
    calls = [] if blocked else record.get("tool_calls") or []
    scores = [] if blocked else record.get("scores") or []
    context = record.get("business_context") or {}
    return {
        "route": "blocked" if blocked else route.get("agent"),
        "intent": route.get("intent"),
        "domain": route.get("domain"),
        "route_decision": {key: route[key] for key in ("method", "confidence") if key in route},
        "mcp_tools": list(route.get("tools") or []),
        "mcp_results": [{"tool": call["tool"], "ok": call["ok"]} for call in calls],
        "tools": [{"name": call["tool"], "ok": call["ok"]} for call in calls],
        "business_context": _said(context),
        "identity_missing": list(context.get("missing") or []),
        "identity_ignored": [
            decision["metadata"].get("key")
            for decision in _decisions(record, "identity")
            if decision["code"] == "IDENTITY_NOT_TRUSTED"
        ],
        "guardrails": [
            {"code": decision["code"], "status": decision["action"]}
            for decision in _decisions(record, *RAIL_PHASES)
        ],
        "judges": [{"name": score["judge"], "score": score["value"]} for score in scores],
        "memory": {"messages": (record.get("memory") or {}).get("messages", 0)},
        # The answer was built from the tools' results because no model answered.
        "degraded": any(
            decision["code"] == "NOC.LLM_FAILED" for decision in record.get("decisions") or []
        ),
        "requires_user_input": outcome.get("kind") == "waiting",
        "missing_fields": list(outcome.get("missing_fields") or []),
        **_conversation(record),
        "release": _release(record),
    }


def trace_metadata(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what scope ``trace:read`` adds: the same fields in full, and the record as ``trace``."""
    shown = dict(record)
    shown["decisions"] = [_without_pattern(d) for d in record.get("decisions") or []]
    context = record.get("business_context") or {}
    route = record.get("route") or {}
    return {
        "route_decision": {
            **route,
            "metadata": {**(route.get("metadata") or {}), "attempt": record.get("attempt", 0)},
        },
        "business_context": dict(context.get("values") or {}),
        "source_fields": dict(context.get("sources") or {}),
        "mcp_results": list(record.get("tool_calls") or []),
        "guardrails": [
            {**decision, "status": decision["action"]}
            for decision in shown["decisions"]
            if decision["phase"] in RAIL_PHASES
        ],
        "judges": [
            {"name": s["judge"], "score": s["value"], **s} for s in record.get("scores") or []
        ],
        "usage": record.get("usage"),
        "trace": shown,
    }


def _conversation(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a channel may know of the action and of where the conversation goes."""
    dialogue = record.get("dialogue") or {}
    outcome = record.get("outcome") or {}
    route = {} if outcome.get("kind") == "blocked" else record.get("route") or {}
    current = dialogue.get("transaction") or {}
    moved = [
        signal["data"].get("status", "")
        for signal in record.get("signals") or []
        if signal["code"] == TRANSACTION_SIGNAL
    ]
    return {
        "handoff": outcome.get("kind") == "handed_over",
        "session_control": route.get("control") or "",
        "transaction_status": current.get("status") or (moved[-1] if moved else ""),
        "pending_topics": len(dialogue.get("topics") or []),
    }


def _said(context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys that this turn's own payload gave: nothing the caller did not say itself."""
    sources = context.get("sources") or {}
    values = context.get("values") or {}
    return {key: value for key, value in values.items() if sources.get(key) not in NOT_SAID}


def _decisions(record: Mapping[str, Any], *phases: str) -> list[Mapping[str, Any]]:
    return [
        decision
        for decision in record.get("decisions") or []
        if decision["phase"] in phases and not decision["code"].startswith(OPERATOR_CODES)
    ]


def _release(record: Mapping[str, Any]) -> dict[str, Any] | None:
    release = record.get("release")
    return {"number": release["number"], "sha256": release["sha256"]} if release else None


def _without_pattern(decision: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {k: v for k, v in decision["metadata"].items() if k not in PATTERN_KEYS}
    return {**decision, "metadata": metadata}


def _fields(instance: Any) -> dict[str, Any]:
    return {field.name: getattr(instance, field.name) for field in fields(instance)}


def _usage(calls: tuple[ModelCall, ...]) -> dict[str, Any]:
    """Sum the tokens; the cost is unknown (``None``) as soon as one call's is."""
    costs = [call.usage.cost for call in calls]
    known = [cost for cost in costs if cost is not None]
    return {
        "input_tokens": sum(call.usage.input_tokens for call in calls),
        "output_tokens": sum(call.usage.output_tokens for call in calls),
        "cached_tokens": sum(call.usage.cached_tokens for call in calls),
        "estimated": any(call.usage.estimated for call in calls),
        "cost_usd": sum(known) if len(known) == len(costs) else None,
    }


def _plain(value: Any) -> Any:
    """Return ``value`` in types that canonical JSON and any database's text column take."""
    if isinstance(value, Mapping):
        return {_text(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, (bool, int)):
        return value
    if is_dataclass(value):
        return _plain(_fields(value))
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return _text(str(value))


def _text(value: str) -> str:
    """Replace lone surrogates, which no UTF-8 text can hold."""
    return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
