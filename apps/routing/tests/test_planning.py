"""Several things in one message (platform facts 3.2, 3.7; faults 9, 20; pain 20)."""

import json

import pytest

from apps.routing.config import IntentConfig, RoutingPolicyConfig
from apps.routing.explain import explain
from apps.routing.index import AgentFacts
from apps.routing.planning import clauses, head_of
from apps.routing.tests.test_llm import Failing
from apps.routing.tests.world import AGENTS, INTENTS, chosen, route, said
from apps.runtime.testing import FakeModel

SUPERVISOR = RoutingPolicyConfig(mode="supervisor")
HYBRID = RoutingPolicyConfig(mode="hybrid")
CANCEL = IntentConfig(
    agent="orders_agent", domain="retail", keywords=["cancelar o pedido", "cancelamento"],
    mcp_tools=["cancelar_pedido"],
)  # fmt: skip
ACTING = {
    **AGENTS,
    "orders_agent": AgentFacts(domain="retail", actions=frozenset({"cancelar_pedido"})),
}


def planned(text, policy=SUPERVISOR, **changes):
    return route(text, policy=policy, **changes)


def parts(found):
    return [(part.intent, part.text) for part in found.plan]


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("Meu pedido atrasou e minha fatura veio duplicada",
         ["Meu pedido atrasou", "minha fatura veio duplicada"]),
        ("R$ 71,99 da fatura, e o pedido a.b@c.com", ["R$ 71,99 da fatura", "o pedido a.b@c.com"]),
        ("e o boleto? e a entrega", ["o boleto", "a entrega"]),
        ("my bill and then the order; also the plan", ["my bill", "the order", "the plan"]),
        ("la factura y el pedido", ["la factura", "el pedido"]),
        ("linha um\nlinha dois", ["linha um", "linha dois"]),
        ("v1.2 às 10:30 em https://a.b/c?d=e", ["v1.2 às 10:30 em https://a.b/c?d=e"]),
        ("", []), ("?!, e", []), ("minha fatura", ["minha fatura"]),
    ],
)  # fmt: skip
def test_clauses__at_punctuation_and_joining_words(text, cut):
    assert [clause.text for clause in clauses(text)] == cut


def test_clauses__wall_of_text__is_cut_twelve_times_at_most():
    assert len(clauses("a fatura, " * 5_000)) == 12


def test_head__what_stands_before_the_rest():
    assert head_of("sim, e me manda a fatura", "me manda a fatura") == "sim"
    assert head_of("sim", "outra coisa") == "sim"


@pytest.mark.parametrize("policy", [SUPERVISOR, HYBRID])
@pytest.mark.parametrize(
    ("text", "intents"),
    [
        ("Meu pedido atrasou e minha fatura veio duplicada",
         ["retail_order_tracking", "billing_invoice_explanation"]),
        ("a fatura, o boleto e o pedido", ["billing_invoice_explanation", "retail_order_tracking"]),
        ("Qual é o meu plano? E onde está meu pedido?",
         ["product_services_information", "retail_order_tracking"]),
    ],
)  # fmt: skip
def test_several_subjects__are_a_plan_in_the_order_of_the_message(text, intents, policy):
    found = planned(text, policy)
    assert (found.method, found.intent) == ("supervisor", "multi_intent")
    assert [part.intent for part in found.plan] == intents
    assert found.agent == found.plan[0].agent
    assert found.tools == found.plan[0].tools
    assert found.confidence == min(part.score for part in found.plan) >= found.threshold


def test_part__has_its_own_words_agent_tools_domain_and_states():
    found = planned("Meu pedido atrasou e minha fatura veio duplicada")
    order, bill = found.plan
    assert (order.text, bill.text) == ("Meu pedido atrasou", "minha fatura veio duplicada")
    assert (order.agent, bill.agent) == ("orders_agent", "billing_agent")
    assert bill.tools == ("consultar_fatura", "consultar_pagamentos")
    assert (order.domain, bill.domain) == ("retail", "telecom")
    assert bill.next_state["waiting"] == "WAITING_BILLING_CONFIRMATION"


def test_tie_within_one_clause__is_a_plan_where_it_was_a_question_back():
    found = planned("quero devolver produto da fatura")
    assert found.method == "supervisor"
    assert found.plan[0].agent == "support_agent"
    assert {part.agent for part in found.plan} == {
        "support_agent", "billing_agent", "product_agent",
    }  # fmt: skip
    assert route("quero devolver produto da fatura").method == "clarify"


def test_one_subject__is_an_ordinary_route():
    for text in ("minha fatura", "a fatura e o boleto", "um produto quebrado", "não, é a fatura"):
        found = planned(text)
        assert found.plan == ()
        assert found.method in ("keyword", "example", "supervisor")
    assert planned("não quero fatura, quero o pedido").agent == "orders_agent"
    assert planned("minha fatura").method == "keyword"


def test_phrase_over_a_joining_word__stays_whole():
    found = planned("preciso da segunda e última via")
    assert (found.agent, found.plan) == ("billing_agent", ())


