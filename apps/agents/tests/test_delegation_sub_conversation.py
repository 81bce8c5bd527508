"""A specialist holds the conversation: begun, kept, ended, left, and never without an end."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest

from apps.agents.config import Delegate
from apps.agents.delegation.functions import STATUSES, end_read, request_read
from apps.agents.tests.builders import Tools
from apps.agents.tests.delegation_world import (
    Voices,
    calls,
    everything,
    offered,
    read,
    said,
    step,
    world,
)
from apps.runtime.dialogue import Dialogue, SubConversation
from apps.runtime.outcomes import Blocked
from apps.runtime.ports import ModelFailed, ModelReply
from apps.runtime.turn import ChatMessage, Draft, ToolCall

REQUEST, END = "request_specialist_sub_conversation", "end_specialist_sub_conversation"
ASKS = calls((REQUEST, {"specialist_role": "acordo", "initial_context": "Quer parcelar."}),
             text="Vou te transferir!")  # fmt: skip
ENDS = calls(
    (END, {"status": "completed", "final_result": {"parcelas": 3}, "last_user_message": "inventado",
           "message_to_coordinator": "aceitou"}),
    text="Tchau, volto ao principal.",
)  # fmt: skip
SPECIALISTS = [
    {
        "kind": "sub_conversation",
        "agent": "negociador",
        "role": "acordo",
        "purpose": "Parcela dívidas.",
    },
    {"kind": "sub_conversation", "agent": "tecnico"},
]


def trio(main=None, negociador=None, **delegate):
    first = {**SPECIALISTS[0], **delegate}
    return world(
        main={"delegates": [first, SPECIALISTS[1]], **(main or {})},
        negociador=negociador or {},
        tecnico={},
    )


def held(**changes):
    """A dialogue in which the specialist holds the conversation since turn 1."""
    sub = {
        "id": "1-0", "role": "acordo", "agent": "negociador", "coordinator": "main",
        "thread": "1-0", "context": "Quer parcelar.", "turns": 1, "started_turn": 1,
        "started_at": datetime.now(UTC).isoformat(), **changes,
    }  # fmt: skip
    return Dialogue(sub_conversation=SubConversation(**sub))


SLICE = (
    ChatMessage("user", "antes"), ChatMessage("assistant", "resposta antiga"),
    ChatMessage("user", "quero parcelar", thread="1-0"),
    ChatMessage("assistant", "Em quantas vezes?", agent="negociador", thread="1-0"),
)  # fmt: skip


def during(release, text="em três", **changes):
    given = {"agent": "negociador", "method": "delegation", "number": 2, "dialogue": held(),
             "memory": SLICE}  # fmt: skip
    return said(release, text, **{**given, **changes})


# -- the functions and their rules ---------------------------------------------------------------


async def test_functions__coordinator_is_offered_the_request_and_specialist_the_end():
    model = Voices(main=[ASKS], negociador=["Olá"])
    await step(model)(said(trio()))
    [request] = model.of("main")[0].tools
    schema = request["function"]["parameters"]
    assert request["function"]["name"] == REQUEST
    assert schema["required"] == ["specialist_role", "initial_context"]
    assert schema["properties"]["specialist_role"]["enum"] == ["acordo", "tecnico"]
    assert "Parcela dívidas." in request["function"]["description"]
    [end] = model.of("negociador")[0].tools
    assert end["function"]["name"] == END
    assert end["function"]["parameters"]["required"] == [
        "status",
        "final_result",
        "last_user_message",
    ]
    assert end["function"]["parameters"]["properties"]["status"]["enum"] == list(STATUSES)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "specialist_role"), ({"specialist_role": "", "initial_context": "c"}, "specialist_role"),
        ({"specialist_role": 1, "initial_context": "c"}, "specialist_role"),
        ({"specialist_role": "acordo"}, "initial_context"),
        ({"specialist_role": "acordo", "initial_context": "  "}, "initial_context"),
        ({"specialist_role": "dentista", "initial_context": "c"}, "acordo"),
    ],
)  # fmt: skip
def test_request__bad_arguments__are_a_signal_error_with_the_original(arguments, field):
    signal = request_read(arguments, KNOWN).wire
    assert signal["_signal_type"] == "SIGNAL_ERROR"
    assert field in signal["error"]
    assert signal["originalArgs"] == arguments


def test_request__good_arguments__are_the_signal():
    signal = request_read({"specialist_role": "acordo", "initial_context": "c"}, KNOWN)
    assert signal.wire == {
        "_signal_type": "REQUEST_SUB_CONVERSATION",
        "details": {"specialist_role": "acordo", "initial_context": "c"},
    }


KNOWN = {"acordo": Delegate(kind="sub_conversation", agent="negociador")}
GOOD = {"status": "completed", "final_result": {}, "last_user_message": ""}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"status": "done"}, "status"), ({"status": None}, "status"),
        ({"final_result": None}, "final_result"), ({"final_result": []}, "final_result"),
        ({"final_result": "ok"}, "final_result"), ({"last_user_message": None}, "last_user_message"),
        ({"last_user_message": 3}, "last_user_message"),
        ({"message_to_coordinator": {}}, "message_to_coordinator"),
    ],
)  # fmt: skip
def test_end__bad_arguments__are_a_signal_error(change, field):
    signal = end_read({**GOOD, **change}, last_user_message="t").wire
    assert (signal["_signal_type"], signal["error"].split(":")[0]) == ("SIGNAL_ERROR", field)


@pytest.mark.parametrize("missing", ["status", "final_result", "last_user_message"])
def test_end__missing_argument__is_a_signal_error(missing):
    arguments = {key: value for key, value in GOOD.items() if key != missing}
    assert missing in end_read(arguments, last_user_message="t").wire["error"]


@pytest.mark.parametrize("status", STATUSES)
def test_end__every_status__is_taken_and_the_note_is_null_when_absent(status):
    assert end_read({**GOOD, "status": status}, last_user_message="t").wire == {
        "_signal_type": "END_SUB_CONVERSATION",
        "details": {"status": status, "final_result": {}, "last_user_message": "t",
                    "message_to_coordinator": None},
    }  # fmt: skip


# -- it begins ----------------------------------------------------------------------------------


async def test_begin__specialist_answers_in_the_same_turn_and_the_coordinators_text_is_dropped():
    model = Voices(main=[ASKS], negociador=["Posso parcelar em até 5 vezes."])
    turn = await step(model)(said(trio(), "quero parcelar", number=4, memory=SLICE[:2]))
    assert (turn.draft.text, turn.draft.agent) == ("Posso parcelar em até 5 vezes.", "negociador")
    sub = turn.dialogue.sub_conversation
    assert (sub.role, sub.agent, sub.coordinator, sub.context) == (
        "acordo", "negociador", "main", "Quer parcelar.",
    )  # fmt: skip
    assert (sub.turns, sub.started_turn, sub.thread) == (1, 4, "4-0")
    [request] = model.of("negociador")
    assert "Quer parcelar." in request.messages[0].content
    assert [m.content for m in request.messages[1:]] == ["quero parcelar"]
    assert "resposta antiga" not in everything(request)
    [trace] = turn.delegations
    assert (trace.kind, trace.status, trace.caller, trace.agent) == (
        "sub_conversation", "started", "main", "negociador",
    )  # fmt: skip
    assert trace.outputs["_signal_type"] == "REQUEST_SUB_CONVERSATION"
    assert turn.route.agent == "main"


async def test_begin__beside_an_ordinary_tool__its_result_is_kept():
    reply = calls(
        (REQUEST, {"specialist_role": "acordo", "initial_context": "c"}), ("consultar_fatura", {}),
    )  # fmt: skip
    model = Voices(main=[reply], negociador=["Olá"])
    release = trio(main={"tools": ["consultar_fatura"]})
    tools = Tools({"consultar_fatura": "R$ 10"})
    turn = await step(model, tools)(said(release, tools=["consultar_fatura"]))
    assert [(c.tool, c.status, c.agent) for c in turn.tool_calls] == [
        ("consultar_fatura", "ok", "")
    ]
    assert turn.draft.agent == "negociador"
    assert "consultar_fatura" not in everything(model.of("negociador")[0])


async def test_begin__unknown_role__is_an_error_the_coordinator_can_answer_to():
    model = Voices(
        main=[
            calls((REQUEST, {"specialist_role": "dentista", "initial_context": "c"})),
            "Não faço.",
        ]
    )
    turn = await step(model)(said(trio()))
    assert turn.draft.text == "Não faço."
    told = json.loads(read(model.of("main")[1])[0])
    assert told["_signal_type"] == "SIGNAL_ERROR"
    assert told["originalArgs"] == {"specialist_role": "dentista", "initial_context": "c"}
    assert turn.dialogue.sub_conversation is None
    assert [d.status for d in turn.delegations] == ["refused"]


async def test_begin__two_requests_in_one_reply__the_first_is_taken():
    reply = calls(
        (REQUEST, {"specialist_role": "tecnico", "initial_context": "a"}),
        (REQUEST, {"specialist_role": "acordo", "initial_context": "b"}),
    )  # fmt: skip
    model = Voices(main=[reply], tecnico=["sou o técnico"])
    turn = await step(model)(said(trio()))
    assert turn.draft.text == "sou o técnico"
    assert turn.dialogue.sub_conversation.role == "tecnico"


# -- it goes on ---------------------------------------------------------------------------------


async def test_during__only_the_specialist_is_asked_and_sees_its_own_slice():
    model = Voices(negociador=["Fica em R$ 40 por mês."])
    turn = await step(model)(during(trio()))
    assert (turn.draft.text, turn.draft.agent) == ("Fica em R$ 40 por mês.", "negociador")
    [request] = model.requests
    assert [m.content for m in request.messages[1:]] == [
        "quero parcelar", "Em quantas vezes?", "em três",
    ]  # fmt: skip
    assert "Quer parcelar." in request.messages[0].content
    assert turn.dialogue.sub_conversation.turns == 2
    assert request.operation == "agent.specialist"


async def test_during__specialists_tools__are_its_own_and_marked():
    release = trio(negociador={"tools": ["consultar_titulo"]})
    model = Voices(negociador=[calls(("consultar_titulo", "")), "Total 3."])
    turn = await step(model, Tools({"consultar_titulo": 3}))(during(release))
    assert offered(model.requests[0]) == ["consultar_titulo", END]
    assert [(c.tool, c.agent) for c in turn.tool_calls] == [("consultar_titulo", "")]
    assert turn.draft.text == "Total 3."


# -- it ends ------------------------------------------------------------------------------------


async def test_end__coordinator_is_called_at_once_with_the_note_and_its_answer_is_the_customers():
    model = Voices(negociador=[ENDS], main=["Ficou em 3 parcelas. Algo mais?"])
    turn = await step(model)(during(trio()))
    assert (turn.draft.text, turn.draft.agent) == ("Ficou em 3 parcelas. Algo mais?", "main")
    assert turn.dialogue.sub_conversation is None
    assert turn.dialogue.active_agent == "main"
    [request] = model.of("main")
    system = request.messages[0].content
    result = json.loads(system.split("Result: ")[1].splitlines()[0])
    assert result == {
        "role": "acordo", "status": "completed", "final_result": {"parcelas": 3},
        "last_user_message": "em três", "message_to_coordinator": "aceitou",
    }  # fmt: skip
    assert request.messages[-1].content == "em três"
    assert "inventado" not in everything(request)
    [trace] = turn.delegations
    assert (trace.status, trace.tool, trace.outputs["role"]) == ("completed", END, "acordo")
    assert "Tchau" not in turn.draft.text


async def test_end__in_its_first_turn__the_coordinator_answers():
    model = Voices(main=[ASKS, "Pronto, em 3 vezes."], negociador=[ENDS])
    turn = await step(model)(said(trio()))
    assert turn.draft.text == "Pronto, em 3 vezes."
    assert turn.dialogue.sub_conversation is None
    assert [d.status for d in turn.delegations] == ["started", "completed"]


async def test_end__out_of_scope__may_go_to_another_specialist_at_once():
    out = calls((END, {**GOOD, "status": "out_of_scope"}))
    next_one = calls((REQUEST, {"specialist_role": "tecnico", "initial_context": "sem sinal"}))
    model = Voices(negociador=[out], main=[next_one], tecnico=["Vamos ver o sinal."])
    turn = await step(model)(during(trio(), "minha internet caiu"))
    assert (turn.draft.text, turn.draft.agent) == ("Vamos ver o sinal.", "tecnico")
    sub = turn.dialogue.sub_conversation
    assert (sub.agent, sub.coordinator, sub.turns, sub.started_turn) == ("tecnico", "main", 1, 2)
    assert "Em quantas vezes?" not in everything(model.of("tecnico")[0])


async def test_end__bad_arguments__the_specialist_can_try_again():
    bad = calls((END, {"status": "completed"}))
    model = Voices(negociador=[bad, ENDS], main=["Feito."])
    turn = await step(model)(during(trio()))
    assert turn.draft.text == "Feito."
    assert json.loads(read(model.of("negociador")[1])[0])["_signal_type"] == "SIGNAL_ERROR"


async def test_chain__that_never_stops__is_ended_by_the_budget_with_an_answer():
    asks = [calls((REQUEST, {"specialist_role": r, "initial_context": f"c{n}"}))
            for n, r in enumerate(["acordo", "tecnico"] * 5)]  # fmt: skip
    ends = [calls((END, {**GOOD, "status": "out_of_scope"})) for _ in range(10)]
    model = Voices(
        main=[*asks[:3], "Não consigo resolver isso agora."],
        negociador=list(ends),
        tecnico=list(ends),
    )
    turn = await step(model)(said(trio()))
    assert turn.draft.text == "Não consigo resolver isso agora."
    assert len(model.requests) == 7  # 3 there, 3 back, 1 answer
    assert offered(model.of("main")[-1]) == []
    assert turn.dialogue.sub_conversation is None
    # It was told who was asked already, each time.
    assert everything(model.of("main")[-1]).count("Result: ") == 3


async def test_chain__the_policys_hops__bound_it_as_well():
    asks = [
        calls((REQUEST, {"specialist_role": "acordo", "initial_context": f"c{n}"}))
        for n in range(3)
    ]
    ends = [calls((END, {**GOOD, "status": "out_of_scope"})) for _ in range(3)]
    model = Voices(main=[asks[0], "fim"], negociador=ends)
    turn = await step(model, hops_for=lambda turn: 1)(said(trio()))
    assert (turn.draft.text, len(model.of("negociador"))) == ("fim", 1)


async def test_chain__the_same_request_again__is_refused():
    model = Voices(
        main=[ASKS, ASKS, "Certo."], negociador=[calls((END, {**GOOD, "status": "cannot_resolve"}))]
    )
    turn = await step(model)(said(trio()))
    assert turn.draft.text == "Certo."
    assert len(model.of("negociador")) == 1
    assert "already" in json.loads(read(model.of("main")[2])[0])["error"]


# -- budgets and failures ------------------------------------------------------------------------


async def test_turns__used_up__the_coordinator_goes_on_with_a_note():
    model = Voices(main=["Deixe comigo."])
    turn = await step(model)(during(trio(max_turns=3), dialogue=held(turns=3)))
    assert (turn.draft.text, turn.draft.agent) == ("Deixe comigo.", "main")
    assert "turns are used up" in everything(model.requests[0])
    [trace] = turn.delegations
    assert (trace.status, trace.error) == ("needs_followup", "its turns are used up")


async def test_minutes__used_up__the_coordinator_goes_on_with_a_note():
    long_ago = (datetime.now(UTC) - timedelta(minutes=61)).isoformat()
    model = Voices(main=["Deixe comigo."])
    turn = await step(model)(during(trio(), dialogue=held(started_at=long_ago)))
    assert turn.draft.agent == "main"
    assert turn.delegations[0].error == "its time is used up"


@pytest.mark.parametrize("method", ["fallback", "keyword"])
async def test_expired__routing_says_so__the_coordinator_goes_on(method):
    model = Voices(main=["Deixe comigo."])
    turn = during(trio(), agent="main", method=method, metadata={"delegation_expired": "turns"})
    turn = await step(model)(turn)
    assert turn.draft.text == "Deixe comigo."
    assert turn.dialogue.sub_conversation is None
    assert "turns are used up" in everything(model.requests[0])


@pytest.mark.parametrize(
    "reply", [5.0, ModelFailed("x", code="broken"), ModelFailed("x", code="auth"), " "]
)
async def test_failure__of_the_specialist__the_coordinator_goes_on_with_a_note(reply):
    model = Voices(negociador=[reply], main=["Tive um problema, mas sigo com você."])
    turn = await step(model)(during(trio(timeout_seconds=0.05)))
    assert turn.draft.text == "Tive um problema, mas sigo com você."
    [trace] = turn.delegations
    assert trace.status == "failed"
    assert trace.error.startswith("no answer")
    assert turn.dialogue.sub_conversation is None


async def test_failure__slow_action__is_waited_for():
    release = trio(negociador={"tools": ["solicitar_troca"]}, timeout_seconds=0.05)

    class Slow(Tools):
        async def call(self, turn, requests):
            await asyncio.sleep(0.1)
            return await super().call(turn, requests)

    model = Voices(negociador=[calls(("solicitar_troca", ""))], main=["Feito: P-1."])
    done = ToolCall("", "", {}, "ok", result="P-1", action=True)
    turn = await step(model, Slow({"solicitar_troca": done}))(during(release))
    # The coordinator knows what was done, though not how it was asked for.
    assert '"actions":[{"tool":"solicitar_troca","status":"ok","result":"P-1"}]' in everything(
        model.of("main")[0]
    )
    assert [(c.tool, c.status) for c in turn.tool_calls] == [("solicitar_troca", "ok")]
    assert turn.draft.text == "Feito: P-1."


# -- the customer walks away ---------------------------------------------------------------------


async def test_left__route_goes_elsewhere__is_closed_as_cancelled_and_recorded():
    model = Voices(tecnico=["Sou o técnico."])
    turn = during(trio(), "minha internet caiu", agent="tecnico", method="keyword",
                  metadata={"delegation_abandoned": "intent_shift"})  # fmt: skip
    turn = await step(model)(turn)
    assert turn.draft.text == "Sou o técnico."
    assert turn.dialogue.sub_conversation is None
    assert turn.dialogue.active_agent == "tecnico"
    [trace] = turn.delegations
    assert (trace.status, trace.agent, trace.caller) == ("user_cancelled", "negociador", "main")
    assert model.requests[0].operation == "agent.answer"


async def test_left__given_up_without_a_new_subject__the_coordinator_goes_on():
    model = Voices(main=["Sem problema."])
    turn = during(trio(), "esquece", agent="main", method="fallback",
                  metadata={"delegation_abandoned": "user_cancelled"})  # fmt: skip
    turn = await step(model)(turn)
    assert turn.draft.text == "Sem problema."
    assert "user_cancelled" in everything(model.requests[0])


async def test_literal_answer__leaves_the_specialist_where_it_is():
    turn = during(
        trio(), "obrigado", agent="main", method="literal", metadata={"answer": "Por nada!"}
    )
    turn = await step(Voices())(turn)
    assert turn.draft.text == "Por nada!"
    assert turn.dialogue.sub_conversation is not None


# -- a second attempt at the same answer ----------------------------------------------------------


async def test_attempt__after_the_specialist_began__is_the_specialists_again():
    model = Voices(main=[ASKS], negociador=["um", "dois"])
    run = step(model)
    turn = await run(said(trio()))
    turn = await run(turn.evolve(attempt=1, guidance=("corrija",), draft=None))
    assert (turn.draft.text, turn.draft.agent) == ("dois", "negociador")
    assert turn.dialogue.sub_conversation.turns == 1
    assert len(turn.delegations) == 1


async def test_attempt__after_the_specialist_ended__is_the_coordinators_with_the_note():
    model = Voices(negociador=[ENDS], main=["um", "dois"])
    run = step(model)
    turn = await run(during(trio()))
    turn = await run(turn.evolve(attempt=1, guidance=("corrija",), draft=None))
    assert (turn.draft.text, turn.draft.agent) == ("dois", "main")
    assert "parcelas" in everything(model.of("main")[1])
    assert len(model.of("negociador")) == 1


async def test_attempt__counts_the_specialists_turn_once():
    model = Voices(negociador=["um", "dois"])
    run = step(model)
    turn = await run(during(trio()))
    turn = await run(turn.evolve(attempt=1, draft=None))
    assert turn.dialogue.sub_conversation.turns == 2


async def test_coordinator__repeating_what_the_specialist_said__is_cut():
    model = Voices(negociador=[ENDS], main=["Em quantas vezes? Fechado em três parcelas."])
    turn = await step(model)(during(trio()))
    assert turn.draft.text == "Fechado em três parcelas."


async def test_filter__of_the_specialists_answer__ends_the_turn_in_the_operators_words():
    filtered = ModelReply(text="x", finish_reason="content_filter")
    model = Voices(negociador=[filtered], main=[])
    turn = await step(model, refusal_for=lambda turn: "não posso")(during(trio()))
    assert turn.outcome == Blocked(text="não posso", code="CONTENT_FILTER")
    assert len(model.requests) == 1


async def test_prepared__in_the_specialists_part__is_the_runtimes_question():
    class Checking(Tools):
        async def check(self, turn, request):
            assert (turn.route.agent, request.agent) == ("negociador", "negociador")
            return ToolCall(
                request.tool, "s", request.arguments, "refused",
                metadata={"reason": "confirmation_required"},
            )  # fmt: skip

    class Transactions:
        async def propose(self, turn, call):
            assert call.agent == "negociador"
            question = Draft("Confirma?", "negociador", outcome="waiting_confirmation")
            return turn.evolve(prepared=question)

    release = trio(negociador={"tools": ["cancelar"]})
    model = Voices(main=[ASKS], negociador=[calls(("cancelar", ""), text="Feito!")])
    turn = await step(model, Checking(), transactions=Transactions())(said(release))
    assert (turn.draft.text, turn.draft.agent) == ("Confirma?", "negociador")
    assert turn.dialogue.sub_conversation.agent == "negociador"
    assert turn.route.agent == "main"
