"""An action from its first word to its end (platform facts 15.1, 16; the regression set of 15.1)."""

from dataclasses import replace

import pytest

from apps.runtime.config import KindConfig
from apps.runtime.dialogue import dialogue_load
from apps.runtime.ports import RemoteResult, ToolUnavailable
from apps.tools.config import (
    Argument,
    Execution,
    PreValidation,
    Response,
    ToolConfig,
    WorkflowConfig,
    WorkflowNode,
    WorkflowPause,
)
from apps.tools.tests.talk import CANCEL, PausingWorkflow, Talk, world
from apps.tools.tests.world import FakeTransport

pytestmark = pytest.mark.asyncio

DONE = {"protocol": "CAN-1", "status": "cancelado"}


def talk(result=DONE, **options):
    transport = FakeTransport({"cancelar_pedido": result, "contestar": {"ok": True, "result": {}}})
    return Talk(transport=transport, **options)


async def confirmed(conversation):
    """Bring ``conversation`` to its question for a yes."""
    await conversation.say("quero cancelar meu pedido")
    await conversation.say("o pedido é o PED-1001")
    await conversation.say("chegou com defeito")
    return conversation


# -- collecting ----------------------------------------------------------------------------------


async def test_cancel_then_order_number__stays_in_the_cancellation():
    conversation = talk()

    await conversation.say("quero cancelar meu pedido")
    assert conversation.said == "Qual é o número do pedido?"
    await conversation.say("o pedido é o PED-1001")

    transaction = conversation.dialogue.transaction
    assert transaction.values == {"order_id": "PED-1001"}
    assert (transaction.tool, transaction.status) == ("cancelar_pedido", "COLLECTING_PARAMETERS")
    assert conversation.said == "Qual é o motivo?"


async def test_dispute__money_as_people_write_it__fills_the_value():
    conversation = talk(action="contestar")

    await conversation.say("quero contestar a cobrança")
    await conversation.say("R$ 71,99")

    assert conversation.dialogue.transaction.status == "AWAITING_CONFIRMATION"
    assert conversation.dialogue.transaction.values == {"valor": 71.99}


async def test_values_said_at_once__are_not_asked_again():
    conversation = talk()

    await conversation.say("quero cancelar o pedido PED-77, motivo: comprei errado")

    assert conversation.status == "AWAITING_CONFIRMATION"
    assert conversation.dialogue.transaction.values == {
        "order_id": "PED-77",
        "reason": "comprei errado",
    }


async def test_value_from_the_context__is_not_asked():
    conversation = talk(context={"contract_key": "PED-5"})

    await conversation.say("quero cancelar meu pedido")

    assert conversation.said == "Qual é o motivo?"


async def test_values_are_merged_over_turns__never_rebuilt():
    conversation = await confirmed(talk())

    assert conversation.dialogue.transaction.values == {
        "order_id": "PED-1001",
        "reason": "chegou com defeito",
    }


async def test_same_question_three_times__is_given_up_in_words():
    conversation = talk()
    await conversation.say("quero cancelar meu pedido")

    for _ in range(3):
        await conversation.say("?")

    assert conversation.dialogue.transaction is None
    assert conversation.dialogue.last_transaction.reason == "not_understood"
    assert conversation.said.startswith("Não consegui entender sua resposta")


async def test_negative_answer_to_a_question_for_a_value__is_no_value():
    conversation = talk()
    await conversation.say("quero cancelar meu pedido")
    await conversation.say("PED-1001")

    await conversation.say("não")

    assert conversation.dialogue.transaction.values == {"order_id": "PED-1001"}
    assert conversation.dialogue.transaction.status == "COLLECTING_PARAMETERS"


class Extractor(KindConfig):
    """As a model profile of another app: that there is one is enough."""

    kind = "model_profile"


def reading(*answers):
    """A conversation whose tenant has a model that reads parameters, and what it answers."""
    release = world()
    profile = {("model_profile", "transaction_parameter_extraction"): Extractor()}
    items = {**release.items, **profile}
    return talk(release=replace(release, items=items), readings=answers)


async def test_model_reads_what_no_rule_does__and_only_what_was_said():
    conversation = reading('{"reason": "tela trincada", "order_id": "PED-9"}')

    await conversation.say("quero cancelar meu pedido porque veio com a tela trincada")

    assert conversation.dialogue.transaction.values == {"reason": "tela trincada"}
    assert conversation.said == "Qual é o número do pedido?"


