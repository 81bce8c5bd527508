"""In which order strategies are asked, and what each one asked leaves on record (3.1, 3.6, pain 27)."""

from typing import get_args

import pytest

from apps.routing.config import LiteralAnswer, RoutingPolicyConfig, Stickiness, StrategyName
from apps.routing.order import STRATEGIES, order
from apps.routing.tests.world import route, strategy
from apps.runtime.testing import FakeModel


@pytest.mark.parametrize(
    ("listed", "asked"),
    [
        (["state", "keyword", "example"], ["state", "keyword", "example"]),
        (["llm", "keyword", "literal", "control"], ["literal", "control", "llm", "keyword"]),
        (["keyword", "transaction", "state"], ["keyword", "state"]),
        (["continuity", "state", "literal"], ["literal", "continuity", "state"]),
        (["keyword", "keyword"], ["keyword"]),
        ([], []),
    ],
)
def test_order__is_the_policys__but_open_flows_come_first_and_plain_words_before_models(
    listed, asked
):
    policy = RoutingPolicyConfig(strategies=listed)
    assert order(policy) == ("transaction", "delegation", *asked)


def test_order__every_name_a_policy_may_list__is_a_strategy():
    assert set(get_args(StrategyName)) == set(STRATEGIES)


@pytest.mark.parametrize("text", ["Qual o horário?", "qual o HORARIO", "  qual o horário!!! "])
def test_literal__whole_message__is_answered_before_any_model(text):
    policy = RoutingPolicyConfig(
        strategies=["continuity", "llm", "literal"],
        stickiness=Stickiness(enabled=True),
        literal_answers=[LiteralAnswer(texts=["qual o horário"], answer="Das 8h às 18h.")],
    )
    models = FakeModel()
    found = route(text, policy=policy, models=models)
    assert (found.method, found.intent, found.tools) == ("literal", "literal", ())
    assert found.metadata["answer"] == "Das 8h às 18h."
    assert found.confidence == 1.0
    assert models.requests == []


@pytest.mark.parametrize("text", ["qual o horário da loja?", "o horário", ""])
def test_literal__part_of_a_message__is_not(text):
    policy = RoutingPolicyConfig(
        literal_answers=[LiteralAnswer(texts=["qual o horário", "?!"], answer="Das 8h às 18h.")]
    )
    assert route(text, policy=policy).method == "fallback"


def test_literal__said_twice_by_the_policy__the_first_answer_counts():
    policy = RoutingPolicyConfig(
        literal_answers=[
            LiteralAnswer(texts=["oi"], answer="Olá!"),
            LiteralAnswer(texts=["oi"], answer="Oi!"),
        ]
    )
    assert route("oi", policy=policy).metadata["answer"] == "Olá!"


def test_record__every_strategy_asked__with_scores_margin_and_reason():
    found = route("Onde está meu pedido e o plano?")
    assert [entry["name"] for entry in found.metadata["strategies"]] == [
        "transaction", "delegation", "state", "control", "literal", "keyword", "example",
    ]  # fmt: skip
    keyword = strategy(found, "keyword")
    assert keyword["margin"] == 0.0
    assert {c["intent"]: c["score"] for c in keyword["candidates"]} == {
        "product_services_information": 0.8,
        "retail_order_tracking": 0.8,
    }
    assert keyword["reason"].startswith("keywords: ")
    assert strategy(found, "state") == {
        "name": "state", "best": None, "margin": 0.0, "reason": "", "candidates": [],
    }  # fmt: skip


def test_record__strategies_after_the_one_that_decides__were_not_asked():
    found = route("minha fatura")
    assert found.metadata["strategies"][-1]["name"] == "keyword"


def test_record__many_intents__at_most_five_candidates_each():
    from apps.routing.config import IntentConfig

    intents = {
        f"i{n}": IntentConfig(agent="billing_agent", keywords=["fatura"], examples=["a fatura"])
        for n in range(9)
    }
    found = route("fatura", intents=intents)
    assert len(strategy(found, "keyword")["candidates"]) == 5
