"""Several agents answer one message, and the customer reads one answer.

Each part of the route's plan is run by its own agent with its own words and tools, one after the
other. What they found is put to the speaker's model once, which writes the answer. What the runtime
itself has to say (a question for a confirmation) is never rewritten, and what asks stands last.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from apps.agents.composing import closing, joined, one_voice
from apps.agents.config import AgentConfig, PromptConfig
from apps.agents.delegation.wording import sentences
from apps.agents.evidence import MaskFor, vault_mask
from apps.agents.history import Scene, history_open
from apps.agents.prompting import TextFor
from apps.agents.step import FILTERED, VISIBLE_FAILURES
from apps.runtime.dialogue import Topic
from apps.runtime.outcomes import Blocked
from apps.runtime.ports import ModelFailed, ModelPort, ModelRequest, Step, ToolPort, ToolRequest
from apps.runtime.turn import Decision, Draft, PlanPart, Route, ToolCall, Turn

OPERATION = "plan.compose"
# What a call is named in the request to compose: no tool of another agent stands in it.
FACT = "facts"
MAX_SENTENCES = 20
_RULE = (
    "The customer asked for several things, and the tool messages hold what was found for each, first"
    " as data, then as sentences. Write one answer in one voice that serves all of them in that order."
    " Say each fact once. No headings, no lists of departments, no names of agents or tools. Where"
    " two of them disagree, keep to the data."
)

AgentOver = Callable[[ToolPort], Step]
"""The agent's step over a tool port: ``RunAgent`` with everything else already given."""


@dataclass(frozen=True)
class _Said:
    """What one part came to: its draft, ``None`` when its model failed."""

    part: PlanPart
    draft: Draft | None
    fixed: bool = False
    calls: tuple[ToolCall, ...] = ()

    @property
    def waits(self) -> bool:
        return self.draft is not None and self.draft.outcome.startswith("waiting")


