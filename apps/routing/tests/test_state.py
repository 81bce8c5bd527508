"""A state keeps its agent, but has a way out (faults 13 to 15; case 4.3)."""

import pytest

from apps.routing.index import AgentFacts
from apps.routing.tests.world import AGENTS, route

ORDER = "WAITING_ORDER_CONFIRMATION"


@pytest.mark.parametrize(
    "text",
    [
        "sim",
        "não",
        "não, obrigado",
        "isso",
        "sim, e me manda a fatura",
        "R$ 71,99",
        "o pedido é o PED-1001",
        "é o celular da última compra",
        "Você não acha que devemos apagar a luz?",
        "não esquece de mandar",
        "qual a fatura do pedido?",
    ],
)
def test_state__answer_to_what_was_asked__stays(text):
    chosen = route(text, state=ORDER)
    assert (chosen.method, chosen.agent) == ("state", "orders_agent")
    assert chosen.intent == f"state:{ORDER}"
    assert chosen.confidence == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "esquece, quero ver minha fatura",
        "ah, então esquece. Quero ver minha fatura",
        "deixa pra lá, e a minha fatura?",
        "cancela isso, quero minha fatura",
        "forget it, I want my bill",
        "não, quero ver minha fatura",
        "quero ver minha fatura",
        "a fatura veio errada",
    ],
)
def test_state__abandoned_or_another_subject__goes_there(text):
    chosen = route(text, state=ORDER)
    assert (chosen.method, chosen.intent) == ("keyword", "billing_invoice_explanation")


@pytest.mark.parametrize("text", ["esquece", "deixa pra lá", "cancela isso", "never mind"])
def test_state__abandoned_with_nothing_else__falls_back_without_tools(text):
    chosen = route(text, state=ORDER)
    assert (chosen.method, chosen.tools) == ("fallback", ())
    assert f"{ORDER} abandoned" in chosen.reason
    assert chosen.next_state == {}


def test_state__request_within_the_same_domain__leaves_but_an_answer_stays():
    assert route("quero ver a devolução", state=ORDER).agent == "support_agent"
    assert route("a devolução 12345", state=ORDER).method == "state"


def test_state__two_other_subjects__are_too_unclear_to_leave():
    assert route("quero a fatura ou a devolução?", state=ORDER).method == "state"


def test_state__tools__are_those_of_the_intents_that_lead_into_it():
    assert route("sim", state=ORDER).tools == ("consultar_pedido", "consultar_entrega")


def test_state__next_states__are_the_agents_only():
    agents = {**AGENTS, "orders_agent": AgentFacts(next_state={"answered": "NEXT"})}
    assert dict(route("sim", state=ORDER, agents=agents).next_state) == {"answered": "NEXT"}


@pytest.mark.parametrize("state", ["", "NO_SUCH_STATE", "waiting_order_confirmation"])
def test_state__unknown_state__is_ignored(state):
    assert route("minha fatura", state=state).method == "keyword"


def test_state__agent_outside_the_requested_ones__is_ignored():
    assert route("sim", state=ORDER, agent="telecom_contas").method == "fallback"


@pytest.mark.parametrize(
    "text",
    ["cancelar", "Cancela, por favor", "quero cancelar"],
)
def test_state__stop__leaves_without_tools(text):
    chosen = route(text, state=ORDER)
    assert (chosen.method, chosen.tools) == ("fallback", ())


@pytest.mark.parametrize("text", ["quero falar com humano", "atendente"])
def test_state__a_person__leaves_for_one(text):
    chosen = route(text, state=ORDER)
    assert (chosen.method, chosen.control, chosen.tools) == ("control", "HUMAN_HANDOFF", ())


@pytest.mark.parametrize(
    "text", ["não cancelar", "quero cancelar o pedido", "o atendente me deu o PED-1001 ontem"]
)
def test_state__stop_word_that_says_something_else__stays(text):
    assert route(text, state=ORDER).method == "state"
