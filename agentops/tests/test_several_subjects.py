"""Whole turns of the demo in which a message asks for several things, and ends as one answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from agentops.pipeline import turn_pipeline
from agentops.policies import requested_agent
from agentops.tests.test_demo_answers import BINDINGS, DEMO
from agentops.tests.test_demo_routing import release
from apps.agents.calling import ModelCaller
from apps.agents.config import AgentConfig
from apps.agents.providers.scripted import Scripted
from apps.routing.config import RoutingPolicyConfig
from apps.runtime.dialogue import Dialogue, dialogue_load
from apps.runtime.outcomes import Answered, HandedOver, Waiting
from apps.runtime.release import Release
from apps.runtime.testing import (
    FakeConfirmations,
    FakeHistory,
    FakeLedger,
    FakeStore,
    FakeTransport,
)
from apps.runtime.turn import Inbound, SessionState, Turn
from apps.tools.calling import ToolCaller
from apps.tools.tests.talk import NoWorkflows

RESULTS = {
    "consultar_pedido": {"pedido": "PED-1001", "status": "em separação"},
    "consultar_entrega": {"previsao": "2026-12-05", "transportadora": "Correios"},
    "consultar_fatura": {"fatura": "F-77", "valor_total": 189.9, "vencimento": "2026-12-10"},
    "consultar_pagamentos": {"pagamentos": [{"data": "2026-11-02", "valor": 45.5}]},
    "solicitar_troca": {"protocolo": "TRC-9", "status": "aberta"},
}
FACTS = ("PED-1001", "05/12/2026", "Correios", "F-77", "R$ 189,90", "10/12/2026", "R$ 45,50")
KEYS = {"msisdn": "11999990000", "order_id": "PED-1001", "customer_key": "c1"}


def demo(mode: str) -> Release:
    """Return the demo's release with another mode and the strategies that hear everything."""
    base = release("default")
    policy = base.items[("routing_policy", "default")].model_dump()
    policy |= {"mode": mode, "strategies": ["state", "control", "literal", "keyword", "example"]}
    changed = RoutingPolicyConfig.model_validate(policy)
    return Release(sha256=mode, items={**base.items, ("routing_policy", "default"): changed})


@dataclass
class Talk:
    mode: str = "supervisor"
    dialogue: Dialogue = field(default_factory=Dialogue)
    state: str = ""
    number: int = 0
    transport: FakeTransport = field(default_factory=lambda: FakeTransport(RESULTS))
    confirmations: FakeConfirmations = field(default_factory=FakeConfirmations)
    store: FakeStore = field(default_factory=FakeStore)

    async def say(self, text: str, payload: Mapping[str, Any] = KEYS) -> Turn:
        self.number += 1
        pinned = demo(self.mode)
        agent = requested_agent(pinned, None) or ""
        inbound = Inbound(
            channel="web", text=text, agent=None, message_id=f"m{self.number}", session="s1",
            caller=DEMO, payload=payload,
        )  # fmt: skip
        turn = Turn(
            id=f"t{self.number}", tenant="default", release=pinned, inbound=inbound, text=text,
            bindings=BINDINGS, dialogue=self.dialogue,
            session=SessionState(
                id="1", key=f"default:{agent}:s1", agent=agent, turn_number=self.number,
                dialogue=self.dialogue, next_state=self.state,
            ),
        )  # fmt: skip
        ledger = FakeLedger()
        pipeline = turn_pipeline(
            history=FakeHistory(),
            tools=ToolCaller(
                self.transport, ledger, lambda name: "x", confirmations=self.confirmations
            ),
            workflows=NoWorkflows(),
            models=ModelCaller({"scripted": Scripted()}, ledger, secret=lambda name: ""),
            store=self.store,
        )
        done = await pipeline.run(turn)
        self.confirmations.ask(done)
        self.dialogue = dialogue_load(done.dialogue.dump())
        self.state = done.next_state or ""
        return done


def internal_names() -> list[str]:
    pinned = demo("supervisor")
    return [slug for slug in pinned.all(AgentConfig) if "_" in slug] + [
        "consultar_",
        "multi_intent",
    ]


@pytest.mark.parametrize("mode", ["supervisor", "hybrid"])
@pytest.mark.parametrize(
    "text",
    ["Meu pedido atrasou e minha fatura veio duplicada", "Onde está meu pedido? E a minha fatura?"],
)
async def test_two_subjects__one_answer_with_every_fact_once_and_no_internal_name(text, mode):
    done = await Talk(mode).say(text)
    assert isinstance(done.outcome, Answered)
    said = done.outcome.text
    assert [said.count(fact) for fact in FACTS] == [1] * len(FACTS), said
    assert [name for name in internal_names() if name in said] == []
    assert "#" not in said
    assert "[" not in said
    assert [call.ordinal for call in done.tool_calls] == list(range(len(done.tool_calls)))
    assert len({(call.operation, i) for i, call in enumerate(done.model_calls)}) == 3


async def test_two_subjects__router_mode__asks_which_one_first():
    done = await Talk("router").say("Meu pedido atrasou e minha fatura veio duplicada")
    assert isinstance(done.outcome, Waiting)
    assert done.tool_calls == ()


async def test_action_and_a_question__the_action_is_confirmed_once_and_the_rest_served():
    """ "At most one mutating action": its question is last, the invoice is answered before it."""
    talk = Talk()
    done = await talk.say("quero trocar o produto quebrado e ver minha fatura")
    assert isinstance(done.outcome, Waiting)
    assert "R$ 189,90" in done.outcome.text
    assert done.dialogue.transaction is not None
    assert done.dialogue.transaction.tool == "solicitar_troca"
    assert [c.tool for c in done.tool_calls if c.action and c.status == "ok"] == []
    assert "solicitar_troca" not in [name for name, _, _ in talk.transport.calls]


async def test_asking_for_a_person__hands_over_whatever_else_is_said():
    done = await Talk().say("minha fatura e meu pedido, quero falar com um atendente")
    assert isinstance(done.outcome, HandedOver)
    assert done.tool_calls == ()
    assert done.next_state == "HUMAN_HANDOFF_REQUESTED"


async def test_given_up_for_another_subject__says_so_and_answers_it():
    talk = Talk()
    await talk.say("quero trocar o produto quebrado")
    assert talk.dialogue.transaction is not None
    done = await talk.say("esquece, quero ver minha fatura")
    assert isinstance(done.outcome, Answered)
    assert "R$ 189,90" in done.outcome.text
    assert done.dialogue.transaction is None
    assert "solicitar_troca" not in [name for name, _, _ in talk.transport.calls]


async def test_yes_and_a_question__is_confirmed_carried_out_once_and_the_question_answered():
    """ "Sim, e me manda a fatura" (platform facts 3.7)."""
    talk = Talk()
    await talk.say("quero trocar o produto quebrado")
    asked = await talk.say("veio quebrado")
    assert isinstance(asked.outcome, Waiting)
    assert asked.outcome.waiting_for == "confirmation"
    done = await talk.say("sim, e me manda a fatura")
    assert isinstance(done.outcome, Answered)
    for fact in ("TRC-9", "F-77", "R$ 189,90"):
        assert done.outcome.text.count(fact) == 1
    acted = [call for call in done.tool_calls if call.action]
    assert [(call.tool, call.status) for call in acted] == [("solicitar_troca", "ok")]
    assert [name for name, _, _ in talk.transport.calls].count("solicitar_troca") == 1
    assert done.dialogue.transaction is None
    assert [call.agent for call in done.tool_calls if call.tool == "consultar_fatura"] == [
        "billing_agent"
    ]
