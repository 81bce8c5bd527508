"""The risk of a change: one case per line of the table, and what may not hide it. No database."""

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.governance import risk as table
from apps.governance.config import PARAMETERS
from apps.governance.rails.registry import RAILS
from apps.governance.risk import RULES, Rule, risk_class, risks
from apps.governance.weakening import judges, rails
from apps.governance.weakening.edited import defaults
from apps.governance.weakening.locked import LOCKED_FIELDS
from apps.governance.weakening.strength import SEVERAL_ACTIONS
from apps.releases.changes.policy import ItemEdit
from apps.releases.content import content_validate
from apps.releases.tests.contents import contents
from apps.runtime.config import KINDS

REQUIRED: dict[str, dict[str, Any]] = {
    "agent": {"prompt": "p"},
    "prompt": {"system": "Answer."},
    "intent": {"agent": "a"},
    "tool": {"mcp_server": "s"},
    "tool_server": {"endpoint": "e"},
    "state_policy": {"state": "S", "agent": "a"},
    "workflow": {"start": "one", "nodes": [{"id": "one", "tool": "t"}]},
}


def full(kind: str, **fields: Any) -> dict[str, Any]:
    """Return valid content of ``kind`` with defaults written out."""
    content = {**REQUIRED.get(kind, {}), **fields}
    return content_validate(kind=kind, slug="x", content=content).config.model_dump(mode="json")


def edit(
    kind: str, before: dict[str, Any] | None, after: dict[str, Any] | None, slug: str = "x"
) -> ItemEdit:
    sides = (None if side is None else full(kind, **side) for side in (before, after))
    return ItemEdit(kind, slug, *sides)


def found(*edits: ItemEdit) -> set[tuple[str, str]]:
    return {(risk.rule, risk.path) for risk in risks(edits)}


def rail(code: str, **fields: Any) -> dict[str, Any]:
    """Return a rail policy of one rail, in the phase it has first."""
    phase = "output" if code in ("DLEX_OUT", "REVPREC") else "input"
    other = "input" if phase == "output" else "output"
    return {phase: [{"code": code, **fields}], other: []}


def judge(**fields: Any) -> dict[str, Any]:
    return {"judges": [{"name": "groundedness", **fields}]}


def argument(**fields: Any) -> dict[str, Any]:
    return {"args_schema": {"plan": fields}}


ASKING = {"key": "sure", "question": "Sure?"}


def flow(**fields: Any) -> dict[str, Any]:
    return {"nodes": [{"id": "one", "tool": "t", **fields}]}


class Case(NamedTuple):
    """From ``before`` to ``after`` weakens at ``path``; ``None`` for an item that is not there."""

    kind: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    path: str


ACTION = {"tool_type": "action"}


def delegating(**fields: Any) -> dict[str, Any]:
    return {"delegates": [{"kind": "scoped", "agent": "b", **fields}]}


