"""The record holds everything; an answer shows what its reader may see."""

import json
from types import MappingProxyType

from apps.conversations.record import public_metadata, trace_metadata, turn_record
from apps.runtime.canonical import canonical_json
from apps.runtime.outcomes import Answered, Blocked, Waiting
from apps.runtime.testing import release_of, turn_of
from apps.runtime.turn import (
    BusinessContext,
    Candidate,
    ChatMessage,
    Decision,
    Draft,
    ModelCall,
    Route,
    Score,
    SessionState,
    ToolCall,
    Usage,
)

ROUTE = Route(
    agent="billing_agent",
    intent="billing_invoice_explanation",
    method="keyword",
    confidence=0.8,
    domain="telecom",
    reason="keywords: fatura",
    tools=("consultar_fatura", "consultar_pagamentos"),
    candidates=(Candidate("billing_invoice_explanation", "billing_agent", 0.8, ("fatura",)),),
    margin=0.8,
    threshold=0.65,
)


def whole_turn(**changes):
    values = {
        "release": release_of(),
        "session": SessionState(id="1", key="default:telecom:s1", agent="telecom", turn_number=3),
        "route": ROUTE,
        "business_context": BusinessContext(
            values={"customer_key": "11999999999", "contract_key": "A1", "session_key": "s1"},
            sources={
                "customer_key": "credential",
                "contract_key": "business_context.contract_key",
                "session_key": "session",
            },
            missing=("account_key",),
        ),
        "memory": (ChatMessage("user", "oi"), ChatMessage("assistant", "olá")),
        "decisions": (
            Decision("identity", "IDENTITY_NOT_TRUSTED", "observe", metadata={"key": "customer_key"}),
            Decision("input", "PINJ", "allow", reason="SECRET-REASON",
                     metadata={"pattern": "SECRET-PATTERN", "attempt": 0}),
            Decision("tool", "NOC.LLM_FAILED", "observe"),
            Decision("judge", "groundedness", "allow"),
        ),
        "tool_calls": (
            ToolCall(
                tool="consultar_fatura", server="telecom", ordinal=0, status="ok",
                arguments=MappingProxyType({"msisdn": "[PHONE_1]", "invoice_id": "3000131180"}),
                result={"valor": 89.9, "id": 9007199254740993},
                metadata=MappingProxyType({"source": "db"}),
            ),
            ToolCall(tool="consultar_pagamentos", server="telecom", arguments={}, status="error",
                     error="down", ordinal=1),
        ),
        "model_calls": (
            ModelCall("default", "scripted", "scripted", "agent.answer", Usage(10, 5, cost=0.5)),
        ),
        "scores": (Score("groundedness", 0.9, True, 0.6, reason="SECRET-REASON"),),
        "draft": Draft(text="R$ 89,90", agent="billing_agent"),
        "vault": {"[PHONE_1]": "SECRET-VALUE"},
        "outcome": Answered(text="R$ 89,90"),
        "timings": {"Identify": 0.1},
        "attempt": 1,
    }  # fmt: skip
    return turn_of("minha fatura", **{**values, **changes})


def test_turn_record__whole_turn__is_canonical_json_with_every_digit():
    record = turn_record(whole_turn())
    text = canonical_json(record)
    assert json.loads(text) == record
    assert "9007199254740993" in text
    assert "SECRET-VALUE" not in text
    assert record["tool_calls"][0]["arguments"] == {
        "invoice_id": "3000131180",
        "msisdn": "[PHONE_1]",
    }
    assert record["tool_calls"][0]["result"] == {"valor": 89.9, "id": 9007199254740993}
    assert record["route"]["candidates"][0]["matches"] == ["fatura"]
    assert record["release"] == {"id": "r1", "number": 1, "sha256": release_of().sha256}
    assert record["outcome"] == {"text": "R$ 89,90", "kind": "answered"}
    assert record["usage"] == {
        "input_tokens": 10, "output_tokens": 5, "cached_tokens": 0, "estimated": False,
        "cost_usd": 0.5,
    }  # fmt: skip
    assert record["timings_ms"] == {"Identify": 0.1}
    assert record["attempt"] == 1


def test_turn_record__unknown_price__is_unknown_not_zero():
    unknown = ModelCall("default", "x", "y", "agent.answer", Usage(1, 1))
    known = ModelCall("default", "x", "y", "agent.answer", Usage(1, 1, cost=1.0))
    assert turn_record(whole_turn(model_calls=(known, unknown)))["usage"]["cost_usd"] is None
    assert turn_record(whole_turn(model_calls=()))["usage"]["cost_usd"] == 0


