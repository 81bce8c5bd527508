"""The agent's step: collect what is known, ask the model, hand on a draft."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from apps.agents.config import AgentConfig, Delegate, PromptConfig
from apps.agents.delegation.desk import Desk, plain_text, still_open
from apps.agents.delegation.engine import Engine
from apps.agents.delegation.functions import Signal, specialists
from apps.agents.delegation.sub_conversation import (
    coordinator_notes,
    delegate_of,
    ended_for,
    holds,
    specialist_notes,
    sub_counted,
    sub_end,
    sub_left,
    sub_start,
    sub_used_up,
)
from apps.agents.delegation.wording import open_mention, without_names, without_repeats
from apps.agents.evidence import Mask, MaskFor, vault_mask
from apps.agents.history import Scene, memory_of
from apps.agents.labels import SAYINGS
from apps.agents.loop import Conversation
from apps.agents.phrasing import compose
from apps.agents.prompting import TextFor
from apps.agents.tooling import ToolInfo, ToolInfoLookup
from apps.runtime.dialogue import Evidence, Topic
from apps.runtime.outcomes import Blocked
from apps.runtime.ports import ModelFailed, ModelPort, ToolPort, TransactionPort
from apps.runtime.turn import SAID, Decision, Draft, Route, ToolCall, Turn

# A wrong key or a wrong model is the operator's to mend: it must show, never be papered over.
VISIBLE_FAILURES = ("auth", "wrong_model")
FILTERED = "CONTENT_FILTER"
# How often in a row a customer is asked the same question.
MAX_ASKED = 2

EvidenceFor = Callable[[Turn, ToolCall], Evidence | None]
"""What is kept of a finished action for later questions; ``None`` for nothing."""

CodeAgents = Callable[[Turn, str, AgentConfig], Awaitable[Turn]]
"""Runs the agent of that name as the Python class it names; returns the turn with its draft."""


class AgentUnrouted(Exception):
    """The agent step ran before a route was chosen."""


class AgentUnavailable(Exception):
    """The agent's record names an implementation, and nothing here runs those: no other answers."""


@dataclass(frozen=True)
class _Speaker:
    """Who has the word. ``delegate`` is set for the specialist of the open sub-conversation."""

    slug: str
    notes: tuple[str, ...] = ()
    delegate: Delegate | None = None