@pytest.mark.parametrize("answer", ["{}", "não sei", '{"reason": null}'])
async def test_model_reads_nothing__the_customer_is_asked(answer):
    conversation = reading(answer)

    await conversation.say("quero cancelar o pedido PED-77")

    assert conversation.dialogue.transaction.values == {"order_id": "PED-77"}
    assert conversation.said == "Qual é o motivo?"


async def test_request_that_nobody_else_answers__is_the_text_that_was_asked():
    conversation = talk()
    await conversation.say("quero cancelar o pedido PED-77")

    await conversation.say("porque quero um maior")

    assert conversation.dialogue.transaction.values["reason"] == "porque quero um maior"


# -- confirming ----------------------------------------------------------------------------------


async def test_question__names_every_value_that_will_be_sent():
    conversation = await confirmed(talk())

    assert conversation.said == (
        "Você confirma: Cancelar o pedido (pedido: PED-1001; motivo: chegou com defeito)?"
        " Responda sim ou não."
    )
    assert conversation.transport.calls == []


@pytest.mark.parametrize("yes", ["sim", "Sim, por favor", "pode confirmar", "yes", "sí", "ok"])
async def test_plain_yes__runs_exactly_what_was_asked_and_no_model_is_asked(yes):
    conversation = await confirmed(talk())

    await conversation.say(yes)

    assert [call[:2] for call in conversation.transport.calls] == [
        ("cancelar_pedido", {"order_id": "PED-1001", "reason": "chegou com defeito"})
    ]
    assert conversation.status == "COMPLETED"
    assert conversation.asked_model == 0


@pytest.mark.parametrize("no", ["não", "não, obrigado", "no", "esquece", "deixa pra lá"])
async def test_no_or_giving_up__cancels_and_runs_nothing(no):
    conversation = await confirmed(talk())

    await conversation.say(no)

    assert conversation.transport.calls == []
    assert conversation.status == "CANCELLED"
    assert conversation.said == "Tudo bem, não vou fazer isso."


@pytest.mark.parametrize(
    "unclear",
    [
        "ainda não. Eu não contratei esse item",
        "Você não acha que devemos apagar a luz?",
        "talvez",
        "sim?",
        "acho que sim",
        "cancela",  # the action itself is a cancellation
    ],
)
async def test_neither_yes_nor_no__runs_nothing_and_stays_open(unclear):
    conversation = await confirmed(talk())

    await conversation.say(unclear)

    assert conversation.transport.calls == []
    assert conversation.status == "AWAITING_CONFIRMATION"


async def test_unclear_and_the_tenant_wants_a_model__its_word_counts():
    conversation = await confirmed(talk(opinion="yes"))

    await conversation.say("acho que sim")

    assert conversation.asked_model == 1
    assert conversation.last.reading.source == "semantic"
    assert conversation.status == "COMPLETED"


async def test_yes_with_another_request__confirms_and_keeps_the_rest():
    conversation = await confirmed(talk())

    await conversation.say("sim, e me manda a fatura 3000131180")

    assert conversation.status == "COMPLETED"
    assert conversation.last.reading.rest == "me manda a fatura 3000131180"
    assert conversation.transport.calls[0][1]["order_id"] == "PED-1001"


@pytest.mark.parametrize("said", ["não, é o pedido PED-1002", "sim, mas o pedido é o PED-1002"])
async def test_correction__is_asked_anew_and_the_old_yes_is_void(said):
    conversation = await confirmed(talk())
    first = conversation.dialogue.transaction.confirmation

    await conversation.say(said)
    assert conversation.transport.calls == []
    assert "PED-1002" in conversation.said
    assert conversation.dialogue.transaction.confirmation != first
    await conversation.say("sim")

    assert conversation.transport.calls[0][1]["order_id"] == "PED-1002"


async def test_yes_with_a_change_nobody_can_read__is_no_yes():
    conversation = await confirmed(talk())

    await conversation.say("sim, mas quero o azul")

    assert conversation.transport.calls == []
    assert conversation.status == "AWAITING_CONFIRMATION"


async def test_expired__is_asked_again_and_the_new_yes_counts():
    conversation = await confirmed(talk())
    conversation.confirmations.expired.add(conversation.dialogue.transaction.confirmation)

    await conversation.say("sim")
    assert conversation.transport.calls == []
    assert conversation.said.startswith("A confirmação anterior expirou.")
    await conversation.say("sim")

    assert len(conversation.transport.calls) == 1


