"""Ways round the customer's yes: other orders, conditions, a check that wants less, workflows."""

import json
from dataclasses import replace
from typing import Any

import pytest

from apps.routing.answers import answer_sense
from apps.runtime.ports import ToolRequest
from apps.runtime.turn import Inbound
from apps.tools.config import Argument, Execution, ParameterMappingConfig, PreValidation
from apps.tools.mapping import arguments_map
from apps.tools.tests.talk import CANCEL, NoWorkflows, Talk, world
from apps.tools.tests.test_transactions import DONE, VALIDATE, confirmed, talk, validated
from apps.tools.tests.test_workflows import INPUTS, RUN, YES, Yes
from apps.tools.tests.workflow_world import MemoryStore, Server, engine, tool, turn, workflow
from apps.tools.tests.world import EXCHANGE, FakeTransport, caller_of, release
from apps.tools.tests.world import turn as plain_turn
from apps.tools.transactions.machine import Facts, Transactions

pytestmark = pytest.mark.asyncio

FACTS = Facts(
    action_of=lambda turn: "",
    language_of=lambda turn: "pt-BR",
    cancelled_text=lambda turn: "",
    sense_of=answer_sense,
    mask_for=lambda turn: lambda text: text,
)


# -- the words of a yes ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        "sim, quero cancelar o PED-1002",
        "isso, quero o PED-1002",
        "sim, na verdade quero o PED-1002",
        "sim, quero cancelar o PED-1002, não o PED-1001",
        "yes, i want to cancel PED-1002",
        "quero cancelar o PED-1002",
    ],
)
async def test_yes__that_names_another_order__does_not_run_the_one_that_was_asked(said):
    conversation = await confirmed(talk(opinion="yes"))

    await conversation.say(said)

    assert conversation.transport.calls == []
    assert conversation.status == "AWAITING_CONFIRMATION"


async def test_yes__that_names_another_order_than_the_contexts__runs_nothing():
    conversation = talk(context={"contract_key": "PED-5"})
    await conversation.say("quero cancelar meu pedido")
    await conversation.say("comprei errado")

    await conversation.say("sim, quero cancelar o PED-9")

    assert conversation.transport.calls == []


@pytest.mark.parametrize(
    "said",
    [
        "sim, se for grátis",
        "sim, desde que não cobre multa",
        "sim, não cancela",
        "ok, depois",
        "sim, amanhã",
        "sim, quero saber quanto custa antes",
        "yes, if it is free",
        "sí, si no cuesta nada",
    ],
)
async def test_yes__under_a_condition_or_later__runs_nothing(said):
    conversation = await confirmed(talk())

    await conversation.say(said)

    assert conversation.transport.calls == []
    assert conversation.status == "AWAITING_CONFIRMATION"


@pytest.mark.parametrize("said", ["sim, sem problema", "yes, no problem", "sim, não tem problema"])
async def test_yes__with_harmless_words_after_it__is_one(said):
    conversation = await confirmed(talk())

    await conversation.say(said)

    assert conversation.status == "COMPLETED"


async def test_request_about_another_thing__no_model_may_call_it_a_yes():
    conversation = await confirmed(talk(opinion="yes"))

    await conversation.say("quero a fatura 3000131180")

    assert (conversation.asked_model, conversation.transport.calls) == (0, [])


async def test_yes__that_a_turn_nobody_survived_used_up__is_reported_as_unknown():
    conversation = await confirmed(talk())
    asked = conversation.dialogue.transaction.confirmation
    conversation.confirmations.rows[asked]["used"] = "a turn that was given up"

    await conversation.say("sim")

    assert conversation.transport.calls == []
    assert conversation.status == "UNKNOWN"
    assert conversation.said.startswith("Não recebi a confirmação")


async def test_question__of_the_tenants_own_words__hides_no_value_that_was_not_the_platforms():
    schema = {
        **CANCEL.args_schema, "amount": Argument(type="number"), "who": Argument(), "note": Argument()
    }  # fmt: skip
    text = "Cancelo o pedido {order_id}, motivo {reason}?"
    asking = CANCEL.model_copy(update={"args_schema": schema, "confirmation_text": text})
    mapping = ParameterMappingConfig(
        tool="cancelar_pedido", map={"customer_key": "who"}, defaults={"note": "x"}
    )
    agents = release(tools={"cancelar_pedido": asking}, mappings={"cancelar_pedido": mapping})
    port = caller_of(FakeTransport({}))
    now = plain_turn(release=agents, context={"customer_key": "C-1"})
    wish = {"order_id": "{reason}", "reason": "defeito", "amount": 999}

    call = await port.check(now, ToolRequest("cancelar_pedido", wish))
    put = await Transactions(port, NoWorkflows(), FACTS).propose(now, call)

    assert put.prepared is not None
    assert put.prepared.text == "Cancelo o pedido {reason}, motivo defeito? (amount: 999)"


# -- a check that changes what runs ------------------------------------------------------------