def test_turn_record__values_json_has_no_type_for__become_text():
    call = ToolCall(
        tool="t", server="s", arguments={}, status="ok",
        result={"bad": "\ud83d", "nan": float("nan"), 1: {"a"}, "nul": "\x00"},
    )  # fmt: skip
    text = canonical_json(turn_record(whole_turn(tool_calls=(call,))))
    assert json.loads(text.encode("utf-8"))["tool_calls"][0]["result"] == {
        "bad": "?", "nan": "nan", "1": ["a"], "nul": "\x00",
    }  # fmt: skip
    assert "\x00" not in text


def test_turn_record__bare_turn__is_complete():
    record = turn_record(turn_of("oi"))
    assert (record["route"], record["outcome"], record["draft"]) == (None, None, None)
    assert json.loads(canonical_json(record)) == record


def test_public_metadata__answered_turn__has_the_documented_fields():
    assert public_metadata(turn_record(whole_turn())) == {
        "route": "billing_agent",
        "intent": "billing_invoice_explanation",
        "domain": "telecom",
        "route_decision": {"method": "keyword", "confidence": 0.8},
        "mcp_tools": ["consultar_fatura", "consultar_pagamentos"],
        "mcp_results": [
            {"tool": "consultar_fatura", "ok": True},
            {"tool": "consultar_pagamentos", "ok": False},
        ],
        "tools": [
            {"name": "consultar_fatura", "ok": True},
            {"name": "consultar_pagamentos", "ok": False},
        ],
        "business_context": {"contract_key": "A1"},
        "identity_missing": ["account_key"],
        "identity_ignored": ["customer_key"],
        "guardrails": [{"code": "PINJ", "status": "allow"}],
        "judges": [{"name": "groundedness", "score": 0.9}],
        "memory": {"messages": 2},
        "degraded": True,
        "requires_user_input": False,
        "missing_fields": [],
        "handoff": False,
        "session_control": "",
        "transaction_status": "",
        "pending_topics": 0,
        "release": {"number": 1, "sha256": release_of().sha256},
    }


def test_public_metadata__anything_internal__is_not_in_it():
    text = canonical_json(public_metadata(turn_record(whole_turn())))
    for secret in ("SECRET", "11999999999", "89.9", "keywords:", "down", "telecom:s1"):
        assert secret not in text


def test_public_metadata__blocked_turn__shows_its_rails_only():
    blocked = Decision("input", "PINJ", "block", reason="SECRET-REASON")
    turn = whole_turn(outcome=Blocked(text="no", code="PINJ"), decisions=(blocked,))
    shown = public_metadata(turn_record(turn))
    assert shown["route"] == "blocked"
    assert shown["guardrails"] == [{"code": "PINJ", "status": "block"}]
    assert (shown["intent"], shown["route_decision"]) == (None, {})
    assert shown["mcp_tools"] == shown["mcp_results"] == shown["tools"] == shown["judges"] == []


def test_public_metadata__waiting_turn__says_what_is_missing():
    waiting = Waiting(text="?", waiting_for="parameter", missing_fields=("order_id",))
    shown = public_metadata(turn_record(whole_turn(outcome=waiting)))
    assert shown["requires_user_input"] is True
    assert shown["missing_fields"] == ["order_id"]


def test_metadata__record_of_an_abandoned_turn__is_tolerated():
    record = {"outcome": {"kind": "failed", "code": "RUNTIME_TIMEOUT", "attempts": 5}}
    shown = public_metadata(record)
    assert shown["route"] is None
    assert shown["release"] is None
    assert trace_metadata(record)["trace"]["outcome"] == record["outcome"]


def test_trace_metadata__trace_read__has_everything_but_a_rails_pattern():
    record = turn_record(whole_turn())
    shown = trace_metadata(record)
    assert shown["business_context"]["customer_key"] == "11999999999"
    assert shown["mcp_results"][0]["result"] == {"valor": 89.9, "id": 9007199254740993}
    assert shown["mcp_results"][0]["ok"] is True
    assert shown["route_decision"]["reason"] == "keywords: fatura"
    assert shown["route_decision"]["candidates"][0]["score"] == 0.8
    assert shown["guardrails"][0]["reason"] == "SECRET-REASON"
    assert shown["judges"][0]["name"] == "groundedness"
    assert shown["trace"]["timings_ms"] == {"Identify": 0.1}
    assert "SECRET-PATTERN" not in canonical_json(shown)
    assert record["decisions"][1]["metadata"]["pattern"] == "SECRET-PATTERN"
