"""An open action: what answers it, what leaves it, what stands beside it (3.6, 15.1; faults 13-15, 37)."""

import json

import pytest

from apps.routing.config import IntentConfig, RoutingPolicyConfig
from apps.routing.index import AgentFacts
from apps.routing.tests.test_llm import Failing
from apps.routing.tests.world import AGENTS, INTENTS, chosen, route, said
from apps.runtime.dialogue import Dialogue, Reading, Transaction
from apps.runtime.testing import FakeModel

EXCHANGE = "retail_support_exchange_return"
CONTEST = IntentConfig(
    agent="billing_agent",
    domain="telecom",
    keywords=["contestar"],
    examples=["eu não contratei esse item", "não contratei esse serviço", "não reconheço o item"],
    mcp_tools=["consultar_fatura"],
)
COLLECTING, AWAITING, PAUSED = (
    "COLLECTING_PARAMETERS",
    "AWAITING_CONFIRMATION",
    "WORKFLOW_PAUSED",
)


def open_(status=COLLECTING, **changes):
    fields = {
        "id": "t", "status": status, "tool": "solicitar_troca", "agent": "support_agent",
        "intent": EXCHANGE, "domain": "retail", **changes,
    }  # fmt: skip
    return Dialogue(transaction=Transaction(**fields))


def answered(text, kind="unclear", status=COLLECTING, rest="", dialogue=None, **changes):
    reading = changes.pop("reading", None) or Reading(kind=kind, rest=rest)
    return route(text, dialogue=dialogue or open_(status), reading=reading, **changes)


def holds(found):
    return (found.method, found.agent) == ("transaction", "support_agent")


# -- COLLECTING_PARAMETERS -------------------------------------------------------------------------


@pytest.mark.parametrize("strategies", [["keyword"], ["state", "keyword", "example"], []])
def test_collecting__value_fills__goes_on_whatever_the_policy_lists(strategies):
    """Row 1, faults 14 and 15: no shift is tested, though the words are another agent's."""
    policy = RoutingPolicyConfig(strategies=strategies)
    for text in ("R$ 71,99 da fatura", "o pedido é o PED-1001"):
        found = answered(text, "fills", policy=policy)
        assert holds(found)
        assert (found.intent, found.confidence) == (EXCHANGE, 1.0)
        assert "solicitar_troca" in found.tools
        assert found.metadata["transaction_turn_consumed"] is True


def test_collecting__given_up__is_abandoned_and_opens_nothing_again():
    """Row 2 and ABANDON: the tool's own name in the message does not reopen it."""
    found = answered("esquece a troca", "cancels")
    assert (found.method, found.intent, found.tools) == (
        "transaction", "state:TRANSACTION_ABANDONED", (),
    )  # fmt: skip
    assert found.metadata["transaction_interruption"] == "explicit_abandonment"
    assert found.plan == ()
    again = answered("esquece, não quero mais a troca do produto quebrado", "cancels")
    assert again.plan == ()
    assert "topics" not in again.metadata


@pytest.mark.parametrize(
    "text", ["quero ver minha fatura", "minha fatura veio errada", "Qual é o meu plano?"]
)
def test_collecting__unambiguous_other_subject__shifts(text):
    """Row 3."""
    found = answered(text)
    assert found.agent in ("billing_agent", "product_agent")
    assert found.metadata["transaction_interruption"] == "intent_shift"


@pytest.mark.parametrize(
    "text",
    [
        "o pedido",
        "é a entrega de ontem",
        "a troca mesmo",
        "não sei",
        "hmm",
        "",
        "12345",
        "sim",
        "não",
    ],
)
def test_collecting__generic_word_of_the_same_domain_or_nothing__is_no_shift(text):
    """Row 4."""
    found = answered(text)
    assert holds(found)
    assert "transaction_interruption" not in found.metadata
    assert "clarify" not in found.metadata


@pytest.mark.parametrize("text", ["a fatura ou o plano?", "a fatura da troca"])
def test_collecting__ambiguous__asks_and_stays(text):
    """Row 5."""
    found = answered(text)
    assert holds(found)
    assert found.metadata["clarify"] is True


def test_collecting__state_of_the_session__does_not_hold_who_shifted():
    found = answered("quero ver minha fatura", state="WAITING_ORDER_CONFIRMATION")
    assert (found.method, found.agent) == ("keyword", "billing_agent")
    assert holds(answered("o pedido", state="WAITING_ORDER_CONFIRMATION"))


def test_collecting__a_model_may_say_that_it_shifts_and_is_not_asked_twice():
    """SHIFT needs a keyword, or a model at the confidence threshold (3.6, 15.1)."""
    policy = RoutingPolicyConfig(strategies=["keyword", "example", "llm"])
    reply = {"intent": "billing_invoice_explanation", "confidence": 0.7}
    models = FakeModel(json.dumps(reply))
    found = answered("veio um valor que não entendo", policy=policy, models=models)
    assert (found.method, found.agent) == ("llm", "billing_agent")
    assert found.metadata["transaction_interruption"] == "intent_shift"
    assert len(models.requests) == 1