async def test_release_changed_between_question_and_yes__is_asked_again():
    conversation = await confirmed(talk())
    changed = CANCEL.model_copy(update={"idempotent": True, "remote_name": "cancelar_pedido"})
    conversation.release = world(cancelar_pedido=changed)

    await conversation.say("sim")
    assert conversation.transport.calls == []
    assert conversation.said.startswith("Os dados mudaram desde a pergunta.")
    await conversation.say("sim")

    assert len(conversation.transport.calls) == 1


async def test_context_changed_between_question_and_yes__what_runs_is_what_was_confirmed():
    conversation = talk(context={"contract_key": "PED-5"})
    await conversation.say("quero cancelar meu pedido")
    await conversation.say("comprei errado")
    conversation.context = {"contract_key": "PED-9"}

    await conversation.say("sim")

    assert [call[1]["order_id"] for call in conversation.transport.calls] in ([], ["PED-5"])
    if not conversation.transport.calls:
        assert conversation.status == "AWAITING_CONFIRMATION"


async def test_same_turn_again_after_a_crash__runs_once():
    conversation = await confirmed(talk())
    before = conversation.stored
    await conversation.say("sim")
    conversation.stored = before

    await conversation.say("sim", again=True)

    assert len(conversation.transport.calls) == 1
    assert conversation.status == "COMPLETED"


async def test_yes_twice__the_second_is_a_new_interaction():
    conversation = await confirmed(talk())
    await conversation.say("sim")

    await conversation.say("sim", elsewhere=True)

    assert len(conversation.transport.calls) == 1
    assert conversation.last.reading.kind == "none"


async def test_another_session__cannot_use_the_confirmation():
    conversation = await confirmed(talk())
    row = conversation.confirmations.rows[conversation.dialogue.transaction.confirmation]
    row["session"] = "default:agent:other"

    await conversation.say("sim")

    assert conversation.transport.calls == []


# -- leaving ---------------------------------------------------------------------------------------


async def test_routed_elsewhere__is_cancelled_as_a_shift_and_keeps_topics():
    conversation = await confirmed(talk())

    await conversation.say("quero ver minha fatura", elsewhere=True)

    assert conversation.transport.calls == []
    last = conversation.dialogue.last_transaction
    assert (last.status, last.reason) == ("CANCELLED", "intent_shift")
    assert conversation.dialogue.transaction is None
    assert conversation.said == ""


# -- ending ----------------------------------------------------------------------------------------


async def test_done__evidence_is_kept_by_resource_and_the_flow_is_closed():
    conversation = await confirmed(talk())

    await conversation.say("sim")

    [evidence] = conversation.dialogue.evidence
    assert (evidence.tool, evidence.resource, evidence.status) == (
        "cancelar_pedido",
        "PED-1001",
        "COMPLETED",
    )
    assert evidence.summary == DONE
    assert conversation.dialogue.transaction is None
    assert conversation.dialogue.boundary is True


async def test_tool_says_no__is_failed_with_its_words():
    conversation = await confirmed(talk(RemoteResult(ok=False, error="Pedido já enviado.")))

    await conversation.say("sim")

    assert conversation.status == "FAILED"
    assert conversation.said == "Não foi possível concluir: Pedido já enviado."


async def test_server_away__is_failed_in_words_that_name_no_connection():
    conversation = await confirmed(talk(ToolUnavailable("ConnectError at 10.0.0.1", sent=False)))

    await conversation.say("sim")

    assert (conversation.status, conversation.said) == ("FAILED", "Não foi possível concluir.")


async def test_sent_without_an_answer__is_unknown_said_so_and_never_sent_again():
    conversation = await confirmed(talk(ToolUnavailable("gone", sent=True)))

    await conversation.say("sim")
    assert conversation.status == "UNKNOWN"
    assert conversation.said.startswith("Não recebi a confirmação de que deu certo")
    await conversation.say("sim", elsewhere=True)

    assert len(conversation.transport.calls) == 1