class RunAgent:
    """Turns a routed turn into a draft (or a refusal, when the model's provider filters it).

    ``tools`` and ``models`` are the ports; ``tool_info`` looks a tool up in the release;
    ``texts_for`` gives the tenant's fallback or clarify text of a turn, ``refusal_for`` the text
    for filtered content (``texts_for`` when not given). Values of the turn's vault are always hidden
    from models; ``mask_for`` gives what else is done to a turn's texts before a model sees them.
    ``transactions`` opens a transaction for what the customer has to confirm; without it a model is
    told so. ``evidence_for`` gives what is kept of an action that a model had carried out.
    ``hops_for`` says how often one message may go to a specialist; ``code_agents`` runs an
    agent whose record names an implementation.

    What is prepared (a question for a confirmation) or literal is handed on, and no model is asked.
    Agents ask each other within one pass: see ``delegation/``.

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
        transactions: TransactionPort | None = None,
        evidence_for: EvidenceFor | None = None,
        hops_for: Callable[[Turn], int] | None = None,
        code_agents: CodeAgents | None = None,
    ) -> None:
        self._tools = tools
        self._models = models
        self._tool_info = tool_info
        self._texts_for = texts_for
        self._refusal_for = refusal_for or texts_for
        self._mask_for = mask_for
        self._transactions = transactions
        self._evidence_for = evidence_for
        self._hops_for = hops_for
        self._code_agents = code_agents

    async def __call__(self, turn: Turn) -> Turn:
        route = turn.route
        if route is None:
            raise AgentUnrouted("no route: the agent step stands after routing")
        mask = vault_mask(turn, self._mask_for(turn) if self._mask_for else None)
        turn = sub_left(turn, mask)
        if turn.prepared is not None:
            return turn.evolve(draft=turn.prepared)
        if route.method == "literal":
            answer = str(route.metadata.get("answer", "")) or self._texts_for(turn)
            return turn.evolve(draft=Draft(text=answer, agent=route.agent))
        if route.method in ("fallback", "clarify") and not ended_for(turn):
            outcome = "waiting" if route.method == "clarify" else "answered"
            text = self._texts_for(turn)
            return turn.evolve(draft=Draft(text=text, agent=route.agent, outcome=outcome))
        agent = turn.release.get(AgentConfig, route.agent)
        if agent.implementation:
            if self._code_agents is None:
                raise AgentUnavailable(f"no agent in code runs here: {agent.implementation}")
            before = len(turn.tool_calls)
            return self._kept(await self._code_agents(turn, route.agent, agent), before)
        turn, speaker = _speaker(turn, mask)
        leading = turn.release.get(AgentConfig, speaker.slug)
        sub = turn.dialogue.sub_conversation
        if speaker.delegate is not None and sub is not None:
            leading = turn.release.find(AgentConfig, sub.coordinator) or leading
        engine = Engine(
            tools=self._tools,
            models=self._models,
            tool_info=self._tool_info,
            mask=mask,
            budget=leading.max_delegations,
            transactions=self._transactions,
            hops=self._hops_for(turn) if self._hops_for else leading.max_delegations,
        )
        before = len(turn.tool_calls)
        return self._kept(await self._passed(turn, engine, speaker), before)

    def _kept(self, turn: Turn, before: int) -> Turn:
        """Return the turn with its session's ledger of actions brought up to date."""
        if self._evidence_for is None:
            return turn
        done = [
            evidence
            for call in turn.tool_calls[before:]
            if call.action and call.status != "refused"
            if (evidence := self._evidence_for(turn, call)) is not None
        ]
        if not done:
            return turn
        return turn.evolve(dialogue=turn.dialogue.remember(*done))

    async def _passed(self, turn: Turn, engine: Engine, speaker: _Speaker) -> Turn:
        """Let the speaker answer; follow the word until somebody's answer is the customer's.

        Every request for a specialist is one of the engine's budget, so this ends.
        """
        while True:
            scene = _scene(turn, speaker)
            own = turn.route is not None and turn.route.agent == speaker.slug
            alone = own and speaker.delegate is None and not speaker.notes
            infos = engine.infos(turn, scene, tools=None if alone else scene.agent.tools)
            if alone and scene.agent.tool_use == "collect":
                turn = await engine.collect(turn, scene, infos)
                if draft := self._without_evidence(turn, scene, infos):
                    return turn.evolve(draft=draft)
            deadline = _deadline(speaker)
            desk = Desk(
                engine,
                turn.release,
                scene,
                specialist=speaker.delegate is not None,
                deadline=deadline,
            )
            done = await engine.run(turn, scene, infos, control=desk, deadline=deadline)
            turn = done.turn
            if turn.prepared is not None:
                text = "\n\n".join([*engine.spoken, turn.prepared.text])
                return turn.evolve(draft=replace(turn.prepared, text=text))
            following = _following(turn, engine, speaker, done)
            if following is None:
                return self._settled(turn, engine, scene, done)
            turn, speaker = following

    def _without_evidence(
        self, turn: Turn, scene: Scene, infos: Mapping[str, ToolInfo]
    ) -> Draft | None:
        """Return the draft that needs no model: evidence is required and there is none.

        It asks for a missing argument, at most ``MAX_ASKED`` times in a row; after that it is the
        tenant's own text, which ends the waiting. With nothing to ask it is the prompt's text.
        """
        route, prompt = turn.route, scene.prompt
        if route is None or not prompt.require_evidence or not route.tools:
            return None
        if any(call.ok for call in turn.tool_calls):
            return None
        question = _question(turn, infos)
        if not question or _answer_refused(turn):
            return Draft(text=prompt.no_evidence_text, agent=route.agent)
        if _asked_enough(turn, route, question):
            return Draft(text=self._texts_for(turn), agent=route.agent)
        return Draft(text=question, agent=route.agent, outcome="waiting")

    def _settled(self, turn: Turn, engine: Engine, scene: Scene, done: Conversation) -> Turn:
        reply, failure = done.reply, done.failure
        filtered = (
            reply.finish_reason == "content_filter"
            if reply is not None
            else failure is not None and failure.code == "content_filter"
        )
        if filtered:
            return self._refused(turn)
        text = plain_text(reply.text) if reply is not None else ""
        if text or engine.spoken:
            return _answered(turn, engine, scene, text)
        failure = failure or ModelFailed("the model's answer was empty", code="broken")
        if failure.code in VISIBLE_FAILURES:
            raise failure
        results = [call.result for call in turn.tool_calls if call.ok]
        text = compose(results, language=scene.prompt.language)
        if not text:
            raise failure
        turn = turn.decide(_model_failed(scene.agent.model_profile, failure))
        return turn.evolve(draft=Draft(text=text, agent=scene.slug))

    def _refused(self, turn: Turn) -> Turn:
        """End the turn with the operator's words: the same request would be filtered again."""
        text = self._refusal_for(turn)
        decision = Decision(phase="output", code=FILTERED, action="block", reason="provider filter")
        return turn.decide(decision).evolve(outcome=Blocked(text=text, code=FILTERED))


