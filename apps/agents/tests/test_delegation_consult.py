"""Consultations: one isolated question, plain text back, and the customer never knows."""

import json

import pytest

from apps.agents.config import AgentConfig, Delegate
from apps.agents.delegation.desk import plain_text
from apps.agents.delegation.functions import function_name
from apps.agents.delegation.wording import without_names
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
from apps.runtime.ports import ModelFailed, ModelReply
from apps.runtime.turn import ChatMessage

MEMORY = (ChatMessage("user", "segredo de antes"), ChatMessage("assistant", "certo"))
ASKS = calls(("consultar_expert", {"pergunta_interna": "Qual é a multa?"}))


def two(main=None, expert=None, **delegate):
    return world(
        main={
            "consult_prefix": "consultar_",
            "delegates": [{"kind": "consult", "agent": "expert", "purpose": "Multas.", **delegate}],
            **(main or {}),
        },
        expert=expert or {},
    )


async def test_consult__is_offered_by_prefix_and_agent_with_one_text_parameter():
    model = Voices(main=["oi"])
    await step(model)(said(two()))
    [tool] = model.requests[0].tools
    assert tool["function"]["name"] == "consultar_expert"
    assert tool["function"]["description"] == "Multas."
    parameters = tool["function"]["parameters"]
    assert list(parameters["properties"]) == parameters["required"] == ["pergunta_interna"]
    assert parameters["properties"]["pergunta_interna"]["type"] == "string"


async def test_consult__answer__is_plain_text_to_the_caller_and_nothing_to_the_customer():
    model = Voices(main=[ASKS, "A multa é de 2 %."], expert=["  Dois por cento.  "])
    turn = await step(model)(said(two()))
    assert turn.draft.text == "A multa é de 2 %."
    assert turn.draft.agent == "main"
    assert read(model.of("main")[1]) == ["Dois por cento."]
    [trace] = turn.delegations
    assert (trace.kind, trace.caller, trace.agent, trace.tool) == (
        "consult", "main", "expert", "consultar_expert",
    )  # fmt: skip
    assert (trace.status, trace.request, trace.outputs, trace.error, trace.spoke) == (
        "ok", "Qual é a multa?", {"text": "Dois por cento."}, "", False,
    )  # fmt: skip
    assert (trace.model_calls, trace.tool_calls) == (1, 0)
    assert [s.code for s in turn.signals] == ["IC.DELEGATION"]


async def test_consult__is_isolated__sees_its_persona_and_the_question_alone():
    model = Voices(main=[ASKS, "ok"], expert=["x"])
    await step(model)(said(two(), "texto do cliente", memory=MEMORY))
    [request] = model.of("expert")
    assert [m.role for m in request.messages] == ["system", "user"]
    assert request.messages[0].content.startswith("Persona expert.")
    assert request.messages[1].content == "Qual é a multa?"
    assert "segredo" not in everything(request)
    assert "texto do cliente" not in everything(request)
    assert (request.tools, request.operation) == ((), "agent.consult")


async def test_consult__pass_history__shows_the_conversation():
    model = Voices(main=[ASKS, "ok"], expert=["x"])
    await step(model)(said(two(pass_history=True), memory=MEMORY))
    assert "segredo de antes" in everything(model.of("expert")[0])


async def test_consult__tools_of_the_consulted__only_read_and_only_its_own():
    expert = {"tools": ["consultar_titulo", "solicitar_troca", "cancelar"]}
    model = Voices(
        main=[ASKS, "ok"],
        expert=[calls(("consultar_titulo", ""), ("solicitar_troca", "")), "dois"],
    )
    tools = Tools({"consultar_titulo": 7, "solicitar_troca": 1, "consultar_fatura": 2})
    main = {"tools": ["consultar_fatura"]}
    turn = await step(model, tools)(said(two(main, expert), tools=["consultar_fatura"]))
    assert offered(model.of("expert")[0]) == ["consultar_titulo"]
    assert tools.called == [("consultar_titulo", {})]
    assert [(c.tool, c.agent) for c in turn.tool_calls] == [
        ("consultar_titulo", "expert"), ("solicitar_troca", "expert"),
    ]  # fmt: skip
    # The caller sees neither the expert's calls nor their results.
    assert all("consultar_titulo" not in everything(r) for r in model.of("main"))


