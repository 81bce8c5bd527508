"""Routes and parts of plans, made from what the release says of an intent or an agent."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from apps.routing.index import RoutingIndex
from apps.routing.strategies.face import MAX_CANDIDATES, PRECISION, Finding, Question, sureness
from apps.runtime.turn import Candidate, PlanPart, Route, RouteMethod

Control = Literal["HUMAN_HANDOFF", "END_SESSION"]
FALLBACK: Literal["fallback"] = "fallback"
CLARIFY: Literal["clarify"] = "clarify"
# The intent's name when a message asks for several (platform facts 3.2).
SEVERAL = "multi_intent"
# Where a session goes that is given away or over (platform facts 3.5).
CONTROL_STATES = {"handed_over": "HUMAN_HANDOFF_REQUESTED", "ended": "SESSION_ENDED"}
MAX_REASON_CHARS = 200


def intent_part(index: RoutingIndex, intent: str, text: str, score: float = 1.0) -> PlanPart:
    """Return ``intent`` as a part of a plan: its agent, tools and states, asked with ``text``."""
    config = index.intents[intent]
    facts = index.agents[config.agent]
    return PlanPart(
        agent=config.agent,
        intent=intent,
        text=text,
        tools=tuple(dict.fromkeys(config.mcp_tools)),
        domain=config.domain or facts.domain,
        score=score,
        next_state=next_states(index, {**facts.next_state, **config.next_state}),
    )


def part_route(
    question: Question, part: PlanPart, method: RouteMethod, confidence: float, **changes: Any
) -> Route:
    """Return the route of one part: its agent answers, with its tools and states."""
    return Route(
        agent=part.agent,
        intent=part.intent,
        method=method,
        confidence=confidence,
        domain=part.domain,
        tools=part.tools,
        next_state=part.next_state,
        threshold=question.policy.confidence_threshold,
        **changes,
    )


def plan_route(question: Question, parts: Sequence[PlanPart], **changes: Any) -> Route:
    """Return the route of several parts; the first one's agent is the route's."""
    return Route(
        agent=parts[0].agent,
        intent=SEVERAL,
        method="supervisor",
        confidence=min(part.score for part in parts),
        domain=parts[0].domain,
        tools=parts[0].tools,
        next_state=parts[0].next_state,
        threshold=question.policy.confidence_threshold,
        plan=tuple(parts),
        **changes,
    )


def found_route(question: Question, finding: Finding, tie: Finding | None = None) -> Route:
    """Return the route to the best candidate of a finding, which may have settled a ``tie``."""
    best, index = finding.candidates[0], question.index
    given: dict[str, Any] = {
        "reason": finding.reason,
        "candidates": finding.candidates,
        "margin": finding.margin,
    }
    if finding.method != "state":
        part = intent_part(index, best.intent, question.turn.text)
        sure = sureness(finding, tie, question.policy)
        return part_route(question, part, finding.method, sure, **given)
    facts = index.agents[best.agent]
    return Route(
        agent=best.agent,
        intent=best.intent,
        method="state",
        confidence=best.score,
        domain=facts.domain,
        tools=_state_tools(index, question.state, best.agent),
        next_state=next_states(index, facts.next_state),
        threshold=question.policy.confidence_threshold,
        **given,
    )


def control_route(
    question: Question, control: Control, method: RouteMethod, reason: str, confidence: float = 1.0
) -> Route:
    """Return the route of a conversation that goes to a person or ends: no agent answers."""
    noted: dict[str, Any] = {"session_control": control}
    if control == "HUMAN_HANDOFF":
        noted["human_handoff_requested"] = True
    else:
        noted["session_ended"] = True
    return Route(
        agent=question.speaker,
        intent=control.lower(),
        method=method,
        confidence=confidence,
        reason=reason,
        threshold=question.policy.confidence_threshold,
        control=control,
        next_state=CONTROL_STATES,
        metadata=noted,
    )


def unsettled_route(
    question: Question, findings: Sequence[Finding], method: Literal["fallback", "clarify"]
) -> Route:
    """Return the route when nobody or too many match: the speaker says so, without tools."""
    candidates = merged(c for finding in findings for c in finding.candidates)
    best = candidates[0] if candidates else None
    rivals = [c.score for c in candidates if best is not None and c.agent != best.agent]
    confidence = best.score if best else 0.0
    reasons = [finding.reason for finding in findings if finding.reason]
    return Route(
        agent=question.speaker,
        intent=method,
        method=method,
        confidence=confidence,
        domain=question.index.agents[question.speaker].domain,
        reason="; ".join(reasons) or "nothing matched",
        candidates=candidates,
        margin=round(confidence - max(rivals, default=0.0), PRECISION),
        threshold=question.policy.confidence_threshold,
    )


def requested_route(index: RoutingIndex, speaker: str) -> Route:
    """An agent without any intent, asked for by name, answers whatever is said to it."""
    facts = index.agents[speaker]
    return Route(
        agent=speaker,
        intent="",
        method="requested",
        confidence=1.0,
        domain=facts.domain,
        reason="the requested agent has no intents",
        tools=facts.model_tools,
        threshold=index.policy.confidence_threshold,
        next_state=next_states(index, facts.next_state),
    )


def merged(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Return ``candidates``, each intent once with its best score, the best first."""
    best: dict[str, Candidate] = {}
    for candidate in candidates:
        if candidate.intent not in best or candidate.score > best[candidate.intent].score:
            best[candidate.intent] = candidate
    ranked = sorted(best.values(), key=lambda c: (-c.score, c.intent))
    return tuple(ranked[:MAX_CANDIDATES])


def shown(name: str, finding: Finding) -> dict[str, Any]:
    """Return what one strategy found as plain values, for the turn's record."""
    return {
        "name": name,
        "best": finding.best.intent if finding.best else None,
        "margin": finding.margin,
        "reason": finding.reason[:MAX_REASON_CHARS],
        "candidates": [
            {"intent": c.intent, "agent": c.agent, "score": c.score}
            for c in finding.candidates[:MAX_CANDIDATES]
        ],
    }


def next_states(index: RoutingIndex, states: Mapping[str, str]) -> dict[str, str]:
    """Return outcome -> state with terminal states cleared: reaching one is the end of it."""
    terminal = {state for state, policy in index.states.items() if policy.terminal}
    return {outcome: "" if state in terminal else state for outcome, state in states.items()}


def _state_tools(index: RoutingIndex, state: str, agent: str) -> tuple[str, ...]:
    """Return the tools of the intents that lead into ``state``: the subject it is still about."""
    leading = index.leading_to(state, agent)
    return tuple(dict.fromkeys(tool for intent in leading for tool in intent.mcp_tools))
