"""Several agents, one answer (platform facts 3.2, 3.7; "one voice, no internal names")."""

from dataclasses import replace
from typing import Any

import pytest

from apps.agents.calling import ModelCaller
from apps.agents.config import AgentConfig, ModelProfileConfig, PromptConfig
from apps.agents.plan import RunPlan
from apps.agents.providers.scripted import Scripted
from apps.agents.step import RunAgent
from apps.runtime.dialogue import Topic
from apps.runtime.outcomes import Blocked
from apps.runtime.ports import ModelFailed, ModelReply
from apps.runtime.testing import FakeLedger, FakeTools, release_of, turn_of
from apps.runtime.turn import Draft, PlanPart, Route, SessionState, ToolCall

INVOICE = {"fatura": "F-1", "valor_total": 129.9, "vencimento": "2026-05-10"}
ORDER = {"pedido": "PED-7", "status": "em transporte", "previsao": "2026-05-12"}
ORDER_PART = PlanPart(
    agent="orders_agent", intent="order", text="onde está meu pedido", tools=("consultar_pedido",),
    next_state={"waiting": "WAITING_ORDER"},
)  # fmt: skip
BILL_PART = PlanPart(
    agent="billing_agent", intent="bill", text="minha fatura", tools=("consultar_fatura",),
    next_state={"waiting": "WAITING_BILL"},
)  # fmt: skip
FAST = ModelFailed("slow", code="timeout")


def release(**prompt: Any):
    agents = {
        "front": AgentConfig(prompt="p"),
        "orders_agent": AgentConfig(prompt="p", tools=["consultar_pedido"]),
        "billing_agent": AgentConfig(prompt="p", tools=["consultar_fatura"]),
    }
    return release_of(
        agent=agents,
        prompt={"p": PromptConfig(**{"system": "You are kind.", **prompt})},
        model_profile={"default": ModelProfileConfig(provider="scripted")},
    )


def planned(*parts: PlanPart, method: Any = "supervisor", metadata: Any = None, **changes: Any):
    parts = parts or (ORDER_PART, BILL_PART)
    route = Route(
        agent=parts[0].agent, intent="multi_intent", method=method, confidence=0.8,
        tools=parts[0].tools, plan=parts if len(parts) > 1 else (), metadata=metadata or {},
    )  # fmt: skip
    return turn_of(
        "onde está meu pedido e minha fatura",
        route=route,
        session=SessionState(id="1", agent="front"),
        release=changes.pop("release", None) or release(),
        **changes,
    )


class Numbered(FakeTools):
    """Remembers what a port was given; a result that is a ``ToolCall`` is returned as that."""

    def __init__(self, results):
        super().__init__(results)
        self.turns = []

    async def call(self, turn, requests):
        self.turns.append(turn)
        calls = await super().call(turn, requests)
        return [
            replace(call.result, tool=call.tool, ordinal=call.ordinal)
            if isinstance(call.result, ToolCall)
            else call
            for call in calls
        ]


def step(tools=None, models=None, topics_text="", ledger=None):
    tools = tools or Numbered({"consultar_pedido": ORDER, "consultar_fatura": INVOICE})
    models = models or ModelCaller(
        {"scripted": Scripted()}, ledger or FakeLedger(), secret=lambda name: ""
    )
    questions = {"consultar_pedido": {"order_id": "Qual é o número do pedido?"}}

    def info(release, slug):
        return {"description": slug, "questions": questions.get(slug, {})}

    def agent(port):
        return RunAgent(port, models, tool_info=info, texts_for=lambda turn: "Olá!")

    return RunPlan(
        agent,
        tools,
        models,
        refusal_for=lambda turn: "Não posso.",
        topics_for=lambda turn: topics_text,
    )


class Says:
    """A model port: one reply (text, ``ModelReply`` or failure) for each operation."""

    def __init__(self, **replies):
        self.replies = replies
        self.requests = []
        self._caller = ModelCaller({"scripted": Scripted()}, FakeLedger(), secret=lambda name: "")

    async def complete(self, turn, request):
        self.requests.append(request)
        reply = self.replies.get(request.operation.replace(".", "_"))
        if isinstance(reply, list):
            reply = reply.pop(0)
        if isinstance(reply, Exception):
            raise reply
        real, call = await self._caller.complete(turn, request)
        if reply is None:
            return real, call
        return (reply if isinstance(reply, ModelReply) else replace(real, text=reply)), call


