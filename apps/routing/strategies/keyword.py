"""Who declares the keywords that the message holds."""

from collections import defaultdict

from apps.routing.keywords import Match
from apps.routing.strategies.face import Finding, Question, best_first
from apps.runtime.turn import Candidate

# Each further word of a phrase adds half of what the first one is worth.
FURTHER_WORD = 0.5
# A keyword that the customer denies ("não quero fatura") keeps this share of its evidence.
DENIED = 0.25
# confidence = evidence / (evidence + DOUBT): one plain keyword 0.80, two 0.89, a denied one 0.50.
DOUBT = 0.25


async def by_keyword(question: Question) -> Finding:
    """Score the intents by number, length and specificity of the keywords that match.

    A keyword that several of the allowed agents declare counts less for each (1/sqrt of how many).
    The best intent gets its confidence, the others the share of it that their evidence is of the
    best one's, so that the margin says how far ahead the best is.
    """
    found: dict[str, list[tuple[Match, float]]] = defaultdict(list)
    agents: dict[str, str] = {}
    for match in question.index.keywords.find(question.sentence):
        owners = [(i, a) for i, a in match.keyword.intents if a in question.allowed]
        rivals = len({agent for _, agent in owners})
        for intent, agent in owners:
            found[intent].append((match, rivals**-0.5))
            agents[intent] = agent
    if not found:
        return Finding(method="keyword")
    evidence = {intent: _evidence(matches) for intent, matches in found.items()}
    most = max(evidence.values())
    confidence = most / (most + DOUBT)
    candidates = [
        Candidate(
            intent=intent,
            agent=agents[intent],
            score=round(confidence * value / most, 6),
            matches=tuple(match.keyword.text for match, _ in found[intent]),
        )
        for intent, value in evidence.items()
    ]
    ranked = best_first(question, candidates)
    return Finding(
        method="keyword",
        candidates=ranked,
        reason="keywords: " + ", ".join(ranked[0].matches),
        subjects=_subjects(found, agents),
    )


def _subjects(
    found: dict[str, list[tuple[Match, float]]], agents: dict[str, str]
) -> frozenset[str]:
    """Return the agents with a keyword that is neither denied nor part of a longer one."""
    everywhere = [set(match.positions) for matches in found.values() for match, _ in matches]
    return frozenset(
        agents[intent]
        for intent, matches in found.items()
        if any(
            not match.negated and not any(set(match.positions) < other for other in everywhere)
            for match, _ in matches
        )
    )


def _evidence(matches: list[tuple[Match, float]]) -> float:
    """Sum the matches, longest first; a word counts once however many keywords hold it."""
    covered: set[int] = set()
    total = 0.0
    for match, specificity in sorted(matches, key=lambda item: -len(item[0].positions)):
        if covered.issuperset(match.positions):
            continue
        covered.update(match.positions)
        weight = 1 + FURTHER_WORD * (len(match.positions) - 1)
        total += weight * specificity * (DENIED if match.negated else 1.0)
    return total