CASES: dict[str, list[Case]] = {
    "rail_removed": [
        Case("rail_policy", rail("PINJ"), {"input": [], "output": []}, "input[PINJ]"),
        Case("rail_policy", None, {"output": []}, "output[MSK]"),
    ],
    "rail_disabled": [
        Case("rail_policy", rail("MSK"), rail("MSK", enabled=False), "input[MSK].enabled"),
        Case("rail_policy", None, {"input": [{"code": "PINJ", "enabled": False}]}, "input[PINJ].enabled"),
    ],
    "rail_action_relaxed": [
        Case("rail_policy", rail("PINJ", on_deny=old), rail("PINJ", on_deny=new), "input[PINJ].on_deny")
        for old, new in (("block", "handover"), ("handover", "observe"), ("", "observe"), ("", "handover"))
    ] + [
        Case("rail_policy", rail("REVPREC", on_deny=old), rail("REVPREC", on_deny=new), "output[REVPREC].on_deny")
        for old, new in (("block", ""), ("handover", "retry"), ("", "observe"))
    ] + [
        Case("rail_policy", rail("MSK", on_deny=old), rail("MSK", on_deny=new), "input[MSK].on_deny")
        for old, new in (("", "observe"), ("block", ""), ("block", "sanitize"))
    ] + [
        Case("rail_policy", rail("DLEX_OUT", on_deny=old), rail("DLEX_OUT", on_deny=new), "output[DLEX_OUT].on_deny")
        for old, new in (("", "sanitize"), ("block", ""))
    ],
    "rail_fails_open": [
        Case("rail_policy", rail("PINJ"), rail("PINJ", on_error="observe"), "input[PINJ].on_error"),
    ],
    "pinj_threshold_raised": [
        Case("rail_policy", rail("PINJ"), rail("PINJ", parameters={"threshold": 1.5}), "input[PINJ].parameters.threshold"),
        Case("rail_policy", rail("PINJ", parameters={"threshold": 0.5}), rail("PINJ"), "input[PINJ].parameters.threshold"),
    ],
    "input_size_raised": [
        Case("rail_policy", rail("INPUT_SIZE"), rail("INPUT_SIZE", parameters={"max_tokens": 4097}), "input[INPUT_SIZE].parameters.max_tokens"),
    ],
    "vloop_repeats_raised": [
        Case("rail_policy", rail("VLOOP"), rail("VLOOP", parameters={"repeats": 3}), "input[VLOOP].parameters.repeats"),
    ],
    "vloop_window_lowered": [
        Case("rail_policy", rail("VLOOP"), rail("VLOOP", parameters={"window": 5}), "input[VLOOP].parameters.window"),
    ],
    "msk_skip_widened": [
        Case("rail_policy", rail("MSK", parameters={"skip": "CPF"}), rail("MSK", parameters={"skip": "CEP, CPF"}), "input[MSK].parameters.skip"),
    ],
    "msk_allow_widened": [
        Case("rail_policy", rail("MSK"), rail("MSK", parameters={"allow": "@acme.com"}), "input[MSK].parameters.allow"),
    ],
    "prompt_words_raised": [
        Case("rail_policy", rail("DLEX_OUT"), rail("DLEX_OUT", parameters={"prompt_words": 20}), "output[DLEX_OUT].parameters.prompt_words"),
    ],
    "rail_policy_archived": [Case("rail_policy", {}, None, "")],
    "rail_policy_replaced": [
        Case("agent", {"rails": "strict"}, {"rails": "other"}, "rails"),
        Case("agent", {"rails": "strict"}, {"rails": ""}, "rails"),
        Case("agent", None, {"rails": "other"}, "rails"),
    ],
    "judges_off": [Case("judge_policy", {}, {"enabled": False}, "enabled")],
    "judges_fail_open": [Case("judge_policy", {}, {"fail_closed": False}, "fail_closed")],
    "judge_removed": [
        Case("judge_policy", judge(), {"judges": []}, "judges[groundedness]"),
        Case("judge_policy", None, {"judges": []}, "judges[groundedness]"),
    ],
    "judge_disabled": [Case("judge_policy", judge(), judge(enabled=False), "judges[groundedness].enabled")],
    "judge_threshold_lowered": [
        Case("judge_policy", judge(), judge(threshold=0.59), "judges[groundedness].threshold"),
    ],
    "judge_action_relaxed": [
        Case("judge_policy", judge(on_fail=old), judge(on_fail=new), "judges[groundedness].on_fail")
        for old, new in (("block", "handover"), ("handover", "retry"), ("retry", "observe"))
    ],
    "judge_policy_archived": [Case("judge_policy", {}, None, "")],
    "judge_policy_replaced": [Case("agent", {}, {"judges": "other"}, "judges")],
    "confidence_lowered": [
        Case("routing_policy", {}, {"confidence_threshold": 0.6}, "confidence_threshold"),
        Case("routing_policy", {"confidence_threshold": 0.9}, None, "confidence_threshold"),
    ],
    "margin_lowered": [Case("routing_policy", {"margin": 0.1}, {"margin": 0.05}, "margin")],
    "person_unheard": [
        Case("routing_policy", {}, {"strategies": ["state", "keyword"]}, "strategies"),
    ],
    "routed_by_model": [
        Case("routing_policy", {}, {"strategies": ["control", "keyword", "llm"]}, "strategies"),
        Case("routing_policy", {}, {"strategies": ["control", "continuity"]}, "strategies"),
        Case("routing_policy", {}, {"stickiness": {"enabled": True}}, "stickiness.enabled"),
    ],
    "likeness_lowered": [
        Case("routing_policy", {}, {"semantic_threshold": 0.5}, "semantic_threshold")
    ],
    "continuity_lowered": [
        Case("routing_policy", {}, {"stickiness": {"threshold": 0.5}}, "stickiness.threshold")
    ],
    "messages_sent_elsewhere": [
        Case("routing_policy", {}, {"embedding_profile": "embedder"}, "embedding_profile")
    ],
    "hops_raised": [Case("routing_policy", {}, {"hop_budget": 9}, "hop_budget")],
    "yes_by_model": [
        Case(
            "routing_policy",
            {},
            {"confirmation_fallback": {"enabled": True}},
            "confirmation_fallback.enabled",
        ),
        Case(
            "routing_policy",
            {},
            {"confirmation_fallback": {"confirm_values": ["SIM", "TALVEZ"]}},
            "confirmation_fallback.confirm_values",
        ),
    ],
    "confirmation_dropped": [
        Case("tool", {**ACTION, "confirmation_required": True}, ACTION, "confirmation_required"),
    ],
    "action_added": [
        Case("tool", None, {**ACTION, "confirmation_required": True}, "tool_type"),
        Case("tool", {}, ACTION, "tool_type"),
        Case("tool", {**ACTION, "enabled": False}, ACTION, "enabled"),
    ],
    "action_declared_read_only": [Case("tool", ACTION, {}, "tool_type")],
    "idempotent_claimed": [Case("tool", ACTION, {**ACTION, "idempotent": True}, "idempotent")],
    "requires_shortened": [
        Case("tool", {**argument(), "requires": ["plan"]}, argument(), "requires"),
        Case("tool", {**argument(), "requires": ["plan"]}, {}, "requires"),
    ],
    "contract_unpinned": [
        Case("tool", {"contract": {"sha256": "a" * 64}}, {}, "contract.sha256"),
    ],
    "argument_restricted": [
        Case("tool", argument(), argument(restricted=True), "args_schema.plan.restricted"),
        Case("tool", {}, argument(restricted=True), "args_schema.plan"),
        Case("tool", None, argument(restricted=True), "args_schema.plan"),
    ],
    "enum_widened": [
        Case("tool", argument(enum=["a"]), argument(enum=["a", "b"]), "args_schema.plan.enum"),
        Case("tool", argument(enum=["a"]), argument(), "args_schema.plan.enum"),
        Case("tool", argument(enum=["a"]), {"args_schema": {"plano": {}}}, "args_schema.plano"),
    ],
    "tool_agents_widened": [
        Case("tool", {"allowed_agents": ["a"]}, {"allowed_agents": ["a", "b"]}, "allowed_agents"),
        Case("tool", {"allowed_agents": ["a"]}, {}, "allowed_agents"),
    ],
    "tool_channels_widened": [
        Case("tool", {"allowed_channels": ["web"]}, {"allowed_channels": ["web", "voice"]}, "allowed_channels"),
        Case("tool", {"allowed_channels": ["web"]}, {}, "allowed_channels"),
    ],
    "business_keys_shortened": [
        Case("tool", {"required_business_keys": ["customer_key"]}, {}, "required_business_keys"),
    ],
    "argument_source_relaxed": [
        Case("tool", argument(source=old, **fields), argument(source=new), "args_schema.plan.source")
        for old, new, fields in (
            ("context", "auto", {}), ("constant", "model", {"constant": "1"}),
            ("secret", "context", {"secret": "s"}), ("extraction", "model", {}),
        )
    ],
    "secret_sent": [
        Case("tool", argument(), argument(source="secret", secret="s"), "args_schema.plan.secret"),
        Case("tool", {}, argument(source="secret", secret="s"), "args_schema.plan"),
        Case("tool", None, argument(source="secret", secret="s"), "args_schema.plan"),
        Case("tool", argument(source="secret", secret="s"), argument(source="secret", secret="t"), "args_schema.plan.secret"),
    ],
    "argument_rules_changed": [
        Case("tool", argument(json_schema={"maxLength": 3}), argument(json_schema={"maxLength": 9}), "args_schema.plan.json_schema"),
        Case("tool", argument(json_schema={"maxLength": 3}), argument(), "args_schema.plan.json_schema"),
    ],
    "action_check_dropped": [
        Case("tool", {"pre_validation": {"tool": "check"}}, {}, "pre_validation.tool"),
        Case("tool", {"pre_validation": {"tool": "check"}}, {"pre_validation": {"tool": "other"}}, "pre_validation.tool"),
    ],
    "action_check_fails_open": [
        Case("tool", {"pre_validation": {"tool": "check"}}, {"pre_validation": {"tool": "check", "fail_open": True}}, "pre_validation.fail_open"),
        Case("tool", None, {"pre_validation": {"tool": "check", "fail_open": True}}, "pre_validation.fail_open"),
    ],
    "execution_replaced": [
        Case("tool", ACTION, {**ACTION, "execution": {"mode": "workflow", "workflow": "w"}}, "execution.mode"),
        Case("tool", {**ACTION, "execution": {"mode": "workflow", "workflow": "w"}}, {**ACTION, "execution": {"mode": "workflow", "workflow": "v"}}, "execution.workflow"),
    ],
    "confirmation_kept_longer": [
        Case("tool", ACTION, {**ACTION, "confirmation_seconds": 901}, "confirmation_seconds"),
    ],
    "tool_server_replaced": [Case("tool", {}, {"mcp_server": "other"}, "mcp_server")],
    "remote_name_changed": [Case("tool", {}, {"remote_name": "cancel"}, "remote_name")],
    "agent_tools_widened": [
        Case("agent", {"tools": ["a"]}, {"tools": ["b", "a"]}, "tools"),
        Case("agent", {"tools": ["a"]}, {"tools": ["b"]}, "tools"),
        Case("agent", None, {"tools": ["a"]}, "tools"),
    ],
    "agent_members_widened": [Case("agent", {}, {"members": ["b"]}, "members")],
    "intent_tools_widened": [
        Case("intent", {"mcp_tools": ["a"]}, {"mcp_tools": ["a", "b"]}, "mcp_tools"),
        Case("intent", None, {"mcp_tools": ["a"]}, "mcp_tools"),
    ],
    "model_calls_tools": [Case("agent", {}, {"tool_use": "model"}, "tool_use")],
    "implementation_changed": [
        Case("agent", {}, {"implementation": "financeiro"}, "implementation"),
        Case("agent", None, {"implementation": "financeiro"}, "implementation"),
    ],
    "workflow_tool_added": [
        Case("workflow", {}, flow(tool="other"), "nodes[one].tool"),
        Case("workflow", {}, flow(compensate_tool="other"), "nodes[one].compensate_tool"),
        Case("workflow", None, {}, "nodes[one]"),
    ],
    "workflow_question_dropped": [
        Case("workflow", flow(pause=ASKING), {}, "nodes[one].pause.key"),
    ],
    "workflow_answers_widened": [
        Case(
            "workflow",
            flow(pause={**ASKING, "allowed_values": ["sim"]}),
            flow(pause={**ASKING, "allowed_values": ["sim", "talvez"]}),
            "nodes[one].pause.allowed_values",
        ),
        Case(
            "workflow",
            flow(pause={**ASKING, "allowed_values": ["sim"]}),
            flow(pause=ASKING),
            "nodes[one].pause.allowed_values",
        ),
        Case(
            "workflow",
            flow(pause={**ASKING, "allowed_values": ["sim"]}),
            flow(pause={**ASKING, "allowed_values": ["sim"], "classify_profile": "router"}),
            "nodes[one].pause.classify_profile",
        ),
    ],
    "workflow_compensation_dropped": [
        Case("workflow", flow(compensate_tool="u"), {}, "nodes[one].compensate_tool"),
    ],
    "workflow_repeats_sooner": [
        Case("workflow", {}, {"repeat_seconds": 60}, "repeat_seconds"),
    ],
    "tool_rounds_raised": [Case("agent", {}, {"max_tool_rounds": 5}, "max_tool_rounds")],
    "delegates_widened": [
        Case("agent", {}, delegating(), "delegates"),
        Case("agent", None, delegating(), "delegates"),
        Case("agent", delegating(), delegating(agent="c"), "delegates"),
        Case("agent", delegating(kind="consult"), delegating(kind="scoped"), "delegates"),
    ],
    "delegate_speaks": [Case("agent", delegating(), delegating(speaks=True), "delegates")],
    "delegate_sees": [Case("agent", delegating(), delegating(pass_history=True), "delegates")],
    "delegations_raised": [Case("agent", {}, {"max_delegations": 4}, "max_delegations")],
    "tool_usage_allowed": [Case("prompt", {"allow_tool_usage": False}, {}, "allow_tool_usage")],
    "evidence_dropped": [
        Case("prompt", {}, {"require_evidence": False}, "require_evidence"),
        Case("prompt", None, {"require_evidence": False}, "require_evidence"),
    ],
    "identity_assertable": [
        Case("identity_key", {"identifies_customer": True}, {}, "identifies_customer"),
    ],
    "identity_source_added": [
        Case("identity_key", {"sources": ["a"]}, {"sources": ["b", "a"]}, "sources"),
        Case("identity_key", None, {"sources": ["a"]}, "sources"),
    ],
    "identity_kept_longer": [Case("identity_key", {"scope": "turn"}, {}, "scope")],
    "identity_protection_archived": [Case("identity_key", {"identifies_customer": True}, None, "")],
    "identity_unmapped": [
        Case("parameter_mapping", {"map": {"customer_key": "msisdn"}}, {}, "map.customer_key"),
        Case("parameter_mapping", {"map": {"customer_key": "msisdn"}}, {"map": {"customer_key": "x"}}, "map.customer_key"),
    ],
    "identity_key_beside": [
        Case("parameter_mapping", {"map": {"customer_key": "msisdn"}}, {"map": {"customer_key": "msisdn", "session_key": "msisdn"}}, "map.session_key"),
    ],
    "mapping_added": [
        Case("parameter_mapping", None, {"tool": "t", "map": {}}, ""),
        Case("parameter_mapping", None, {"map": {"customer_key": "msisdn"}}, ""),
    ],
    "mapping_moved": [
        Case("parameter_mapping", {"tool": "t", "map": {"k": "a"}}, {"tool": "u", "map": {"k": "a"}}, "tool"),
    ],
    "mapping_archived": [Case("parameter_mapping", {"map": {"customer_key": "msisdn"}}, None, "")],
    "profile_address_changed": [
        Case("model_profile", {"base_url": "inside"}, {"base_url": "outside"}, "base_url"),
        Case("model_profile", {"base_url": "inside"}, {}, "base_url"),
        Case("model_profile", None, {"base_url": "outside"}, "base_url"),
    ],
    "profile_credential_changed": [
        Case("model_profile", {"credential": "ours"}, {"credential": "theirs"}, "credential"),
    ],
    "provider_changed": [
        Case("model_profile", {"provider": "scripted"}, {"provider": "openai_compatible"}, "provider"),
        Case("model_profile", None, {"provider": "openai_compatible"}, "provider"),
    ],
    "server_address_changed": [
        Case("tool_server", {}, {"endpoint": "other"}, "endpoint"),
        Case("tool_server", None, {"endpoint": "new"}, "endpoint"),
    ],
    "server_credential_changed": [Case("tool_server", {}, {"credential": "other"}, "credential")],
    "server_authorisation_changed": [
        Case("tool_server", {"auth": "oauth_user"}, {"auth": "bearer"}, "auth"),
        Case("tool_server", {}, {"auth": "oauth_client"}, "auth"),
        Case("tool_server", {"client_id": "a"}, {"client_id": "b"}, "client_id"),
        Case("tool_server", {"scopes": ["read"]}, {"scopes": ["read", "write"]}, "scopes"),
    ],
    "transport_changed": [Case("tool_server", {}, {"transport": "http"}, "transport")],
    "locked_field": [
        Case("identity_key", {}, {"identifies_customer": True}, "identifies_customer"),
        Case("identity_key", {}, {"scope": "turn"}, "scope"),
        Case("model_profile", {"provider": "openai_compatible"}, {"provider": "scripted"}, "provider"),
        Case("parameter_mapping", {}, {"tool": "t"}, "tool"),
    ],
    "description": [Case("agent", {}, {"description": "What it is for."}, "description")],
    "metadata": [
        Case("agent", {"metadata": {"team": "a"}}, {"metadata": {"team": "b"}}, "metadata.team"),
    ],
    "order": [
        Case("intent", {"keywords": ["a", "b"]}, {"keywords": ["b", "a"]}, "keywords"),
        Case("agent", {"tools": ["a", "b"]}, {"tools": ["b", "a"]}, "tools"),
    ],
}  # fmt: skip

