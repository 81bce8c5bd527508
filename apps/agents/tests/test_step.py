"""The agent's step: collect, ask, draft; and every way it can fail."""

import json
import os
import subprocess
import sys
import time
from typing import Any

import pytest

from apps.agents.calling import ModelCaller
from apps.agents.config import AgentConfig, ModelProfileConfig, PromptConfig
from apps.agents.providers.registry import Providers
from apps.agents.step import AgentUnrouted, RunAgent
from apps.agents.tests.builders import INVOICE, Tools, agent_release, asks, failed, routed_turn
from apps.runtime.dialogue import Evidence
from apps.runtime.outcomes import Blocked
from apps.runtime.ports import ModelFailed, ModelReply
from apps.runtime.release import UnknownItem
from apps.runtime.testing import FakeLedger, FakeModel, release_of, turn_of
from apps.runtime.turn import (
    SAID,
    BusinessContext,
    ChatMessage,
    Decision,
    Draft,
    Route,
    ToolCall,
)

INFOS: dict[str, dict[str, Any]] = {
    "consultar_fatura": {"description": "Consulta fatura"},
    "consultar_pagamentos": {},
    "consultar_plano": {"selection_keywords": ("plano", "pacote de dados")},
    "solicitar_troca": {"action": True, "selection_keywords": ("troca", "trocar produto")},
    "solicitar_devolucao": {"action": True, "selection_keywords": ("devolver",)},
    "acao_livre": {"action": True},
    "cancelar": {
        "action": True, "confirmation_required": True, "selection_keywords": ("cancelar",),
    },
    "consultar_pedido": {"questions": {"order_id": "Qual o número do pedido?"}},
}  # fmt: skip


class Broken(FakeModel):
    """A model that fails with ``code``."""

    def __init__(self, code):
        super().__init__()
        self.code = code

    async def complete(self, turn, request):
        self.requests.append(request)
        raise ModelFailed("it broke", code=self.code)


def step(tools=None, model=None, **options):
    return RunAgent(
        tools or Tools(),
        model or FakeModel("resposta"),
        tool_info=lambda release, slug: INFOS.get(slug),
        texts_for=lambda turn: f"texto {turn.route.method if turn.route else ''}",
        **options,
    )


def billing(*allowed, **agent):
    return agent_release(agent={"tools": list(allowed), **agent})


@pytest.mark.parametrize(("method", "outcome"), [("fallback", "answered"), ("clarify", "waiting")])
async def test_agent__fallback_or_clarify__says_the_tenants_text_without_tool_or_model(
    method, outcome
):
    tools, model = Tools({"consultar_fatura": 1}), FakeModel()
    turn = routed_turn(
        release=billing("consultar_fatura"), tools=["consultar_fatura"], method=method
    )
    turn = await step(tools, model)(turn)
    assert (turn.draft.text, turn.draft.agent) == (f"texto {method}", "billing")
    assert turn.draft.outcome == outcome
    assert (tools.batches, model.requests) == ([], [])


async def test_agent__unrouted_turn__is_an_error():
    with pytest.raises(AgentUnrouted):
        await step()(turn_of("oi"))


async def test_agent__unknown_agent__is_an_error():
    with pytest.raises(UnknownItem):
        await step()(routed_turn(release=agent_release(agent={"prompt": "absent"})))


async def test_collect__intents_tools__run_in_one_batch_and_are_evidence():
    both = ["consultar_fatura", "consultar_pagamentos"]
    tools = Tools({"consultar_fatura": INVOICE, "consultar_pagamentos": []})
    model = FakeModel("R$ 129,90")
    turn = await step(tools, model)(routed_turn(release=billing(*both), tools=both))
    assert [[(r.tool, r.ordinal) for r in b] for b in tools.batches] == [
        [("consultar_fatura", 0), ("consultar_pagamentos", 1)]
    ]
    assert turn.draft.text == "R$ 129,90"
    [request] = model.requests
    assert (request.profile, request.tools) == ("default", ())
    sent = [json.loads(m.content)["result"] for m in request.messages if m.role == "tool"]
    assert sent == [INVOICE, []]
    assert len(turn.model_calls) == 1


