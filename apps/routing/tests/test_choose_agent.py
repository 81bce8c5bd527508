"""Who answers when nothing, several or another agent's subject matches (faults 10, 12)."""

import asyncio

import pytest

from apps.routing.config import IntentConfig, RoutingPolicyConfig
from apps.routing.explain import explain
from apps.routing.index import DERIVED_KEY, AgentFacts
from apps.routing.step import ChooseAgent, NoAgentAnswers
from apps.routing.strategies.face import Finding, settles, sureness
from apps.routing.tests.world import AGENTS, INTENTS, release, route
from apps.runtime.testing import turn_of
from apps.runtime.turn import Candidate, SessionState


@pytest.mark.parametrize(
    "text",
    [
        "me conta uma piada", "Preciso do contato", "qual o valor do vaso", "tudo bem?", "oi",
        "qual é", "", "   ", "🙂", "Você não acha que devemos apagar a luz?", "\x00", "não",
    ],
)  # fmt: skip
def test_route__nothing_understood__falls_back_without_tools(text):
    chosen = route(text)
    assert (chosen.method, chosen.intent) == ("fallback", "fallback")
    assert (chosen.agent, chosen.tools) == ("front", ())
    assert chosen.confidence < chosen.threshold


def test_route__requested_agent__answers_only_its_own_and_its_members_intents():
    assert route("minha fatura", agent="retail_orders").method == "fallback"
    assert route("minha fatura", agent="retail_orders").agent == "retail_orders"
    assert route("minha fatura", agent="telecom_contas").agent == "billing_agent"
    assert route("minha fatura", agent="billing_agent").agent == "billing_agent"
    assert route("onde está meu pedido?", agent="billing_agent").agent == "billing_agent"
    assert route("onde está meu pedido?", agent="billing_agent").tools == ()


def test_route__members_that_name_each_other__are_met_once():
    agents = {
        "a": AgentFacts(members=("b",)),
        "b": AgentFacts(members=("a", "b", "unknown")),
    }
    intents = {"only": IntentConfig(agent="b", keywords=["fatura"])}
    assert route("fatura", agent="a", agents=agents, intents=intents).agent == "b"


def test_route__disabled_member__is_not_chosen():
    agents = {**AGENTS, "billing_agent": AgentFacts(enabled=False)}
    assert route("minha fatura", agents=agents).method == "fallback"


def test_route__fallback_agent_of_the_policy__speaks_where_it_is_allowed():
    policy = RoutingPolicyConfig(fallback_agent="support_agent")
    assert route("oi", policy=policy).agent == "support_agent"
    assert route("oi", policy=policy, agent="telecom_contas").agent == "telecom_contas"


def test_route__no_agent_requested__the_default_agents_members_compete():
    policy = RoutingPolicyConfig(default_agent="retail_orders")
    assert route("meu pedido", agent="", policy=policy).agent == "orders_agent"
    assert route("minha fatura", agent="", policy=policy).agent == "retail_orders"


def test_route__no_agent_requested_and_no_default__every_agent_competes():
    assert route("meu pedido", agent="").agent == "orders_agent"
    assert route("minha fatura", agent="").agent == "billing_agent"


def test_route__requested_agent_left_the_release__the_default_speaks_without_tools():
    policy = RoutingPolicyConfig(default_agent="front")
    chosen = route("minha fatura", agent="gone", policy=policy)
    assert (chosen.agent, chosen.method, chosen.tools) == ("front", "fallback", ())


def test_route__nobody_left__says_so():
    with pytest.raises(NoAgentAnswers, match="gone"):
        route("oi", agent="gone")


def test_route__requested_agent_without_intents__answers_with_its_models_tools():
    agents = {"free": AgentFacts(model_tools=("consultar_plano",), next_state={"waiting": "S"})}
    chosen = route("tudo bem?", agent="free", agents=agents, intents={})
    assert (chosen.agent, chosen.method, chosen.confidence) == ("free", "requested", 1.0)
    assert chosen.tools == ("consultar_plano",)


def test_route__threshold_above_the_confidence__falls_back():
    policy = RoutingPolicyConfig(confidence_threshold=0.85, strategies=["keyword"])
    chosen = route("minha fatura", policy=policy)
    assert (chosen.method, chosen.tools) == ("fallback", ())
    assert chosen.confidence == 0.8
    assert chosen.candidates[0].intent == "billing_invoice_explanation"


def test_route__order_of_strategies__is_the_policys():
    text = "Quero rastrear o pacote que comprei no plano"
    assert route(text).agent == "product_agent"
    policy = RoutingPolicyConfig(strategies=["example"])
    assert route(text, policy=policy).agent == "orders_agent"


def test_route__examples__decide_where_no_keyword_matches():
    assert route("queria embrulhar o pacote que eu dei").method == "fallback"
    chosen = route("queria rastrear o pacote que eu comprei")
    assert (chosen.method, chosen.intent) == ("example", "retail_order_tracking")
    assert set(chosen.candidates[0].matches) == {"rastrear", "pacote", "comprei"}


def test_route__clear_example__settles_a_tie_of_keywords_among_the_tied():
    intents = {
        "one": IntentConfig(
            agent="billing_agent", keywords=["fatura"], examples=["o produto da fatura sumiu"]
        ),
        "two": IntentConfig(agent="product_agent", keywords=["produto"], examples=["meu plano"]),
        "three": IntentConfig(agent="orders_agent", examples=["o produto da fatura chegou"]),
    }
    assert route("o produto da fatura sumiu", intents=intents).agent == "billing_agent"
    assert route("o produto da fatura chegou", intents=intents).method == "clarify"