async def test_plan__two_agents__one_answer_with_each_fact_once_and_no_names():
    done = await step()(planned())
    assert done.draft is not None
    text = done.draft.text
    for fact in ("PED-7", "em transporte", "12/05/2026", "F-1", "R$ 129,90", "10/05/2026"):
        assert text.count(fact) == 1, fact
    for internal in ("orders_agent", "billing_agent", "consultar", "multi_intent", "#", "["):
        assert internal not in text
    assert (done.draft.agent, done.draft.outcome) == ("orders_agent", "answered")


async def test_plan__calls__have_ordinals_of_their_own_and_their_agents_name():
    tools = Numbered({"consultar_pedido": ORDER, "consultar_fatura": INVOICE})
    ledger = FakeLedger()
    done = await step(tools, ledger=ledger)(planned())
    assert [(c.tool, c.ordinal, c.agent) for c in done.tool_calls] == [
        ("consultar_pedido", 0, ""),
        ("consultar_fatura", 1, "billing_agent"),
    ]
    assert [call.operation for call in done.model_calls] == [
        "agent.answer", "agent.answer", "plan.compose",
    ]  # fmt: skip
    assert [call.ordinal for call in ledger.calls] == [0, 1, 2]
    # The port sees the whole turn, so that what was called is not called again.
    assert [call.tool for call in tools.turns[1].tool_calls] == ["consultar_pedido"]


async def test_plan__each_part__is_asked_its_own_words_and_sees_its_own_calls_only():
    models = Says()
    await step(models=models)(planned())
    first, second, composing = models.requests
    assert first.messages[-3].content == "onde está meu pedido"
    assert [m.name for m in first.messages if m.role == "tool"] == ["consultar_pedido"]
    assert "minha fatura" in [m.content for m in second.messages]
    assert [m.name for m in second.messages if m.role == "tool"] == ["consultar_fatura"]
    assert {m.name for m in composing.messages if m.role == "tool"} == {"facts"}
    told = " ".join(m.content for m in composing.messages)
    assert "consultar_" not in told
    assert "PED-7" in told
    assert "F-1" in told
    assert composing.tools == ()


async def test_plan__turn_afterwards__is_itself_again():
    turn = planned()
    done = await step()(turn)
    assert (done.text, done.route) == (turn.text, turn.route)


async def test_plan__model_writes_headings_names_and_repeats__they_are_taken_out():
    written = (
        "## Resposta dos agentes\n**Pedidos**\n[orders_agent] O pedido PED-7 está em transporte. "
        "O orders_agent cuidou disso. A fatura vence em 10/05/2026. "
        "A fatura vence em 10/05/2026. O pedido PED-7 está em transporte."
    )
    done = await step(models=Says(plan_compose=written))(planned())
    assert done.draft is not None
    assert " ".join(done.draft.text.split()) == (
        "O pedido PED-7 está em transporte. A fatura vence em 10/05/2026."
    )


async def test_plan__two_statements_disagree__the_one_the_tools_bear_out_stays():
    written = "O total é R$ 999,00. O total é R$ 129,90. O pedido PED-7 está em transporte."
    done = await step(models=Says(plan_compose=written))(planned())
    assert done.draft is not None
    assert done.draft.text == "O total é R$ 129,90. O pedido PED-7 está em transporte."


@pytest.mark.parametrize("reply", [FAST, "", ModelFailed("x", code="rate_limited")])
async def test_plan__composing_fails__the_parts_answers_are_put_together(reply):
    done = await step(models=Says(plan_compose=reply))(planned())
    assert done.draft is not None
    assert "PED-7" in done.draft.text
    assert "R$ 129,90" in done.draft.text
    noted = [d.code for d in done.decisions]
    assert noted == ([] if reply == "" else ["NOC.LLM_FAILED"])


@pytest.mark.parametrize(
    "reply",
    [ModelFailed("x", code="content_filter"), ModelReply(text="x", finish_reason="content_filter")],
)
async def test_plan__composed_answer_is_filtered__ends_in_the_operators_words(reply):
    done = await step(models=Says(plan_compose=reply))(planned())
    assert done.outcome == Blocked(text="Não posso.", code="CONTENT_FILTER")


async def test_plan__wrong_key__shows():
    with pytest.raises(ModelFailed):
        await step(models=Says(plan_compose=ModelFailed("x", code="auth")))(planned())


async def test_plan__one_part_lacks_a_value__is_answered_and_asked_last():
    missing = ToolCall(
        tool="", server="", arguments={}, status="refused",
        field_errors=({"field": "order_id", "message": "missing"},),
    )  # fmt: skip
    tools = Numbered({"consultar_pedido": missing, "consultar_fatura": INVOICE})
    done = await step(tools)(planned())
    assert done.draft is not None
    assert done.draft.outcome == "waiting"
    assert "R$ 129,90" in done.draft.text
    assert done.draft.text.endswith("Qual é o número do pedido?")
    assert done.route is not None
    assert done.route.next_state == {"waiting": "WAITING_ORDER"}


