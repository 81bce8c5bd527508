"""Runs agents within one pass of the agent step, all over the same ports, mask and budget."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from apps.agents.config import AgentConfig
from apps.agents.evidence import Mask
from apps.agents.history import Scene, calls_of, history_open
from apps.agents.loop import Asking, Control, Conversation, converse
from apps.agents.tooling import (
    ToolInfo,
    ToolInfoLookup,
    action_open,
    allowed_tools,
    collectable,
)
from apps.runtime.ports import ModelFailed, ModelPort, ToolPort, ToolRequest, TransactionPort
from apps.runtime.release import Release
from apps.runtime.turn import Turn


@dataclass(frozen=True)
class OpenQuestion:
    """What a sub-agent left open. ``after``: how many delegations there were by then."""

    text: str
    spoken: bool
    after: int


@dataclass
class Engine:
    """What all agents of one pass share.

    ``budget`` is how many delegations there may be, ``requests`` what was asked in each of them,
    ``hops`` how often the message may still go to a specialist.
    ``spoken`` is what sub-agents told the customer themselves, ``open`` what they left open,
    ``told`` the answers that equal questions get again, ``names`` what no customer should read.
    """

    tools: ToolPort
    models: ModelPort
    tool_info: ToolInfoLookup
    mask: Mask
    budget: int
    hops: int = 1
    transactions: TransactionPort | None = None
    requests: list[str] = field(default_factory=list)
    spoken: list[str] = field(default_factory=list)
    open: list[OpenQuestion] = field(default_factory=list)
    told: dict[tuple[str, str], str] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    @property
    def left(self) -> int:
        """How many delegations there may still be."""
        return self.budget - len(self.requests)

    def infos(
        self, turn: Turn, scene: Scene, *, tools: Sequence[str] | None, reads_only: bool = False
    ) -> dict[str, ToolInfo]:
        """Return the tools ``scene`` may use: the route's that its agent lists, or ``tools``."""
        inner = _as(turn, scene.slug, tools)
        found = allowed_tools(inner, scene.agent, scene.prompt, self.tool_info)
        return {s: i for s, i in found.items() if not (reads_only and i.action)}

    async def run(
        self,
        turn: Turn,
        scene: Scene,
        infos: Mapping[str, ToolInfo],
        *,
        control: Control | None = None,
        proposes: bool = True,
        deadline: float | None = None,
    ) -> Conversation:
        """Let the agent of ``scene`` answer, and return how that ended.

        An agent that collects has its tools called first; one that asks is offered ``infos``. The
        returned turn has the route it came with. ``proposes``: what must be confirmed may be put to
        the customer.
        """
        route = turn.route
        speaker = "" if route is not None and route.agent == scene.slug else scene.slug
        if scene.agent.tool_use == "collect":
            try:
                turn = await self.collect(turn, scene, infos, deadline)
            except TimeoutError:
                failure = ModelFailed("its tools did not answer in time", code="timeout")
                return Conversation(turn, failure=failure)
            infos = {}
        else:
            infos = self._offered(turn, infos)
        inner = _as(turn, scene.slug, tuple(infos))
        offered = {*infos, *(control.offers(last=False) if control is not None else ())}
        history = history_open(inner, scene, calls_of(turn, scene.slug), self.mask, allowed=offered)
        conversation = await converse(
            inner,
            history,
            Asking(
                profile=scene.agent.model_profile,
                infos=infos,
                max_rounds=scene.agent.max_tool_rounds,
                tools=self.tools,
                models=self.models,
                mask=self.mask,
                operation=scene.operation,
                speaker=speaker,
                control=control,
                transactions=self.transactions if proposes else None,
                deadline=deadline,
            ),
        )
        return replace(conversation, turn=conversation.turn.evolve(route=route))

    async def collect(
        self,
        turn: Turn,
        scene: Scene,
        infos: Mapping[str, ToolInfo],
        deadline: float | None = None,
    ) -> Turn:
        """Call the read-only tools at once, then the one action that was named.

        A tool the agent already called in this turn (an earlier attempt) is not called again. Raises
        ``TimeoutError`` when the reads are not back by the ``deadline``; an action is waited for.
        """
        called = {call.tool for call in calls_of(turn, scene.slug)}
        reads, action = collectable(
            scene.said, [info for info in infos.values() if info.slug not in called]
        )
        async with asyncio.timeout_at(deadline):
            turn = await self._call(turn, scene, reads)
        if action is not None and action_open(action, turn.tool_calls, infos):
            turn = await self._call(turn, scene, [action])
        return turn

    async def _call(self, turn: Turn, scene: Scene, infos: Sequence[ToolInfo]) -> Turn:
        if not infos:
            return turn
        route = turn.route
        speaker = "" if route is not None and route.agent == scene.slug else scene.slug
        first = len(turn.tool_calls)
        requests = [
            ToolRequest(tool=info.slug, ordinal=first + place, agent=speaker)
            for place, info in enumerate(infos)
        ]
        calls = await self.tools.call(turn, requests)
        marked = [replace(call, agent=call.agent or speaker) for call in calls]
        return turn.evolve(tool_calls=(*turn.tool_calls, *marked))

    def _offered(self, turn: Turn, infos: Mapping[str, ToolInfo]) -> dict[str, ToolInfo]:
        """Return the tools a model is offered, without the arguments this turn fills itself."""
        shown: dict[str, Any] = {
            tool["name"]: tool["parameters"] for tool in self.tools.functions(turn, [*infos])
        }
        return {
            slug: replace(info, json_schema=shown[slug])
            for slug, info in infos.items()
            if slug in shown
        }


def _as(turn: Turn, slug: str, tools: Sequence[str] | None) -> Turn:
    """Return ``turn`` as if it were routed to ``slug`` with ``tools`` (``None``: the route's)."""
    route = turn.route
    assert route is not None
    if tools is None:
        return turn if route.agent == slug else turn.evolve(route=replace(route, agent=slug))
    return turn.evolve(route=replace(route, agent=slug, tools=tuple(tools)))


def agent_find(release: Release, slug: str) -> AgentConfig | None:
    """Return the agent ``slug`` of ``release`` when it may be asked."""
    agent = release.find(AgentConfig, slug)
    return agent if agent is not None and agent.may_answer else None
