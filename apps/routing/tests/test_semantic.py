"""The strategy semantic on made-up vectors: who is nearest, by what, and when it is silent."""

import asyncio

import numpy as np
import pytest

from apps.routing.config import IntentConfig, RoutingPolicyConfig
from apps.routing.meaning import Compared, Silent, meanings_fit
from apps.routing.tests.world import INTENTS, release, route

# One axis per subject; a sentence lies near the axes of what it is about.
AXES = {"invoice": 0, "plan": 1, "order": 2, "exchange": 3}
SUBJECTS = {
    "billing_invoice_explanation": "invoice",
    "product_services_information": "plan",
    "retail_order_tracking": "order",
    "retail_support_exchange_return": "exchange",
}
POLICY = RoutingPolicyConfig(strategies=["keyword", "example", "semantic"])


def vector(subject: str, lean: int = 4) -> np.ndarray:
    made = np.full(8, 0.3, np.float32)
    made[AXES.get(subject, 7)] = 1.0
    made[lean] += 0.2
    return made / np.linalg.norm(made)


class Meaning:
    """A ``MeaningPort`` that takes a message's subject from a table."""

    def __init__(self, subject: str | None = None, silent: str = "") -> None:
        self.subject, self.silent = subject, silent
        self.asked: list[str] = []

    async def compare(self, turn, examples):
        self.asked.append(turn.text)
        if self.silent:
            return Silent(self.silent)
        pairs = [(intent, text) for intent, texts in examples.items() for text in texts]
        seen: dict[str, int] = {}
        rows = []
        for intent, _ in pairs:
            seen[intent] = seen.get(intent, 3) + 1
            rows.append(vector(SUBJECTS[intent], seen[intent]))
        return Compared(vector(self.subject or ""), meanings_fit(pairs, np.stack(rows)), "made-up")


def test_semantic__words_nobody_knows__are_answered_by_meaning():
    text = "a mensalidade subiu sem aviso"
    assert route(text, policy=POLICY).method == "fallback"
    chosen = route(text, policy=POLICY, embeddings=Meaning("invoice"))
    assert (chosen.method, chosen.intent) == ("semantic", "billing_invoice_explanation")
    assert chosen.agent == "billing_agent"
    best = chosen.candidates[0]
    assert best.matches[0] in INTENTS["billing_invoice_explanation"].examples
    assert chosen.threshold == POLICY.semantic_threshold
    assert chosen.reason == f"means nearly: {best.matches[0]}"


def test_semantic__what_the_score_is_made_of__is_on_the_route():
    chosen = route("a mensalidade subiu", policy=POLICY, embeddings=Meaning("invoice"))
    noted = chosen.metadata["semantic"]
    assert (noted["state"], noted["model"]) == ("ready", "made-up")
    first, second = noted["candidates"][:2]
    assert first["intent"] == "billing_invoice_explanation"
    assert first["score"] == chosen.candidates[0].score
    assert first["meaning"] > second["meaning"]
    [text, cosine] = first["nearest"][0]
    assert text == chosen.candidates[0].matches[0]
    assert 0.9 < cosine <= 1


def test_semantic__a_message_about_nothing_known__is_not_chosen():
    chosen = route("o tempo hoje", policy=POLICY, embeddings=Meaning("weather"))
    assert chosen.method == "fallback"
    assert chosen.metadata["semantic"]["candidates"][0]["score"] < POLICY.semantic_threshold


def test_semantic__words_that_decide__are_not_asked_about():
    meaning = Meaning("order")
    assert route("minha fatura", policy=POLICY, embeddings=meaning).method == "keyword"
    assert meaning.asked == []


@pytest.mark.parametrize("reason", ["preparing", "busy", "failed", "unavailable"])
def test_semantic__silent__leaves_it_to_the_others_and_says_why(reason):
    chosen = route("a mensalidade subiu", policy=POLICY, embeddings=Meaning(silent=reason))
    assert chosen.method == "fallback"
    assert chosen.metadata["semantic"] == {"state": reason}


def test_semantic__no_embeddings_at_all__is_unavailable():
    chosen = route("a mensalidade subiu", policy=POLICY)
    assert chosen.metadata["semantic"] == {"state": "unavailable"}


def test_semantic__only_allowed_agents__are_candidates():
    chosen = route(
        "a mensalidade subiu", policy=POLICY, agent="retail_orders", embeddings=Meaning("invoice")
    )
    assert chosen.method == "fallback"
    agents = {candidate.agent for candidate in chosen.candidates}
    assert agents <= {"retail_orders", "orders_agent", "support_agent"}


def test_semantic__threshold_of_the_policy__is_what_it_needs():
    strict = POLICY.model_copy(update={"semantic_threshold": 1.0})
    assert route("a mensalidade", policy=strict, embeddings=Meaning("invoice")).method == "fallback"


def test_semantic__one_intent_only__still_has_to_be_near():
    one = {"billing_invoice_explanation": INTENTS["billing_invoice_explanation"]}
    far = route("o tempo hoje", intents=one, policy=POLICY, embeddings=Meaning("weather"))
    assert far.method == "fallback"


def test_fit__means_of_unequal_size__every_example_finds_its_own_intent():
    chance = np.random.default_rng(3)
    pairs: list[tuple[str, str]] = []
    rows: list[np.ndarray] = []
    for number, (intent, count) in enumerate((("a", 1), ("b", 7), ("c", 40))):
        for _ in range(count):
            made = chance.normal(0, 0.05, 16)
            made[number] += 1
            pairs.append((intent, f"{intent} {len(rows)}"))
            rows.append(made)
    fitted = meanings_fit(pairs, np.array(rows, np.float32))
    found = [fitted.intents[int(fitted.preferences(row).argmax())] for row in fitted.matrix]
    assert found == [intent for intent, _ in pairs]
    own = fitted.closeness(fitted.matrix[0])
    [(text, cosine)] = fitted.nearest(own, 0, 2)
    assert text == "a 0"
    assert cosine == pytest.approx(1.0)


async def test_compare__is_asked_for_every_intent_that_has_examples():
    seen = []

    class Noting(Meaning):
        async def compare(self, turn, examples):
            seen.append(dict(examples))
            return await super().compare(turn, examples)

    intents = {**INTENTS, "silent": IntentConfig(agent="billing_agent", keywords=["nada"])}
    await asyncio.to_thread(
        route, "a mensalidade", intents=intents, policy=POLICY, embeddings=Noting("invoice")
    )
    assert set(seen[0]) == set(INTENTS)
    assert release() is not None
