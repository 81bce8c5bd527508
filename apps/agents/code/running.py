"""Runs an agent in code as the agent step: its answer becomes a draft, its failure one of the turn. Pure."""

import asyncio
import contextvars
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from apps.agents.code.base import Answer, CodeAgent
from apps.agents.code.caching import AnswerCache, NoAnswerCache
from apps.agents.code.context import context_of
from apps.agents.code.facade import AgentRuntime
from apps.agents.code.knowledge import NoKnowledge, RetrievalPort
from apps.agents.code.work import Work
from apps.agents.config import AgentConfig, PromptConfig
from apps.agents.evidence import MaskFor, vault_mask
from apps.agents.history import Scene, memory_of
from apps.agents.tooling import ToolInfoLookup
from apps.runtime.outcomes import Failed
from apps.runtime.ports import LeaseLost, ModelPort, ToolPort, TransactionPort
from apps.runtime.turn import Draft, Turn

FAILED = "CODE_AGENT_ERROR"
MAX_ANSWER_CHARS = 20_000
GROWS = ("tool_calls", "model_calls", "signals", "decisions", "prepared", "dialogue")
"""What of a turn an agent's run may add to; everything else stays as it came."""

FindClass = Callable[[str], type[CodeAgent]]
"""The class that an implementation's name stands for. Raises ``LookupError`` with the reason."""


class NoAnswer(ValueError):
    """The agent returned nothing that can be said."""


class CodeAgentExit(RuntimeError):
    """The agent tried to end the process."""


@dataclass(frozen=True)
class CodeAgentParts:
    """What an installation gives to agents in code: their classes, kept answers, their time."""

    find: FindClass
    cache: AnswerCache | None = None
    seconds: float = 60.0


class CodeAgentRunner:
    """Called with a routed turn, the agent's slug and its record; returns the turn with a draft.

    ``find`` gives the class of an implementation, ``failure_text`` the tenant's words for a turn
    that failed, ``on_error`` hears of it under the error id that the customer is given.
    ``transactions`` puts the question for an action that has to be confirmed.
    """

    def __init__(
        self,
        tools: ToolPort,
        models: ModelPort,
        *,
        find: FindClass,
        tool_info: ToolInfoLookup,
        failure_text: Callable[[Turn], str],
        on_error: Callable[[Turn, str, BaseException], None] | None = None,
        mask_for: MaskFor | None = None,
        transactions: TransactionPort | None = None,
        knowledge: RetrievalPort | None = None,
        cache: AnswerCache | None = None,
        seconds: float = 60.0,
    ) -> None:
        self._tools = tools
        self._models = models
        self._find = find
        self._tool_info = tool_info
        self._failure_text = failure_text
        self._on_error = on_error
        self._mask_for = mask_for
        self._transactions = transactions
        self._knowledge = knowledge or NoKnowledge()
        self._cache = cache or NoAnswerCache()
        self._seconds = seconds

    async def __call__(self, turn: Turn, slug: str, agent: AgentConfig) -> Turn:
        """Return the turn with the agent's draft, or with ``Failed``. Raises ``LeaseLost``."""
        work: Work | None = None
        try:
            made = self._find(agent.implementation)
            work = self._work(turn, slug, agent, made)
            answer = await self._run(made, work)
        except LeaseLost:
            raise
        except Exception as error:
            if work is not None and work.lost is not None:
                raise work.lost from None
            return self._failed(_grown(turn, work), error)
        if work.lost is not None:
            raise work.lost
        grown = _grown(turn, work)
        if grown.prepared is not None:
            # What has to be asked before an action is asked in the platform's own words.
            return grown.evolve(draft=grown.prepared)
        outcome = "waiting" if answer.waiting else "answered"
        return grown.evolve(draft=Draft(text=answer.text, agent=slug, outcome=outcome))

    def _work(self, turn: Turn, slug: str, agent: AgentConfig, made: type[CodeAgent]) -> Work:
        prompt = turn.release.get(PromptConfig, agent.prompt)
        mask = vault_mask(turn, self._mask_for(turn) if self._mask_for else None)
        return Work(
            turn=turn,
            scene=Scene(
                slug=slug, agent=agent, prompt=prompt, said=turn.text, memory=memory_of(turn)
            ),
            defaults=made.default_tools_by_intent,
            context=context_of(turn, slug, agent, prompt, mask),
            tools=self._tools,
            models=self._models,
            tool_info=self._tool_info,
            mask=mask,
            knowledge=self._knowledge,
            cache=self._cache,
            transactions=self._transactions,
        )

    async def _run(self, made: type[CodeAgent], work: Work) -> Answer:
        """Run the agent within its time and in a context of its own, in which no tenant is open."""

        async def run() -> Answer | str:
            try:
                return await made().run(AgentRuntime(work))
            except (SystemExit, KeyboardInterrupt, GeneratorExit) as error:
                raise CodeAgentExit(type(error).__name__) from error

        async with asyncio.timeout(self._seconds):
            said = await asyncio.create_task(run(), context=contextvars.Context())
        answer = Answer(said) if isinstance(said, str) else said
        if not isinstance(answer, Answer) or not isinstance(answer.text, str):
            raise NoAnswer("run() returns an Answer or its text")
        text = answer.text.strip()[:MAX_ANSWER_CHARS]
        if not text and work.turn.prepared is None:
            raise NoAnswer("run() returned an empty answer")
        return Answer(text=text, waiting=answer.waiting)

    def _failed(self, turn: Turn, error: Exception) -> Turn:
        error_id = uuid.uuid4().hex
        if self._on_error is not None:
            self._on_error(turn, error_id, error)
        failed = Failed(text=self._failure_text(turn), code=FAILED, error_id=error_id)
        return turn.evolve(outcome=failed)


def _grown(turn: Turn, work: Work | None) -> Turn:
    """Return ``turn`` with what the run added; nothing else of it can have changed."""
    if work is None:
        return turn
    return turn.evolve(**{name: getattr(work.turn, name) for name in GROWS})