# What two agents are told apart by is in other items of the same request.
LAX, STRICT = {"require_evidence": False}, {"require_evidence": True}
SEEN_BESIDE: dict[str, list[ItemEdit]] = {
    "prompt_replaced": [
        edit("agent", {"prompt": "old"}, {"prompt": "new"}),
        edit("prompt", STRICT, {"system": "Other."}, slug="old"),
        edit("prompt", None, LAX, slug="new"),
    ],
    "profile_replaced": [
        edit("agent", {"model_profile": "old"}, {"model_profile": "new"}),
        edit("model_profile", {"base_url": "inside"}, {"base_url": "inside", "model": "m"}, slug="old"),
        edit("model_profile", None, {"base_url": "outside"}, slug="new"),
    ],
}  # fmt: skip
# Both ways count: a place of its own, or another meaning of the same field.
BOTH_WAYS = {
    "rail_policy_replaced", "judge_policy_replaced", "action_declared_read_only", "enum_widened",
    "tool_server_replaced", "remote_name_changed", "identity_unmapped", "mapping_moved",
    "profile_address_changed", "profile_credential_changed", "server_address_changed",
    "server_credential_changed", "server_authorisation_changed", "transport_changed",
    "locked_field", "agent_tools_widened",
    "delegates_widened", "argument_source_relaxed", "secret_sent", "argument_rules_changed",
    "action_check_dropped", "execution_replaced", "workflow_tool_added",
    "description", "metadata", "order",
}  # fmt: skip