@pytest.mark.parametrize(
    ("results", "status", "counts"),
    [
        (
            [{"id": "A", "success": True}, {"id": "B", "success": False}],
            "PARTIAL_SUCCESS",
            (2, 1, 1),
        ),
        ([{"id": "A", "ok": True}, {"id": "B", "ok": True}], "COMPLETED", (2, 2, 0)),
        ([{"id": "A", "ok": False}, {"id": "B", "ok": False}], "FAILED", (2, 0, 2)),
    ],
)
async def test_several_items__each_counts_for_itself(results, status, counts):
    conversation = await confirmed(talk({"results": results}))

    await conversation.say("sim")

    last = conversation.dialogue.last_transaction
    assert last.status == status
    assert (last.items_count, last.items_succeeded, last.items_failed) == counts


async def test_direct_presentation__is_said_without_a_model():
    direct = CANCEL.model_copy(
        update={
            "response": Response(
                template="Pedido {arguments.order_id} cancelado, protocolo {result.protocol}.",
                direct=True,
            )
        }
    )
    conversation = await confirmed(talk(release=world(cancelar_pedido=direct)))

    await conversation.say("sim")

    assert conversation.said == "Pedido PED-1001 cancelado, protocolo CAN-1."


async def test_presentation_with_a_place_that_leads_nowhere__is_not_said():
    broken = CANCEL.model_copy(
        update={"response": Response(template="Protocolo {result.nada}.", direct=True)}
    )
    conversation = await confirmed(talk(release=world(cancelar_pedido=broken)))

    await conversation.say("sim")

    assert (conversation.said, conversation.status) == ("", "COMPLETED")


# -- pre-validation --------------------------------------------------------------------------------

VALIDATE = ToolConfig(
    mcp_server="retail", args_schema={"order_id": Argument()}, requires=["order_id"]
)


def validated(answer, *, fail_open=False, **tools):
    tool = CANCEL.model_copy(
        update={"pre_validation": PreValidation(tool="validar", fail_open=fail_open)}
    )
    transport = FakeTransport({"cancelar_pedido": DONE, "validar": answer, "devolver": DONE})
    return Talk(transport=transport, release=world(cancelar_pedido=tool, validar=VALIDATE, **tools))


async def test_not_eligible__ends_out_of_scope_before_anybody_is_asked():
    conversation = await confirmed(
        validated({"eligible": False, "status": "shipped", "reason": "O pedido já saiu."})
    )

    assert conversation.status == "OUT_OF_SCOPE"
    assert conversation.said == "O pedido já saiu."
    assert conversation.dialogue.transaction is None


async def test_eligible__the_customer_is_asked():
    conversation = await confirmed(validated({"eligible": True}))

    assert conversation.status == "AWAITING_CONFIRMATION"


@pytest.mark.parametrize(
    "answer", [ToolUnavailable("down", sent=False), {"something": "else"}, "text"]
)
async def test_validator_cannot_say__stops_unless_fail_open(answer):
    closed = await confirmed(validated(answer))
    opened = await confirmed(validated(answer, fail_open=True))

    assert closed.status == "BLOCKED"
    assert closed.said.startswith("Não consegui verificar")
    assert opened.status == "AWAITING_CONFIRMATION"


async def test_validator_resolves_values__they_are_asked_and_sent():
    decision = {"resolved_arguments": {"order_id": "PED-0001001"}}
    conversation = await confirmed(validated({"eligible": True, "transaction_decision": decision}))

    assert "PED-0001001" in conversation.said
    await conversation.say("sim")

    assert conversation.transport.calls[-1][1]["order_id"] == "PED-0001001"


async def test_validator_changes_the_tool__is_asked_before_it_runs():
    decision = {
        "target_tool": "devolver",
        "requires_reconfirmation": True,
        "confirmation_message": "O pedido já chegou. Abro uma devolução?",
    }
    returning = CANCEL.model_copy(update={"description": "Devolver"})
    conversation = await confirmed(
        validated({"eligible": True, "transaction_decision": decision}, devolver=returning)
    )

    assert conversation.said == "O pedido já chegou. Abro uma devolução?"
    await conversation.say("sim")

    assert [call[0] for call in conversation.transport.calls] == ["validar", "devolver"]


# -- workflows -------------------------------------------------------------------------------------


def flowing():
    tool = CANCEL.model_copy(update={"execution": Execution(mode="workflow", workflow="flow")})
    return talk(release=world(cancelar_pedido=tool), workflows=PausingWorkflow())


