"""Whether the subject goes on with the agent that answered last (platform facts 3.5).

It decides who answers, and nothing else: an action still needs its tool policy and confirmation.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from apps.routing.asking import (
    MAX_MESSAGE_CHARS,
    confidence_of,
    lines_of,
    opinion_ask,
    reason_of,
)
from apps.routing.routes import Control, control_route, intent_part, part_route
from apps.routing.strategies.face import Finding, Question
from apps.routing.strategies.keyword import by_keyword
from apps.runtime.turn import Route

OPERATION = "router.continuity"
DECISIONS = ("CONTINUE", "ROUTE", "HUMAN_HANDOFF", "END_SESSION")

_SYSTEM = (
    "You decide whether a customer's message goes on with the subject of the last answer. Reply as"
    ' {"decision": "CONTINUE" | "ROUTE" | "HUMAN_HANDOFF" | "END_SESSION", "confidence": 0.0 to 1.0,'
    ' "reason": "..."}. CONTINUE: it goes on with that subject. ROUTE: it is about something else, or'
    " you are not sure. HUMAN_HANDOFF: the customer asks for a person. END_SESSION: the customer"
    " ends the conversation."
)


async def by_continuity(question: Question) -> Finding:
    """Keep the agent, or say that the conversation goes to a person or ends.

    A keyword that clearly names another subject is heard before any model is asked. Low confidence,
    a failing or unreadable model, and CONTINUE without an agent to go on with leave it to the
    strategies that follow. After a flow that was closed or left nothing goes on.
    """
    policy = question.policy.stickiness
    closed = question.turn.session.dialogue.boundary or question.released
    if not policy.enabled or closed:
        return Finding(method="continuity")
    if preempted := await _preempted(question):
        return Finding(method="continuity", reason="named another subject", metadata=preempted)
    said = await opinion_ask(
        question,
        profile=policy.profile,
        operation=OPERATION,
        system=_SYSTEM,
        data={
            "message": question.turn.text[:MAX_MESSAGE_CHARS],
            "conversation": lines_of(question.turn.memory, policy.history_turns),
            "active_agent": question.turn.dialogue.active_agent,
            "active_intent": question.turn.dialogue.active_intent,
        },
    )
    finding = Finding(
        method="continuity",
        reason=said.reason,
        model_calls=said.model_calls,
        decisions=said.decisions,
    )
    if said.data is None:
        return finding
    decision, confidence = said.data.get("decision"), confidence_of(said.data, 0.0)
    if decision not in DECISIONS or confidence is None:
        return replace(finding, reason="model: unreadable answer")
    noted = {"continuity": {"decision": decision, "confidence": confidence}}
    reason = f"model: {decision}, {reason_of(said.data)}"
    route = _route(question, str(decision), confidence) if confidence >= policy.threshold else None
    return replace(finding, reason=reason, route=route, metadata=noted)


def _route(question: Question, decision: str, confidence: float) -> Route | None:
    if decision in ("HUMAN_HANDOFF", "END_SESSION"):
        control: Control = "HUMAN_HANDOFF" if decision == "HUMAN_HANDOFF" else "END_SESSION"
        reason = f"{control} by the continuity model"
        return control_route(question, control, "continuity", reason, confidence)
    agent, index = question.turn.dialogue.active_agent, question.index
    if decision != "CONTINUE" or agent not in question.allowed or not index.answers(agent):
        return None
    intent = question.turn.dialogue.active_intent
    reason = "the subject goes on"
    noted: dict[str, Any] = {"route_bypassed": True}
    if intent in index.intents and index.intents[intent].agent == agent:
        part = intent_part(index, intent, question.turn.text)
        return part_route(question, part, "continuity", confidence, reason=reason, metadata=noted)
    facts = index.agents[agent]
    return Route(
        agent=agent,
        intent="",
        method="continuity",
        confidence=confidence,
        domain=facts.domain,
        reason=reason,
        tools=facts.model_tools,
        threshold=question.policy.confidence_threshold,
        metadata=noted,
    )


async def _preempted(question: Question) -> Mapping[str, Any]:
    """Return what is noted when a keyword clearly names another intent than the last one's."""
    dialogue = question.turn.dialogue
    finding = await by_keyword(question)
    best = finding.best
    if best is None or not dialogue.active_agent:
        return {}
    same = (best.agent, best.intent) == (dialogue.active_agent, dialogue.active_intent)
    clear = finding.confident(question.policy) and finding.margin >= question.policy.margin
    if same or not clear:
        return {}
    how = next(
        match.how(question.sentence)
        for match in question.index.keywords.find(question.sentence)
        if best.intent in dict(match.keyword.intents)
    )
    return {
        "route_stickiness_preempted": True,
        "previous_agent": dialogue.active_agent,
        "previous_intent": dialogue.active_intent,
        "keyword_match_strategy": how,
    }
