"""Whose examples mean what the message means.

The vector of the message is compared with those of the examples; where the examples' words speak too,
both are weighed together. Silent while no embedding model is installed, or the vectors of this release
are still being made: the strategies after it decide then.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any

from apps.routing.meaning import Compared, Silent
from apps.routing.strategies.face import MAX_CANDIDATES, Finding, Question, best_first
from apps.runtime.turn import Candidate

# How much the preference of the vectors and of the words count (both are near to log odds): few
# examples say more by their meaning, thousands by their words. Fitted on train parts.
FEW, MANY = (1.0, 1.0), (0.3, 6.0)
MANY_EXAMPLES = 3_000
# confidence = sigmoid(BIAS + NEAR * near + TOGETHER * together + WORDS_AHEAD * words + KNOWN * known):
# near is the cosine with the intent's closest example, between that of all examples (0) and 1;
# together and words say how far the intent is in front by both and by words alone, -1 to 1. Fitted as
# the strategy example's is, on 11,911 messages over 160 random tenants.
BIAS, NEAR, TOGETHER, WORDS_AHEAD, KNOWN = -4.84, 4.67, 1.77, 1.47, 1.47
NARROW = 20.0
# How far in front an intent without any rival is.
ALONE = 0.5
# Examples named with a candidate.
SHOWN = 2


async def by_semantic(question: Question) -> Finding:
    """Score the intents by meaning, as a calibrated probability; needs ``semantic_threshold``."""
    if question.embeddings is None:
        return Finding(method="semantic", metadata=_noted(Silent("unavailable")))
    intents = question.index.intents
    examples = {slug: intent.examples for slug, intent in intents.items() if intent.examples}
    compared = await question.embeddings.compare(question.turn, examples)
    if isinstance(compared, Silent):
        return Finding(
            method="semantic", reason=f"semantic: {compared.reason}", metadata=_noted(compared)
        )
    scored = _scored(question, compared)
    candidates = best_first(
        question,
        [
            Candidate(
                intent=found.intent,
                agent=intents[found.intent].agent,
                score=round(found.confidence, 6),
                matches=tuple(text for text, _ in found.nearest),
            )
            for found in scored
        ],
    )
    return Finding(
        method="semantic",
        candidates=candidates,
        threshold=question.policy.semantic_threshold,
        reason=f"means nearly: {candidates[0].matches[0]}" if candidates else "",
        metadata=_noted(compared, scored),
    )


@dataclass(frozen=True)
class Scored:
    """One intent's evidence."""

    intent: str
    confidence: float
    meaning: float
    words: float
    nearest: tuple[tuple[str, float], ...]


def _scored(question: Question, compared: Compared) -> list[Scored]:
    """Return the best intents that are allowed, likeliest first."""
    meanings = compared.meanings
    spoken = question.index.examples.spoken(question.sentence)
    by_meaning = dict(
        zip(meanings.intents, meanings.preferences(compared.vector).tolist(), strict=True)
    )
    meaning_share, words_share = MANY if len(meanings.texts) > MANY_EXAMPLES else FEW
    together = {
        intent: meaning_share * value + words_share * spoken.preferences.get(intent, 0.0)
        for intent, value in by_meaning.items()
    }
    closeness = meanings.closeness(compared.vector)
    usual = float(closeness.mean())
    allowed = nsmallest(
        MAX_CANDIDATES,
        filter(question.admits, together),
        key=lambda intent: (-together[intent], intent),
    )
    numbers = {intent: number for number, intent in enumerate(meanings.intents)}
    found = []
    for intent in allowed:
        nearest = meanings.nearest(closeness, numbers[intent], SHOWN)
        near = (nearest[0][1] - usual) / max(1e-6, 1 - usual)
        ahead = _ahead(together, intent, NARROW)
        confidence = _sigmoid(
            BIAS
            + NEAR * near
            + TOGETHER * ahead
            + WORDS_AHEAD * spoken.ahead(intent)
            + KNOWN * spoken.known(intent)
        )
        found.append(
            Scored(
                intent, confidence, by_meaning[intent], spoken.preferences.get(intent, 0.0), nearest
            )
        )
    return found


def _ahead(values: dict[str, float], intent: str, narrow: float) -> float:
    rivals = [value for other, value in values.items() if other != intent]
    return math.tanh((values[intent] - max(rivals)) / narrow) if rivals else ALONE


def _noted(state: Compared | Silent, scored: Sequence[Scored] = ()) -> dict[str, Any]:
    """What the route says of it: the state, and of each candidate what its score is made of."""
    if isinstance(state, Silent):
        return {"semantic": {"state": state.reason}}
    return {
        "semantic": {
            "state": "ready",
            "model": state.model,
            "candidates": [
                {
                    "intent": one.intent,
                    "score": round(one.confidence, 6),
                    "meaning": round(one.meaning, 3),
                    "words": round(one.words, 3),
                    "nearest": [[text, round(cosine, 4)] for text, cosine in one.nearest],
                }
                for one in scored
            ],
        }
    }


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-max(-60.0, min(60.0, value))))