async def test_workflow_pauses__its_question_is_put_and_the_literal_answer_resumes():
    conversation = await confirmed(flowing())
    await conversation.say("sim")
    assert (conversation.status, conversation.said) == ("WORKFLOW_PAUSED", "Já chegou?")
    assert conversation.dialogue.pending is True

    await conversation.say("sim")

    assert conversation.workflows.answers == ["sim"]
    assert conversation.status == "COMPLETED"
    assert conversation.dialogue.evidence[0].summary == {"protocolo": "W-1"}


async def test_workflow_paused__answer_with_more_to_say__is_read_anew_first():
    conversation = await confirmed(flowing())
    await conversation.say("sim")

    await conversation.say("ainda não. Eu não contratei esse item", elsewhere=True)

    reading = conversation.last.reading
    assert (reading.kind, reading.reason) == ("unclear", "contextual_reentry")
    assert reading.rest == "Eu não contratei esse item"
    assert conversation.workflows.answers == []
    assert len(conversation.workflows.abandoned) == 1


async def test_workflow_paused__yes_and_another_request__resumes_and_keeps_the_rest():
    conversation = await confirmed(flowing())
    await conversation.say("sim")

    await conversation.say("sim, e qual é o prazo de entrega")

    assert conversation.last.reading.rest == "qual é o prazo de entrega"
    assert conversation.workflows.answers == ["sim"]
    assert conversation.status == "COMPLETED"


async def test_workflow_paused__given_up__is_abandoned_and_its_latch_cleared():
    conversation = await confirmed(flowing())
    await conversation.say("sim")

    await conversation.say("esquece")

    assert len(conversation.workflows.abandoned) == 1
    assert (conversation.status, conversation.dialogue.transaction) == ("CANCELLED", None)
    await conversation.say("ah espera", elsewhere=True)
    assert conversation.last.reading.kind == "none"


async def test_workflow_paused__given_up_and_not_all_taken_back__claims_nothing():
    conversation = await confirmed(flowing())
    await conversation.say("sim")
    conversation.workflows.left = ("reserva",)

    await conversation.say("deixa pra lá")

    assert conversation.status == "UNKNOWN"
    assert conversation.said.startswith("Não recebi a confirmação")


async def test_workflow_given_up_after_something_was_done__does_not_say_that_nothing_was():
    conversation = await confirmed(flowing())
    flow = WorkflowConfig(
        start="open",
        nodes=[
            WorkflowNode(
                id="open", tool="contestar", params={"valor": "1"}, at_most_once=True, next="ask"
            ),
            WorkflowNode(id="ask", pause=WorkflowPause(key="k", question="Já chegou?")),
        ],
    )
    items = {**conversation.release.items, ("workflow", "flow"): flow}
    await conversation.say("sim")
    conversation.release = replace(conversation.release, items=items)

    await conversation.say("esquece")

    assert conversation.status == "UNKNOWN"
    assert conversation.said.startswith("Não recebi a confirmação de que deu certo")


async def test_workflow_paused__never_understood__is_given_up():
    conversation = await confirmed(flowing())
    await conversation.say("sim")

    for _ in range(3):
        await conversation.say("hein")

    assert conversation.status == "CANCELLED"
    assert len(conversation.workflows.abandoned) == 1


# -- state ----------------------------------------------------------------------------------------


async def test_stored_dialogue_of_an_older_and_a_newer_version__still_loads():
    old = '{"transaction":{"id":"x","status":"COLLECTING_PARAMETERS","tool":"t","agent":"a"}}'
    new = '{"transaction":{"id":"x","status":"COLLECTING_PARAMETERS","tool":"t","agent":"a","more":1},"also":2}'

    assert dialogue_load(old) == dialogue_load(new)
    assert dialogue_load(dialogue_load(old).dump()) == dialogue_load(old)


async def test_state_says_collecting_without_a_transaction__is_reported_not_restarted():
    from apps.runtime.turn import SessionState
    from apps.tools.transactions.machine import inconsistency

    state = SessionState(next_state="COLLECTING_ORDER_PARAMETERS")

    finding = inconsistency(state.dialogue, state.next_state)

    assert finding is not None
    assert finding.code == "TRANSACTION_INCONSISTENT"


async def test_what_the_runtime_says__claims_nothing_that_a_rail_would_have_to_doubt():
    from apps.governance.detection.action_claims import claims_find
    from apps.tools.transactions import phrases

    for texts in phrases._SAYINGS.values():
        for text in texts.values():
            assert claims_find(text) == set(), text
