"""A specialist holds the conversation until it is over or the customer walks away (14.2; pain 19)."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from apps.routing.index import AgentFacts, Budget, routing_index
from apps.routing.sentence import read
from apps.routing.strategies.delegation import ByDelegation
from apps.routing.strategies.face import Question
from apps.routing.tests.world import AGENTS, route, said
from apps.runtime.dialogue import Dialogue, Reading, SubConversation, Transaction

AGENTS_WITH_SPECIALIST = {
    **AGENTS,
    "front": AgentFacts(
        members=("telecom_contas", "retail_orders"),
        specialists={"orders": Budget(turns=3, minutes=30)},
    ),
    "orders_agent": AgentFacts(domain="retail", model_tools=("consultar_pedido",)),
}
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def held(**changes):
    fields = {
        "id": "s", "role": "orders", "agent": "orders_agent", "coordinator": "front",
        "thread": "s", "started_at": NOW.isoformat(), **changes,
    }  # fmt: skip
    return Dialogue(sub_conversation=SubConversation(**fields))


def found_at(text, minutes, **changes):
    turn = said(text, dialogue=held(**changes))
    question = Question(
        sentence=read(text),
        index=routing_index(turn.release, lambda _: AGENTS_WITH_SPECIALIST),
        allowed=frozenset(AGENTS_WITH_SPECIALIST),
        turn=turn,
    )
    return asyncio.run(ByDelegation(lambda: NOW + timedelta(minutes=minutes))(question))


def routed(text, dialogue=None, **changes):
    started = held(started_at="", **changes) if dialogue is None else dialogue
    return route(text, dialogue=started, agents=AGENTS_WITH_SPECIALIST)


@pytest.mark.parametrize(
    "text", ["I'll be in San Francisco", "sim", "12345", "oi", "e a entrega?", "quero a devolução"]
)
def test_open__every_message_is_the_specialists(text):
    found = routed(text)
    assert (found.method, found.agent) == ("delegation", "orders_agent")
    assert found.metadata["delegation_role"] == "orders"


def test_open__own_intent__brings_its_tools_else_the_agents():
    own = routed("onde está meu pedido?")
    assert (own.intent, own.tools) == (
        "retail_order_tracking", ("consultar_pedido", "consultar_entrega"),
    )  # fmt: skip
    other = routed("em São Francisco")
    assert (other.intent, other.tools) == ("", ("consultar_pedido",))


@pytest.mark.parametrize(
    ("text", "why", "method"),
    [
        ("esquece", "user_cancelled", "fallback"),
        ("cancelar", "user_cancelled", "fallback"),
        ("quero falar com um atendente", "HUMAN_HANDOFF", "control"),
        ("tchau", "END_SESSION", "control"),
        ("quero ver minha fatura", "intent_shift", "keyword"),
        ("Qual é o meu plano?", "intent_shift", "keyword"),
    ],
)
def test_customer_walks_away__is_let_go_and_noted(text, why, method):
    found = routed(text)
    assert found.method == method
    assert found.metadata["delegation_abandoned"] == why
    assert "delegation_expired" not in found.metadata


def test_ambiguous_subject__stays():
    assert routed("a fatura ou o plano?").method == "delegation"


@pytest.mark.parametrize(("turns", "taken"), [(0, True), (2, True), (3, False), (9, False)])
def test_turn_budget__used_up__is_not_taken(turns, taken):
    found = routed("e agora?", turns=turns)
    assert (found.method == "delegation") is taken
    assert found.metadata.get("delegation_expired") == (None if taken else "turns")


@pytest.mark.parametrize(("minutes", "taken"), [(0, True), (29.9, True), (30, False), (600, False)])
def test_time_budget__used_up__is_not_taken(minutes, taken):
    finding = found_at("e agora?", minutes)
    assert (finding.route is not None) is taken
    assert finding.metadata.get("delegation_expired") == (None if taken else "minutes")


@pytest.mark.parametrize("started_at", ["", "yesterday"])
def test_time_budget__start_not_known__holds_nothing_against_it(started_at):
    assert found_at("e agora?", 9_999, started_at=started_at).route is not None


@pytest.mark.parametrize("changes", [{"role": "gone"}, {"agent": "gone"}, {"coordinator": "gone"}])
def test_role_agent_or_coordinator_gone__is_not_taken(changes):
    found = routed("e agora?", **changes)
    assert found.method != "delegation"
    assert found.metadata["delegation_expired"] == "gone"


def test_open_action_within_it__comes_first():
    action = Transaction(
        id="t", status="COLLECTING_PARAMETERS", tool="consultar_pedido", agent="orders_agent",
        intent="retail_order_tracking",
    )  # fmt: skip
    dialogue = held(started_at="").evolve(transaction=action)
    found = route(
        "PED-1", dialogue=dialogue, agents=AGENTS_WITH_SPECIALIST, reading=Reading(kind="fills")
    )
    assert found.method == "transaction"