def line(code: str) -> Rule:
    return next(rule for rule in RULES if rule.code == code)


def test_risk_table__every_line__has_a_case_here_and_no_case_is_left_over() -> None:
    codes = [rule.code for rule in RULES]
    assert len(set(codes)) == len(codes)
    assert {*CASES, *SEEN_BESIDE} == set(codes)
    assert all(rule.kinds and set(rule.kinds) <= set(KINDS) for rule in RULES)


@pytest.mark.parametrize("code", [rule.code for rule in RULES if rule.code in CASES])
def test_risk_table__a_line__is_found_where_it_applies(code: str) -> None:
    for case in CASES[code]:
        change = edit(case.kind, case.before, case.after)
        assert (code, case.path) in found(change), case
        assert {r.risk for r in risks([change]) if r.rule == code} == {line(code).risk}
        assert risk_class([change]) == line(code).risk


@pytest.mark.parametrize("code", sorted(SEEN_BESIDE))
def test_risk_table__a_line_about_two_items__is_found_when_both_are_seen(code: str) -> None:
    edits = SEEN_BESIDE[code]
    assert (
        code,
        line(code).code.removesuffix("_replaced").replace("profile", "model_profile"),
    ) in found(*edits)
    assert risk_class(edits) == "weakening"
    assert code not in {rule for rule, _ in found(edits[0])}