@pytest.mark.parametrize(
    ("intent", "agent"),
    [(["consultar_fatura"], []), ([], ["consultar_fatura"]), (["consultar_fatura"], ["outra"])],
)
async def test_collect__tool_not_in_both_lists__is_not_called(intent, agent):
    tools = Tools({"consultar_fatura": 1})
    await step(tools)(routed_turn(release=billing(*agent), tools=intent))
    assert tools.batches == []


async def test_collect__tool_unknown_to_the_release__is_left_out():
    tools = Tools({"sumiu": 1})
    await step(tools)(routed_turn(release=billing("sumiu"), tools=["sumiu"]))
    assert tools.batches == []


async def test_collect__tool_usage_off__calls_nothing():
    release = agent_release(
        agent={"tools": ["consultar_fatura"]},
        prompt={"allow_tool_usage": False, "no_evidence_text": "nada"},
    )
    tools = Tools({"consultar_fatura": 1})
    turn = await step(tools)(routed_turn(release=release, tools=["consultar_fatura"]))
    assert (tools.batches, turn.draft.text) == ([], "nada")


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("quais meus PLANOS?", ["consultar_plano"]),
        ("queria um pacote novo de dados", ["consultar_plano"]),
        ("planejamento do ano", []),
        ("dados do pacote", []),
        ("pacote um dois três quatro cinco dados", []),
    ],
)
async def test_collect__selection_keywords__choose_by_whole_words(text, called):
    tools = Tools({"consultar_plano": 1})
    turn = routed_turn(text, release=billing("consultar_plano"), tools=["consultar_plano"])
    await step(tools)(turn)
    assert [name for name, _ in tools.called] == called


ACTIONS = ["consultar_fatura", "solicitar_troca", "solicitar_devolucao", "acao_livre", "cancelar"]


@pytest.mark.parametrize(
    ("text", "batches"),
    [
        ("quero trocar o meu produto", [["consultar_fatura"], ["solicitar_troca"]]),
        ("quero trocar produto ou devolver", [["consultar_fatura"]]),
        ("oi", [["consultar_fatura"]]),
        ("quero cancelar", [["consultar_fatura"]]),
        ("quero cancelar e devolver", [["consultar_fatura"]]),
    ],
)
async def test_collect__actions__at_most_the_single_one_the_customer_named(text, batches):
    tools = Tools(dict.fromkeys(ACTIONS, 1))
    await step(tools)(routed_turn(text, release=billing(*ACTIONS), tools=ACTIONS))
    assert [[r.tool for r in batch] for batch in tools.batches] == batches


async def test_collect__second_attempt__calls_no_tool_again():
    both = ["consultar_fatura", "solicitar_troca"]
    tools, model = Tools(dict.fromkeys(both, INVOICE)), FakeModel("um", "dois")
    run = step(tools, model)
    turn = await run(routed_turn("quero trocar produto", release=billing(*both), tools=both))
    turn = await run(turn.evolve(attempt=1, guidance=("corrija",)))
    assert len(tools.called) == 2
    assert turn.draft.text == "dois"
    assert [r.ordinal for r in model.requests] == [0, 1]
    assert "corrija" in model.requests[1].messages[0].content
    assert [m for m in model.requests[1].messages if m.role == "tool"]


async def test_evidence__required_and_none__says_so_without_a_model():
    model = FakeModel()
    tools = Tools({"consultar_fatura": failed()})
    release = agent_release(
        agent={"tools": ["consultar_fatura"]}, prompt={"no_evidence_text": "sem dados"}
    )
    turn = await step(tools, model)(routed_turn(release=release, tools=["consultar_fatura"]))
    assert (turn.draft.text, model.requests) == ("sem dados", [])


async def test_evidence__missing_argument_with_a_question__is_asked_for():
    refused = ToolCall(
        tool="", server="", arguments={}, status="refused",
        field_errors=({"field": "order_id", "message": "required"},),
    )  # fmt: skip
    model = FakeModel()
    turn = routed_turn(release=billing("consultar_pedido"), tools=["consultar_pedido"])
    turn = await step(Tools({"consultar_pedido": refused}), model)(turn)
    assert turn.draft.text == "Qual o número do pedido?"
    assert turn.draft.outcome == "waiting"
    assert model.requests == []


