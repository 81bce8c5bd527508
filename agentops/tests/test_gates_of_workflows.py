"""Gates of workflows and of agents in code, each on a release of its own."""

from collections.abc import Mapping
from typing import Any

import pytest
from django.test import override_settings

from agentops.gates.code_agents import implementations_allowed
from agentops.gates.workflows import workflows_ready
from agentops.tests.test_each_gate import FULL, Items, changed, context

FLOW: Items = {
    "tool:reserve": {"mcp_server": "crm", "tool_type": "action", "args_schema": {"order": {}}},
    "tool:release": {
        "mcp_server": "crm",
        "tool_type": "action",
        "idempotent": True,
        "args_schema": {"order": {}},
    },
    "tool:exchange": {
        "mcp_server": "crm",
        "tool_type": "action",
        "confirmation_required": True,
        "args_schema": {"order": {}},
        "execution": {"mode": "workflow", "workflow": "exchange"},
    },
    "workflow:exchange": {
        "start": "ask",
        "nodes": [
            {"id": "ask", "next": "reserve", "pause": {"key": "why", "question": "Why?"}},
            {
                "id": "reserve",
                "tool": "reserve",
                "at_most_once": True,
                "params": {"order": "$.input.order"},
                "compensate_tool": "release",
                "compensate_params": {"order": "$.input.why"},
            },
        ],
    },
}


def found(changes: Items) -> list[tuple[str, str, str, str]]:
    problems = workflows_ready(context({**FLOW, **changes}))
    return [(p.kind, p.slug, p.path, p.level or "block") for p in problems]


def node(**fields: Any) -> dict[str, Mapping[str, Any]]:
    """Return the workflow with its second node changed."""
    flow = FLOW["workflow:exchange"]
    first, second = flow["nodes"]
    return {"workflow:exchange": {**flow, "nodes": [first, {**second, **fields}]}}


def tool(name: str, **fields: Any) -> dict[str, Mapping[str, Any]]:
    return {f"tool:{name}": {**FLOW[f"tool:{name}"], **fields}}


def test_workflow__that_can_be_run__has_no_findings():
    assert found({}) == []


@pytest.mark.parametrize(
    ("changes", "path", "level"),
    [
        (tool("reserve", enabled=False), "nodes[1].tool", "block"),
        (tool("release", enabled=False), "nodes[1].compensate_tool", "block"),
        (node(params={"parcel": "1"}), "nodes[1].tool", "block"),
        (tool("reserve", requires=["order"]) | node(params={}), "nodes[1].tool", "block"),
        (
            tool("release", requires=["order"]) | node(compensate_params={}),
            "nodes[1].compensate_tool",
            "block",
        ),
        (node(at_most_once=False), "nodes[1].at_most_once", "block"),
        (node(params={"order": "$.input.nobody"}), "nodes[1].params.order", "warn"),
    ],
)
def test_node__that_cannot_be_called__is_found(changes, path, level):
    assert found(changes) == [("workflow", "exchange", path, level)]


def test_node__whose_required_argument_the_context_fills__has_no_findings():
    mapping = {"tool": "reserve", "map": {"contract_key": "order"}}
    lacking = tool("reserve", requires=["order"]) | node(params={})
    assert found({**lacking, "parameter_mapping:reserve": mapping}) == []


def test_node__retried_though_it_may_act_twice__is_found():
    flow = node(at_most_once=False, retries=2)
    assert found(flow) == [
        ("workflow", "exchange", "nodes[1].at_most_once", "block"),
        ("workflow", "exchange", "nodes[1].retries", "warn"),
    ]


def test_node__that_needs_a_yes_nobody_asks_for__is_found():
    needs = tool("reserve", confirmation_required=True)
    assert found(needs) == []  # the exchange is confirmed, and its workflow with it
    unasked = {**needs, **tool("exchange", confirmation_required=False)}
    assert found(unasked) == [("workflow", "exchange", "nodes[1].tool", "block")]


def test_workflow__that_is_off_or_carries_nothing_out__is_found():
    off = {"workflow:exchange": {**FLOW["workflow:exchange"], "enabled": False}}
    assert found(off) == [("tool", "exchange", "execution.workflow", "block")]
    alone = tool("exchange", execution={"mode": "direct_tool"})
    assert ("workflow", "exchange", "", "warn") in found(alone)


# -- agents in code ----------------------------------------------------------------------------

FINANCEIRO = "examples.agents.financeiro.FinanceiroAgent"


@override_settings(AGENT_CLASSES={"fin": FINANCEIRO, "gone": "examples.agents.financeiro.Gone"})
@pytest.mark.parametrize(
    ("name", "problem"),
    [("", ""), ("fin", ""), ("other", "the operator allows no implementation other"), ("gone", "cannot be used")],
)  # fmt: skip
def test_implementation__not_allowed_or_not_there__blocks(name, problem):
    problems = implementations_allowed(context(changed("agent:bills", implementation=name)))
    assert [p.path for p in problems] == (["implementation"] if problem else [])
    assert all(problem in p.message for p in problems)


@override_settings(AGENT_CLASSES={})
def test_implementation__of_a_retired_agent__is_nobodys_concern():
    gone = changed("agent:bills", implementation="x", enabled=False)
    assert implementations_allowed(context(gone)) == []
    assert "agent:bills" in FULL
