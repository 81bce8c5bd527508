"""A tenant with a telecom and a retail front, as a release and as facts about its agents."""

import asyncio
from collections.abc import Mapping
from typing import Any

from apps.agents.config import ModelProfileConfig
from apps.routing.config import IntentConfig, RoutingPolicyConfig, StatePolicyConfig
from apps.routing.index import AgentFacts
from apps.routing.meaning import MeaningPort
from apps.routing.step import ChooseAgent
from apps.runtime.dialogue import Dialogue, Reading
from apps.runtime.ports import ModelPort
from apps.runtime.release import Release
from apps.runtime.testing import release_of, turn_of
from apps.runtime.turn import ChatMessage, Route, SessionState, Turn

AGENTS: dict[str, AgentFacts] = {
    "front": AgentFacts(members=("telecom_contas", "retail_orders")),
    "telecom_contas": AgentFacts(members=("billing_agent", "product_agent"), domain="telecom"),
    "retail_orders": AgentFacts(members=("orders_agent", "support_agent"), domain="retail"),
    "billing_agent": AgentFacts(domain="telecom", next_state={"handed_over": "WITH_A_PERSON"}),
    "product_agent": AgentFacts(domain="telecom"),
    "orders_agent": AgentFacts(domain="retail"),
    "support_agent": AgentFacts(
        domain="retail", actions=frozenset({"solicitar_troca", "solicitar_devolucao"})
    ),
}

INTENTS: dict[str, IntentConfig] = {
    "billing_invoice_explanation": IntentConfig(
        agent="billing_agent",
        domain="telecom",
        priority=10,
        keywords=["fatura", "conta", "cobrança", "boleto", "vencimento", "segunda via", "bill"],
        examples=[
            "Quero consultar minha fatura",
            "Minha conta veio muito alta este mês",
            "Qual o valor da minha fatura?",
        ],
        mcp_tools=["consultar_fatura", "consultar_pagamentos"],
        next_state={"waiting": "WAITING_BILLING_CONFIRMATION"},
    ),
    "product_services_information": IntentConfig(
        agent="product_agent",
        domain="telecom",
        priority=20,
        keywords=["plano", "produto", "serviço", "internet", "roaming", "vas"],
        examples=["Qual é o meu plano?", "Quais serviços eu tenho contratados?"],
        mcp_tools=["consultar_plano", "listar_servicos"],
    ),
    "retail_order_tracking": IntentConfig(
        agent="orders_agent",
        domain="retail",
        priority=30,
        keywords=["pedido", "entrega", "rastreio", "encomenda", "compra"],
        examples=["Onde está meu pedido?", "Quero rastrear o pacote que comprei"],
        mcp_tools=["consultar_pedido", "consultar_entrega"],
        next_state={"waiting": "WAITING_ORDER_CONFIRMATION"},
    ),
    "retail_support_exchange_return": IntentConfig(
        agent="support_agent",
        domain="retail",
        priority=40,
        keywords=["troca", "devolução", "devolver", "defeito", "produto quebrado"],
        examples=["Comprei e me arrependi", "O aparelho chegou estragado"],
        mcp_tools=["consultar_pedido", "solicitar_troca", "solicitar_devolucao"],
    ),
}

STATES = {
    "done": StatePolicyConfig(state="DONE", agent="orders_agent", terminal=True),
    "waiting_billing": StatePolicyConfig(
        state="WAITING_BILLING_CONFIRMATION", agent="billing_agent"
    ),
    "waiting_order": StatePolicyConfig(state="WAITING_ORDER_CONFIRMATION", agent="orders_agent"),
}


PROFILES = ("router", "route_continuity")


def release(
    *,
    intents: Mapping[str, IntentConfig] | None = None,
    policy: RoutingPolicyConfig | None = None,
    profiles: tuple[str, ...] = PROFILES,
) -> Release:
    """Return the tenant's release; without ``policy`` it has no routing policy at all."""
    items: dict[str, Any] = {
        "intent": INTENTS if intents is None else intents,
        "state_policy": STATES,
        "model_profile": {name: ModelProfileConfig(provider="scripted") for name in profiles},
    }
    if policy is not None:
        items["routing_policy"] = {"default": policy}
    return release_of(**items)


def said(
    text: str,
    *,
    agent: str = "front",
    state: str = "",
    memory: tuple[ChatMessage, ...] = (),
    dialogue: Dialogue | None = None,
    reading: Reading | None = None,
    **release_changes: Any,
) -> Turn:
    """Return the turn of ``text`` said to ``agent`` while the session is in ``state``."""
    dialogue = dialogue or Dialogue()
    return turn_of(
        text,
        release=release(**release_changes),
        session=SessionState(agent=agent, next_state=state, dialogue=dialogue),
        dialogue=dialogue,
        reading=reading or Reading(),
        memory=memory,
    )


def chosen(
    turn: Turn,
    *,
    agents: Mapping[str, AgentFacts] | None = None,
    models: ModelPort | None = None,
    embeddings: MeaningPort | None = None,
) -> Turn:
    """Return ``turn`` after the step."""
    step = ChooseAgent(
        lambda _: AGENTS if agents is None else agents, models=models, embeddings=embeddings
    )
    return asyncio.run(step(turn))


def route(
    text: str,
    *,
    agents: Mapping[str, AgentFacts] | None = None,
    models: ModelPort | None = None,
    embeddings: MeaningPort | None = None,
    **changes: Any,
) -> Route:
    """Return the route of ``text``; ``changes`` are those of ``said``."""
    found = chosen(said(text, **changes), agents=agents, models=models, embeddings=embeddings)
    assert found.route is not None
    return found.route


def strategy(found: Route, name: str) -> dict[str, Any]:
    """Return what ``name`` is on record to have found."""
    return next(entry for entry in found.metadata["strategies"] if entry["name"] == name)