@pytest.mark.parametrize(
    "reply",
    [
        {"intent": "billing_invoice_explanation", "confidence": 0.6},
        {"intent": EXCHANGE, "confidence": 1.0},
        {"intent": "none"},
    ],
)
def test_collecting__model_below_the_threshold_or_for_the_same__stays(reply):
    policy = RoutingPolicyConfig(strategies=["keyword", "example", "llm"])
    models = FakeModel(json.dumps(reply))
    assert holds(answered("o que eu disse", policy=policy, models=models))
    assert len(models.requests) == 1
    failing = Failing()
    turn = said("o que eu disse", policy=policy, dialogue=open_(), reading=Reading(kind="unclear"))
    done = chosen(turn, models=failing)
    assert holds(done.route)
    assert [d.code for d in done.decisions] == ["NOC.LLM_FAILED"]


# -- AWAITING_CONFIRMATION -------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "decision"), [("confirms", "confirmed"), ("rejects", "rejected")])
@pytest.mark.parametrize("source", ["deterministic", "semantic"])
def test_awaiting__yes_or_no__is_consumed_and_asks_no_model(kind, decision, source):
    """Rows 1 and 2: the decision that was read is reused, and on record."""
    models = Failing()
    policy = RoutingPolicyConfig(strategies=["llm", "keyword"])
    reading = Reading(kind=kind, source=source)
    found = answered("sim", status=AWAITING, reading=reading, policy=policy, models=models)
    assert holds(found)
    assert found.metadata["transaction_confirmation_decision"] == decision
    assert found.metadata["transaction_confirmation_source"] == source
    assert models.requests == []


def test_awaiting__unclear__stays_unless_unambiguous():
    """Row 3."""
    assert holds(answered("hum, talvez", status=AWAITING))
    assert holds(answered("a fatura ou o plano?", status=AWAITING))
    assert "clarify" not in answered("a fatura ou o plano?", status=AWAITING).metadata
    shifted = answered("quero ver minha fatura", status=AWAITING)
    assert shifted.metadata["transaction_interruption"] == "intent_shift"


def test_awaiting__not_yet_with_more_to_say__is_no_plain_no():
    """Fault 37: "ainda não. Eu não contratei esse item" is routed by what it says."""
    text = "ainda não. Eu não contratei esse item"
    found = answered(text, status=AWAITING, intents={**INTENTS, "contest": CONTEST})
    assert found.intent == "contest"
    assert found.metadata["transaction_interruption"] == "intent_shift"
    unknown = answered(text, status=AWAITING)
    assert holds(unknown)
    assert "transaction_confirmation_decision" not in unknown.metadata


def test_awaiting__negation_inside_a_question__is_no_answer():
    """Field case 4.3."""
    assert holds(answered("Você não acha que devemos apagar a luz?", status=AWAITING))


# -- WORKFLOW_PAUSED -------------------------------------------------------------------------------


def paused(text, kind="unclear", **changes):
    dialogue = open_(PAUSED, execution="run-1", node="ask")
    return answered(text, kind, dialogue=dialogue, **changes)


def test_paused__expected_answer__resumes():
    """Rows 1 and 5."""
    assert holds(paused("humano", "resumes"))


@pytest.mark.parametrize("kind", ["unclear", "cancels"])
def test_paused__asks_for_a_person__preempts_the_workflow(kind):
    """Row 2."""
    found = paused("quero falar com um atendente", kind)
    assert (found.method, found.control) == ("control", "HUMAN_HANDOFF")
    noted = found.metadata
    assert noted["session_control"] == "HUMAN_HANDOFF"
    assert noted["global_control_preempted_workflow"] is True
    assert noted["workflow_interruption"] == "human_handoff"
    assert noted["interrupted_workflow_name"] == "solicitar_troca"
    assert noted["interrupted_workflow_execution_id"] == "run-1"


def test_paused__person_asked_for__comes_before_what_a_model_made_of_the_answer():
    read = Reading(kind="resumes", source="semantic", values={"answer": "SIM"})
    assert paused("quero falar com um atendente", reading=read).control == "HUMAN_HANDOFF"
    assert holds(paused("o carteiro entregou", reading=read))


@pytest.mark.parametrize("text", ["quero ver minha fatura", "tchau", "Qual é o meu plano?", "oi"])
def test_paused__any_other_result_of_the_probe__is_ignored(text):
    """Row 2: only HUMAN_HANDOFF is probed for."""
    assert holds(paused(text))


