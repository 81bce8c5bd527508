"""Brings back what was said before."""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from apps.conversations.steps.identify import CHANGED
from apps.runtime.ports import HistoryPort
from apps.runtime.turn import ChatMessage, Turn

ELLIPSIS = "…"


class MemoryPolicy(Protocol):
    """How much of the conversation is seen again; an agent's memory policy has this shape."""

    @property
    def strategy(self) -> str: ...

    @property
    def recent_messages(self) -> int: ...

    @property
    def max_chars_per_message(self) -> int: ...


class Recall:
    """Sets ``turn.memory`` to the last messages of the session, oldest first.

    The window begins with a customer's message: an answer without its question is left out. When
    the customer changed within the session, what the former one said is not recalled; neither is
    anything from before the conversation ended or went to a person.
    """

    def __init__(self, history: HistoryPort, policy_for: Callable[[Turn], MemoryPolicy]) -> None:
        self._history = history
        self._policy_for = policy_for

    async def __call__(self, turn: Turn) -> Turn:
        policy = self._policy_for(turn)
        before = turn.session.dialogue
        if before.control or before.boundary:
            # It ended, a person had it, or a flow closed: what was asked for then is no request now
            # (field case 3.10).
            dialogue = turn.dialogue.evolve(control="", boundary=False)
            if before.control:
                dialogue = dialogue.evolve(since=turn.session.turn_number)
            return turn.evolve(memory=(), dialogue=dialogue)
        if policy.strategy == "none" or policy.recent_messages <= 0:
            return turn.evolve(memory=())
        if any(decision.code == CHANGED for decision in turn.decisions):
            return turn.evolve(memory=())
        # A turn has two messages; a conversation that began anew has none from before.
        said = 2 * max(0, turn.session.turn_number - before.since) if before.since else None
        limit = policy.recent_messages if said is None else min(policy.recent_messages, said)
        recent = await self._history.recent(turn, limit)
        return turn.evolve(memory=window(recent, policy))


def window(messages: tuple[ChatMessage, ...], policy: MemoryPolicy) -> tuple[ChatMessage, ...]:
    """Return the last of ``messages`` that ``policy`` allows, long ones cut, from a question on."""
    kept = messages[-policy.recent_messages :]
    first = next((i for i, message in enumerate(kept) if message.role == "user"), len(kept))
    limit = policy.max_chars_per_message
    return tuple(replace(message, text=_cut(message.text, limit)) for message in kept[first:])


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - len(ELLIPSIS)] + ELLIPSIS