QUESTION = "Qual o número do pedido?"
TAKEN = BusinessContext(values={"resource_key": "P-1"}, sources={"resource_key": SAID})
NOT_TRUSTED = Decision(
    phase="identity", code="IDENTITY_NOT_TRUSTED", action="observe", metadata={"source": SAID}
)


@pytest.mark.parametrize(
    ("method", "said", "changes", "draft"),
    [
        ("state", [QUESTION], {}, (QUESTION, "waiting")),
        ("state", [f"[a] {QUESTION}"] * 3, {}, ("texto state", "answered")),
        ("state", [QUESTION, "Outra coisa.", QUESTION], {}, (QUESTION, "waiting")),
        ("state", [], {}, ("texto state", "answered")),
        ("state", ["Qual é o motivo?"], {"business_context": TAKEN}, (QUESTION, "waiting")),
        ("keyword", [QUESTION] * 2, {}, (QUESTION, "waiting")),
        ("state", [QUESTION], {"decisions": (NOT_TRUSTED,)}, ("sem dados", "answered")),
    ],
)
async def test_evidence__question_in_its_own_state__is_not_asked_for_ever(
    method, said, changes, draft
):
    refused = ToolCall(
        tool="", server="", arguments={}, status="refused",
        field_errors=({"field": "order_id", "message": "required"},),
    )  # fmt: skip
    release = agent_release(
        agent={"tools": ["consultar_pedido"]}, prompt={"no_evidence_text": "sem dados"}
    )
    memory = [
        message
        for text in said
        for message in (
            ChatMessage(role="user", text="?"),
            ChatMessage(role="assistant", text=text),
        )
    ]
    turn = routed_turn(
        release=release, tools=["consultar_pedido"], method=method, memory=tuple(memory), **changes
    )
    turn = await step(Tools({"consultar_pedido": refused}), FakeModel())(turn)
    assert (turn.draft.text, turn.draft.outcome) == draft


async def test_evidence__not_required__asks_the_model():
    release = agent_release(
        agent={"tools": ["consultar_fatura"]}, prompt={"require_evidence": False}
    )
    tools = Tools({"consultar_fatura": failed()})
    turn = await step(tools)(routed_turn(release=release, tools=["consultar_fatura"]))
    assert turn.draft.text == "resposta"


async def test_evidence__intent_without_tools__asks_the_model():
    turn = await step()(routed_turn())
    assert turn.draft.text == "resposta"


@pytest.mark.parametrize("code", ["rate_limited", "timeout", "broken"])
async def test_failure__with_evidence__answers_from_it_and_says_that_no_model_did(code):
    tools = Tools({"consultar_fatura": INVOICE})
    turn = routed_turn(release=billing("consultar_fatura"), tools=["consultar_fatura"])
    turn = await step(tools, Broken(code))(turn)
    assert turn.draft.text == ("Fatura 3000131180: valor total R$ 129,90, vencimento 10/05/2026.")
    [decision] = turn.decisions
    assert (decision.code, decision.action) == ("NOC.LLM_FAILED", "observe")
    assert decision.metadata == {"profile": "default", "code": code}


@pytest.mark.parametrize("code", ["auth", "wrong_model"])
async def test_failure__of_key_or_model__is_raised_even_with_evidence(code):
    tools = Tools({"consultar_fatura": INVOICE})
    turn = routed_turn(release=billing("consultar_fatura"), tools=["consultar_fatura"])
    with pytest.raises(ModelFailed) as raised:
        await step(tools, Broken(code))(turn)
    assert raised.value.code == code


async def test_failure__without_evidence__is_raised():
    with pytest.raises(ModelFailed):
        await step(model=Broken("broken"))(routed_turn())


async def test_failure__evidence_that_says_nothing__is_raised():
    turn = routed_turn(release=billing("consultar_fatura"), tools=["consultar_fatura"])
    with pytest.raises(ModelFailed):
        await step(Tools({"consultar_fatura": {}}), Broken("broken"))(turn)


