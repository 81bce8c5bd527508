"""Conversations of the demo in which a value is missing: whole turns, one after the other."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from agentops.pipeline import turn_pipeline
from agentops.policies import requested_agent
from agentops.tests.test_demo_routing import release
from apps.runtime.dialogue import dialogue_load
from apps.runtime.outcomes import Ended, HandedOver, Waiting
from apps.runtime.ports import RemoteResult
from apps.runtime.testing import (
    FakeConfirmations,
    FakeHistory,
    FakeLedger,
    FakeModel,
    FakeStore,
    FakeTransport,
)
from apps.runtime.turn import Caller, ChatMessage, Inbound, SessionState, Turn
from apps.tools.calling import ToolCaller
from apps.tools.tests.talk import NoWorkflows

LINE = "Qual é o número da linha, com DDD?"
ORDER = "Qual é o número do pedido?"
GREETING = "Olá! Posso ajudar com faturas"
NO_EVIDENCE = "Não encontrei essa informação agora."
DEMO = Caller(principal="demo", demo=True)
BINDINGS = {"address:telecom_mcp": "http://t", "address:retail_mcp": "http://r"}


UNKNOWN = RemoteResult(ok=False, error="Pedido não encontrado.")


@dataclass
class Talk:
    """A session that keeps between turns what the database keeps."""

    caller: Caller = DEMO
    remembers: bool = True
    session: SessionState = field(default_factory=SessionState)
    memory: tuple[ChatMessage, ...] = ()
    confirmations: FakeConfirmations = field(default_factory=FakeConfirmations)
    transport: FakeTransport = field(
        default_factory=lambda: FakeTransport(
            {
                "consultar_pedido": {"status": "em transporte"},
                "consultar_entrega": {"status": "em transporte"},
                "consultar_fatura": {"valor_total": 89.9},
                "consultar_pagamentos": {"pagamentos": []},
            }
        )
    )

    async def say(self, text: str) -> Turn:
        agent = requested_agent(release("default"), None) or ""
        number = len(self.memory) // 2 + 1
        inbound = Inbound(
            channel="web", text=text, agent=None, message_id=f"m{number}", session="s1",
            caller=self.caller,
        )  # fmt: skip
        turn = Turn(
            id=f"t{number}",
            tenant="default",
            release=release("default"),
            inbound=inbound,
            session=SessionState(
                id="1",
                key=f"default:{agent}:s1",
                agent=agent,
                turn_number=number,
                next_state=self.session.next_state,
                business_context=self.session.business_context,
                active_agent=self.session.active_agent,
                dialogue=self.session.dialogue,
            ),
            dialogue=self.session.dialogue,
            bindings=BINDINGS,
            text=text,
        )
        ledger = FakeLedger()
        tools = ToolCaller(
            self.transport, ledger, lambda name: "secret", confirmations=self.confirmations
        )
        pipeline = turn_pipeline(
            history=FakeHistory(*(self.memory if self.remembers else ())),
            tools=tools,
            workflows=NoWorkflows(),
            models=FakeModel("Está em transporte."),
            store=FakeStore(),
        )
        done = await pipeline.run(turn)
        assert done.outcome is not None
        self.confirmations.ask(done)
        self.memory += (
            ChatMessage(role="user", text=done.text),
            ChatMessage(role="assistant", text=done.outcome.text),
        )
        self.session = SessionState(
            next_state=done.next_state or "",
            business_context=dict(done.business_context.values),
            active_agent=done.route.agent if done.route else "",
            dialogue=dialogue_load(done.dialogue.dump()),
        )
        return done

    async def hears(self, text: str) -> str:
        outcome = (await self.say(text)).outcome
        assert outcome is not None
        return outcome.text

    def sent(self, tool: str) -> list[dict[str, Any]]:
        return [arguments for name, arguments, _ in self.transport.calls if name == tool]


@pytest.mark.parametrize(
    "answer", ["11999999999", "(11) 99999-9999", "meu número é 11999999999", "é o 11 99999-9999"]
)
async def test_line__asked_for__the_customers_answer_is_used_and_kept(answer: str) -> None:
    talk = Talk()
    assert await talk.hears("Quero entender minha fatura") == LINE
    turn = await talk.say(answer)
    assert [call.status for call in turn.tool_calls] == ["ok", "ok"]
    assert talk.sent("consultar_fatura") == [{"msisdn": "11999999999"}]
    assert talk.session.next_state == ""
    again = await talk.say("Minha fatura veio alta")
    assert again.business_context.get("customer_key") == "11999999999"
    assert not isinstance(again.outcome, Waiting)


@pytest.mark.parametrize(
    "answer", ["PED-1001", "é o PED-1001", "o pedido é o PED-1001.", "onde está o PED-1001?"]
)
async def test_order__asked_for__the_customers_answer_is_used(answer: str) -> None:
    talk = Talk()
    assert await talk.hears("Onde está meu pedido?") == ORDER
    turn = await talk.say(answer)
    assert turn.business_context.get("contract_key") == "PED-1001"
    assert talk.sent("consultar_pedido") == [{"order_id": "PED-1001"}]
    assert not isinstance(turn.outcome, Waiting)


@pytest.mark.parametrize("text", ["Onde está o pedido PED-1002?", "Where is my order PED-1002?"])
async def test_order__named_in_the_question__is_not_asked_for(text: str) -> None:
    talk = Talk()
    turn = await talk.say(text)
    assert talk.sent("consultar_pedido") == [{"order_id": "PED-1002"}]
    assert not isinstance(turn.outcome, Waiting)


async def test_order__another_is_named_later__is_the_one_that_is_looked_up() -> None:
    talk = Talk()
    await talk.say("Onde está o pedido PED-1001?")
    await talk.say("E a entrega do pedido PED-1002?")
    await talk.say("Quando chega a entrega?")
    sent = [call["order_id"] for call in talk.sent("consultar_entrega")]
    assert sent == ["PED-1001", "PED-1002", "PED-1002"]


async def test_exchange__of_two_orders__asks_which() -> None:
    talk = Talk()
    assert await talk.hears("Quero trocar o PED-1001 e o PED-1002") == ORDER


async def test_order__talked_about_before__is_no_invoice() -> None:
    talk = Talk()
    await talk.say("Onde está o pedido PED-1001?")
    assert await talk.hears("Quero entender minha fatura") == LINE
    await talk.say("11999999999")
    assert talk.sent("consultar_fatura") == [{"msisdn": "11999999999"}]


async def test_order__a_value_no_tool_knows__is_not_carried_on() -> None:
    unknown = FakeTransport({"consultar_pedido": UNKNOWN, "consultar_entrega": UNKNOWN})
    talk = Talk(transport=unknown)
    await talk.say("Onde está meu pedido?")
    assert (await talk.hears("PED-9999")).startswith(NO_EVIDENCE)
    assert talk.sent("consultar_pedido") == [{"order_id": "PED-9999"}]
    assert "contract_key" not in talk.session.business_context
    assert await talk.hears("E onde está meu pedido?") == ORDER


@pytest.mark.parametrize(("remembers", "asked"), [(True, 2), (False, 1)])
async def test_question__never_answered__is_asked_twice_at_most(
    remembers: bool, asked: int
) -> None:
    talk = Talk(remembers=remembers)
    heard = [await talk.hears("Onde está meu pedido?")]
    heard += [await talk.hears(text) for text in ("não sei", "perdi o papel")[:asked]]
    assert heard[:-1] == [ORDER] * asked
    assert heard[-1].startswith(GREETING)
    assert talk.session.next_state == ""


async def test_line__caller_may_not_name_the_customer__is_not_taken_nor_asked_again() -> None:
    talk = Talk(caller=Caller())
    assert await talk.hears("Quero entender minha fatura") == LINE
    turn = await talk.say("11999999999")
    assert turn.outcome is not None
    assert turn.outcome.text.startswith(NO_EVIDENCE)
    assert "IDENTITY_NOT_TRUSTED" in [decision.code for decision in turn.decisions]
    assert (talk.transport.calls, talk.session.next_state) == ([], "")
    assert "customer_key" not in talk.session.business_context


@pytest.mark.parametrize("text", ["cancelar", "quero cancelar"])
async def test_question__customer_wants_to_stop__leaves_the_state(text: str) -> None:
    talk = Talk()
    await talk.say("Onde está meu pedido?")
    assert (await talk.hears(text)).startswith(GREETING)
    assert talk.session.next_state == ""


@pytest.mark.parametrize("text", ["tchau", "obrigado, tchau", "thanks, bye", "gracias, adiós"])
async def test_question__customer_says_goodbye__the_conversation_ends(text: str) -> None:
    talk = Talk()
    await talk.say("Onde está meu pedido?")
    turn = await talk.say(text)
    assert isinstance(turn.outcome, Ended)
    assert talk.session.next_state == "SESSION_ENDED"


@pytest.mark.parametrize("text", ["quero falar com humano", "falar com atendente"])
async def test_question__customer_wants_a_person__the_conversation_goes_there(text: str) -> None:
    talk = Talk()
    await talk.say("Onde está meu pedido?")
    turn = await talk.say(text)
    assert isinstance(turn.outcome, HandedOver)
    assert turn.outcome.text.startswith("Vou passar você para uma pessoa")
    assert talk.session.next_state == "HUMAN_HANDOFF_REQUESTED"


async def test_exchange__asked_confirmed_and_done__is_said_with_its_protocol() -> None:
    done = {"protocolo": "TRO-2026000001", "order_id": "PED-1001", "status": "TROCA_SOLICITADA"}
    talk = Talk(transport=FakeTransport({"solicitar_troca": done, "consultar_pedido": {}}))
    assert await talk.hears("Quero trocar meu produto") == ORDER
    assert await talk.hears("é o PED-1001") == "Qual é o motivo?"
    question = await talk.hears("veio com defeito na tela")
    assert question == (
        "Confirma a troca do pedido PED-1001? O motivo informado foi: veio com defeito na tela."
        " Responda sim ou não."
    )
    assert talk.sent("solicitar_troca") == []
    turn = await talk.say("sim")
    assert talk.sent("solicitar_troca") == [
        {"order_id": "PED-1001", "reason": "veio com defeito na tela"}
    ]
    assert turn.dialogue.last_transaction is not None
    assert turn.dialogue.last_transaction.status == "COMPLETED"
    assert turn.dialogue.evidence[0].summary["protocolo"] == "TRO-2026000001"


async def test_question__request_to_another_agent_of_the_domain__goes_there() -> None:
    talk = Talk()
    await talk.say("Onde está meu pedido?")
    turn = await talk.say("quero trocar meu pedido")
    assert turn.route is not None
    assert turn.route.agent == "support_agent"
    # The open action is what is waited for: it holds the conversation, not a state.
    assert talk.session.dialogue.transaction is not None
    assert talk.session.dialogue.transaction.tool == "solicitar_troca"
    assert talk.session.next_state == ""


async def test_line__a_document_that_was_masked__stays_out_of_the_context() -> None:
    talk = Talk()
    await talk.say("Quero entender minha fatura")
    turn = await talk.say("529.982.247-25")
    assert "<CPF" in turn.text
    assert "customer_key" not in talk.session.business_context
