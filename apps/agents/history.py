"""The history compiler: builds what each model sees, of whom, and in which order.

Every request to a model is made here: the agent's own step, a consultation, a scoped sub-agent, a
specialist of a sub-conversation, an agent in code. A ``Scene`` says who looks and at which part of
the conversation; a ``History`` is one request that grows by whole rounds, so that a call is never
without its result. ``history_check`` states the rules and is asked before each request.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from apps.agents.config import AgentConfig, PromptConfig
from apps.agents.evidence import Mask, evidence_messages
from apps.agents.prompting import system_text
from apps.runtime.ports import ModelMessage, ModelToolCall
from apps.runtime.turn import ChatMessage, ToolCall, Turn

_GAP = "\n\n"


class BrokenHistory(ValueError):
    """A request that no provider takes, or that shows an agent what is not its own."""


@dataclass(frozen=True)
class Scene:
    """What one agent is to see.

    ``said`` is the last message it has to answer: the customer's, or what another agent asks of it.
    ``memory`` are earlier messages of its slice. ``notes`` are told in the system's voice.
    ``ledger``: whether it is told which actions this conversation has carried out. ``guided``:
    whether it is told what was wrong with the turn's previous answer. ``operation`` names its
    model calls.
    """

    slug: str
    agent: AgentConfig
    prompt: PromptConfig
    said: str
    memory: tuple[ChatMessage, ...] = ()
    notes: tuple[str, ...] = ()
    ledger: bool = True
    guided: bool = True
    operation: str = "agent.answer"


@dataclass(frozen=True)
class Exchange:
    """One call of a function and the one result it got."""

    id: str
    name: str
    arguments: str
    content: str


class History:
    """One chat request that grows; it can only grow by whole rounds.

    ``allowed``: names of functions whose calls may stand in it; ``None`` for any.
    """

    def __init__(
        self, opening: Sequence[ModelMessage], *, allowed: Iterable[str] | None = None
    ) -> None:
        self._messages = list(opening)
        self._allowed = None if allowed is None else set(allowed)

    @property
    def ids(self) -> set[str]:
        """The ids of all calls so far: a new call needs another one."""
        return {call.id for message in self._messages for call in message.tool_calls}

    def add_round(self, text: str, exchanges: Sequence[Exchange]) -> None:
        """Append a reply that called functions, and the result of each call."""
        if self._allowed is not None:
            # A function there is not was answered as such; its made-up name may stand.
            self._allowed |= {exchange.name for exchange in exchanges}
        asked = tuple(ModelToolCall(e.id, e.name, e.arguments) for e in exchanges)
        self._messages.append(ModelMessage("assistant", text, tool_calls=asked))
        self._messages.extend(
            ModelMessage("tool", e.content, tool_call_id=e.id, name=e.name) for e in exchanges
        )

    def add_reminder(self, text: str, instruction: str) -> None:
        """Append a reply without calls, and what is wanted of the next one."""
        self._messages.append(ModelMessage("assistant", text.strip() or "…"))
        self._messages.append(ModelMessage("user", instruction))

    def messages(self) -> tuple[ModelMessage, ...]:
        """Return the request as it stands. Raises ``BrokenHistory``."""
        messages = tuple(self._messages)
        history_check(messages, allowed=self._allowed)
        return messages


def history_open(
    turn: Turn,
    scene: Scene,
    calls: Sequence[ToolCall],
    mask: Mask,
    *,
    allowed: Iterable[str] | None = None,
) -> History:
    """Return the request that ``scene`` begins with: system, memory, what was said, ``calls``.

    ``calls`` are the scene's own finished calls (``calls_of``). ``mask`` is applied to every text
    but the tenant's own prompt. The turn must be routed.
    """
    evidence = evidence_messages(calls, mask)
    names = None
    if allowed is not None:
        names = {*allowed, *(call.name for message in evidence for call in message.tool_calls)}
    opening = (
        ModelMessage("system", system_text(turn, scene, mask)),
        *_alternating(scene.memory, mask(scene.said), mask),
        *evidence,
    )
    return History(opening, allowed=names)


def _alternating(memory: Sequence[ChatMessage], said: str, mask: Mask) -> list[ModelMessage]:
    """Return ``memory`` and ``said`` as customer and assistant in turn, beginning with the customer.

    Answers whose question is not there are left out: a window is cut between turns only.
    """
    lines: list[ModelMessage] = []
    said = said if said.strip() else "…"
    for line in memory:
        text = mask(line.text)
        if not text.strip() or (not lines and line.role == "assistant"):
            continue
        if lines and lines[-1].role == line.role:
            lines[-1] = ModelMessage(line.role, f"{lines[-1].content}{_GAP}{text}")
        else:
            lines.append(ModelMessage(line.role, text))
    if lines and lines[-1].role == "user":
        said = f"{lines.pop().content}{_GAP}{said}"
    return [*lines, ModelMessage("user", said)]


def calls_of(turn: Turn, agent: str) -> list[ToolCall]:
    """Return the calls of this turn that ``agent`` made: nobody is shown another one's."""
    answering = turn.route.agent if turn.route is not None else ""
    return [call for call in turn.tool_calls if (call.agent or answering) == agent]


def memory_of(turn: Turn, *, thread: str = "") -> tuple[ChatMessage, ...]:
    """Return the earlier messages that may be seen: of ``thread`` alone, or of all there is.

    Who leads the conversation sees what the customer saw; a specialist its own slice. Nothing is
    remembered across the end of a flow that closed with the last turn, nor from before a
    conversation that was given away or ended and now begins anew.
    """
    before = turn.session.dialogue
    if before.boundary or before.control:
        return ()
    if thread:
        return tuple(message for message in turn.memory if message.thread == thread)
    return turn.memory


def history_check(messages: Sequence[ModelMessage], *, allowed: set[str] | None = None) -> None:
    """Raise ``BrokenHistory`` unless every provider takes ``messages``.

    One system message, first. Then the customer; nobody speaks twice in a row. Each call has an id
    of its own and exactly one result, right after the message that made it; no other results.
    With ``allowed``, only those functions are called.
    """
    if not messages or messages[0].role != "system":
        raise BrokenHistory("the first message is the system's")
    seen: set[str] = set()
    open_ids: list[str] = []
    last = "system"
    for message in messages[1:]:
        if message.role == "tool":
            if not open_ids or message.tool_call_id != open_ids.pop(0):
                raise BrokenHistory(f"a result without its call: {message.tool_call_id!r}")
            last = "tool"
            continue
        if open_ids:
            raise BrokenHistory(f"a call without its result: {open_ids[0]!r}")
        _check_speaker(message, last)
        for call in message.tool_calls:
            if not call.id or call.id in seen:
                raise BrokenHistory(f"a call's id twice: {call.id!r}")
            if allowed is not None and call.name not in allowed:
                raise BrokenHistory(f"a call of somebody else's function: {call.name!r}")
            seen.add(call.id)
            open_ids.append(call.id)
        last = message.role
    if open_ids:
        raise BrokenHistory(f"a call without its result: {open_ids[0]!r}")
    if last not in ("user", "tool"):
        raise BrokenHistory("there is nothing to answer")


def _check_speaker(message: ModelMessage, last: str) -> None:
    if message.role == "system" or message.role == last:
        raise BrokenHistory(f"{message.role} speaks twice in a row, or out of place")
    if message.role == "user" and last == "tool":
        raise BrokenHistory("the customer speaks before results were answered")
    if message.role == "assistant" and last == "system":
        raise BrokenHistory("an answer without a question")
    if message.role != "assistant" and message.tool_calls:
        raise BrokenHistory("only an assistant calls functions")