async def test_failure__empty_answer__is_not_asked_again():
    model = FakeModel("  ", "nunca")
    tools = Tools({"consultar_fatura": INVOICE})
    turn = routed_turn(release=billing("consultar_fatura"), tools=["consultar_fatura"])
    turn = await step(tools, model)(turn)
    assert turn.draft.text.startswith("Fatura 3000131180")
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    "model",
    [Broken("content_filter"), FakeModel(ModelReply(text="meia", finish_reason="content_filter"))],
)
async def test_filter__provider_filtered__ends_with_the_operators_words_and_no_retry(model):
    run = step(model=model, refusal_for=lambda turn: "não posso")
    turn = await run(routed_turn())
    assert turn.outcome == Blocked(text="não posso", code="CONTENT_FILTER")
    assert turn.draft is None
    assert [(d.code, d.action) for d in turn.decisions] == [("CONTENT_FILTER", "block")]
    assert len(model.requests) == 1


async def test_model_mode__tools_of_both_lists__are_offered_with_the_agents_rounds():
    release = billing("consultar_fatura", tool_use="model", max_tool_rounds=1)
    model = FakeModel(asks(("consultar_fatura", "")), "R$ 129,90")
    tools = Tools({"consultar_fatura": INVOICE})
    turn = routed_turn(release=release, tools=["consultar_fatura", "consultar_plano"])
    turn = await step(tools, model)(turn)
    assert turn.draft.text == "R$ 129,90"
    assert [t["function"]["name"] for t in model.requests[0].tools] == ["consultar_fatura"]
    assert model.requests[1].tools == ()


async def test_model_mode__tool_the_port_does_not_offer__is_not_offered():
    class Hiding(Tools):
        def functions(self, turn, tools):
            return []

    model = FakeModel("oi")
    release = billing("consultar_fatura", tool_use="model")
    await step(Hiding(), model)(routed_turn(release=release, tools=["consultar_fatura"]))
    assert model.requests[0].tools == ()


async def test_mask__of_the_tenant__reaches_text_and_evidence():
    model = FakeModel("ok")
    run = step(Tools({"consultar_fatura": {"nome": "Ana"}}), model,
               mask_for=lambda turn: lambda text: text.replace("Ana", "<NAME>"))  # fmt: skip
    turn = routed_turn("sou Ana", release=billing("consultar_fatura"), tools=["consultar_fatura"])
    await run(turn)
    assert "Ana" not in "".join(m.content for m in model.requests[0].messages)


async def test_whole_step__scripted_model_and_two_tools__costs_under_two_milliseconds_of_cpu():
    both = ["consultar_fatura", "consultar_pagamentos"]
    release = billing(*both)
    payments = {"pagamentos": [{"invoice_id": "1", "data": "2026-04-10", "valor": 119.9}] * 3}
    tools = Tools({"consultar_fatura": INVOICE, "consultar_pagamentos": payments})
    models = ModelCaller(Providers(), FakeLedger(), secret=os.environ.__getitem__)
    run = step(tools, models)
    turns = [routed_turn(release=release, tools=both, id=f"t{n}") for n in range(201)]
    turn = await run(turns[0])
    assert turn.draft.text.startswith("Fatura 3000131180: valor total R$ 129,90")
    started = time.process_time()
    for turn in turns[1:]:
        await run(turn)
    assert (time.process_time() - started) / 200 < 0.002