@pytest.mark.parametrize("code", sorted(set(CASES) - BOTH_WAYS))
def test_risk_table__the_opposite_of_a_line__is_not_that_weakening(code: str) -> None:
    for case in CASES[code]:
        if case.before is not None and case.after is not None:
            assert code not in {rule for rule, _ in found(edit(case.kind, case.after, case.before))}


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("rail_policy", rail("PINJ"), rail("PINJ", parameters={"threshold": 0.5})),
        ("rail_policy", rail("PINJ"), rail("PINJ", on_deny="block")),
        ("rail_policy", rail("DLEX_OUT", on_deny="retry"), rail("DLEX_OUT", on_deny="block")),
        ("rail_policy", rail("DLEX_OUT"), rail("DLEX_OUT", on_deny="block")),
        ("rail_policy", rail("MSK"), rail("MSK", on_deny="block")),
        ("rail_policy", rail("VLOOP", enabled=False), {"input": [], "output": []}),
        ("rail_policy", {"input": [], "output": []}, rail("PINJ")),
        ("rail_policy", {}, {"block_text": "No.", "max_retries": 1}),
        ("rail_policy", None, {}),
        ("judge_policy", judge(), judge(threshold=0.9, on_fail="block")),
        ("judge_policy", None, {}),
        ("routing_policy", {}, {"confidence_threshold": 0.7, "margin": 0.1}),
        ("routing_policy", {}, {"fallback_text": "Hi."}),
        ("routing_policy", {"confidence_threshold": 0.5}, None),
        ("tool", {}, {"confirmation_required": True}),
        ("tool", None, argument(enum=["a"])),
        ("tool", argument(enum=["a", "b"]), argument(enum=["a"])),
        ("tool", argument(enum=["a", "b"]), {"args_schema": {"plano": {"enum": ["a"]}}}),
        ("tool", {}, {"description": "Models read this."}),
        ("tool", {}, {"idempotent": True}),
        ("agent", {"tools": ["a", "b"]}, {"tools": ["b"]}),
        ("agent", {"tool_use": "model"}, {}),
        ("agent", {}, {"prompt": "other", "model_profile": "other", "memory": "other"}),
        ("agent", None, {}),
        ("agent", {}, None),
        ("agent", {}, {"label_answers": True}),
        ("prompt", {}, {"system": "Promise everything."}),
        ("prompt", {"require_evidence": False}, {}),
        ("prompt", {}, {"allow_tool_usage": False}),
        ("prompt", None, {}),
        ("intent", {}, {"keywords": ["a"]}),
        ("intent", {"examples": ["a", "b"]}, {"examples": ["b", "a"]}),
        ("intent", {"mcp_tools": ["a", "b"]}, {"mcp_tools": ["b", "a"]}),
        ("identity_key", {"sources": ["a", "b"]}, {"sources": ["b"]}),
        ("identity_key", {}, {"required": True}),
        ("identity_key", {}, None),
        ("parameter_mapping", {}, {"map": {"customer_key": "msisdn"}}),
        ("parameter_mapping", {}, None),
        ("model_profile", {}, {"model": "other", "temperature": 0.1}),
        ("model_profile", None, {"provider": "scripted"}),
        ("memory_policy", {}, {"recent_messages": 40}),
        ("state_policy", {}, {"terminal": True}),
    ],
)  # fmt: skip
def test_risk_class__changes_that_weaken_nothing__are_behaviour(
    kind: str, before: dict[str, Any] | None, after: dict[str, Any] | None
) -> None:
    change = edit(kind, before, after)
    assert [risk for risk in risks([change]) if risk.risk == "weakening"] == []
    assert risk_class([change]) == "behaviour"