async def test_plan__part_without_evidence__does_not_borrow_the_others():
    refused = ToolCall(tool="", server="", arguments={}, status="error", error="no")
    tools = Numbered({"consultar_pedido": ORDER, "consultar_fatura": refused})
    turn = planned(release=release(no_evidence_text="Não encontrei a fatura."))
    done = await step(tools)(turn)
    assert done.draft is not None
    assert "PED-7" in done.draft.text
    assert "Não encontrei a fatura." in done.draft.text


async def test_plan__a_parts_model_fails__is_kept_for_later_and_said():
    tools = Numbered({"consultar_fatura": INVOICE})
    models = Says(agent_answer=[FAST, None])
    turn = planned(release=release(require_evidence=False))
    done = await step(tools, models)(turn)
    assert done.draft is not None
    assert "R$ 129,90" in done.draft.text
    assert done.draft.text.endswith("Depois seguimos com: “onde está meu pedido”.")
    assert done.dialogue.topics == (
        Topic(intent="order", agent="orders_agent", text="onde está meu pedido", turn=1),
    )


async def test_plan__every_parts_model_fails__is_a_failure():
    models = Says(agent_answer=[FAST, FAST])
    with pytest.raises(ModelFailed):
        await step(Numbered({}), models)(planned(release=release(require_evidence=False)))


async def test_prepared__runtimes_own_words__stand_as_they_are_before_the_rest():
    """ "Sim, e me manda a fatura": the action's report, then the invoice."""
    own = replace(ORDER_PART, text="sim")
    prepared = Draft(text="Troca 9 aberta; use o protocolo 77.", agent="orders_agent")
    turn = planned(own, BILL_PART, method="transaction", prepared=prepared)
    models = Says()
    done = await step(models=models)(turn)
    assert done.draft is not None
    assert done.draft.text.startswith("Troca 9 aberta; use o protocolo 77.\n\n")
    assert "R$ 129,90" in done.draft.text
    assert [request.operation for request in models.requests] == ["agent.answer"]


async def test_prepared__a_question_for_a_confirmation__is_last_and_unchanged():
    question = Draft(text="Confirma a troca?", agent="orders_agent", outcome="waiting_confirmation")
    turn = planned(
        ORDER_PART, BILL_PART, method="transaction", prepared=question,
        metadata={"topics": [{"intent": "cancel", "agent": "x", "text": "cancelar o pedido 8"}]},
    )  # fmt: skip
    done = await step()(turn)
    assert done.draft is not None
    assert done.draft.outcome == "waiting_confirmation"
    answer, closing, asked = done.draft.text.split("\n\n")
    assert "R$ 129,90" in answer
    assert closing == "Depois seguimos com: “cancelar o pedido 8”."
    assert asked == "Confirma a troca?"


async def test_again_in_the_same_turn__nothing_is_called_twice():
    tools = Numbered({"consultar_pedido": ORDER, "consultar_fatura": INVOICE})
    run = step(tools)
    first = await run(planned())
    second = await run(first.evolve(guidance=("shorter",), draft=None))
    assert [request.tool for request in tools.requests] == ["consultar_pedido", "consultar_fatura"]
    assert [call.ordinal for call in second.tool_calls] == [0, 1]
    assert second.draft == first.draft


@pytest.mark.parametrize(
    ("language", "text", "closing"),
    [
        ("pt-BR", "", "Depois seguimos com: “trocar o plano”."),
        ("es", "", "Después seguimos con: “trocar o plano”."),
        ("en-US", "", "Then we can go on with: “trocar o plano”."),
        ("pt-BR", "Falta: {topics}!", "Falta: “trocar o plano”!"),
    ],
)
async def test_one_agent__topics_kept_for_later__are_said_in_one_sentence(language, text, closing):
    topics = [{"intent": "i", "agent": "a", "text": " trocar o plano. "}] * 2
    turn = planned(BILL_PART, metadata={"topics": topics}, release=release(language=language))
    done = await step(topics_text=text)(turn)
    assert done.draft is not None
    assert done.draft.text.endswith(f"\n\n{closing}")


async def test_one_agent__is_what_the_agents_step_says():
    done = await step()(planned(BILL_PART))
    assert done.draft is not None
    assert done.draft.text == "Fatura F-1: valor total R$ 129,90, vencimento 10/05/2026."
    assert len(done.model_calls) == 1