def test_imports__step_loop_and_prompting__know_neither_django_nor_openai():
    code = (
        "import sys, apps.agents.step, apps.agents.loop, apps.agents.prompting,"
        " apps.agents.calling, apps.agents.providers.registry, apps.agents.config;"
        "print([m for m in ('django', 'openai', 'httpx2') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


async def test_prepared__is_handed_on_and_no_model_is_asked():
    draft = Draft(text="Confirma?", agent="billing", outcome="waiting_confirmation")
    model = FakeModel()
    turn = await step(model=model)(routed_turn(prepared=draft))
    assert turn.draft == draft
    assert model.requests == []


async def test_literal__is_the_routes_answer_and_no_model_is_asked():
    route = Route(
        agent="billing", intent="", method="literal", confidence=1.0,
        metadata={"answer": "Por nada!"},
    )  # fmt: skip
    model = FakeModel()
    turn = await step(model=model)(routed_turn().evolve(route=route))
    assert (turn.draft.text, turn.draft.outcome, model.requests) == ("Por nada!", "answered", [])


async def test_code_agent__is_run_instead_of_the_record():
    async def run(turn, slug, agent):
        return turn.evolve(draft=Draft(text=agent.implementation, agent=slug))

    release = agent_release(agent={"implementation": "acme.financeiro"})
    turn = await step(model=FakeModel(), code_agents=run)(routed_turn(release=release))
    assert turn.draft == Draft(text="acme.financeiro", agent="billing")


async def test_ledger__action_a_model_had_carried_out__is_kept_for_later():
    release = billing("solicitar_troca", tool_use="model")
    model = FakeModel(asks(("solicitar_troca", "")), "Feito.")
    done = ToolCall("", "", {}, "ok", result={"protocolo": "T-1"}, action=True)
    run = step(
        Tools({"solicitar_troca": done}), model,
        evidence_for=lambda turn, call: Evidence(tool=call.tool, status=call.status),
    )  # fmt: skip
    turn = await run(routed_turn(release=release, tools=["solicitar_troca"]))
    assert turn.dialogue.evidence == (Evidence(tool="solicitar_troca", status="ok"),)
    again = await run(turn.evolve(attempt=1, draft=None))
    assert len(again.dialogue.evidence) == 1


async def test_replay__turn_that_is_taken_again__makes_no_new_call():
    """Every call of every agent is in the ledger under a place of its own."""
    report = {"answered": False, "findings": "R$ 10"}
    scripts = {
        "main": [
            '{"tool_calls": [{"name": "consult_a", "arguments": {"pergunta_interna": "q"}}]}', "",
            '{"tool_calls": [{"name": "delegate_b", "arguments": {"scopedRequest": "p"}}]}', "", "",
            '{"tool_calls": [{"name": "request_specialist_sub_conversation", "arguments":'
            ' {"specialist_role": "c", "initial_context": "x"}}]}',
            "", "Pronto.",
        ],
        "a": ["resposta"],
        "b": [
            '{"tool_calls": [{"name": "consultar_fatura", "arguments": {}}]}',
            *['{"tool_calls": [{"name": "consultar_fatura", "arguments": {}}]}'] * 3,
            json.dumps({"tool_calls": [{"name": "report", "arguments": report}]}),
            json.dumps({"tool_calls": [{"name": "report", "arguments": report}]}),
        ],
        "c": [json.dumps({"tool_calls": [{"name": "end_specialist_sub_conversation", "arguments": {
            "status": "completed", "final_result": {}, "last_user_message": ""}}]})],
    }  # fmt: skip
    kinds = (("consult", "a"), ("scoped", "b"), ("sub_conversation", "c"))
    fields: dict[str, dict[str, Any]] = {
        "main": {"delegates": [{"kind": kind, "agent": agent} for kind, agent in kinds]},
        "b": {"outputs": ["answered", "findings"], "tools": ["consultar_fatura"]},
    }
    release = release_of(
        agent={
            slug: AgentConfig(
                prompt="p", model_profile=slug, tool_use="model", **fields.get(slug, {})
            )
            for slug in ("main", "a", "b", "c")
        },
        prompt={"p": PromptConfig(system="s", require_evidence=False)},
        model_profile={
            slug: ModelProfileConfig(provider="scripted", script=script)
            for slug, script in scripts.items()
        },
    )  # fmt: skip
    ledger = FakeLedger()
    models = ModelCaller(Providers(), ledger, secret=os.environ.__getitem__)
    tools = Tools({"consultar_fatura": {"valor": 10}})
    run = step(tools, models)
    route = Route(agent="main", intent="i", method="keyword", confidence=1.0)
    turn = await run(turn_of("oi", release=release, route=route))
    assert turn.draft.text == "Pronto."
    assert [(d.kind, d.status) for d in turn.delegations] == [
        ("consult", "ok"), ("scoped", "ok"), ("sub_conversation", "started"),
        ("sub_conversation", "completed"),
    ]  # fmt: skip
    model_calls = [call for call in ledger.calls if call.kind == "model"]
    assert [c.ordinal for c in model_calls] == list(range(8))
    assert {c.name for c in model_calls} == {
        "agent.answer", "agent.consult", "agent.scoped", "agent.specialist",
    }  # fmt: skip
    known = set(ledger.entries)
    again = await run(turn_of("oi", release=release, route=route))
    assert set(ledger.entries) == known
    assert all(call.replayed for call in again.model_calls)
    assert again.draft == turn.draft
    assert [c.ordinal for c in again.tool_calls] == [c.ordinal for c in turn.tool_calls]