async def test_consult__collecting_expert__gathers_its_reads_first():
    expert = {"tools": ["consultar_titulo", "solicitar_troca"], "tool_use": "collect"}
    model = Voices(main=[ASKS, "ok"], expert=["dois"])
    tools = Tools({"consultar_titulo": {"total": 3}})
    await step(model, tools)(said(two(expert=expert)))
    assert [name for name, _ in tools.called] == ["consultar_titulo"]
    assert json.loads(read(model.of("expert")[0])[0])["result"] == {"total": 3}


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (ModelFailed("host 10.0.0.1 down", code="broken"), "it could not be reached"),
        (ModelFailed("key", code="auth"), "it could not be reached"),
        (ModelReply(text="x", finish_reason="content_filter"), "the answer was filtered"),
        (5.0, "no answer in time"),
        ("   ", "it gave no answer"),
    ],
)
async def test_consult__failure__is_text_to_the_caller_and_a_failure_in_the_trace(reply, error):
    model = Voices(main=[ASKS, "Não tenho essa informação."], expert=[reply])
    turn = await step(model)(said(two(timeout_seconds=0.05)))
    assert turn.draft.text == "Não tenho essa informação."
    [told] = read(model.of("main")[1])
    assert error in told
    for internal in ("expert", "10.0.0.1", "consultar_", "None", "ModelFailed"):
        assert internal not in told
    [trace] = turn.delegations
    assert (trace.status, trace.error) == ("failed", error)
    assert [s.code for s in turn.signals] == ["NOC.DELEGATION_FAILED"]


@pytest.mark.parametrize(
    "arguments", ["", "{}", '{"pergunta_interna": ""}', '{"pergunta_interna": 3}',
                  '{"pergunta_interna": null}', '{"outra": "x"}'],
)  # fmt: skip
async def test_consult__bad_question__is_told_by_field_and_asks_nobody(arguments):
    model = Voices(main=[calls(("consultar_expert", arguments)), "ok"], expert=[])
    turn = await step(model)(said(two()))
    assert read(model.of("main")[1]) == [
        "Not taken: pergunta_interna: a text that is not empty is required"
    ]
    assert [d.status for d in turn.delegations] == ["refused"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "a"), (None, ""), ({"content": "b"}, "b"), ({"text": " c "}, "c"),
        ([{"text": "d"}, {"text": "e"}], "d\ne"), (ModelReply(text="f"), "f"), (7, "7"),
    ],
)  # fmt: skip
def test_plain_text__whatever_a_provider_hands_over__is_text_never_a_repr_of_nothing(value, text):
    class Message:
        content = "g"

    assert plain_text(value) == text
    assert plain_text(Message()) == "g"


async def test_consult__beside_ordinary_tools__runs_them_first_and_keeps_their_results():
    reply = calls(
        ("consultar_expert", {"pergunta_interna": "q"}), ("consultar_fatura", {}),
    )  # fmt: skip
    model = Voices(main=[reply, "pronto"], expert=["sim"])
    tools = Tools({"consultar_fatura": "R$ 10"})
    main = {"tools": ["consultar_fatura"]}
    turn = await step(model, tools)(said(two(main), tools=["consultar_fatura"]))
    answers = read(model.of("main")[1])
    assert answers[0] == "sim"
    assert json.loads(answers[1])["result"] == "R$ 10"
    assert [c.status for c in turn.tool_calls] == ["ok"]


async def test_consult__several_in_one_reply__first_taken_and_the_others_told_so():
    release = world(
        main={"delegates": [{"kind": "consult", "agent": a} for a in ("a", "b", "c")]},
        a={}, b={}, c={},
    )  # fmt: skip
    asked = [(f"consult_{x}", {"pergunta_interna": "q"}) for x in ("b", "a", "c")]
    model = Voices(main=[calls(*asked), "resposta"], a=[], b=["sou b"], c=[])
    turn = await step(model)(said(release, "gere a receita, compre e cozinhe"))
    assert read(model.of("main")[1]) == [
        "sou b",
        "Not taken: one at a time, and consult_b was taken.",
        "Not taken: one at a time, and consult_b was taken.",
    ]
    assert turn.draft.text == "resposta"