async def test_check__that_names_a_tool_without_a_question__is_asked_all_the_same():
    decision = {"target_tool": "devolver", "action_changed": False}
    easy = CANCEL.model_copy(update={"confirmation_required": False})
    conversation = await confirmed(
        validated({"eligible": True, "transaction_decision": decision}, devolver=easy)
    )

    assert [call[0] for call in conversation.transport.calls] == ["validar"]
    assert conversation.status == "AWAITING_CONFIRMATION"
    await conversation.say("sim")
    assert conversation.transport.calls[-1][0] == "devolver"


def reconfirming() -> Talk:
    """A tool that asks no yes by itself, and a check that wants one."""
    checks = PreValidation(tool="validar")
    easy = CANCEL.model_copy(update={"confirmation_required": False, "pre_validation": checks})
    decision = {"requires_reconfirmation": True, "confirmation_message": "Há multa. Confirma?"}
    answer = {"eligible": True, "transaction_decision": decision}
    transport = FakeTransport({"cancelar_pedido": DONE, "validar": answer})
    return Talk(transport=transport, release=world(cancelar_pedido=easy, validar=VALIDATE))


async def test_yes_that_a_check_wanted__is_recorded_and_used_like_any_other():
    conversation = await confirmed(reconfirming())
    asked = conversation.dialogue.transaction.confirmation

    await conversation.say("sim")

    assert conversation.status == "COMPLETED"
    assert conversation.confirmations.rows[asked]["used"] == conversation.last.id


async def test_yes_that_a_check_wanted__expired_or_of_another_release__runs_nothing():
    late, other = await confirmed(reconfirming()), await confirmed(reconfirming())
    late.confirmations.expired.add(late.dialogue.transaction.confirmation)
    easy = other.release.items["tool", "cancelar_pedido"]
    other.release = world(
        cancelar_pedido=easy.model_copy(update={"idempotent": True}), validar=VALIDATE
    )

    for conversation in (late, other):
        await conversation.say("sim")
        assert {call[0] for call in conversation.transport.calls} == {"validar"}
        assert conversation.status == "AWAITING_CONFIRMATION"


async def test_argument__with_an_alias_that_confirms__is_not_filled_by_a_client_or_a_model():
    agreed = Argument(type="boolean", aliases=["confirmed"])
    exchange = EXCHANGE.model_copy(update={"args_schema": {"agreed": agreed}, "requires": []})
    now = plain_turn(tool_arguments={"confirmed": True}, payload={"confirmed": True})

    mapped = arguments_map(now, "x", exchange, {"confirmed": True})

    assert mapped.arguments == {}


async def test_restricted_argument__with_a_placeholder_of_no_vault__is_asked_for():
    now = plain_turn().evolve(vault={"<CPF_1>": "529.982.247-25"})
    asked = {"order_id": "PED-1", "reason": "defeito"}
    port = caller_of(FakeTransport({}))

    known = await port.check(now, ToolRequest("solicitar_troca", {**asked, "cpf": "<CPF_1>"}))
    unknown = await port.check(now, ToolRequest("solicitar_troca", {**asked, "cpf": "<CPF_2>"}))

    assert known.metadata["reason"] == "ready"
    assert [error["field"] for error in unknown.field_errors] == ["cpf"]


# -- workflows ---------------------------------------------------------------------------------


async def test_node__of_a_confirmed_run__takes_nothing_from_the_message_that_said_yes():
    flow = workflow({"id": "trocar", "tool": "trocar", "params": {"order_id": "$.input.order_id"}})
    said = Inbound(
        channel="web", text="sim", agent=None, message_id="m2", session="s1",
        tool_arguments={"reason": "outro", "x": "1"}, payload={"protocol": "9"},
    )  # fmt: skip
    server = Server()

    await engine(server, MemoryStore()).start(turn(flow, inbound=said), "troca", INPUTS, RUN)

    assert [call[1] for call in server.calls] == [{"order_id": "PED-1"}]


async def test_confirmed_execution__with_an_argument_read_from_the_first_message__runs():
    schema = {"order_id": Argument(source="extraction")}
    asks = tool(
        confirmation_required=True, args_schema=schema,
        execution=Execution(mode="workflow", workflow="troca"),
    )  # fmt: skip
    grants = Yes(id="q1", tool="solicitar", arguments=json.dumps(INPUTS, separators=(",", ":")))
    server = Server()
    workflows = engine(server, MemoryStore(), confirmations=grants)
    flow = workflow({"id": "trocar", "tool": "trocar", "params": {"order_id": "$.input.order_id"}})
    now = turn(flow, tools={"solicitar": asks})

    _turn, result = await workflows.start(now, "troca", INPUTS, RUN, confirmed=YES)

    assert (result.status, len(grants.used)) == ("COMPLETED", 1)


async def test_same_request__of_another_environment__is_carried_out_there():
    server, store = Server(), MemoryStore()
    flow = workflow({"id": "trocar", "tool": "trocar", "params": {"order_id": "$.input.order_id"}})
    staging, production = turn(flow, environment="staging"), turn(flow, environment="production")

    await engine(server, store).start(staging, "troca", INPUTS, RUN)
    other: Any = replace(production, id="t2")
    await engine(server, store).start(other, "troca", INPUTS, "other")

    assert server.effects == ["trocar", "trocar"]