def test_what_changes_something__goes_first():
    found = planned("minha fatura veio alta e quero devolver o produto quebrado")
    assert [part.intent for part in found.plan] == [
        "retail_support_exchange_return", "billing_invoice_explanation",
    ]  # fmt: skip


def test_second_mutation__is_kept_as_a_topic():
    """At most one mutating action a message (3.7, fault 20)."""
    found = planned(
        "quero devolver o produto quebrado, cancelar o pedido e ver minha fatura",
        intents={**INTENTS, "cancel": CANCEL}, agents=ACTING,
    )  # fmt: skip
    acting = [
        p.intent for p in found.plan if p.intent in ("cancel", "retail_support_exchange_return")
    ]
    assert acting == ["retail_support_exchange_return"]
    assert "billing_invoice_explanation" in [part.intent for part in found.plan]
    assert found.metadata["topics"] == [
        {"intent": "cancel", "agent": "orders_agent", "text": "cancelar o pedido"}
    ]


def test_two_mutations_alone__one_now_one_later():
    found = planned(
        "quero devolver o produto quebrado e o cancelamento",
        intents={**INTENTS, "cancel": CANCEL}, agents=ACTING,
    )  # fmt: skip
    assert (found.intent, found.plan) == ("retail_support_exchange_return", ())
    assert "solicitar_troca" in found.tools
    assert [topic["intent"] for topic in found.metadata["topics"]] == ["cancel"]


def test_more_parts_than_a_plan_holds__are_kept_for_later():
    policy = SUPERVISOR.model_copy(update={"max_plan": 2})
    found = planned("a fatura, o plano e o pedido", policy)
    assert [part.intent for part in found.plan] == [
        "billing_invoice_explanation", "product_services_information",
    ]  # fmt: skip
    assert [topic["intent"] for topic in found.metadata["topics"]] == ["retail_order_tracking"]


def test_unknown_clause__is_left_out_and_noted():
    """Clauses are resolved against declared intents only."""
    text = "qual a previsão do tempo, minha fatura e onde está meu pedido"
    found = planned(text)
    assert [part.intent for part in found.plan] == [
        "billing_invoice_explanation", "retail_order_tracking",
    ]  # fmt: skip
    assert found.metadata["off_context"] == ["qual a previsão do tempo"]
    one = planned("minha fatura e qual a previsão do tempo?")
    assert (one.agent, one.plan) == ("billing_agent", ())
    assert one.metadata["off_context"] == ["qual a previsão do tempo"]


@pytest.mark.parametrize("mode", ["supervisor", "hybrid"])
def test_nothing_known__greets_as_ever(mode):
    found = planned("tudo bem? me conta uma piada", RoutingPolicyConfig(mode=mode))
    assert (found.method, found.tools, found.plan) == ("fallback", (), ())


def test_router_mode__never_plans():
    found = route("Meu pedido atrasou e minha fatura veio duplicada")
    assert (found.method, found.plan) == ("clarify", ())


def test_requested_agent__plans_with_its_own_intents_only():
    found = planned("minha fatura e meu pedido", agent="telecom_contas")
    assert (found.agent, found.plan) == ("billing_agent", ())


def test_supervisor__may_ask_a_model_about_a_clause_hybrid_not():
    reply = json.dumps({"intent": "retail_order_tracking", "confidence": 0.9})
    text = "minha fatura e onde foi parar o negócio"
    listed = {"strategies": ["keyword", "example", "llm"]}
    asked = FakeModel(*[reply] * 5)
    found = planned(text, SUPERVISOR.model_copy(update=listed), models=asked)
    assert [part.intent for part in found.plan] == [
        "billing_invoice_explanation", "retail_order_tracking",
    ]  # fmt: skip
    assert (
        json.loads(asked.requests[0].messages[1].content)["message"] == "onde foi parar o negócio"
    )
    turn = chosen(
        said(text, policy=SUPERVISOR.model_copy(update=listed)), models=FakeModel(*[reply] * 5)
    )
    assert [call.operation for call in turn.model_calls] == ["router.intent"]
    failing = Failing()
    by_rules = planned(text, HYBRID.model_copy(update=listed), models=failing)
    assert (by_rules.agent, failing.requests) == ("billing_agent", [])


def test_open_flow_control_and_state__come_before_any_plan():
    assert planned("a fatura e o pedido, quero um humano").control == "HUMAN_HANDOFF"
    held = planned("sim, a fatura e o pedido", state="WAITING_ORDER_CONFIRMATION")
    assert held.method == "state"


def test_explain__shows_the_plan_and_what_was_noted():
    found = planned("qual a previsão do tempo, minha fatura e onde está meu pedido")
    told = explain(found, "supervisor")
    assert told["plan"][0] == {
        "agent": "billing_agent", "intent": "billing_invoice_explanation", "text": "minha fatura",
    }  # fmt: skip
    assert told["notes"]["off_context"] == ["qual a previsão do tempo"]
    assert json.loads(json.dumps(told)) == told