def test_route__supervisor_mode__plans_for_the_several_subjects():
    policy = RoutingPolicyConfig(mode="supervisor")
    text = "a fatura, o boleto e o pedido"
    assert route(text).agent == "billing_agent"
    chosen = route(text, policy=policy)
    assert (chosen.method, chosen.intent) == ("supervisor", "multi_intent")
    assert [part.agent for part in chosen.plan] == ["billing_agent", "orders_agent"]
    assert set(explain(chosen, "supervisor")["agents"]) == {"billing_agent", "orders_agent"}
    assert route("minha fatura", policy=policy).agent == "billing_agent"
    assert route("um produto quebrado", policy=policy).agent == "support_agent"
    assert route("não quero fatura, quero o pedido", policy=policy).agent == "orders_agent"


def test_route__next_state__is_the_intents_over_the_agents():
    chosen = route("minha fatura")
    assert dict(chosen.next_state) == {
        "handed_over": "WITH_A_PERSON",
        "waiting": "WAITING_BILLING_CONFIRMATION",
    }


def test_route__terminal_state__is_cleared_at_once():
    agents = {**AGENTS, "orders_agent": AgentFacts(next_state={"answered": "DONE"})}
    assert dict(route("meu pedido", agents=agents).next_state) == {
        "answered": "",
        "waiting": "WAITING_ORDER_CONFIRMATION",
    }


def test_explain__route__says_mode_route_and_candidates_in_json_types():
    told = explain(route("Onde está meu pedido?"))
    assert told.pop("strategies")[-1]["best"] == "retail_order_tracking"
    assert told == {
        "mode": "router",
        "route": "orders_agent",
        "intent": "retail_order_tracking",
        "domain": "retail",
        "confidence": 0.8,
        "method": "keyword",
        "margin": 0.8,
        "threshold": 0.65,
        "agents": ["orders_agent"],
        "mcp_tools": ["consultar_pedido", "consultar_entrega"],
        "candidates": [
            {
                "intent": "retail_order_tracking",
                "agent": "orders_agent",
                "score": 0.8,
                "matches": ["pedido"],
            }
        ],
        "control": "",
        "plan": [],
        "notes": {},
    }


async def test_step__turns_of_one_release__compile_its_index_once():
    asked = []

    def agents_of(release):
        asked.append(release)
        return AGENTS

    pinned = release()
    step = ChooseAgent(agents_of)
    turn = turn_of("minha fatura", release=pinned, session=SessionState(agent="front"))
    turns = await asyncio.gather(*(step(turn) for _ in range(3)))
    again = await step(turn)
    assert {t.route and t.route.agent for t in (*turns, again)} == {"billing_agent"}
    assert DERIVED_KEY in pinned.derived
    compiled = pinned.derived[DERIVED_KEY]
    await step(turn)
    assert pinned.derived[DERIVED_KEY] is compiled
    assert 1 <= len(asked) <= 3


async def test_step__sanitised_text__is_what_is_routed():
    turn = turn_of(
        "minha fatura", sanitized="meu pedido", release=release(),
        session=SessionState(agent="front"),
    )  # fmt: skip
    routed = await ChooseAgent(lambda _: AGENTS)(turn)
    assert routed.route is not None
    assert routed.route.agent == "orders_agent"


def test_route__very_long_message__is_read_up_to_a_limit():
    assert route("palavra " * 100_000 + "fatura").method == "fallback"
    assert route("minha fatura " + "palavra " * 100_000).agent == "billing_agent"


def test_route__many_intents__looks_only_at_those_that_the_message_may_hold():
    intents = {
        f"i{number}": IntentConfig(
            agent="billing_agent", keywords=[f"palavra{number}"], examples=[f"exemplo{number} só"]
        )
        for number in range(2_000)
    }
    chosen = route("quero a palavra1234", intents={**intents, **INTENTS})
    assert chosen.intent == "i1234"


def tied(*agents, matches=("pedido",)):
    candidates = tuple(Candidate(f"i-{a}", a, 0.8, matches) for a in agents)
    return Finding(method="keyword", candidates=candidates)


def likened(score, rival, matches=("trocar", "pedido"), method="example"):
    candidates = (Candidate("i-a", "a", score, matches), Candidate("i-b", "b", rival))
    return Finding(method=method, candidates=candidates)


@pytest.mark.parametrize(
    ("finding", "settled"),
    [
        (likened(0.9, 0.1), True),
        # Unsure in itself, but between these two there is no doubt.
        (likened(0.55, 0.08), True),
        (likened(0.55, 0.45), False),
        (likened(0.39, 0.01), False),
        (likened(0.9, 0.1, matches=("trocar",)), False),
        (likened(0.9, 0.88), False),
        (likened(0.9, 0.1, matches=(), method="llm"), True),
        (likened(0.6, 0.0, matches=(), method="llm"), False),
        (Finding(method="example"), False),
    ],
)
def test_settles__a_tie__by_evidence_that_tells_the_tied_apart(finding, settled):
    policy = RoutingPolicyConfig()
    assert settles(finding, tied("a", "b"), policy) is settled
    assert not settles(finding, tied("b", "c"), policy)


def test_sureness__after_a_tie__is_among_the_tied_and_no_more_than_the_ties_own():
    policy = RoutingPolicyConfig()
    assert sureness(likened(0.55, 0.08), tied("a", "b"), policy) == 0.8
    assert sureness(likened(0.55, 0.2), tied("a", "b"), policy) == 0.733333
    assert sureness(likened(0.9, 0.1), tied("a", "b"), policy) == 0.9
    assert sureness(likened(0.55, 0.08), None, policy) == 0.55