def test_risk_class__a_mapping_that_comes_with_its_tool__is_behaviour() -> None:
    tool, mapping = edit("tool", None, {}, slug="t"), {"map": {"customer_key": "msisdn"}}
    named = edit("parameter_mapping", None, {"tool": "t", **mapping}, slug="m")
    assert risk_class([tool, named]) == "behaviour"
    assert risk_class([tool, edit("parameter_mapping", None, mapping, slug="t")]) == "behaviour"
    assert risk_class([edit("tool", {}, {"sla": "1 s"}, slug="t"), named]) == "weakening"


def test_risk_class__nothing_or_only_labels_change__is_cosmetic() -> None:
    assert risk_class([]) == "cosmetic"
    assert risk_class([edit("agent", {}, {})]) == "cosmetic"


def test_risk_class__a_kind_or_field_nobody_knows__is_behaviour() -> None:
    assert risk_class([ItemEdit("gadget", "x", {"a": 1}, {"a": 2})]) == "behaviour"
    assert (
        risk_class([ItemEdit("gadget", "x", {"description": "a"}, {"description": "b"})])
        == "behaviour"
    )
    later = {**full("agent"), "invented": True}
    assert risk_class([ItemEdit("agent", "x", full("agent"), later)]) == "behaviour"


def test_risk_class__cosmetic_and_more_in_one_item__is_the_graver_class() -> None:
    text = {"description": "For colleagues."}
    assert risk_class([edit("agent", {}, {**text, "domain": "telecom"})]) == "behaviour"
    assert risk_class([edit("agent", {}, {**text, "tools": ["t"]})]) == "weakening"
    moved_and_more = edit("intent", {"keywords": ["a", "b"]}, {"keywords": ["b", "a", "c"]})
    assert risk_class([moved_and_more]) == "behaviour"


