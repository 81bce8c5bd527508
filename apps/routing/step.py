"""Chooses who answers a turn."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from apps.routing.index import DERIVED_KEY, AgentsOf, RoutingIndex, routing_index
from apps.routing.meaning import MeaningPort
from apps.routing.order import FLOWS, PLAIN, STRATEGIES, order
from apps.routing.planning import Plan, plan_make
from apps.routing.routes import (
    CLARIFY,
    FALLBACK,
    found_route,
    merged,
    part_route,
    plan_route,
    requested_route,
    shown,
    unsettled_route,
)
from apps.routing.scorers import SCORERS
from apps.routing.sentence import read
from apps.routing.strategies.face import Finding, Question, settles
from apps.runtime.ports import ModelPort
from apps.runtime.turn import Decision, ModelCall, Route, Signal, Turn


class NoAgentAnswers(LookupError):
    """The release has no enabled agent that could speak in this session."""


class ChooseAgent:
    """Sets ``turn.route``: who answers, for which intent, with which tools, and why.

    ``agents_of`` gives the facts of every agent of a release; it is asked once per release.
    ``models`` and ``embeddings`` are left out where nothing but rules may decide. Raises
    ``NoAgentAnswers`` when neither the requested agent nor the policy's fallback and default agents
    exist and are enabled.
    """

    def __init__(
        self,
        agents_of: AgentsOf,
        *,
        models: ModelPort | None = None,
        embeddings: MeaningPort | None = None,
    ) -> None:
        self._agents_of = agents_of
        self._models = models
        self._embeddings = embeddings

    async def __call__(self, turn: Turn) -> Turn:
        choice = await self._choose(turn)
        return turn.decide(*choice.decisions).evolve(
            route=choice.route,
            model_calls=(*turn.model_calls, *choice.model_calls),
            signals=(*turn.signals, _signal(choice.route)),
        )

    async def route(self, turn: Turn) -> Route:
        """Return the route of ``turn`` without changing anything."""
        return (await self._choose(turn)).route

    async def _choose(self, turn: Turn) -> "Choice":
        if DERIVED_KEY not in turn.release.derived:
            # A big release takes seconds to compile; the other turns of this process go on.
            await asyncio.to_thread(routing_index, turn.release, self._agents_of)
        index = routing_index(turn.release, self._agents_of)
        requested = turn.session.agent or index.policy.default_agent
        allowed = index.closure(requested) if requested else _enabled(index)
        question = Question(
            sentence=read(turn.text),
            index=index,
            allowed=frozenset(allowed),
            turn=turn,
            speaker=_speaker(index, requested, allowed),
            state=turn.session.next_state,
            models=self._models,
            embeddings=self._embeddings,
        )
        names = order(index.policy)
        if requested in allowed and not any(index.intents_by_agent.get(a) for a in allowed):
            names = tuple(name for name in names if name in (*FLOWS, *PLAIN))
            return await _Deciding(question, names, requested_route(index, requested)).decide()
        return await _Deciding(question, names).decide()


@dataclass(frozen=True)
class Choice:
    """A route, and what finding it cost."""

    route: Route
    model_calls: tuple[ModelCall, ...] = ()
    decisions: tuple[Decision, ...] = ()


@dataclass
class _Deciding:
    """Asks the strategies in order; the first confident and unambiguous one decides.

    ``otherwise``: the route when none does, where that is not a greeting or a question back.
    """

    question: Question
    names: Sequence[str]
    otherwise: Route | None = None
    findings: dict[str, Finding] = field(default_factory=dict)
    noted: dict[str, Any] = field(default_factory=dict)
    model_calls: list[ModelCall] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    plan: Plan | None = None

    async def decide(self) -> Choice:
        policy = self.question.policy
        tie: Finding | None = None
        for name in self.names:
            if name in SCORERS and self.plan is None and policy.mode != "router":
                route = await self._planned()
                if route is not None:
                    return self._choice(route)
            finding = await self._ask(name)
            if finding.route is not None:
                return self._choice(finding.route)
            if settles(finding, tie, policy):
                return self._choice(found_route(self.question, finding, tie))
            if finding.confident(policy):
                tie = tie or finding
        return self._choice(self.otherwise or self._unsettled(tie))

    async def _ask(self, name: str) -> Finding:
        finding = await STRATEGIES[name](self.question)
        self.findings[name] = finding
        self.noted.update(finding.metadata)
        self._paid(finding.model_calls, finding.decisions)
        if finding.released:
            self.question = replace(self.question, state="", released=True)
        return finding

    def _paid(self, calls: Sequence[ModelCall], decisions: Sequence[Decision]) -> None:
        self.model_calls.extend(calls)
        self.decisions.extend(decisions)
        if calls:
            turn = self.question.turn
            turn = turn.evolve(model_calls=(*turn.model_calls, *calls))
            self.question = replace(self.question, turn=turn)

    async def _planned(self) -> Route | None:
        """Return the route of several subjects, ``None`` when there is one or none."""
        models = self.question.policy.mode == "supervisor"
        plan = self.plan = await plan_make(self.question, self.question.turn.text, models=models)
        self.noted.update(plan.metadata)
        self._paid(plan.model_calls, plan.decisions)
        if plan.several:
            reason = "several subjects: " + ", ".join(part.intent for part in plan.parts)
            candidates = merged(plan.candidates)
            return plan_route(self.question, plan.parts, reason=reason, candidates=candidates)
        return self._single(plan) if plan.topics else None

    def _single(self, plan: Plan) -> Route:
        part = plan.parts[0]
        reason = "the one of several subjects that is done now"
        return part_route(self.question, part, "supervisor", part.score, reason=reason)

    def _unsettled(self, tie: Finding | None) -> Route:
        if self.plan is not None and len(self.plan.parts) == 1:
            # The clauses agree on one subject where the whole message did not.
            return self._single(self.plan)
        if tie is not None:
            return unsettled_route(self.question, [tie], CLARIFY)
        return unsettled_route(self.question, [*self.findings.values()], FALLBACK)

    def _choice(self, route: Route) -> Choice:
        strategies = [shown(name, finding) for name, finding in self.findings.items()]
        metadata = {**self.noted, **route.metadata, "strategies": strategies}
        return Choice(
            route=replace(route, metadata=metadata),
            model_calls=tuple(self.model_calls),
            decisions=tuple(self.decisions),
        )


def _signal(route: Route) -> Signal:
    """Every decision is told, with what it was made of (platform facts 3.1, 3.5)."""
    data = {
        "route": route.agent,
        "intent": route.intent,
        "method": route.method,
        "confidence": route.confidence,
    }
    if route.control:
        code = "IC.HANDOFF_REQUESTED" if route.control == "HUMAN_HANDOFF" else "IC.SESSION_END_REQUESTED"  # fmt: skip
        return Signal(code=code, component="router.decision", data=data)
    component = "router.continuity" if route.method == "continuity" else "router.decision"
    return Signal(code="IC.ROUTE_SELECTED", component=component, data=data)


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