class RunPlan:
    """Turns a routed turn into a draft, also when its route is a plan of several parts.

    ``agent_over`` gives the agent's step. ``topics_for`` gives the tenant's sentence about what is
    kept for later ("" for the built-in one); ``refusal_for`` and ``mask_for`` are as in ``RunAgent``.
    A part whose model failed is kept for later, unless all failed: then the failure is raised, as it
    always is for ``auth`` and ``wrong_model``. An outcome that a part sets ends the turn.
    """

    def __init__(
        self,
        agent_over: AgentOver,
        tools: ToolPort,
        models: ModelPort,
        *,
        refusal_for: TextFor,
        topics_for: TextFor,
        mask_for: MaskFor | None = None,
    ) -> None:
        self._agent_over = agent_over
        self._agent = agent_over(tools)
        self._tools = tools
        self._models = models
        self._refusal_for = refusal_for
        self._topics_for = topics_for
        self._mask_for = mask_for

    async def __call__(self, turn: Turn) -> Turn:
        route = turn.route
        if route is None or len(route.plan) < 2:
            return self._closed(await self._agent(turn), ())
        said: list[_Said] = []
        failure: ModelFailed | None = None
        for part in route.plan:
            try:
                turn, spoken = await self._part(turn, route, part)
            except ModelFailed as error:
                if error.code in VISIBLE_FAILURES:
                    raise
                failure, spoken = error, _Said(part, None)
            if turn.outcome is not None:
                return turn
            said.append(spoken)
        if failure is not None and all(spoken.draft is None for spoken in said):
            raise failure
        return await self._answered(turn, route, said)

    async def _part(self, turn: Turn, route: Route, part: PlanPart) -> tuple[Turn, _Said]:
        """Run one part; it sees its own agent's calls, and its new ones follow all of the turn's."""
        own = [call for call in turn.tool_calls if (call.agent or route.agent) == part.agent]
        first = part is route.plan[0]
        asked = turn.evolve(
            text=part.text,
            route=_part_route(route, part, first=first),
            prepared=turn.prepared if _is_of(turn.prepared, part, first) else None,
            tool_calls=tuple(own),
            draft=None,
        )
        tools = _Numbered(self._tools, turn.tool_calls, len(own))
        done = await self._agent_over(tools)(asked)
        new = tuple(_signed(call, part, route) for call in done.tool_calls[len(own) :])
        fixed = done.prepared is not None and done.draft == done.prepared
        spoken = _Said(part, done.draft, fixed=fixed, calls=(*own, *new))
        merged = done.evolve(
            text=turn.text,
            route=route,
            prepared=done.prepared or turn.prepared,
            tool_calls=(*turn.tool_calls, *new),
            draft=None,
        )
        return merged, spoken

    async def _answered(self, turn: Turn, route: Route, said: Sequence[_Said]) -> Turn:
        asking = next((s for s in said if s.waits and s.fixed), None) or next(
            (s for s in said if s.waits), None
        )
        later = [s.part for s in said if s.draft is None or (s.waits and s is not asking)]
        fixed = [s.draft.text for s in said if s.draft and s.fixed and not s.waits]
        free = [s for s in said if s.draft and not s.fixed and not s.waits]
        turn, body = await self._composed(turn, free)
        if turn.outcome is not None:
            return turn
        question = asking.draft if asking is not None else None
        texts = [*fixed, body]
        if asking is not None and question is not None:
            # Where the conversation goes from here is for the part that asks to say.
            turn = turn.evolve(route=replace(route, next_state=asking.part.next_state))
            outcome = question.outcome
        else:
            outcome = "answered"
        draft = Draft(text=joined(texts), agent=route.agent, outcome=outcome)
        turn = _kept(turn, later).evolve(draft=draft)
        return self._closed(turn, later, question.text if question else "")

    async def _composed(self, turn: Turn, free: Sequence[_Said]) -> tuple[Turn, str]:
        """Return the one text of all answers that may be worded anew; one alone stands as it is."""
        texts = [said.draft.text for said in free if said.draft is not None]
        if len(texts) < 2:
            return turn, "".join(texts)
        calls = list(
            {call.ordinal: call for said in free for call in said.calls if call.ok}.values()
        )
        names = _names(turn, calls)
        request = self._request(turn, calls, texts)
        try:
            reply, call = await self._models.complete(turn, request)
        except ModelFailed as failure:
            if failure.code in VISIBLE_FAILURES:
                raise
            if failure.code == "content_filter":
                return self._refused(turn), ""
            turn = turn.decide(_model_failed(request.profile, failure.code))
            return turn, one_voice(joined(texts), calls, names)
        turn = turn.evolve(model_calls=(*turn.model_calls, call))
        if reply.finish_reason == "content_filter":
            return self._refused(turn), ""
        written = one_voice(reply.text, calls, names)
        return turn, written or one_voice(joined(texts), calls, names)

    def _request(self, turn: Turn, calls: Sequence[ToolCall], texts: Sequence[str]) -> ModelRequest:
        """Return the speaker's request: the customer's message, then every part's facts as data."""
        slug, agent = _speaker(turn)
        scene = Scene(
            slug=slug,
            agent=agent,
            prompt=turn.release.get(PromptConfig, agent.prompt),
            said=turn.text,
            notes=(_RULE,),
            ledger=False,
            operation=OPERATION,
        )
        told = [part.strip() for text in texts for part in sentences(text) if part.strip()]
        facts = [
            *(replace(call, tool=FACT, arguments={}) for call in calls),
            *(
                ToolCall(tool=FACT, server="", arguments={}, status="ok", result=text)
                for text in told[:MAX_SENTENCES]
            ),
        ]
        numbered = [replace(fact, ordinal=place) for place, fact in enumerate(facts)]
        mask = vault_mask(turn, self._mask_for(turn) if self._mask_for else None)
        return ModelRequest(
            profile=agent.model_profile,
            messages=history_open(turn, scene, numbered, mask).messages(),
            operation=OPERATION,
            ordinal=len(turn.model_calls),
        )

    def _closed(self, turn: Turn, later: Sequence[PlanPart], question: str = "") -> Turn:
        """Return the turn with one sentence about what is kept for later, and the question last."""
        draft, route = turn.draft, turn.route
        if draft is None or route is None:
            return turn
        topics = [str(topic.get("text", "")) for topic in route.metadata.get("topics", ())]
        topics += [part.text for part in later]
        body, said = draft.text, ""
        if topics:
            said = closing(topics, _language(turn), self._topics_for(turn))
        if said and not question and draft.outcome.startswith("waiting"):
            body, question = "", draft.text
        text = "\n\n".join(part for part in (body, said, question) if part)
        return turn.evolve(draft=replace(draft, text=text))

    def _refused(self, turn: Turn) -> Turn:
        decision = Decision(phase="output", code=FILTERED, action="block", reason="provider filter")
        return turn.decide(decision).evolve(
            outcome=Blocked(text=self._refusal_for(turn), code=FILTERED)
        )


