"""A tenant with a telecom and a retail front, as a release and as facts about its agents."""

import asyncio
from collections.abc import Mapping
from typing import Any

from apps.routing.config import IntentConfig, RoutingPolicyConfig, StatePolicyConfig
from apps.routing.index import AgentFacts
from apps.routing.step import ChooseAgent
from apps.runtime.release import Release
from apps.runtime.testing import release_of, turn_of
from apps.runtime.turn import Route, SessionState

AGENTS: dict[str, AgentFacts] = {
    "front": AgentFacts(members=("telecom_contas", "retail_orders")),
    "telecom_contas": AgentFacts(members=("billing_agent", "product_agent"), domain="telecom"),
    "retail_orders": AgentFacts(members=("orders_agent", "support_agent"), domain="retail"),
    "billing_agent": AgentFacts(domain="telecom", next_state={"handed_over": "WITH_A_PERSON"}),
    "product_agent": AgentFacts(domain="telecom"),
    "orders_agent": AgentFacts(domain="retail"),
    "support_agent": AgentFacts(domain="retail"),
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


def release(
    *,
    intents: Mapping[str, IntentConfig] | None = None,
    policy: RoutingPolicyConfig | None = None,
) -> Release:
    """Return the tenant's release; without ``policy`` it has no routing policy at all."""
    items: dict[str, Any] = {
        "intent": INTENTS if intents is None else intents,
        "state_policy": STATES,
    }
    if policy is not None:
        items["routing_policy"] = {"default": policy}
    return release_of(**items)


def route(
    text: str,
    *,
    agent: str = "front",
    state: str = "",
    agents: Mapping[str, AgentFacts] | None = None,
    **release_changes: Any,
) -> Route:
    """Return the route of ``text`` said to ``agent`` while the session is in ``state``."""
    turn = turn_of(
        text,
        release=release(**release_changes),
        session=SessionState(agent=agent, next_state=state),
    )
    return asyncio.run(ChooseAgent(lambda _: AGENTS if agents is None else agents).route(turn))
