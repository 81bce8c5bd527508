"""Whether the subject goes on (platform facts 3.5; field case 3.5, pain 19)."""

import json

import pytest

from apps.routing.config import IntentConfig, RoutingPolicyConfig, Stickiness
from apps.routing.tests.test_llm import Failing
from apps.routing.tests.world import INTENTS, route, strategy
from apps.runtime.dialogue import Dialogue
from apps.runtime.testing import FakeModel
from apps.runtime.turn import ChatMessage

POLICY = RoutingPolicyConfig(
    strategies=["state", "control", "literal", "continuity", "keyword", "example"],
    stickiness=Stickiness(enabled=True),
)
BILLING = Dialogue(active_agent="billing_agent", active_intent="billing_invoice_explanation")
GOES_ON = "I'll be in San Francisco"


def asked(decision, text=GOES_ON, dialogue=BILLING, confidence=0.95, policy=POLICY, **changes):
    models = FakeModel(json.dumps({"decision": decision, "confidence": confidence}))
    return route(text, policy=policy, dialogue=dialogue, models=models, **changes)


def test_continue__keeps_the_agent_and_bypasses_the_router():
    found = asked("CONTINUE")
    assert (found.method, found.agent) == ("continuity", "billing_agent")
    assert found.intent == "billing_invoice_explanation"
    assert found.metadata["route_bypassed"] is True
    assert found.tools == ("consultar_fatura", "consultar_pagamentos")


@pytest.mark.parametrize(
    ("decision", "control", "state"),
    [
        ("HUMAN_HANDOFF", "HUMAN_HANDOFF", ("handed_over", "HUMAN_HANDOFF_REQUESTED")),
        ("END_SESSION", "END_SESSION", ("ended", "SESSION_ENDED")),
    ],
)
def test_handoff_and_end__by_the_model__are_the_routes_control(decision, control, state):
    found = asked(decision)
    assert (found.method, found.control) == ("continuity", control)
    assert found.next_state[state[0]] == state[1]


@pytest.mark.parametrize(
    ("decision", "confidence"),
    [("ROUTE", 1.0), ("CONTINUE", 0.89), ("HUMAN_HANDOFF", 0.5), ("MAYBE", 1.0), ("CONTINUE", 7)],
)
def test_route_low_confidence_or_nonsense__the_router_decides(decision, confidence):
    found = asked(decision, confidence=confidence)
    assert (found.method, found.control) == ("fallback", "")


@pytest.mark.parametrize("models", [Failing("timeout"), Failing("broken"), FakeModel("CONTINUE")])
def test_model_fails_or_is_unreadable__the_router_decides(models):
    assert route(GOES_ON, policy=POLICY, dialogue=BILLING, models=models).method == "fallback"


def test_first_turn__works_and_continue_without_an_agent_is_route():
    assert asked("CONTINUE", dialogue=Dialogue()).method == "fallback"
    assert asked("HUMAN_HANDOFF", dialogue=Dialogue()).control == "HUMAN_HANDOFF"


def test_active_agent_that_left_or_is_not_asked_for__is_not_kept():
    gone = Dialogue(active_agent="gone", active_intent="x")
    assert asked("CONTINUE", dialogue=gone).method == "fallback"
    assert asked("CONTINUE", agent="retail_orders").method == "fallback"


