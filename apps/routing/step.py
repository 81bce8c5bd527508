"""Chooses who answers a turn."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from apps.routing.index import DERIVED_KEY, AgentsOf, RoutingIndex, routing_index
from apps.routing.order import STRATEGIES, order
from apps.routing.sentence import read
from apps.routing.strategies.face import MAX_CANDIDATES, PRECISION, Finding, Question, settles
from apps.runtime.ports import EmbeddingPort, ModelPort
from apps.runtime.turn import Candidate, Route, Turn

FALLBACK: Literal["fallback"] = "fallback"
CLARIFY: Literal["clarify"] = "clarify"
# The intent's name when supervisor mode finds several (platform facts 3.2).
SEVERAL = "multi_intent"


class NoAgentAnswers(LookupError):
    """The release has no enabled agent that could speak in this session."""


class ChooseAgent:
    """Sets ``turn.route``: who answers, for which intent, with which tools, and why.

    ``agents_of`` gives the facts of every agent of a release; it is asked once per release.
    Raises ``NoAgentAnswers`` when neither the requested agent nor the policy's fallback and
    default agents exist and are enabled.
    """

    def __init__(
        self,
        agents_of: AgentsOf,
        *,
        models: ModelPort | None = None,
        embeddings: EmbeddingPort | None = None,
    ) -> None:
        self._agents_of = agents_of
        self._models = models
        self._embeddings = embeddings

    async def __call__(self, turn: Turn) -> Turn:
        if DERIVED_KEY not in turn.release.derived:
            # A big release takes seconds to compile; the other turns of this process go on.
            await asyncio.to_thread(routing_index, turn.release, self._agents_of)
        return turn.evolve(route=await self.route(turn))

    async def route(self, turn: Turn) -> Route:
        """Return the route of ``turn`` without changing anything."""
        index = routing_index(turn.release, self._agents_of)
        requested = turn.session.agent or index.policy.default_agent
        allowed = index.closure(requested) if requested else _enabled(index)
        speaker = _speaker(index, requested, allowed)
        if requested in allowed and not any(index.intents_by_agent.get(a) for a in allowed):
            return _requested(index, requested)
        question = Question(
            sentence=read(turn.text),
            index=index,
            allowed=frozenset(allowed),
            turn=turn,
            speaker=speaker,
            state=turn.session.next_state,
            models=self._models,
            embeddings=self._embeddings,
        )
        return await _decide(question, speaker)


def _enabled(index: RoutingIndex) -> tuple[str, ...]:
    return tuple(slug for slug, facts in index.agents.items() if facts.enabled)


def _speaker(index: RoutingIndex, requested: str, allowed: Sequence[str]) -> str:
    """Return who says the greeting and the question back: it needs no intent and no tools."""
    policy = index.policy
    for slug in (policy.fallback_agent, requested, policy.default_agent):
        if slug in allowed:
            return slug
    if allowed:
        return allowed[0]
    for slug in (policy.fallback_agent, policy.default_agent):
        if slug in index.agents and index.agents[slug].enabled:
            return slug
    raise NoAgentAnswers(f"no enabled agent answers for {requested!r}")


async def _decide(question: Question, speaker: str) -> Route:
    """Ask the strategies in the policy's order; the first confident and unambiguous one decides."""
    policy = question.index.policy
    findings: list[Finding] = []
    tie: Finding | None = None
    for name in order(policy):
        finding = await STRATEGIES[name](question)
        findings.append(finding)
        if not finding.confident(policy):
            continue
        if policy.mode == "supervisor" and len(finding.subjects) > 1:
            return _without_tools(question, speaker, [finding], method=CLARIFY, intent=SEVERAL)
        if settles(finding, tie, policy):
            return _chosen(question, finding)
        tie = tie or finding
    if tie is not None:
        return _without_tools(question, speaker, [tie], method=CLARIFY, intent=CLARIFY)
    return _without_tools(question, speaker, findings, method=FALLBACK, intent=FALLBACK)


def _chosen(question: Question, finding: Finding) -> Route:
    index, best = question.index, finding.candidates[0]
    facts = index.agents[best.agent]
    route = Route(
        agent=best.agent,
        intent=best.intent,
        method=finding.method,
        confidence=best.score,
        domain=facts.domain,
        reason=finding.reason,
        candidates=finding.candidates,
        margin=finding.margin,
        threshold=index.policy.confidence_threshold,
        tools=_state_tools(index, question.state, best.agent),
        next_state=_next_states(index, facts.next_state),
    )
    if finding.method == "state":
        return route
    intent = index.intents[best.intent]
    return replace(
        route,
        domain=intent.domain or facts.domain,
        tools=tuple(dict.fromkeys(intent.mcp_tools)),
        next_state=_next_states(index, {**facts.next_state, **intent.next_state}),
    )


def _next_states(index: RoutingIndex, states: Mapping[str, str]) -> dict[str, str]:
    """Return outcome -> state with terminal states cleared: reaching one is the end of it."""
    terminal = {state for state, policy in index.states.items() if policy.terminal}
    return {outcome: "" if state in terminal else state for outcome, state in states.items()}


def _state_tools(index: RoutingIndex, state: str, agent: str) -> tuple[str, ...]:
    """Return the tools of the intents that lead into ``state``: the subject it is still about."""
    leading = index.leading_to(state, agent)
    return tuple(dict.fromkeys(tool for intent in leading for tool in intent.mcp_tools))


def _without_tools(
    question: Question,
    speaker: str,
    findings: Sequence[Finding],
    *,
    method: Literal["fallback", "clarify"],
    intent: str,
) -> Route:
    candidates = _merged(findings)
    best = candidates[0] if candidates else None
    rivals = [c.score for c in candidates if best is not None and c.agent != best.agent]
    confidence = best.score if best else 0.0
    reasons = [finding.reason for finding in findings if finding.reason]
    return Route(
        agent=speaker,
        intent=intent,
        method=method,
        confidence=confidence,
        domain=question.index.agents[speaker].domain,
        reason="; ".join(reasons) or "nothing matched",
        candidates=candidates,
        margin=round(confidence - max(rivals, default=0.0), PRECISION),
        threshold=question.index.policy.confidence_threshold,
    )


def _merged(findings: Sequence[Finding]) -> tuple[Candidate, ...]:
    """Return the candidates of all strategies, each intent once with its best score."""
    best: dict[str, Candidate] = {}
    for candidate in (c for finding in findings for c in finding.candidates):
        if candidate.intent not in best or candidate.score > best[candidate.intent].score:
            best[candidate.intent] = candidate
    ranked = sorted(best.values(), key=lambda c: (-c.score, c.intent))
    return tuple(ranked[:MAX_CANDIDATES])


def _requested(index: RoutingIndex, speaker: str) -> Route:
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
        next_state=_next_states(index, facts.next_state),
    )
