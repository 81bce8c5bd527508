"""Whether a message leaves what is open for another subject (platform facts 3.6)."""

from dataclasses import dataclass
from typing import Literal

from apps.routing.sentence import confirms_or_denies, requests
from apps.routing.strategies.example import by_example, settled_by_example
from apps.routing.strategies.face import Finding, Question
from apps.routing.strategies.keyword import by_keyword
from apps.routing.strategies.llm import by_llm
from apps.runtime.turn import Candidate

# Evidence for another agent that leaves what is open: a plain keyword's confidence (keyword.DOUBT).
STRONG = 0.8


@dataclass(frozen=True)
class Holder:
    """What is open: whose it is, and what it is about."""

    agent: str
    intent: str = ""
    domain: str = ""


@dataclass(frozen=True)
class Relation:
    """``stay``: it goes on. ``shift``: another subject, unambiguously; ``finding`` is what a model
    found, which is not asked again. ``ambiguous``: the customer is asked, and it goes on."""

    kind: Literal["stay", "shift", "ambiguous"] = "stay"
    finding: Finding | None = None
    asked: Finding | None = None


async def relation_of(
    question: Question, holder: Holder, *, models: bool = True, within_domain: bool = True
) -> Relation:
    """Return how the message relates to what ``holder`` has open.

    A keyword of the holder's own agent or domain is generic and shifts nothing; one of another
    domain does when nothing competes with it. Then examples are asked, which ``within_domain`` may
    name another agent of the holder's domain; then, where the policy lists the strategy ``llm`` and
    ``models`` may be asked, a model.
    """
    if not question.sentence.words or confirms_or_denies(question.sentence):
        return Relation()
    named = await _by_keywords(question, holder)
    if named.kind != "stay":
        return named
    finding = await by_example(question)
    if _shifts_by_example(question, finding, holder, within_domain=within_domain):
        return Relation("shift")
    if models and "llm" in question.policy.strategies:
        finding = await by_llm(question)
        best = finding.best
        elsewhere = best is not None and best.agent != holder.agent
        if elsewhere and finding.confident(question.policy):
            return Relation("shift", finding)
        return Relation(asked=finding)
    return Relation()


async def _by_keywords(question: Question, holder: Holder) -> Relation:
    finding = await by_keyword(question)
    best, policy = finding.best, question.policy
    if best is None or not finding.confident(policy):
        return Relation()
    own = any(not _foreign(question, candidate, holder) for candidate in finding.candidates)
    if own:
        settled = await _settled_elsewhere(question, holder, finding)
        if settled:
            return Relation("shift")
        return Relation("ambiguous") if _foreign(question, best, holder) else Relation()
    clear = best.score >= STRONG and finding.margin >= policy.margin
    return Relation("shift" if clear else "ambiguous")


def _foreign(question: Question, candidate: Candidate, holder: Holder) -> bool:
    """Whether a candidate is of another agent and, where domains are known, of another domain."""
    if candidate.agent == holder.agent or candidate.intent == holder.intent:
        return False
    index = question.index
    own = index.domains_of(holder.agent) | ({holder.domain} - {""})
    domain = index.intents[candidate.intent].domain or index.agents[candidate.agent].domain
    return not domain or domain not in own


async def _settled_elsewhere(question: Question, holder: Holder, tie: Finding) -> bool:
    """Whether a request whose words name the holder too is another's by its examples."""
    best = await settled_by_example(question, tie)
    return best is not None and _foreign(question, best, holder) and best.score >= STRONG


def _shifts_by_example(
    question: Question, finding: Finding, holder: Holder, *, within_domain: bool
) -> bool:
    """Within one domain only what has the shape of a request shifts: the same words answer."""
    best = finding.best
    if best is None or best.agent == holder.agent or "example" not in question.policy.strategies:
        return False
    if best.score < STRONG or finding.margin < question.policy.margin:
        return False
    if _foreign(question, best, holder):
        return True
    return within_domain and requests(question.sentence)
