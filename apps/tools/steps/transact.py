"""Opens, moves and ends the action of a turn, after routing and before any agent speaks."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from apps.runtime.dialogue import Topic
from apps.runtime.turn import Turn
from apps.tools.config import ToolConfig
from apps.tools.mapping import extractor_of
from apps.tools.model_extraction import ModelExtraction
from apps.tools.transactions.machine import Facts, Transactions
from apps.tools.transactions.reading import asked_of, opened
from apps.tools.transactions.values import Asked, values_before, values_said

MAX_TOPICS = 8
INTERRUPTIONS = {"HUMAN_HANDOFF": "human_handoff", "END_SESSION": "end_session"}


class Transact:
    """Moves ``turn.dialogue.transaction``; what the runtime itself says is ``turn.prepared``.

    A route of method ``transaction`` answers the open one. Any other route ends it: the customer
    went on to something else, and nothing runs that was not confirmed. Without an open one, an
    action that the message names is opened, with what rules and then ``extraction`` read of its
    arguments. Topics that the route leaves for later are kept.
    """

    def __init__(
        self, transactions: Transactions, facts: Facts, extraction: ModelExtraction
    ) -> None:
        self._transactions = transactions
        self._facts = facts
        self._extraction = extraction

    async def __call__(self, turn: Turn) -> Turn:
        route = turn.route
        if route is None:
            return turn
        turn = _topics_kept(turn)
        if turn.dialogue.transaction is not None:
            if route.method == "transaction":
                return await self._transactions.answer(turn)
            told = str(route.metadata.get("transaction_interruption", "intent_shift"))
            reason = INTERRUPTIONS.get(route.control, told)
            turn = await self._transactions.cancel(turn, reason)
        if route.control or route.method in ("fallback", "clarify", "literal", "delegation"):
            return turn
        slug = self._facts.action_of(turn)
        tool = turn.release.find(ToolConfig, slug)
        if tool is None:
            return turn
        asked = asked_of(turn, tool, opened(tool, slug))
        sense = self._facts.sense_of(turn.text)
        values = values_said(asked, turn.text, sense, extractor_of(turn, slug))
        still = [name for name in asked.open if name not in values]
        if still:
            turn, read = await self._extraction.pending(turn, slug, still)
            values = {**read, **values}
        before = self._said_before(turn, tool, asked, values)
        return await self._transactions.start(turn, slug, values, before)

    def _said_before(
        self, turn: Turn, tool: ToolConfig, asked: Asked, values: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return what earlier messages say of the arguments that ``values`` leaves open.

        Only of an action that is put to the customer, who sees the values before it runs; nothing
        from before the last action ended, and nothing said to a specialist.
        """
        if not tool.confirmation_required:
            return {}
        last = turn.dialogue.last_transaction
        since = turn.session.turn_number - 1 - (last.ended_turn if last else 0)
        texts = [line.text for line in turn.memory if line.role == "user" and not line.thread]
        newest = texts[::-1][: max(0, since)]
        still = tuple(name for name in asked.open if name not in values)
        return values_before(replace(asked, open=still), newest, self._facts.sense_of)


def _topics_kept(turn: Turn) -> Turn:
    """Add what the route found but did not take on; the one that is taken up now is no topic."""
    route = turn.route
    if route is None:
        return turn
    taken = {route.intent, *(part.intent for part in route.plan)}
    topics = [topic for topic in turn.dialogue.topics if topic.intent not in taken]
    for found in route.metadata.get("topics", ()):
        topic = Topic(
            intent=str(found.get("intent", "")),
            agent=str(found.get("agent", "")),
            text=str(found.get("text", "")),
            turn=turn.session.turn_number,
        )
        if topic.intent not in {kept.intent for kept in topics}:
            topics.append(topic)
    kept_topics = tuple(topics[-MAX_TOPICS:])
    if kept_topics == turn.dialogue.topics:
        return turn
    return turn.evolve(dialogue=turn.dialogue.evolve(topics=kept_topics))