class _Numbered:
    """A tool port for one part of a turn: calls are numbered after all of the turn's, which the
    port behind it sees."""

    def __init__(self, tools: ToolPort, before: tuple[ToolCall, ...], own: int) -> None:
        self._tools = tools
        self._before = before
        self._own = own

    async def call(self, turn: Turn, requests: Sequence[ToolRequest]) -> list[ToolCall]:
        return await self._tools.call(self._whole(turn), [self._after(r) for r in requests])

    async def check(self, turn: Turn, request: ToolRequest) -> ToolCall:
        return await self._tools.check(self._whole(turn), self._after(request))

    def functions(self, turn: Turn, tools: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        return self._tools.functions(turn, tools)

    def _whole(self, turn: Turn) -> Turn:
        return turn.evolve(tool_calls=(*self._before, *turn.tool_calls[self._own :]))

    def _after(self, request: ToolRequest) -> ToolRequest:
        return replace(request, ordinal=request.ordinal + len(self._before) - self._own)


def _part_route(route: Route, part: PlanPart, *, first: bool) -> Route:
    """Return what one part is routed as; the first keeps how the route came about."""
    return replace(
        route,
        agent=part.agent,
        intent=part.intent,
        method=route.method if first else "supervisor",
        domain=part.domain,
        tools=part.tools,
        next_state=part.next_state,
        plan=(),
        metadata=route.metadata if first else {},
    )


def _is_of(prepared: Draft | None, part: PlanPart, first: bool) -> bool:
    """Whether the runtime's own words are this part's: those of an action come with the first."""
    return prepared is not None and (first or prepared.agent == part.agent)


def _signed(call: ToolCall, part: PlanPart, route: Route) -> ToolCall:
    """Return ``call`` with the agent that made it, where that is not the route's."""
    return call if call.agent or part.agent == route.agent else replace(call, agent=part.agent)


def _speaker(turn: Turn) -> tuple[str, AgentConfig]:
    """Return in whose voice the answer is: the agent that was asked, else the first part's."""
    assert turn.route is not None
    asked = turn.release.find(AgentConfig, turn.session.agent)
    if asked is not None and asked.may_answer:
        return turn.session.agent, asked
    return turn.route.agent, turn.release.get(AgentConfig, turn.route.agent)


def _language(turn: Turn) -> str:
    _slug, agent = _speaker(turn)
    return turn.release.get(PromptConfig, agent.prompt).language


def _names(turn: Turn, calls: Sequence[ToolCall]) -> list[str]:
    """Return what must not be read in an answer: names of agents and of the tools that were called."""
    return [*turn.release.all(AgentConfig), *dict.fromkeys(call.tool for call in calls)]


def _kept(turn: Turn, later: Sequence[PlanPart]) -> Turn:
    """Return the turn with what could not be answered now among its topics, each once."""
    known = {topic.intent for topic in turn.dialogue.topics}
    new = [
        Topic(intent=p.intent, agent=p.agent, text=p.text, turn=turn.session.turn_number)
        for p in later
        if p.intent not in known
    ]
    if not new:
        return turn
    return turn.evolve(dialogue=turn.dialogue.evolve(topics=(*turn.dialogue.topics, *new)))


def _model_failed(profile: str, code: str) -> Decision:
    return Decision(
        phase="tool",
        code="NOC.LLM_FAILED",
        action="observe",
        reason="the parts' answers were put together without a model",
        metadata={"profile": profile, "code": code},
    )
