"""Where the demo tenants' data sends what the manuals document, through the real router."""

import asyncio
import inspect
from dataclasses import replace
from functools import cache

import pytest

from agentops.demo_data import FOLDER, TENANTS
from agentops.policies import agents_of, requested_agent, route_text
from apps.agents.config import AgentConfig
from apps.releases.portable.native import native_parse
from apps.releases.portable.yaml_source import source_read
from apps.routing.config import IntentConfig
from apps.routing.step import ChooseAgent
from apps.runtime.config import KINDS, references
from apps.runtime.release import Release
from apps.runtime.testing import turn_of
from apps.runtime.turn import Route, SessionState, Turn
from apps.tools.config import ToolConfig
from examples.mcp_servers.retail import Retail
from examples.mcp_servers.telecom import Telecom

BILLING = ("billing_agent", "billing_invoice_explanation")
PRODUCT = ("product_agent", "product_services_information")
ORDERS = ("orders_agent", "retail_order_tracking")
SUPPORT = ("support_agent", "retail_support_exchange_return")
PAYMENTS = ("financeiro_agent", "financeiro_pagamentos")


@cache
def release(slug: str) -> Release:
    portable = native_parse([source_read(FOLDER / f"{slug}.yaml", slug)])
    items = {
        (i.kind, i.slug): KINDS[i.kind].model_validate(dict(i.content)) for i in portable.items
    }
    return Release(sha256=slug, items=items)


def said(text: str, tenant: str = "default", agent: str | None = None, state: str = "") -> Turn:
    requested = requested_agent(release(tenant), agent)
    assert requested
    session = SessionState(
        id="1", key=f"{tenant}:{requested}:s1", agent=requested, next_state=state
    )
    turn = turn_of(text, release=release(tenant), session=session)
    return replace(turn, route=asyncio.run(ChooseAgent(agents_of).route(turn)))


def route(text: str, tenant: str = "default", agent: str | None = None, state: str = "") -> Route:
    found = said(text, tenant, agent, state).route
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Quero entender minha fatura", BILLING),
        ("Quero consultar minha fatura", BILLING),
        ("Minha fatura veio alta", BILLING),
        ("Mensagem de teste 7 sobre minha fatura alta", BILLING),
        ("minha cobranca veio errada na conta", BILLING),
        ("My bill was high", BILLING),
        ("Test message 7 about my high bill", BILLING),
        ("Meu pagamento ainda não foi baixado", PAYMENTS),
        ("My payment has not been downloaded yet", PAYMENTS),
        ("Quero consultar meu pagamento", PAYMENTS),
        ("I want to check my payment", PAYMENTS),
        ("Onde está meu pedido?", ORDERS),
        ("Meu pedido não chegou", ORDERS),
        ("Qual é o meu plano?", PRODUCT),
        ("Quero trocar o meu plano", PRODUCT),
        ("Quais serviços estão ativos na minha linha?", PRODUCT),
        ("quero trocar meu produto", SUPPORT),
        ("Quero devolver um item com defeito", SUPPORT),
    ],
)
def test_default__documented_message_without_an_agent__reaches_its_agent(
    text: str, expected: tuple[str, str]
) -> None:
    found = route(text)
    assert (found.agent, found.intent) == expected
    assert found.confidence >= found.threshold == 0.65


@pytest.mark.parametrize(
    ("agent", "text", "expected"),
    [
        ("telecom_contas", "Quero consultar minha fatura", BILLING),
        ("telecom_contas", "Minha fatura veio alta", BILLING),
        ("retail_orders", "Onde está meu pedido?", ORDERS),
        ("financeiro_agent", "Quero consultar meu pagamento", PAYMENTS),
        ("financeiro_agent", "I want to check my payment", PAYMENTS),
        ("financeiro_agent", "Preciso da segunda via do boleto", PAYMENTS),
        ("billing_agent", "Preciso da segunda via do boleto", BILLING),
    ],
)
def test_default__requested_agent__answers_with_its_own_intents(
    agent: str, text: str, expected: tuple[str, str]
) -> None:
    found = route(text, agent=agent)
    assert (found.agent, found.intent) == expected