def test_paused__contextual_reentry__routes_the_whole_message_anew():
    """Row 4, fault 37 over a pause."""
    text = "ainda não. Eu não contratei esse item"
    reading = Reading(kind="unclear", reason="contextual_reentry", values={"answer": "NAO"})
    found = paused(text, reading=reading, intents={**INTENTS, "contest": CONTEST})
    assert (found.intent, found.agent) == ("contest", "billing_agent")
    assert found.metadata["contextual_reentry_preempted_resume"] is True
    assert found.metadata["initial_classifier_output"] == {"answer": "NAO"}
    assert holds(paused(text, reading=reading))


# -- a person, the end, precedence -----------------------------------------------------------------


@pytest.mark.parametrize("status", [COLLECTING, AWAITING])
@pytest.mark.parametrize("kind", ["unclear", "cancels", "none"])
def test_handoff__comes_after_pending_but_before_any_intent(status, kind):
    found = answered("minha fatura, quero um humano", kind, status)
    assert (found.method, found.control) == ("control", "HUMAN_HANDOFF")
    assert found.metadata["transaction_interruption"] == "human_handoff"
    assert holds(answered("atendente", "fills", status))


def test_farewell__ends_an_open_action():
    found = answered("tchau, obrigado")
    assert found.control == "END_SESSION"
    assert found.metadata["transaction_interruption"] == "explicit_abandonment"


def test_closed_transaction__is_not_open():
    done = Dialogue(
        last_transaction=open_("COMPLETED").transaction, transaction=None, boundary=True
    )
    assert route("ah espera, minha fatura", dialogue=done).method == "keyword"
    stale = open_("CANCELLED")
    assert route("minha fatura", dialogue=stale).method == "keyword"


def test_agent_gone__the_action_is_over_and_says_why():
    agents = {**AGENTS, "support_agent": AgentFacts(enabled=False)}
    found = answered("sim", "confirms", AWAITING, agents=agents)
    assert found.method == "fallback"
    assert found.metadata["transaction_interruption"] == "agent_unavailable"


def test_intent_gone__the_action_keeps_its_tool():
    dialogue = open_(intent="multi_intent")
    found = answered("PED-1", "fills", dialogue=dialogue)
    assert (found.intent, found.tools) == ("multi_intent", ("solicitar_troca",))


# -- compound answers ------------------------------------------------------------------------------


def test_compound__yes_and_a_read_only_request__both_in_one_answer():
    found = answered("sim, e me manda a fatura", "confirms", AWAITING, rest="me manda a fatura")
    assert holds(found)
    own, rest = found.plan
    assert (own.agent, own.intent, own.text) == ("support_agent", EXCHANGE, "sim")
    assert (rest.agent, rest.intent) == ("billing_agent", "billing_invoice_explanation")
    assert rest.text == "me manda a fatura"
    assert rest.tools == ("consultar_fatura", "consultar_pagamentos")
    assert rest.next_state["waiting"] == "WAITING_BILLING_CONFIRMATION"
    assert found.metadata["rest"][0]["intent"] == "billing_invoice_explanation"
    assert "topics" not in found.metadata


def test_compound__yes_and_a_second_mutation__is_kept_for_its_own_confirmation():
    cancel = IntentConfig(
        agent="orders_agent", domain="retail", keywords=["cancelar o pedido"],
        mcp_tools=["cancelar_pedido"],
    )  # fmt: skip
    agents = {
        **AGENTS,
        "orders_agent": AgentFacts(domain="retail", actions=frozenset({"cancelar_pedido"})),
    }
    found = answered(
        "sim, e quero cancelar o pedido 7", "confirms", AWAITING, rest="quero cancelar o pedido 7",
        intents={**INTENTS, "cancel": cancel}, agents=agents,
    )  # fmt: skip
    assert holds(found)
    assert found.plan == ()
    assert found.metadata["topics"] == [
        {"intent": "cancel", "agent": "orders_agent", "text": "quero cancelar o pedido 7"}
    ]


def test_compound__rest_that_nobody_answers__is_noted():
    found = answered("sim, e faz um bolo", "confirms", AWAITING, rest="faz um bolo")
    assert found.plan == ()
    assert found.metadata["off_context"] == ["faz um bolo"]


def test_compound__rest_about_the_action_itself__opens_nothing():
    found = answered("sim, troca logo", "confirms", AWAITING, rest="troca logo")
    assert found.plan == ()
    assert "topics" not in found.metadata


def test_compound__action_that_came_of_a_plan__is_known_by_its_tool():
    dialogue = open_(AWAITING, intent="multi_intent")
    found = answered("sim, troca logo", "confirms", dialogue=dialogue, rest="troca logo")
    assert found.plan == ()
    assert "topics" not in found.metadata


def test_compound__given_up_for_another_subject__serves_it_at_once():
    """Fault 13: "esquece, quero ver minha fatura"."""
    found = answered("esquece, quero ver minha fatura", "cancels")
    assert found.intent == "state:TRANSACTION_ABANDONED"
    assert [part.intent for part in found.plan] == [
        "state:TRANSACTION_ABANDONED",
        "billing_invoice_explanation",
    ]
    assert found.plan[1].text == "quero ver minha fatura"