@pytest.mark.parametrize(
    ("keyword", "text", "how"),
    [
        ("rastreio", "e o rastreio?", "exact"),
        ("onde está", "onde é que está", "ordered_tokens"),
        ("segunda via de entrega", "a segunda via entrega", "ordered_content_tokens"),
        ("segunda via de entrega", "a segunda via de entrega", "exact"),
    ],
)
def test_keyword_of_another_subject__preempts_before_any_model(keyword, text, how):
    intents = {**INTENTS, "track": IntentConfig(agent="orders_agent", keywords=[keyword])}
    intents.pop("retail_order_tracking")
    intents["billing_invoice_explanation"] = IntentConfig(
        agent="billing_agent", keywords=["fatura"]
    )
    models = FakeModel(json.dumps({"decision": "CONTINUE", "confidence": 1.0}))
    found = route(text, policy=POLICY, dialogue=BILLING, models=models, intents=intents)
    assert models.requests == []
    assert (found.method, found.agent) == ("keyword", "orders_agent")
    assert found.metadata["route_stickiness_preempted"] is True
    assert found.metadata["previous_agent"] == "billing_agent"
    assert found.metadata["previous_intent"] == "billing_invoice_explanation"
    assert found.metadata["keyword_match_strategy"] == how


@pytest.mark.parametrize("text", ["e a fatura?", "o pedido e a fatura", "não quero o pedido"])
def test_own_unclear_or_denied_keyword__preempts_nothing(text):
    assert asked("CONTINUE", text).method == "continuity"


def test_second_turn_about_another_subject__leaves_the_specialist():
    """Field case 3.5: turn 2 is not turn 1's agent's because it was turn 1's."""
    found = asked("CONTINUE", "e onde está meu pedido?")
    assert (found.agent, found.method) == ("orders_agent", "keyword")


def test_history__is_the_last_two_turns():
    memory = tuple(ChatMessage(role="user", text=str(n)) for n in range(10))
    models = FakeModel("{}")
    route(GOES_ON, policy=POLICY, dialogue=BILLING, models=models, memory=memory)
    [request] = models.requests
    assert request.profile == "route_continuity"
    data = json.loads(request.messages[1].content)
    assert [line["text"] for line in data["conversation"]] == ["6", "7", "8", "9"]


def test_after_a_closed_flow__nothing_goes_on():
    models = FakeModel(json.dumps({"decision": "CONTINUE", "confidence": 1.0}))
    closed = BILLING.evolve(boundary=True)
    assert route(GOES_ON, policy=POLICY, dialogue=closed, models=models).method == "fallback"
    assert models.requests == []


def test_off_or_without_its_profile__asks_nobody():
    models = FakeModel(json.dumps({"decision": "CONTINUE", "confidence": 1.0}))
    off = POLICY.model_copy(update={"stickiness": Stickiness()})
    route(GOES_ON, policy=off, dialogue=BILLING, models=models)
    route(GOES_ON, policy=POLICY, dialogue=BILLING, models=models, profiles=())
    assert models.requests == []


def test_continue__authorises_nothing():
    """It says who answers; no confirmation, no open action comes of it."""
    held = Dialogue(active_agent="support_agent", active_intent="retail_support_exchange_return")
    found = asked("CONTINUE", "pode fazer", dialogue=held)
    assert found.method == "continuity"
    assert not [key for key in found.metadata if key.startswith("transaction")]
    assert strategy(found, "transaction")["best"] is None


def test_decision__is_told_as_router_continuity():
    from apps.routing.tests.world import chosen, said

    models = FakeModel(json.dumps({"decision": "CONTINUE", "confidence": 1.0}))
    turn = chosen(said(GOES_ON, policy=POLICY, dialogue=BILLING), models=models)
    assert turn.signals[-1].component == "router.continuity"
    assert turn.route is not None
    assert turn.route.metadata["continuity"] == {"decision": "CONTINUE", "confidence": 1.0}


@pytest.mark.parametrize(
    "text", ["Minha internet está lenta", "esse pedido atrasou", "e a entrega?"]
)
def test_short_message_or_follow_up_word__strong_evidence_for_another_wins(text):
    """Faults 16 and 17: neither few words nor "e", "esse" hold the agent."""
    found = asked("CONTINUE", text)
    assert found.agent != "billing_agent"
    assert found.method == "keyword"


def test_follow_up_markers__are_whole_words():
    """Fault 17: "telefone" holds "ele", "vale " ends in "e "."""
    assert asked("ROUTE", "meu telefone vale quanto").method == "fallback"
