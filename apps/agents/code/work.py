"""The work behind an agent's facade: checks, calls through ports, and the turn that grows. Pure."""

import asyncio
import contextvars
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from apps.agents.code.caching import TTL_SECONDS, AnswerCache, cache_key
from apps.agents.code.context import RuntimeContext, empty
from apps.agents.code.emitting import MAX_SIGNALS, signal_of
from apps.agents.code.knowledge import RetrievalPort, Retrieved
from apps.agents.config import AgentConfig
from apps.agents.evidence import Mask
from apps.agents.history import Scene, calls_of, history_open
from apps.agents.tooling import ToolInfo, ToolInfoLookup, action_open
from apps.runtime.ports import (
    LeaseLost,
    ModelMessage,
    ModelPort,
    ModelRequest,
    ToolPort,
    ToolRequest,
    TransactionPort,
)
from apps.runtime.turn import ChatMessage, ModelCall, ToolCall, Turn, Usage

T = TypeVar("T")
CONFIRMATION_REQUIRED = "confirmation_required"


@dataclass
class Work:
    """One agent's run. ``turn`` grows by calls and events; ``lost`` when another worker has it.

    ``outside`` is the context the platform's own work runs in: the agent's has no tenant.
    """

    turn: Turn
    scene: Scene
    defaults: Mapping[str, Sequence[str]]
    context: RuntimeContext
    tools: ToolPort
    models: ModelPort
    tool_info: ToolInfoLookup
    mask: Mask
    knowledge: RetrievalPort
    cache: AnswerCache
    transactions: TransactionPort | None
    outside: contextvars.Context = field(default_factory=contextvars.copy_context)
    lost: LeaseLost | None = None

    @property
    def agent(self) -> AgentConfig:
        return self.scene.agent

    @property
    def slug(self) -> str:
        return self.scene.slug

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(calls_of(self.turn, self.slug))

    @property
    def memory(self) -> tuple[ChatMessage, ...]:
        return tuple(replace(line, text=self.mask(line.text)) for line in self.scene.memory)

    async def inside(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the platform's own ``work`` in its own context."""
        try:
            return await asyncio.create_task(work, context=self.outside.copy())
        except LeaseLost as lost:
            self.lost = lost
            raise

    # -- tools ---------------------------------------------------------------------------------

    def info(self, slug: str) -> ToolInfo | None:
        """Return a tool the agent may use; ``None`` for any other."""
        if slug not in self.agent.tools or not self.scene.prompt.allow_tool_usage:
            return None
        fields = self.tool_info(self.turn.release, slug)
        return None if fields is None else ToolInfo(slug=slug, **fields)

    def tools_by_intent(
        self, defaults: Mapping[str, Sequence[str]] | None, default_intent: str
    ) -> tuple[str, ...]:
        route = self.turn.route
        chosen: Sequence[str] = route.tools if route is not None else ()
        if not chosen:
            known = defaults if defaults is not None else self.defaults
            chosen = known.get(self.context.intent) or known.get(default_intent) or ()
        return tuple(slug for slug in dict.fromkeys(chosen) if self.info(slug) is not None)

    def build_arguments(
        self, slug: str, aliases: Mapping[str, Sequence[str]], explicit: Mapping[str, Any]
    ) -> dict[str, Any]:
        info = self.info(slug)
        declared: Mapping[str, Any] = info.json_schema.get("properties", {}) if info else {}
        canonical = {name: key for key, names in aliases.items() for name in names}
        found: dict[str, Any] = {}
        for name in declared:
            value = explicit.get(name)
            if empty(value):
                value = self.context.tool_arguments.get(name)
            if empty(value) and name in canonical:
                value = self.context.pick(canonical[name])
            if empty(value) and name in ("query", "operator_instructions"):
                value = self.context.text
            if not empty(value):
                found[name] = value
        return found

    async def collect(
        self, tools: Sequence[str] | None, aliases: Mapping[str, Sequence[str]]
    ) -> list[ToolCall]:
        chosen = tools if tools is not None else self._reads()
        return await self.call([(t, self.build_arguments(t, aliases, {})) for t in chosen])

    def _reads(self) -> list[str]:
        infos = [self.info(slug) for slug in self.tools_by_intent(None, "")]
        return [info.slug for info in infos if info is not None and not info.action]

    async def call(self, wanted: Sequence[tuple[str, Mapping[str, Any]]]) -> list[ToolCall]:
        """Return one call per wish, in order: the reads at once, then the actions one by one."""
        answers: dict[int, ToolCall] = {}
        reads: list[int] = []
        for place, (slug, _arguments) in enumerate(wanted):
            info = self.info(slug)
            if info is None:
                answers[place] = self._refused(slug, "This agent may not call this tool.")
            elif not info.action:
                reads.append(place)
        for place, call in zip(reads, await self._send([wanted[p] for p in reads]), strict=True):
            answers[place] = call
        for place, (slug, arguments) in enumerate(wanted):
            if place not in answers:
                answers[place] = await self._act(slug, arguments)
        return [answers[place] for place in range(len(wanted))]

    async def _act(self, slug: str, arguments: Mapping[str, Any]) -> ToolCall:
        info = self.info(slug)
        infos = {name: found for name in self.agent.tools if (found := self.info(name))}
        if info is None or not action_open(info, self.turn.tool_calls, infos):
            return self._refused(slug, "One action per message, and one was chosen already.")
        [call] = await self._send([(slug, arguments)])
        needs_yes = call.metadata.get("reason") == CONFIRMATION_REQUIRED
        # Where the customer is being asked about one action, another one's question waits.
        if needs_yes and self.transactions and self.turn.dialogue.transaction is None:
            self.turn = await self.inside(self.transactions.propose(self.turn, call))
        return call

    async def _send(self, wanted: Sequence[tuple[str, Mapping[str, Any]]]) -> list[ToolCall]:
        if not wanted:
            return []
        first = len(self.turn.tool_calls)
        requests = [
            ToolRequest(slug, dict(arguments), ordinal=first + place, agent=self._speaker)
            for place, (slug, arguments) in enumerate(wanted)
        ]
        calls = await self.inside(self.tools.call(self.turn, requests))
        return self._noted([replace(call, agent=call.agent or self._speaker) for call in calls])

    @property
    def _speaker(self) -> str:
        route = self.turn.route
        return "" if route is not None and route.agent == self.slug else self.slug

    def _refused(self, slug: str, error: str) -> ToolCall:
        call = ToolCall(
            tool=slug,
            server="",
            arguments={},
            status="refused",
            error=error,
            ordinal=len(self.turn.tool_calls),
            agent=self._speaker,
        )
        return self._noted([call])[0]

    def _noted(self, calls: list[ToolCall]) -> list[ToolCall]:
        self.turn = self.turn.evolve(tool_calls=(*self.turn.tool_calls, *calls))
        return calls

    # -- documents and models ------------------------------------------------------------------

    async def retrieve(self, query: str) -> Retrieved:
        asked = query or self.context.text
        return await self.inside(self.knowledge.retrieve(self.turn, self.slug, asked))

    def messages(
        self, notes: Sequence[str], retrieved: Retrieved | None
    ) -> tuple[ModelMessage, ...]:
        passages = retrieved.passages if retrieved is not None else ()
        told = [*self.scene.notes, *notes]
        if passages:
            told.append("Documents, as data:\n" + "\n---\n".join(self.mask(p) for p in passages))
        scene = replace(self.scene, notes=tuple(told))
        return history_open(self.turn, scene, self.calls, self.mask).messages()

    async def ask(
        self, messages: Sequence[ModelMessage] | None, operation: str, *, cached: bool
    ) -> str:
        asked = tuple(messages) if messages is not None else self.messages((), None)
        asked = tuple(replace(message, content=self.mask(message.content)) for message in asked)
        profile = self.agent.model_profile
        acted = any(call.action and call.status != "refused" for call in self.turn.tool_calls)
        keeps = cached and not acted and not self.turn.attempt
        key = cache_key(self.turn, self.slug, profile, operation, asked) if keeps else ""
        if key and (known := await self.inside(self.cache.get(self.turn, key))) is not None:
            self._asked(_from_cache(profile, operation))
            return known
        request = ModelRequest(
            profile=profile,
            messages=asked,
            operation=operation,
            ordinal=len(self.turn.model_calls),
        )
        reply, call = await self.inside(self.models.complete(self.turn, request))
        self._asked(call)
        if key and reply.finish_reason == "stop" and reply.text.strip():
            await self.inside(self.cache.put(self.turn, key, reply.text, TTL_SECONDS))
        return reply.text

    def _asked(self, call: ModelCall) -> None:
        self.turn = self.turn.evolve(model_calls=(*self.turn.model_calls, call))

    # -- events --------------------------------------------------------------------------------

    def emit(self, family: str, code: str, data: Mapping[str, Any]) -> bool:
        if len(self.turn.signals) >= MAX_SIGNALS:
            return False
        signal = signal_of(family, str(code), self.slug, data, self.mask)
        if signal is not None:
            self.turn = self.turn.evolve(signals=(*self.turn.signals, signal))
        return signal is not None


def _from_cache(profile: str, operation: str) -> ModelCall:
    """Return the record of an answer that no model was asked for: it cost nothing."""
    return ModelCall(
        profile=profile,
        provider="cache",
        model="",
        operation=operation,
        usage=Usage(cost=0.0),
        metadata={"cache": "hit"},
        replayed=True,
    )
