"""A specialist holds the conversation: the message is for it, unless the customer walks away."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from apps.routing.routes import intent_part, part_route
from apps.routing.sentence import abandons, stops
from apps.routing.shift import Holder, relation_of
from apps.routing.strategies.control import control_said
from apps.routing.strategies.example import by_example
from apps.routing.strategies.face import Finding, Question
from apps.routing.strategies.keyword import by_keyword
from apps.runtime.dialogue import SubConversation
from apps.runtime.turn import PlanPart

Clock = Callable[[], datetime]


def _now() -> datetime:
    return datetime.now(UTC)


class ByDelegation:
    """Keeps an open sub-conversation's specialist while it is within its budget.

    It is left when the customer gives it up, asks for a person, says goodbye, or asks for what only
    another domain answers (``delegation_abandoned`` on the route says which), and not taken when
    its turns or its time are used up or its role is gone (``delegation_expired``). Nobody but
    routing ends here: whoever closes it reads that.
    """

    def __init__(self, clock: Clock = _now) -> None:
        self._clock = clock

    async def __call__(self, question: Question) -> Finding:
        sub = question.turn.dialogue.sub_conversation
        if sub is None:
            return Finding(method="delegation")
        if spent := _spent(question, sub, self._clock()):
            return _over("delegation_expired", spent)
        if why := await _walks_away(question, sub):
            return _over("delegation_abandoned", why)
        part = await _own_intent(question, sub.agent)
        noted = {"delegation_role": sub.role}
        reason = f"{sub.role} holds the conversation"
        route = part_route(question, part, "delegation", 1.0, reason=reason, metadata=noted)
        return Finding(method="delegation", route=route, reason=reason)


by_delegation = ByDelegation()


def _over(key: str, why: str) -> Finding:
    return Finding(method="delegation", reason=f"{key}: {why}", metadata={key: why}, released=True)


def _spent(question: Question, sub: SubConversation, now: datetime) -> str:
    """Return which budget is used up, or ``gone`` for a specialist that is no longer let in."""
    index = question.index
    coordinator = index.agents.get(sub.coordinator)
    budget = coordinator.specialists.get(sub.role) if coordinator else None
    if budget is None or not index.answers(sub.agent):
        return "gone"
    if sub.turns >= budget.turns:
        return "turns"
    return "minutes" if _minutes_since(sub.started_at, now) >= budget.minutes else ""


def _minutes_since(started_at: str, now: datetime) -> float:
    """Return the minutes since ``started_at``; 0 when that is no time (nothing is known against it)."""
    try:
        started = datetime.fromisoformat(started_at)
    except ValueError:
        return 0.0
    if started.tzinfo is None:
        started = started.replace(tzinfo=UTC)
    return (now - started).total_seconds() / 60


async def _walks_away(question: Question, sub: SubConversation) -> str:
    """Return why the customer leaves the specialist, "" when it is still the specialist's."""
    control = control_said(question)
    if control is not None:
        return control
    if abandons(question.sentence) or stops(question.sentence):
        return "user_cancelled"
    holder = Holder(sub.agent)
    relation = await relation_of(question, holder, models=False, within_domain=False)
    return "intent_shift" if relation.kind == "shift" else ""


async def _own_intent(question: Question, agent: str) -> PlanPart:
    """Return what the specialist is asked: its best own intent, else the message as it is."""
    index = question.index
    asked = replace(question, allowed=frozenset({agent}))
    for strategy in (by_keyword, by_example):
        finding = await strategy(asked)
        if finding.best is not None and finding.confident(question.policy):
            return intent_part(index, finding.best.intent, question.turn.text, finding.best.score)
    facts = index.agents[agent]
    tools = facts.model_tools or tuple(
        dict.fromkeys(
            tool
            for slug in index.intents_by_agent.get(agent, ())
            for tool in index.intents[slug].mcp_tools
        )
    )
    return PlanPart(
        agent=agent, intent="", text=question.turn.text, tools=tools, domain=facts.domain
    )
