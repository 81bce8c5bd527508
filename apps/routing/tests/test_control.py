"""Asking for a person, ending the conversation: in so many words, or not at all (3.5, 3.6; 3.6, 4.3)."""

import pytest

from apps.routing.config import RoutingPolicyConfig
from apps.routing.sentence import asks_for_person, read, says_farewell
from apps.routing.tests.world import chosen, route, said
from apps.runtime.turn import ChatMessage

FRONT = "front"


@pytest.mark.parametrize(
    "text",
    [
        "quero falar com atendente", "atendente", "um humano, por favor", "quero um humano",
        "me passa pra uma pessoa", "chama o gerente", "posso falar com alguém?", "não, atendente!",
        "por que não posso falar com um atendente?", "preciso de atendimento humano",
        "quero falar com um atendente sobre minha fatura", "não resolveu, quero falar com atendente",
        "talk to a person", "can I speak to an agent?", "agent please", "transfer me to a human",
        "hablar con un humano", "quiero hablar con una persona", "ATENDENTE", "atende\u0302nte",
    ],
)  # fmt: skip
def test_person__asked_for__goes_to_a_person(text):
    found = route(text)
    assert (found.method, found.control, found.tools) == ("control", "HUMAN_HANDOFF", ())
    assert found.metadata["human_handoff_requested"] is True
    assert found.metadata["session_control"] == "HUMAN_HANDOFF"
    assert found.next_state["handed_over"] == "HUMAN_HANDOFF_REQUESTED"
    assert found.agent == FRONT


@pytest.mark.parametrize(
    "text",
    [
        "não quero falar com atendente", "o atendente me deu o PED-1001 ontem",
        "resolver sem falar com atendente", "não precisa me passar pra atendente",
        "I don't want to talk to a human", "no quiero hablar con un agente",
        "consegui falar com um atendente ontem", "quero saber o que o atendente fez", "humano não",
        "quero falar sobre meu pedido", "gente, minha fatura", "atendentes de telemarketing me ligam",
    ],
)  # fmt: skip
def test_person__named_or_denied__is_not_asked_for(text):
    assert not asks_for_person(read(text))
    assert route(text).control == ""


@pytest.mark.parametrize(
    "text",
    [
        "tchau", "Tchau, obrigado!", "não, só isso, obrigado", "quero encerrar o atendimento",
        "era só isso mesmo", "that's all, thanks", "ok bye bye", "adiós, gracias", "hasta luego",
        "I want to end the chat", "sair",
    ],
)  # fmt: skip
def test_farewell__almost_the_whole_message__ends_the_session(text):
    found = route(text)
    assert (found.method, found.control) == ("control", "END_SESSION")
    assert found.metadata["session_ended"] is True
    assert found.next_state["ended"] == "SESSION_ENDED"


@pytest.mark.parametrize(
    "text",
    [
        "não encerra", "don't end the chat", "tchau, mas antes me manda a fatura", "só isso?",
        "encerrar minha conta", "obrigado", "goodbye my friend", "nada mais funciona", "isso",
        "Você não acha que devemos apagar a luz?",
    ],
)  # fmt: skip
def test_farewell__with_something_else__does_not(text):
    assert not says_farewell(read(text))
    assert route(text).control == ""


def test_policy_words__are_heard_beside_the_built_in_ones():
    policy = RoutingPolicyConfig(handoff_keywords=["falar com a loja"], end_keywords=["fui"])
    assert route("queria falar com a loja agora", policy=policy).control == "HUMAN_HANDOFF"
    assert route("não quero falar com a loja", policy=policy).control == ""
    assert route("fui, obrigado", policy=policy).control == "END_SESSION"
    assert route("fui na loja", policy=policy).control == ""
    assert route("atendente", policy=policy).control == "HUMAN_HANDOFF"


def test_person__outranks_a_deterministic_intent_and_a_state():
    assert route("minha fatura: quero falar com um humano").control == "HUMAN_HANDOFF"
    held = route("quero falar com um humano", state="WAITING_ORDER_CONFIRMATION")
    assert (held.method, held.control) == ("control", "HUMAN_HANDOFF")


def test_control__not_listed_by_the_policy__is_not_heard():
    policy = RoutingPolicyConfig(strategies=["state", "keyword", "example"])
    assert route("atendente", policy=policy).control == ""


def test_control__the_agents_own_words__move_nothing():
    """Control travels in the route, never in prose (field cases 3.6, 3.10)."""
    memory = (
        ChatMessage(role="user", text="quero falar com um atendente"),
        ChatMessage(role="assistant", text="Vou te passar para um atendente."),
    )
    found = route("oi", memory=memory)
    assert (found.control, found.method) == ("", "fallback")


def test_control__is_told_as_a_signal():
    turn = chosen(said("quero falar com um atendente"))
    assert [(s.code, s.component) for s in turn.signals] == [
        ("IC.HANDOFF_REQUESTED", "router.decision")
    ]
    assert chosen(said("tchau")).signals[-1].code == "IC.SESSION_END_REQUESTED"
    [told] = chosen(said("minha fatura")).signals
    assert told.code == "IC.ROUTE_SELECTED"
    assert told.data == {
        "route": "billing_agent",
        "intent": "billing_invoice_explanation",
        "method": "keyword",
        "confidence": 0.8,
    }


def test_requested_agent_without_intents__still_hears_the_words_for_a_person():
    from apps.routing.index import AgentFacts

    agents = {"free": AgentFacts()}
    found = route("quero um humano", agent="free", agents=agents, intents={})
    assert found.control == "HUMAN_HANDOFF"
    assert route("tudo bem?", agent="free", agents=agents, intents={}).method == "requested"