def _speaker(turn: Turn, mask: Mask) -> tuple[Turn, _Speaker]:
    """Return who has the word first, and the turn with what that changed.

    The specialist of an open sub-conversation, unless its turns or its time are used up; the
    coordinator, when that ended in an earlier attempt of this turn; else the route's agent.
    """
    route, sub = turn.route, turn.dialogue.sub_conversation
    assert route is not None
    if sub is None or not holds(turn):
        back = ended_for(turn)
        return turn, _Speaker(back or route.agent, coordinator_notes(turn, back) if back else ())
    delegate = delegate_of(turn.release.find(AgentConfig, sub.coordinator), sub)
    why = sub_used_up(turn, delegate, datetime.now(UTC))
    if why or turn.release.find(AgentConfig, sub.agent) is None:
        turn = sub_end(
            turn, status="needs_followup", error=why or "it is not in service any more", mask=mask
        )
        return turn, _Speaker(sub.coordinator, coordinator_notes(turn, sub.coordinator))
    return sub_counted(turn), _Speaker(sub.agent, specialist_notes(sub), delegate)


def _following(
    turn: Turn, engine: Engine, speaker: _Speaker, done: Conversation
) -> tuple[Turn, _Speaker] | None:
    """Return who speaks next and the turn, or ``None`` when the speaker's answer stands.

    What the one who gives the word away wrote itself is dropped (platform facts 14.2).
    """
    signal = done.ended
    if isinstance(signal, Signal) and signal.type == "REQUEST_SUB_CONVERSATION":
        leading = turn.release.get(AgentConfig, speaker.slug)
        delegate = specialists(leading)[signal.details["specialist_role"]]
        turn = sub_start(
            turn, coordinator=speaker.slug, delegate=delegate, signal=signal, mask=engine.mask
        )
        sub = turn.dialogue.sub_conversation
        assert sub is not None
        return turn, _Speaker(sub.agent, specialist_notes(sub), delegate)
    sub = turn.dialogue.sub_conversation
    if speaker.delegate is None or sub is None:
        return None
    if isinstance(signal, Signal):
        turn = sub_end(
            turn,
            status=str(signal.details["status"]),
            final_result=signal.details["final_result"],
            note=signal.details["message_to_coordinator"],
            mask=engine.mask,
        )
    elif failed := _failed(done, engine):
        turn = sub_end(turn, status="failed", error=failed, mask=engine.mask)
    else:
        return None
    return turn, _Speaker(sub.coordinator, coordinator_notes(turn, sub.coordinator))


def _failed(done: Conversation, engine: Engine) -> str:
    """Return why a specialist has no answer, "" when it has; filtered content ends the turn."""
    if done.failure is not None:
        return "" if done.failure.code == "content_filter" else f"no answer ({done.failure.code})"
    if done.reply is None or done.reply.finish_reason == "content_filter":
        return ""
    return "" if plain_text(done.reply.text) or engine.spoken else "no answer (empty)"


def _scene(turn: Turn, speaker: _Speaker) -> Scene:
    """Return what the speaker sees: a specialist its own slice, whoever leads the conversation."""
    agent = turn.release.get(AgentConfig, speaker.slug)
    sub = turn.dialogue.sub_conversation
    thread = sub.thread if speaker.delegate is not None and sub is not None else ""
    return Scene(
        slug=speaker.slug,
        agent=agent,
        prompt=turn.release.get(PromptConfig, agent.prompt),
        said=turn.text,
        memory=memory_of(turn, thread=thread),
        notes=speaker.notes,
        operation="agent.specialist" if thread else "agent.answer",
    )


def _deadline(speaker: _Speaker) -> float | None:
    if speaker.delegate is None:
        return None
    return asyncio.get_running_loop().time() + speaker.delegate.timeout_seconds


def _answered(turn: Turn, engine: Engine, scene: Scene, text: str) -> Turn:
    """Return the turn with its draft: what sub-agents told the customer, once, then the rest.

    What is left open is kept as a topic and said to be open. The words of a silent sub-agent are
    not used for it.
    """
    language = scene.prompt.language
    text = without_names(without_repeats(text, engine.spoken), engine.names)
    if ended_for(turn) == scene.slug:
        # The customer has read what the specialist said.
        heard = [m.text for m in turn.memory if m.thread and m.role == "assistant"]
        text = without_repeats(text, heard) or text
    left = still_open(engine, text)
    parts = [*engine.spoken, text]
    if said := [question.text for question in left if question.spoken]:
        parts.append(open_mention(said, language))
    elif left:
        parts.append(SAYINGS["open_other"][0 if language.lower().startswith("pt") else 1])
    if left:
        intent = turn.route.intent if turn.route is not None else ""
        kept = tuple(
            Topic(
                intent=intent,
                agent=scene.slug,
                text=question.text if question.spoken else turn.text,
                turn=turn.session.turn_number,
            )
            for question in left
        )
        topics = tuple(dict.fromkeys((*turn.dialogue.topics, *kept)))
        turn = turn.evolve(dialogue=turn.dialogue.evolve(topics=topics))
    answer = "\n\n".join(part for part in parts if part)
    return turn.evolve(draft=Draft(text=answer, agent=scene.slug))


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