def test_risks__one_weakening_among_forty_edits__is_found_with_its_place_and_a_sentence() -> None:
    edits = [edit("prompt", {}, {"system": f"Text {n}."}, slug=f"p{n}") for n in range(40)]
    policy = {
        "block_text": "Sorry.",
        "input": [{"code": c} for c in ("VLOOP", "MSK", "INPUT_SIZE")]
        + [{"code": "PINJ", "parameters": {"threshold": 1.1}}],
    }
    edits.insert(17, edit("rail_policy", {}, policy, slug="default"))
    weakening = [risk for risk in risks(edits) if risk.risk == "weakening"]
    assert [(r.kind, r.slug, r.path, r.rule) for r in weakening] == [
        ("rail_policy", "default", "input[PINJ].parameters.threshold", "pinj_threshold_raised")
    ]
    assert weakening[0].message == "More of an injection is tolerated before PINJ denies."
    assert risk_class(edits) == "weakening"


def test_risks__a_rail_vanishes_while_the_others_are_reordered__is_found() -> None:
    before = {"input": [{"code": c} for c in ("INPUT_SIZE", "MSK", "PINJ", "VLOOP")]}
    after = {"input": [{"code": c} for c in ("VLOOP", "INPUT_SIZE", "MSK")]}
    assert found(edit("rail_policy", before, after)) == {("rail_removed", "input[PINJ]")}


def test_risks__a_rail_goes_by_another_code__is_a_rail_removed() -> None:
    assert found(edit("rail_policy", rail("PINJ"), rail("VLOOP"))) == {
        ("rail_removed", "input[PINJ]")
    }


@pytest.mark.parametrize("action", ["retry", "handover"])
def test_risks__a_rail_with_several_answers_gets_one_of_the_middle__is_relaxed_either_way(
    action: str,
) -> None:
    own, one = rail("DLEX_OUT"), rail("DLEX_OUT", on_deny=action)
    for before, after in ((own, one), (one, own)):
        assert found(edit("rail_policy", before, after)) == {
            ("rail_action_relaxed", "output[DLEX_OUT].on_deny")
        }


def test_risks__rails_only_reordered__is_behaviour() -> None:
    before = {"input": [{"code": c} for c in ("MSK", "PINJ")]}
    after = {"input": [{"code": c} for c in ("PINJ", "MSK")]}
    assert risk_class([edit("rail_policy", before, after)]) == "behaviour"


def test_risks__a_policy_comes_back_laxer_under_another_name__is_found_three_times() -> None:
    edits = [
        edit("rail_policy", {}, None, slug="default"),
        edit("rail_policy", None, {"output": []}, slug="fresh"),
        edit("agent", {"rails": "default"}, {"rails": "fresh"}),
    ]
    assert {(r.kind, r.rule) for r in risks(edits)} == {
        ("rail_policy", "rail_policy_archived"),
        ("rail_policy", "rail_removed"),
        ("agent", "rail_policy_replaced"),
    }


