"""Who may call what, from where: everything that is not allowed is refused with its reason."""

import pytest

from apps.runtime.ports import NodeCall, ToolRequest
from apps.runtime.testing import FakeLedger, FakeTransport
from apps.runtime.turn import Inbound, Route, SessionState
from apps.tools.config import (
    Argument,
    Execution,
    PreValidation,
    ToolConfig,
    WorkflowConfig,
    WorkflowNode,
)
from apps.tools.preparing import SKIPPED
from apps.tools.tests.world import AGENT, EXCHANGE, INVOICE, Agent, caller_of, release, turn

ASK = ToolRequest("consultar_fatura", {"msisdn": "11999"})


def reading(**policy) -> dict:
    return {"release": release(tools={"consultar_fatura": INVOICE.model_copy(update=policy)})}


async def ask(request=ASK, **changes):
    """Return the call and how many were sent."""
    transport, ledger = (
        FakeTransport({"consultar_fatura": 1, "solicitar_troca": 1, "ver": 1}),
        FakeLedger(),
    )
    (done,) = await caller_of(transport, ledger).call(turn(**changes), [request])
    assert len(ledger.calls) == len(transport.calls)
    return done, len(transport.calls)


def route(agent: str) -> Route:
    return Route(agent=agent, intent="x", method="keyword", confidence=1.0)


async def assert_denied(reason: str, field: str, request=ASK, **changes):
    done, sent = await ask(request, **changes)

    assert (done.status, done.metadata["reason"], sent) == ("refused", reason, 0)
    assert [error["field"] for error in done.field_errors] == [field]
    assert done.field_errors[0]["message"]
    assert done.error
    assert done.metadata["blocked_by_policy"] is True
    assert done.metadata["policy_source"] == f"tool:{request.tool}"
    assert done.events == (SKIPPED,)
    return done


# -- agents ------------------------------------------------------------------------------------


async def test_agent__does_not_list_the_tool__is_refused():
    nobody = release(agent={AGENT: Agent(tools=["outra"])})

    done = await assert_denied("agent_not_allowed", "policy.allowed_agents", release=nobody)

    assert done.metadata["operation_type"] == "read_only"


@pytest.mark.parametrize("agent", ["", "inexistente"])
async def test_agent__nobody_known_asks__is_refused(agent):
    session = SessionState(id="1", agent=agent)

    await assert_denied("agent_not_allowed", "policy.allowed_agents", session=session)


async def test_agent__route_or_request_name_another__that_one_counts():
    two = release(agent={AGENT: Agent(tools=["consultar_fatura"]), "vendas": Agent(tools=[])})
    denied = ("agent_not_allowed", "policy.allowed_agents")

    await assert_denied(*denied, release=two, route=route("vendas"))
    await assert_denied(*denied, ToolRequest(ASK.tool, ASK.arguments, agent="vendas"), release=two)
    done, _ = await ask(
        ToolRequest(ASK.tool, ASK.arguments, agent=AGENT), release=two, route=route("vendas")
    )

    assert (done.status, done.agent) == ("ok", AGENT)


async def test_agent__lists_the_tool_and_is_not_among_the_allowed__is_refused():
    await assert_denied(
        "agent_not_allowed", "policy.allowed_agents", **reading(allowed_agents=["vendas"])
    )
    done, _ = await ask(**reading(allowed_agents=["vendas", AGENT]))

    assert done.ok


async def test_agent__lists_the_action__its_check_is_allowed_too_and_nothing_else():
    check = ToolConfig(mcp_server="telecom", args_schema={"order_id": Argument()})
    action = EXCHANGE.model_copy(update={"pre_validation": PreValidation(tool="ver")})
    listed = release(
        tools={"ver": check, "solicitar_troca": action, "outra": check},
        agent={AGENT: Agent(tools=["solicitar_troca"])},
    )

    done, _ = await ask(ToolRequest("ver", {"order_id": "1"}), release=listed)

    assert done.ok
    await assert_denied(
        "agent_not_allowed", "policy.allowed_agents", ToolRequest("outra"), release=listed
    )


async def test_agent__lists_a_tool_whose_workflow_calls_another__only_as_its_node():
    action = EXCHANGE.model_copy(
        update={"execution": Execution(mode="workflow", workflow="devolver")}
    )
    inner = ToolConfig(mcp_server="telecom", tool_type="action", args_schema={})
    flow = WorkflowConfig(start="a", nodes=[WorkflowNode(id="a", tool="ver")])
    world = release(
        tools={"solicitar_troca": action, "ver": inner},
        workflow={"devolver": flow},
        agent={AGENT: Agent(tools=["solicitar_troca"])},
    )

    node = ToolRequest("ver", node=NodeCall(execution="run", key="k1"))
    done, _ = await ask(node, release=world)

    assert done.ok
    await assert_denied(
        "agent_not_allowed", "policy.allowed_agents", ToolRequest("ver"), release=world
    )


# -- channels ----------------------------------------------------------------------------------


@pytest.mark.parametrize("channel", ["", "whatsapp"])
async def test_channel__another_or_none__is_refused_with_the_ones_there_are(channel):
    inbound = Inbound(channel=channel, text="", agent=None, message_id="m", session="s")
    policy = reading(allowed_channels=["web", "voice"])["release"]
    transport = FakeTransport({})
    asked = turn(release=policy).evolve(inbound=inbound)

    (done,) = await caller_of(transport).call(asked, [ASK])

    assert (done.status, done.metadata["reason"]) == ("refused", "channel_not_allowed")
    assert done.field_errors[0]["accepted"] == "web, voice"
    assert transport.calls == []


async def test_channel__one_of_the_allowed__is_sent():
    done, sent = await ask(**reading(allowed_channels=["voice", "web"]))

    assert (done.status, sent) == ("ok", 1)


# -- business keys -----------------------------------------------------------------------------


async def test_business_keys__one_is_not_known__is_named_and_nothing_is_sent():
    policy = reading(required_business_keys=["customer_key", "contract_key"])

    await assert_denied(
        "business_key_missing",
        "policy.required_business_keys.contract_key",
        context={"customer_key": "11999"},
        **policy,
    )
    done, _ = await ask(context={"customer_key": "11999", "contract_key": "C1"}, **policy)

    assert done.ok


# -- requires and confirmation are policy too --------------------------------------------------


async def test_requires__missing_after_mapping__is_a_policy_refusal_by_field():
    done, sent = await ask(ToolRequest("solicitar_troca", {"order_id": "1"}))

    assert (done.metadata["reason"], sent) == ("missing_arguments", 0)
    assert [error["field"] for error in done.field_errors] == ["reason"]
    assert (done.events, done.metadata["operation_type"]) == ((SKIPPED,), "transactional")


async def test_confirmation__there_is_none__is_a_policy_refusal():
    needs = EXCHANGE.model_copy(update={"confirmation_required": True})
    request = ToolRequest("solicitar_troca", {"order_id": "1", "reason": "defeito"})

    done, sent = await ask(request, release=release(tools={"solicitar_troca": needs}))

    assert (done.metadata["reason"], done.metadata["confirmation"], sent) == (
        "confirmation_required", "absent", 0,
    )  # fmt: skip
    assert done.events == (SKIPPED,)


async def test_check__of_a_call_that_may_not_be_made__says_the_same_and_sends_nothing():
    transport = FakeTransport({})
    asked = turn(**reading(allowed_agents=["vendas"]))

    done = await caller_of(transport).check(asked, ASK)

    assert done.metadata["reason"] == "agent_not_allowed"
    assert transport.calls == []