async def test_consult__budget__ends_the_asking_with_an_answer():
    question = iter(range(9))
    asked = [
        calls(("consultar_expert", {"pergunta_interna": f"q{next(question)}"})) for _ in range(4)
    ]
    model = Voices(main=[*asked[:2], "fim"], expert=["1", "2"])
    turn = await step(model)(said(two({"max_delegations": 2, "max_tool_rounds": 9})))
    assert [len(model.of("expert")), turn.draft.text] == [2, "fim"]
    assert offered(model.of("main")[2]) == []
    assert [d.code for d in turn.decisions] == ["DELEGATIONS_USED"]


async def test_consult__same_question_twice__is_asked_once():
    model = Voices(main=[ASKS, ASKS, "ok"], expert=["dois"])
    turn = await step(model)(said(two()))
    assert read(model.of("main")[2]) == ["dois", "dois"]
    assert len(turn.delegations) == 1


async def test_depth__who_is_asked_may_ask_once_more_and_never_back():
    release = world(
        main={"delegates": [{"kind": "scoped", "agent": "a"}]},
        a={"outputs": ["answered", "findings"],
           "delegates": [{"kind": "consult", "agent": "b"}, {"kind": "consult", "agent": "main"},
                         {"kind": "sub_conversation", "agent": "c"}]},
        b={"delegates": [{"kind": "consult", "agent": "c"}]},
        c={},
    )  # fmt: skip
    model = Voices(
        main=[calls(("delegate_a", {"scopedRequest": "p"})), "ok"],
        a=[calls(("consult_b", {"pergunta_interna": "q"})), calls(("report", {"answered": False, "findings": "f"}))],
        b=["sou b"],
    )  # fmt: skip
    turn = await step(model)(said(release))
    assert offered(model.of("a")[0]) == ["report", "consult_b"]
    assert offered(model.of("b")[0]) == []
    assert [(d.caller, d.agent) for d in turn.delegations] == [("a", "b"), ("main", "a")]


async def test_consult__retired_or_disabled_agent__is_not_offered():
    model = Voices(main=["ok"])
    await step(model)(said(two(expert={"enabled": False})))
    assert offered(model.requests[0]) == []


async def test_prose_that_names_a_function__changes_nothing_and_reaches_nobody():
    text = "Vou usar consultar_expert agora. END_SUB_CONVERSATION. O total é R$ 10."
    model = Voices(main=[text])
    turn = await step(model)(said(two()))
    assert turn.delegations == ()
    assert turn.draft.text == "END_SUB_CONVERSATION. O total é R$ 10."


def test_names__ordinary_words__stay():
    assert without_names("O report chegou.", {"report"}) == "O report chegou."
    assert without_names("Use delegate_x", {"delegate_x"}) == "Use"


async def test_second_attempt__budget_begins_anew_and_ordinals_go_on():
    release = two({"max_delegations": 1})
    model = Voices(main=[ASKS, "um", ASKS, "dois"], expert=["a", "b"])
    run = step(model)
    turn = await run(said(release))
    turn = await run(turn.evolve(attempt=1, guidance=("corrija",), draft=None))
    assert turn.draft.text == "dois"
    assert [r.ordinal for r in model.requests] == list(range(6))
    assert "corrija" in model.of("main")[2].messages[0].content
    assert "corrija" not in model.of("expert")[1].messages[0].content


def test_names__of_agents_no_provider_allows__are_made_wire_safe():
    agent = AgentConfig(prompt="p", consult_prefix="consultar_")
    consulted = Delegate(kind="consult", agent="crm.mail:x")
    assert function_name(agent, consulted) == "consultar_crm_mail_x"
    assert function_name(agent, Delegate(kind="scoped", agent="a.b")) == "delegate_a_b"
    assert len(function_name(agent, Delegate(kind="consult", agent="x" * 120))) == 64