@pytest.mark.parametrize(
    ("kind", "content", "rule"),
    [
        ("tool", ACTION, "action_added"),
        ("agent", {"tools": ["t"]}, "agent_tools_widened"),
        ("intent", {"mcp_tools": ["t"]}, "intent_tools_widened"),
        ("prompt", {"require_evidence": False}, "evidence_dropped"),
        ("identity_key", {"sources": ["payload.cpf"]}, "identity_source_added"),
        ("model_profile", {"base_url": "elsewhere"}, "profile_address_changed"),
        ("tool_server", {"endpoint": "elsewhere"}, "server_address_changed"),
        ("routing_policy", {"confidence_threshold": 0.1}, "confidence_lowered"),
        ("judge_policy", {"enabled": False}, "judges_off"),
    ],
)
def test_risks__archived_and_made_again_under_another_name__is_weakening_still(
    kind: str, content: dict[str, Any], rule: str
) -> None:
    edits = [edit(kind, content, None), edit(kind, None, content, slug="again")]
    assert rule in {r.rule for r in risks(edits) if r.slug == "again"}
    assert risk_class(edits) == "weakening"


def test_risks__an_agent_named_a_stricter_policy_of_the_same_request__is_not_weakening() -> None:
    strict = {"input": [{"code": "PINJ", "parameters": {"threshold": 0.5}}], "output": []}
    edits = [
        edit("rail_policy", rail("PINJ"), rail("PINJ"), slug="old"),
        edit("rail_policy", {"input": [], "output": []}, strict, slug="new"),
        edit("agent", {"rails": "old"}, {"rails": "new"}),
    ]
    assert [r for r in risks(edits) if r.risk == "weakening"] == []


def test_risks__contents_that_no_longer_validate__are_read_as_far_as_they_go() -> None:
    odd: dict[str, Any] = {
        "input": [None, "PINJ", {"code": 5}, {"parameters": []}], "judges": 3, "tools": "x",
        "sources": {"a": 1}, "map": [], "args_schema": {"a": None}, "margin": "low", "metadata": 1,
        "requires": None, "confidence_threshold": None, "keywords": [1, "a", None],
    }  # fmt: skip
    for kind in KINDS:
        for sides in ((odd, full(kind)), (full(kind), odd), (odd, None), (None, odd)):
            assert risk_class([ItemEdit(kind, "x", *sides)]) in ("behaviour", "weakening")


@pytest.mark.parametrize("kind", sorted(KINDS))
@given(data=st.data())
def test_risk_class__any_contents_of_a_kind__is_a_class_and_cosmetic_only_for_cosmetic_fields(
    kind: str, data: st.DataObject
) -> None:
    before, after = (data.draw(contents(KINDS[kind])).model_dump(mode="json") for _ in range(2))
    change = ItemEdit(kind, "x", before, after)
    free = {"description", "metadata", "keywords", "tools", "selection_keywords"} - (
        {"description"} if kind == "tool" else set()
    )
    if any(before[name] != after[name] for name in before if name not in free):
        assert risk_class([change]) in ("behaviour", "weakening")
    assert risk_class([ItemEdit(kind, "x", before, before)]) == "cosmetic"
    assert (risk_class([change]) == "weakening") == any(
        r.risk == "weakening" for r in risks([change])
    )


def test_risk_table__every_rail_parameter__has_a_line() -> None:
    known = {
        (code, name)
        for code, names in PARAMETERS.items()
        for name in names
        if any(
            f"{code}].parameters.{name}" in case.path for cases in CASES.values() for case in cases
        )
    }
    assert known == {(code, name) for code, names in PARAMETERS.items() for name in names}


def test_risk_table__policies_compared_by_an_agent__are_compared_by_every_line_about_them() -> None:
    for kinds, finders in ((table.RAILS, rails.FINDERS), (table.JUDGES, judges.FINDERS)):
        lines = [rule.find for rule in RULES if rule.kinds == kinds and not rule.on_archive]
        assert lines == list(finders) or set(lines) == set(finders)


def test_risk_table__what_is_assumed_of_other_apps__is_what_they_say() -> None:
    rule = full("judge_policy")["judges"][0]
    assert (rule["threshold"], rule["on_fail"]) == (judges.THRESHOLD, judges.ON_FAIL)
    assert {name for kind, name in LOCKED_FIELDS if name not in KINDS[kind].model_fields} == set()
    assert set(SEVERAL_ACTIONS) <= set(RAILS)
    assert defaults("rail_policy") == full("rail_policy")
    assert "mcp_server" not in defaults("tool")
