"""Scoped sub-agents: silent or speaking, outputs and nothing else, nothing twice, nothing dropped."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.agents.delegation.reports import report_read, report_settled
from apps.agents.delegation.wording import sentences, unserved, without_repeats
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
from apps.runtime.ports import ModelFailed
from apps.runtime.turn import ChatMessage, Draft

OUTPUTS = ["answered", "scopedRequest", "interactionSummary", "findings", "openQuestions"]
PART = calls(("delegate_sub", {"scopedRequest": "Explique a fatura de maio."}))
MEMORY = (ChatMessage("user", "segredo de antes"), ChatMessage("assistant", "certo"))
SECRET = "PALAVRAS DO MUDO"


def pair(main=None, sub=None, **delegate):
    return world(
        main={"delegates": [{"kind": "scoped", "agent": "sub", **delegate}], **(main or {})},
        sub={"outputs": OUTPUTS, **(sub or {})},
    )


def report(text="", **outputs):
    return calls(("report", {"answered": False, **outputs}), text=text)


# -- what it sees and is told ---------------------------------------------------------------------


async def test_scoped__function_and_report__are_offered_with_the_declared_outputs():
    model = Voices(main=[PART, "ok"], sub=[report(findings="f")])
    await step(model)(said(pair(sub={"outputs": ["answered", "findings"]})))
    [ask] = model.of("main")[0].tools
    assert ask["function"]["name"] == "delegate_sub"
    assert ask["function"]["parameters"]["required"] == ["scopedRequest"]
    [hand_back] = model.of("sub")[0].tools
    assert hand_back["function"]["name"] == "report"
    assert sorted(hand_back["function"]["parameters"]["properties"]) == ["answered", "findings"]
    assert hand_back["function"]["parameters"]["properties"]["answered"]["type"] == "boolean"


@pytest.mark.parametrize("passes", [False, True])
async def test_scoped__request_is_its_initial_one_and_history_only_when_passed(passes):
    model = Voices(main=[PART, "ok"], sub=[report(findings="f")])
    await step(model)(said(pair(pass_history=passes), "duas coisas", memory=MEMORY))
    [request] = model.of("sub")
    assert request.messages[-1].content == "Explique a fatura de maio."
    assert ("segredo de antes" in everything(request)) is passes
    assert "duas coisas" not in everything(request)
    assert request.operation == "agent.scoped"


async def test_silent__is_told_to_send_no_message():
    model = Voices(main=[PART, "ok"], sub=[report(findings="f")])
    await step(model)(said(pair()))
    assert "Send no message" in model.of("sub")[0].messages[0].content


# -- the silent one: the parent speaks -------------------------------------------------------------


async def test_silent__findings__are_the_parents_to_deliver():
    model = Voices(main=[PART, "A fatura de maio é de R$ 129,90."],
                   sub=[report(findings="R$ 129,90, multa de 2 %")])  # fmt: skip
    turn = await step(model)(said(pair()))
    assert turn.draft == Draft(text="A fatura de maio é de R$ 129,90.", agent="main")
    assert json.loads(read(model.of("main")[1])[0]) == {
        "answered": False, "findings": "R$ 129,90, multa de 2 %",
        "scopedRequest": "Explique a fatura de maio.",
    }  # fmt: skip
    [trace] = turn.delegations
    assert (trace.kind, trace.status, trace.spoke, trace.request) == (
        "scoped", "ok", False, "Explique a fatura de maio.",
    )  # fmt: skip


SPEAKING = [
    [SECRET, SECRET],
    [f"{SECRET}. Olá cliente!", report(text=SECRET, findings="f")],
    [calls(("consultar_titulo", ""), text=SECRET), SECRET, SECRET],
    [calls(("falar_com_cliente", {"texto": SECRET}), text=SECRET), report(text=SECRET, findings="f")],
    [calls(("report", f'{{"answered": true, "texto": "{SECRET}"}}'), text=SECRET), SECRET, SECRET],
    [calls(("report", f'{{"answered": "{SECRET}"}}')), calls(("report", "[")), SECRET, SECRET],
    [json.dumps({"answered": True, "message": SECRET}), SECRET],
    [report(text=SECRET, answered=True, interactionSummary=SECRET)],
    [report(text=SECRET, openQuestions=[SECRET])],
    [ModelFailed(SECRET, code="broken")],
]  # fmt: skip


@pytest.mark.parametrize("tries", SPEAKING)
@pytest.mark.parametrize("parent", ["Resposta da principal.", ""])
async def test_silent__model_that_tries_to_speak__has_no_character_reach_the_customer(
    tries, parent
):
    model = Voices(main=[PART, parent, parent], sub=list(tries))
    tools = Tools({"consultar_titulo": 1, "consultar_fatura": "R$ 10"})
    release = pair(
        main={"tools": ["consultar_fatura"]},
        sub={"tools": ["consultar_titulo"], "outputs": OUTPUTS},
    )
    try:
        turn = await step(model, tools)(said(release, tools=["consultar_fatura"]))
    except ModelFailed:
        assert parent == ""
        return  # the tenant's failure text is said instead
    reached = turn.draft.text if turn.draft is not None else turn.outcome.text
    assert SECRET not in reached
    assert "PALAVRAS" not in reached
    if parent:
        assert reached.startswith(parent)


@pytest.mark.parametrize("tries", [SPEAKING[0], SPEAKING[4], SPEAKING[6]])
async def test_silent__prose_instead_of_a_report__does_not_even_reach_the_parent(tries):
    model = Voices(main=[PART, "ok"], sub=list(tries))
    turn = await step(model)(said(pair()))
    assert all(SECRET not in everything(request) for request in model.of("main"))
    assert turn.delegations[-1].status == "failed"


async def test_silent__asks_one_that_may_speak__nobody_speaks_in_its_place():
    nested = [{"kind": "scoped", "agent": "loud", "speaks": True}]
    agents = pair(sub={"delegates": nested})
    items = {**agents.items, **world(loud={"outputs": OUTPUTS}).items}
    tell = calls(("delegate_loud", {"scopedRequest": f"Diga: {SECRET}"}))
    model = Voices(
        main=[PART, "Certo."],
        sub=[tell, report(findings="f")],
        loud=[report(text=SECRET, interactionSummary=SECRET)],
    )
    turn = await step(model)(said(replace(agents, items=items)))
    assert turn.draft.text == "Certo."
    assert "Send no message" in model.of("loud")[0].messages[0].content


async def test_silent__cannot_have_answered():
    model = Voices(main=[PART, "ok"], sub=[report(answered=True, findings="f")])
    await step(model)(said(pair()))
    assert json.loads(read(model.of("main")[1])[0])["answered"] is False


async def test_silent__echo_is_the_request_that_was_given():
    model = Voices(main=[PART, "ok"], sub=[report(scopedRequest="outra coisa", findings="f")])
    turn = await step(model)(said(pair()))
    assert turn.delegations[0].outputs["scopedRequest"] == "Explique a fatura de maio."


async def test_report__as_a_json_answer__is_taken_when_it_is_valid():
    model = Voices(main=[PART, "ok"], sub=['```json\n{"answered": false, "findings": "f"}\n```'])
    turn = await step(model)(said(pair()))
    assert turn.delegations[0].outputs["findings"] == "f"


async def test_report__wrong_fields__are_told_and_may_be_mended():
    wrong = calls(("report", {"answered": "yes", "findings": 3, "openQuestions": "x", "extra": 1}))
    model = Voices(main=[PART, "ok"], sub=[wrong, report(findings="f")])
    turn = await step(model)(said(pair()))
    told = json.loads(read(model.of("sub")[1])[0])["error"]
    for field in ("answered:", "findings:", "openQuestions:", "extra:"):
        assert field in told
    assert turn.delegations[0].status == "ok"


async def test_report__rounds_used_up__is_still_possible():
    asked = [calls(("consultar_titulo", {"a": n})) for n in range(2)]
    model = Voices(main=[PART, "ok"], sub=[*asked, report(findings="f")])
    release = pair(sub={"tools": ["consultar_titulo"], "max_tool_rounds": 2, "outputs": OUTPUTS})
    turn = await step(model, Tools({"consultar_titulo": 1}))(said(release))
    assert offered(model.of("sub")[2]) == ["report"]
    assert turn.delegations[0].outputs["findings"] == "f"


async def test_silent__action_that_must_be_confirmed__is_never_put_to_the_customer():
    class Transactions:
        async def propose(self, turn, call):
            raise AssertionError("a silent agent asked the customer")

    model = Voices(
        main=[PART, "ok"], sub=[calls(("cancelar", {})), report(findings="precisa confirmar")]
    )
    release = pair(sub={"tools": ["cancelar"], "outputs": OUTPUTS})
    turn = await step(model, transactions=Transactions())(said(release))
    assert turn.prepared is None
    assert "has to confirm" in read(model.of("sub")[1])[0]


# -- the speaking one: heard once ------------------------------------------------------------------

ANSWER = "Sua fatura de maio é de R$ 129,90. Ela vence em 10/05."


async def test_speaking__its_answer_is_said_once_and_the_parent_answers_the_rest():
    model = Voices(main=[PART, "Quanto ao pedido, ele chega amanhã."],
                   sub=[report(text=ANSWER, answered=True, interactionSummary="Expliquei a fatura.")])  # fmt: skip
    turn = await step(model)(said(pair(speaks=True)))
    assert turn.draft.text == f"{ANSWER}\n\nQuanto ao pedido, ele chega amanhã."
    told = json.loads(read(model.of("main")[1])[0])
    assert told["answered"] is True
    assert told["interactionSummary"] == "Expliquei a fatura."
    assert "Do not repeat" in told["note"]
    assert ANSWER not in everything(model.of("main")[1])
    assert turn.delegations[0].spoke is True


@pytest.mark.parametrize(
    ("parent", "rest"),
    [
        (ANSWER, ""),
        ("A sua fatura de maio é de R$ 129,90! Algo mais?", "Algo mais?"),
        ("Como disse: a fatura de maio é de R$ 129,90. O pedido chega amanhã.", "O pedido chega amanhã."),
        ("A fatura de junho é de R$ 80,00.", "A fatura de junho é de R$ 80,00."),
        ("Sua fatura de maio não é de R$ 129,90.", "Sua fatura de maio não é de R$ 129,90."),
        ("", ""),
    ],
)  # fmt: skip
async def test_speaking__parent_that_repeats__is_cut_to_what_is_new(parent, rest):
    model = Voices(main=[PART, parent], sub=[report(text=ANSWER, answered=True)])
    turn = await step(model)(said(pair(speaks=True)))
    assert turn.draft.text == "\n\n".join(part for part in (ANSWER, rest) if part)


async def test_speaking__plain_words_without_a_report__are_its_answer():
    model = Voices(main=[PART, "Mais algo?"], sub=[ANSWER, ANSWER])
    turn = await step(model)(said(pair(speaks=True)))
    assert turn.draft.text == f"{ANSWER}\n\nMais algo?"
    assert turn.delegations[0].outputs["answered"] is True


async def test_speaking__answered_without_a_word__is_not_answered():
    model = Voices(main=[PART, "Respondo eu."], sub=[report(answered=True, findings="f")])
    turn = await step(model)(said(pair(speaks=True)))
    assert json.loads(read(model.of("main")[1])[0])["answered"] is False
    assert turn.draft.text == "Respondo eu."


async def test_speaking__must_be_confirmed__the_runtimes_question_is_the_answer():
    class Transactions:
        async def propose(self, turn, call):
            return turn.evolve(prepared=Draft("Confirma?", "sub", outcome="waiting_confirmation"))

    class Checking(Tools):
        async def check(self, turn, request):
            from apps.runtime.turn import ToolCall

            return ToolCall(request.tool, "s", request.arguments, "refused",
                            metadata={"reason": "confirmation_required"})  # fmt: skip

    model = Voices(main=[PART], sub=[calls(("cancelar", {}))])
    release = pair(speaks=True, sub={"tools": ["cancelar"], "outputs": OUTPUTS})
    turn = await step(model, Checking(), transactions=Transactions())(said(release))
    assert turn.draft.text == "Confirma?"
    assert turn.draft.outcome == "waiting_confirmation"


# -- what is open ----------------------------------------------------------------------------------

OPEN = "Quer parcelar a dívida?"


async def test_open__taken_up_by_the_parent__needs_nothing_more():
    model = Voices(main=[PART, "Sobre parcelar a dívida: sim, em 3 vezes."],
                   sub=[report(findings="f", openQuestions=[OPEN])])  # fmt: skip
    turn = await step(model)(said(pair()))
    assert turn.draft.text == "Sobre parcelar a dívida: sim, em 3 vezes."
    assert turn.dialogue.topics == ()
    assert len(model.of("main")) == 2


async def test_open__ignored_once__the_parent_is_asked_again():
    model = Voices(main=[PART, "A fatura é de R$ 10.", "A fatura é de R$ 10. Posso parcelar a dívida."],
                   sub=[report(findings="f", openQuestions=[OPEN])])  # fmt: skip
    turn = await step(model)(said(pair()))
    assert turn.draft.text == "A fatura é de R$ 10. Posso parcelar a dívida."
    assert OPEN in model.of("main")[2].messages[-1].content
    assert turn.dialogue.topics == ()


async def test_open__passed_on_to_another_sub_agent__continues_the_chain():
    release = world(
        main={
            "delegates": [{"kind": "scoped", "agent": "sub"}, {"kind": "scoped", "agent": "other"}]
        },
        sub={"outputs": OUTPUTS},
        other={"outputs": OUTPUTS},
    )
    chained = calls(("delegate_other", {"scopedRequest": "Parcelar a dívida"}))
    model = Voices(main=[PART, "A fatura é 10.", chained, "A fatura é 10. Parcelo em 3 vezes."],
                   sub=[report(findings="f", openQuestions=[OPEN])], other=[report(findings="3 vezes")])  # fmt: skip
    turn = await step(model)(said(release))
    assert turn.draft.text == "A fatura é 10. Parcelo em 3 vezes."
    assert [d.agent for d in turn.delegations] == ["sub", "other"]
    assert turn.dialogue.topics == ()


async def test_open__ignored_to_the_end__is_kept_and_mentioned():
    spoken = report(text=ANSWER, answered=True, openQuestions=[OPEN])
    model = Voices(main=[PART, "Algo mais?", "Algo mais?"], sub=[spoken])
    turn = await step(model)(said(pair(speaks=True)))
    assert turn.draft.text.endswith("Ainda vou ver com você: Quer parcelar a dívida.")
    [topic] = turn.dialogue.topics
    assert (topic.text, topic.agent, topic.intent) == (OPEN, "main", "help")


async def test_open__of_a_silent_one_ignored_to_the_end__is_kept_without_its_words():
    model = Voices(main=[PART, "Pronto.", "Pronto."], sub=[report(openQuestions=[SECRET])])
    turn = await step(model)(said(pair(), "minha fatura"))
    assert turn.draft.text == "Pronto.\n\nFicou ainda um ponto em aberto; posso continuar com ele."
    assert [topic.text for topic in turn.dialogue.topics] == ["minha fatura"]


# -- the words ------------------------------------------------------------------------------------


@given(st.text(max_size=80))
def test_sentences__joined__are_the_text(text):
    assert "".join(sentences(text)) == text


@given(st.lists(st.text(max_size=20), max_size=3))
def test_repeats__text_that_was_told_whole__leaves_nothing_that_has_words(told):
    left = without_repeats(" ".join(told), [" ".join(told)])
    assert not any(char.isalnum() for char in left)


def test_unserved__question_without_telling_words__is_never_taken_for_served():
    assert unserved(["E aí?"], ["e aí, tudo certo"]) == ["E aí?"]


@pytest.mark.parametrize("outputs", [["answered"], ["answered", "findings"]])
def test_report__output_that_is_not_declared__is_refused(outputs):
    found, error = report_read({"answered": True, "interactionSummary": "x"}, outputs)
    assert (found, error) == ({}, "interactionSummary: not one of the outputs")


def test_report__of_a_silent_agent__has_no_interaction():
    settled = report_settled({"answered": True, "interactionSummary": "x"}, request="r", speech="")
    assert settled == {"answered": False, "scopedRequest": "r"}