@pytest.mark.parametrize(
    "text",
    ["teste", "sua frase de teste", "tudo bem?", "me conta uma piada", "Preciso do contato",
     "qual o valor do vaso"],
)  # fmt: skip
def test_default__nothing_said_about_a_subject__greets_and_calls_no_tool(text: str) -> None:
    turn = said(text)
    assert turn.route is not None
    assert (turn.route.method, turn.route.tools) == ("fallback", ())
    assert route_text(turn).startswith("Olá! Posso ajudar com faturas")


@pytest.mark.parametrize(
    "text",
    ["Meu pedido atrasou e minha fatura veio duplicada", "quero devolver produto da fatura"],
)
def test_default__two_subjects__asks_which_one_first(text: str) -> None:
    found = route(text)
    assert (found.method, found.tools) == ("clarify", ())


def test_default__another_agents_subject__is_not_answered_by_the_requested_one() -> None:
    assert route("minha fatura", agent="retail_orders").method == "fallback"


def test_default__invoice__collects_both_tools() -> None:
    assert route("Quero entender minha fatura").tools == (
        "consultar_fatura",
        "consultar_pagamentos",
    )


def test_default__waiting_for_a_confirmation__a_short_answer_stays() -> None:
    found = route("sim", state="WAITING_SUPPORT_CONFIRMATION")
    assert (found.agent, found.method) == ("support_agent", "state")


def test_default__waiting_and_another_subject__leaves_the_state() -> None:
    found = route("esquece, quero ver minha fatura", state="WAITING_ORDER_CONFIRMATION")
    assert (found.agent, found.intent) == BILLING


@pytest.mark.parametrize(
    ("tenant", "agent", "text", "expected"),
    [
        ("tim", "telecom_contas", "Quero entender minha fatura", BILLING),
        ("tim", None, "Quero entender minha fatura", BILLING),
        ("loja", "retail_orders", "Onde está meu pedido?", ORDERS),
        ("loja", None, "Onde está meu pedido?", ORDERS),
    ],
)
def test_other_tenants__documented_message__reaches_its_agent(
    tenant: str, agent: str | None, text: str, expected: tuple[str, str]
) -> None:
    found = route(text, tenant=tenant, agent=agent)
    assert (found.agent, found.intent) == expected


@pytest.mark.parametrize(("tenant", "text"), [("tim", "Onde está meu pedido?"), ("loja", "fatura")])
def test_other_tenants__another_tenants_subject__is_not_known(tenant: str, text: str) -> None:
    assert route(text, tenant=tenant).method == "fallback"


@pytest.mark.parametrize("tenant", TENANTS)
def test_demo_tenant__every_reference__names_an_item_of_the_file(tenant: str) -> None:
    items = release(tenant).items
    dangling = [
        (key, found.path)
        for key, config in items.items()
        for found in references(config)
        if (found.kind, found.slug) not in items
    ]
    assert dangling == []


@pytest.mark.parametrize("tenant", TENANTS)
def test_demo_tenant__intents_tools__are_allowed_to_their_agent(tenant: str) -> None:
    agents = release(tenant).all(AgentConfig)
    for intent in release(tenant).all(IntentConfig).values():
        assert set(intent.mcp_tools) <= set(agents[intent.agent].tools)


@pytest.mark.parametrize("tenant", TENANTS)
def test_demo_tenant__tools__declare_arguments_that_the_demo_servers_take(tenant: str) -> None:
    servers = {"telecom": Telecom, "retail": Retail}
    for slug, tool in release(tenant).all(ToolConfig).items():
        taken = inspect.signature(getattr(servers[tool.mcp_server], slug)).parameters
        needed = {n for n, p in taken.items() if p.default is p.empty and n != "self"}
        assert set(tool.args_schema) <= set(taken), slug
        assert needed <= set(tool.requires), slug
