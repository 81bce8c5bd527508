"""The agent's step: collect what is known, ask the model, hand on a draft."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from apps.agents.config import AgentConfig, PromptConfig
from apps.agents.evidence import MaskFor, vault_mask
from apps.agents.loop import Conversation, converse
from apps.agents.phrasing import compose
from apps.agents.prompting import TextFor, build_messages
from apps.agents.tooling import (
    ToolInfo,
    ToolInfoLookup,
    action_open,
    allowed_tools,
    collectable,
)
from apps.runtime.outcomes import Blocked
from apps.runtime.ports import ModelFailed, ModelPort, ToolPort, ToolRequest
from apps.runtime.turn import SAID, Decision, Draft, Route, Turn

# A wrong key or a wrong model is the operator's to mend: it must show, never be papered over.
VISIBLE_FAILURES = ("auth", "wrong_model")
FILTERED = "CONTENT_FILTER"
# How often in a row a customer is asked the same question.
MAX_ASKED = 2


class AgentUnrouted(Exception):
    """The agent step ran before a route was chosen."""


class RunAgent:
    """Turns a routed turn into a draft (or a refusal, when the model's provider filters it).

    ``tools`` and ``models`` are the ports; ``tool_info`` looks a tool up in the release;
    ``texts_for`` gives the tenant's fallback or clarify text of a turn, ``refusal_for`` the text
    for filtered content (``texts_for`` when not given). Values of the turn's vault are always hidden
    from models; ``mask_for`` gives what else is done to a turn's texts before a model sees them.

    Raises ``ModelFailed`` when no model answered and nothing was collected to answer from, and
    always for ``auth`` and ``wrong_model``; ``UnknownItem`` for an agent the release lacks.
    """

    def __init__(
        self,
        tools: ToolPort,
        models: ModelPort,
        *,
        tool_info: ToolInfoLookup,
        texts_for: TextFor,
        refusal_for: TextFor | None = None,
        mask_for: MaskFor | None = None,
    ) -> None:
        self._tools = tools
        self._models = models
        self._tool_info = tool_info
        self._texts_for = texts_for
        self._refusal_for = refusal_for or texts_for
        self._mask_for = mask_for

    async def __call__(self, turn: Turn) -> Turn:
        route = turn.route
        if route is None:
            raise AgentUnrouted("no route: the agent step stands after routing")
        if route.method in ("fallback", "clarify"):
            outcome = "waiting" if route.method == "clarify" else "answered"
            text = self._texts_for(turn)
            return turn.evolve(draft=Draft(text=text, agent=route.agent, outcome=outcome))
        agent = turn.release.get(AgentConfig, route.agent)
        prompt = turn.release.get(PromptConfig, agent.prompt)
        infos = allowed_tools(turn, agent, prompt, self._tool_info)
        if agent.tool_use == "collect":
            turn = await self._collect(turn, infos)
            if draft := self._without_evidence(turn, route, prompt, infos):
                return turn.evolve(draft=draft)
            infos = {}
        else:
            infos = self._offered(turn, infos)
        conversation = await self._converse(turn, agent, prompt, infos)
        return self._settled(conversation, route, agent, prompt)

    async def _collect(self, turn: Turn, infos: dict[str, ToolInfo]) -> Turn:
        """Call the intent's read-only tools at once, then the one action the customer named.

        A tool already called in this turn (an earlier attempt) is not called again.
        """
        called = {call.tool for call in turn.tool_calls}
        reads, action = collectable(
            turn.text, [info for info in infos.values() if info.slug not in called]
        )
        turn = await self._call(turn, reads)
        if action is not None and action_open(action, turn.tool_calls, infos):
            turn = await self._call(turn, [action])
        return turn

    async def _call(self, turn: Turn, infos: Sequence[ToolInfo]) -> Turn:
        if not infos:
            return turn
        first = len(turn.tool_calls)
        requests = [
            ToolRequest(tool=info.slug, ordinal=first + place) for place, info in enumerate(infos)
        ]
        calls = await self._tools.call(turn, requests)
        return turn.evolve(tool_calls=(*turn.tool_calls, *calls))

    def _offered(self, turn: Turn, infos: dict[str, ToolInfo]) -> dict[str, ToolInfo]:
        """Return the tools a model is offered, without the arguments this turn fills itself."""
        shown = {tool["name"]: tool["parameters"] for tool in self._tools.functions(turn, [*infos])}
        return {
            slug: replace(info, json_schema=shown[slug])
            for slug, info in infos.items()
            if slug in shown
        }

    async def _converse(
        self, turn: Turn, agent: AgentConfig, prompt: PromptConfig, infos: dict[str, ToolInfo]
    ) -> Conversation:
        mask = vault_mask(turn, self._mask_for(turn) if self._mask_for else None)
        return await converse(
            turn,
            build_messages(turn, agent, prompt, turn.tool_calls, mask=mask),
            profile=agent.model_profile,
            infos=infos,
            max_rounds=agent.max_tool_rounds,
            tools=self._tools,
            models=self._models,
            mask=mask,
        )

    def _without_evidence(
        self, turn: Turn, route: Route, prompt: PromptConfig, infos: Mapping[str, ToolInfo]
    ) -> Draft | None:
        """Return the draft that needs no model: evidence is required and there is none.

        It asks for a missing argument, at most ``MAX_ASKED`` times in a row; after that it is the
        tenant's own text, which ends the waiting. With nothing to ask it is the prompt's text.
        """
        if not prompt.require_evidence or not route.tools:
            return None
        if any(call.ok for call in turn.tool_calls):
            return None
        question = _question(turn, infos)
        if not question or _answer_refused(turn):
            return Draft(text=prompt.no_evidence_text, agent=route.agent)
        if _asked_enough(turn, route, question):
            return Draft(text=self._texts_for(turn), agent=route.agent)
        return Draft(text=question, agent=route.agent, outcome="waiting")

    def _settled(
        self, conversation: Conversation, route: Route, agent: AgentConfig, prompt: PromptConfig
    ) -> Turn:
        turn, reply, failure = conversation.turn, conversation.reply, conversation.failure
        filtered = (
            reply.finish_reason == "content_filter"
            if reply is not None
            else failure is not None and failure.code == "content_filter"
        )
        if filtered:
            return self._refused(turn)
        if reply is not None and reply.text.strip():
            draft = Draft(text=reply.text.strip(), agent=route.agent)
            return turn.evolve(draft=draft)
        failure = failure or ModelFailed("the model's answer was empty", code="broken")
        if failure.code in VISIBLE_FAILURES:
            raise failure
        results = [call.result for call in turn.tool_calls if call.ok]
        text = compose(results, language=prompt.language)
        if not text:
            raise failure
        draft = Draft(text=text, agent=route.agent)
        return turn.decide(_model_failed(agent.model_profile, failure)).evolve(draft=draft)

    def _refused(self, turn: Turn) -> Turn:
        """End the turn with the operator's words: the same request would be filtered again."""
        text = self._refusal_for(turn)
        decision = Decision(phase="output", code=FILTERED, action="block", reason="provider filter")
        return turn.decide(decision).evolve(outcome=Blocked(text=text, code=FILTERED))


def _question(turn: Turn, infos: Mapping[str, ToolInfo]) -> str:
    """Return the question for the first missing argument whose tool has one, "" for none."""
    for call in turn.tool_calls:
        questions = infos[call.tool].questions if call.tool in infos else {}
        for error in call.field_errors:
            if question := questions.get(error.get("field", "")):
                return question
    return ""


def _answer_refused(turn: Turn) -> bool:
    """Whether this turn's answer named the customer and its caller may not: asking again is vain."""
    return any(d.phase == "identity" and d.metadata.get("source") == SAID for d in turn.decisions)


def _asked_enough(turn: Turn, route: Route, question: str) -> bool:
    """Whether a customer who is still in the question's state has heard it often enough.

    What was said last tells how often. Without a memory of it the question was asked once, to get
    into the state, and is not repeated; the next question after a value was taken is a new one.
    """
    if route.method != "state":
        return False
    asked = 0
    for message in reversed(turn.memory):
        if message.role == "assistant":
            if question not in message.text:
                break
            asked += 1
    if asked == 0:
        return SAID not in turn.business_context.sources.values()
    return asked >= MAX_ASKED


def _model_failed(profile: str, failure: ModelFailed) -> Decision:
    metadata: dict[str, Any] = {"profile": profile, "code": failure.code}
    return Decision(
        phase="tool",
        code="NOC.LLM_FAILED",
        action="observe",
        reason="answered from tool results, no model",
        metadata=metadata,
    )
