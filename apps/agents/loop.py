"""The model asks, tools answer, until the model answers the customer.

What a model writes is a wish. Whether a tool runs is decided here from the release (allow-list,
confirmation, one action per turn) and again by the tool port (arguments, policy). Other agents are
asked through functions too; who they are and what becomes of it is a ``Control``'s to say.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from apps.agents.arguments import ArgumentsInvalid, arguments_parse
from apps.agents.evidence import Mask, tool_content, wire_name
from apps.agents.history import Exchange, History
from apps.agents.tooling import Offers, ToolInfo, action_open, is_action
from apps.runtime.canonical import canonical_json
from apps.runtime.ports import (
    ModelFailed,
    ModelPort,
    ModelReply,
    ModelRequest,
    ModelToolCall,
    ToolPort,
    ToolRequest,
    TransactionPort,
)
from apps.runtime.turn import Decision, ModelCall, ToolCall, Turn

MAX_CALLS_PER_REPLY = 8
# The same call failing twice will fail a third time (field case 1.12).
MAX_SAME_FAILURES = 2
# Beyond this a reply's calls are not even answered: no model needs so many, and each is recorded.
MAX_CALLS_ANSWERED = 32
# What a checked call's ``metadata["reason"]`` says when nothing is missing (``ToolPort.check``).
CONFIRM, READY = "confirmation_required", "ready"


@dataclass(frozen=True)
class Taken:
    """What became of a function that is not a tool.

    ``content`` is what the model reads. ``ended``: the exchange is over, with this; then the model
    reads nothing any more. Not ``ok``: the function was used wrongly and another one may be taken.
    """

    turn: Turn
    content: str = ""
    ok: bool = True
    ended: Any = None


class Control(Protocol):
    """Functions of a model that ask other agents, or end its part."""

    def offers(self, *, last: bool) -> Mapping[str, ToolInfo]:
        """Return what is offered now; ``last``: in the one request after which there is none."""
        ...

    async def take(self, turn: Turn, name: str, arguments: Mapping[str, Any], said: str) -> Taken:
        """Do what the offered function ``name`` is for. ``said`` is the text of the same reply."""
        ...

    def reminder(self, said: str) -> str:
        """Return what to tell a model that wants to end with ``said``; "" to let it end."""
        ...


@dataclass(frozen=True)
class Conversation:
    """How the exchange ended: the model's ``reply``, the ``failure`` that stopped it, or ``ended``,
    what a function said. ``turn.prepared`` is set when the runtime has to ask the customer first.

    ``turn`` holds every model and tool call made until then.
    """

    turn: Turn
    reply: ModelReply | None = None
    failure: ModelFailed | None = None
    ended: Any = None


@dataclass(frozen=True)
class Asking:
    """Of whom the exchange is, and what it may use.

    ``profile`` and ``operation`` name the model calls. ``speaker`` marks calls of an agent that is
    not the route's own, "" else. ``deadline``: the loop time at which models and reads are given up;
    an action that was sent is waited for. Without ``transactions`` nothing is proposed.
    """

    profile: str
    infos: Mapping[str, ToolInfo]
    max_rounds: int
    tools: ToolPort
    models: ModelPort
    mask: Mask
    operation: str = "agent.answer"
    speaker: str = ""
    control: Control | None = None
    transactions: TransactionPort | None = None
    deadline: float | None = None


@dataclass
class _Exchange:
    """What is remembered between the rounds of one exchange."""

    asking: Asking
    offers: Offers = field(default_factory=lambda: Offers({}))
    controls: frozenset[str] = frozenset()
    failures: Counter[str] = field(default_factory=Counter)
    answered: dict[str, ToolCall] = field(default_factory=dict)

    @property
    def infos(self) -> Mapping[str, ToolInfo]:
        return self.asking.infos

    @property
    def stuck(self) -> bool:
        return any(count >= MAX_SAME_FAILURES for count in self.failures.values())

    def offer(self, *, last: bool) -> None:
        """Set what the next request offers: tools and other agents, at the last only what ends it."""
        control = self.asking.control
        others = control.offers(last=last) if control is not None else {}
        self.controls = frozenset(others)
        self.offers = Offers({**({} if last else self.infos), **others})


@dataclass(frozen=True)
class _Wish:
    """One call a model asked for, and what becomes of it.

    It is sent, unless there is a ``refusal`` or it ``repeats`` a call that was answered. ``control``:
    it is no tool. ``proposed``: the customer has to confirm it first.
    """

    id: str
    name: str
    info: ToolInfo | None = None
    arguments: Mapping[str, object] = field(default_factory=dict)
    signature: str = ""
    refusal: str = ""
    repeats: ToolCall | None = None
    control: bool = False
    proposed: bool = False

    @property
    def tool(self) -> str:
        return self.info.slug if self.info else self.name

    @property
    def action(self) -> bool:
        return self.info is not None and self.info.action

    @property
    def sent(self) -> bool:
        return not self.refusal and self.repeats is None and not self.control

    @property
    def runs(self) -> bool:
        return self.sent and not self.proposed


async def converse(turn: Turn, history: History, asking: Asking) -> Conversation:
    """Run the exchange that begins with ``history`` and return how it ended.

    Without anything to offer it is one model call. Otherwise the model may ask in at most
    ``max_rounds`` replies; then, or when it repeats a failing call, it is asked once more with
    nothing but what ends its part. Model failures are returned, not raised; ``LeaseLost`` goes up.
    """
    exchange = _Exchange(asking)
    exchange.offer(last=False)
    rounds = asking.max_rounds if exchange.offers.functions else 0
    reminded = False
    while True:
        last = rounds <= 0
        exchange.offer(last=last)
        try:
            reply, model_call = await _ask(turn, history, exchange)
        except ModelFailed as failure:
            return Conversation(turn=turn, failure=failure)
        turn = turn.evolve(model_calls=(*turn.model_calls, model_call))
        functions = exchange.offers.functions
        if not functions or not reply.tool_calls or reply.finish_reason == "content_filter":
            reminder = "" if reminded else _reminder(reply, asking.control)
            if not reminder:
                return Conversation(turn=turn, reply=reply)
            history.add_reminder(asking.mask(reply.text), reminder)
            reminded, rounds = True, rounds - 1
            continue
        try:
            turn, ended = await _round(turn, reply, exchange, history)
        except ModelFailed as failure:
            return Conversation(turn=turn, failure=failure)
        if ended is not None or turn.prepared is not None:
            return Conversation(turn=turn, ended=ended)
        if last:
            return Conversation(turn=turn, reply=reply)
        rounds -= 1
        if rounds <= 0 or exchange.stuck:
            turn = turn.decide(
                _stopped("TOOL_LOOP_STUCK" if exchange.stuck else "TOOL_ROUNDS_USED")
            )
            rounds = 0


async def _ask(turn: Turn, history: History, exchange: _Exchange) -> tuple[ModelReply, ModelCall]:
    """Make one model call before the deadline. Raises ``ModelFailed``."""
    asking = exchange.asking
    request = ModelRequest(
        profile=asking.profile,
        messages=history.messages(),
        tools=exchange.offers.functions,
        operation=asking.operation,
        ordinal=len(turn.model_calls),
    )
    if asking.deadline is not None and asyncio.get_running_loop().time() >= asking.deadline:
        raise ModelFailed("no time was left to ask the model", code="timeout")
    try:
        async with asyncio.timeout_at(asking.deadline):
            return await asking.models.complete(turn, request)
    except TimeoutError:
        raise ModelFailed("the model did not answer in time", code="timeout") from None


def _reminder(reply: ModelReply, control: Control | None) -> str:
    if control is None or reply.finish_reason == "content_filter":
        return ""
    return control.reminder(reply.text)


def _stopped(code: str) -> Decision:
    return Decision(
        phase="tool", code=code, action="observe", reason="asked to answer without tools"
    )


async def _round(
    turn: Turn, reply: ModelReply, exchange: _Exchange, history: History
) -> tuple[Turn, Any]:
    """Answer every call of ``reply``; return the turn, and how the exchange ended or ``None``.

    Tools go first, so that nothing they found is lost when another agent takes over (field case
    3.1); then what the customer must confirm; then at most one other agent.
    """
    wishes = _wishes(turn, reply, exchange, history.ids)
    results = {i: wish.repeats for i, wish in enumerate(wishes) if wish.repeats is not None}
    # An action goes after the reads of the same reply: they run at once and must not race it.
    for action in (False, True):
        batch = [i for i, wish in enumerate(wishes) if wish.runs and wish.action is action]
        if batch:
            turn = await _send(turn, batch, wishes, results, exchange)
    for index, wish in enumerate(wishes):
        if wish.proposed or (index in results and _unconfirmed(results[index])):
            turn = await _propose(turn, index, wishes, results, exchange)
            if turn.prepared is not None:
                return turn, None
    turn, told, ended = await _others(turn, reply, wishes, exchange)
    if ended is not None or turn.prepared is not None:
        return turn, ended
    turn = _record_refusals(turn, wishes, results, exchange.asking.speaker)
    failed = {wish.signature for i, wish in enumerate(wishes) if i in results and not results[i].ok}
    exchange.failures.update(failed)
    mask = exchange.asking.mask
    history.add_round(
        reply.text,
        [
            Exchange(
                id=wish.id,
                name=wish.name,
                # Arguments that are no JSON go back as {}: servers refuse a history that holds them.
                arguments=canonical_json(dict(wish.arguments)),
                content=told[index] if index in told else tool_content(results[index], mask),
            )
            for index, wish in enumerate(wishes)
        ],
    )
    return turn, None


async def _send(
    turn: Turn,
    batch: Sequence[int],
    wishes: Sequence[_Wish],
    results: dict[int, ToolCall],
    exchange: _Exchange,
) -> Turn:
    """Call the tools of ``batch`` at once; identical calls of one batch are sent once."""
    asking = exchange.asking
    first: dict[str, _Wish] = {}
    for index in batch:
        first.setdefault(wishes[index].signature, wishes[index])
    ordinal = len(turn.tool_calls)
    requests = [
        ToolRequest(
            tool=wish.tool,
            arguments=wish.arguments,
            ordinal=ordinal + place,
            agent=asking.speaker,
        )
        for place, wish in enumerate(first.values())
    ]
    # Whether an action that is let go was carried out nobody would know.
    reads = not any(wish.action for wish in first.values())
    try:
        async with asyncio.timeout_at(asking.deadline if reads else None):
            calls = await asking.tools.call(turn, requests)
    except TimeoutError:
        raise ModelFailed("its tools did not answer in time", code="timeout") from None
    calls = [replace(call, agent=call.agent or asking.speaker) for call in calls]
    by_signature = dict(zip(first, calls, strict=True))
    for index in batch:
        results[index] = by_signature[wishes[index].signature]
    if any(is_action(call, exchange.infos) for call in calls):
        exchange.answered.clear()  # what was read before may have changed
    exchange.answered.update({key: call for key, call in by_signature.items() if call.ok})
    return turn.evolve(tool_calls=(*turn.tool_calls, *calls))


def _unconfirmed(call: ToolCall) -> bool:
    return call.status == "refused" and call.metadata.get("reason") == CONFIRM


async def _propose(
    turn: Turn,
    index: int,
    wishes: Sequence[_Wish],
    results: dict[int, ToolCall],
    exchange: _Exchange,
) -> Turn:
    """Have the customer asked for a yes to a call that is otherwise ready.

    One that is not ready, for want of an argument, is a result for the model to read; one that the
    tool's policy lets run without a yes is run.
    """
    asking, wish = exchange.asking, wishes[index]
    if asking.transactions is None:
        return turn
    request = ToolRequest(
        tool=wish.tool,
        arguments=wish.arguments,
        ordinal=len(turn.tool_calls),
        agent=asking.speaker,
    )
    checked = await asking.tools.check(turn, request)
    checked = replace(checked, agent=checked.agent or asking.speaker)
    if checked.metadata.get("reason") == CONFIRM:
        return await asking.transactions.propose(turn, checked)
    if index in results:
        return turn
    if checked.metadata.get("reason") == READY:
        return await _send(turn, [index], wishes, results, exchange)
    results[index] = checked
    return turn.evolve(tool_calls=(*turn.tool_calls, checked))


async def _others(
    turn: Turn, reply: ModelReply, wishes: Sequence[_Wish], exchange: _Exchange
) -> tuple[Turn, dict[int, str], Any]:
    """Let the reply's first usable wish for another agent happen (field case 3.3).

    Return the turn, what the model reads of each such wish, and how the exchange ended or ``None``.
    """
    told: dict[int, str] = {}
    control, taken = exchange.asking.control, ""
    for index, wish in enumerate(wishes):
        if not wish.control or wish.refusal or control is None:
            continue
        if taken:
            told[index] = f"Not taken: one at a time, and {taken} was taken."
            continue
        done = await control.take(turn, wish.tool, wish.arguments, reply.text)
        turn = done.turn
        if done.ended is not None or turn.prepared is not None:
            return turn, told, done.ended
        told[index] = done.content
        if done.ok:
            taken = wish.name
        else:
            exchange.failures.update([wish.signature])
    return turn, told, None


def _wishes(turn: Turn, reply: ModelReply, exchange: _Exchange, ids: set[str]) -> list[_Wish]:
    """Decide each call of ``reply``, in the order the model wrote them."""
    wishes: list[_Wish] = []
    used = set(ids)
    taken = False
    for place, call in enumerate(reply.tool_calls[:MAX_CALLS_ANSWERED]):
        # Some servers send no id, the same one twice, or the same ones in every reply.
        call_id = (
            call.id if call.id and call.id not in used else f"call_{len(turn.model_calls)}_{place}"
        )
        used.add(call_id)
        wish = _wish(call, call_id, exchange)
        refusal = wish.refusal or _not_taken(wish, place, reply, turn, exchange, taken=taken)
        if refusal:
            wish = replace(wish, refusal=refusal, repeats=None)
        elif wish.action and wish.info is not None and wish.info.confirmation_required:
            wish = replace(wish, proposed=wish.repeats is None)
        taken = taken or (wish.sent and wish.action)
        wishes.append(wish)
    return wishes


def _wish(call: ModelToolCall, call_id: str, exchange: _Exchange) -> _Wish:
    """Read ``call``: known function, readable arguments, not answered before."""
    info = exchange.offers.find(call.name)
    name = wire_name(call.name) or "unnamed"
    raw = f"{name}|{call.arguments}"
    if info is None:
        known = ", ".join(exchange.offers.names)
        return _Wish(call_id, name, signature=raw, refusal=f"No such tool here. Tools: {known}.")
    control = info.slug in exchange.controls
    try:
        arguments = arguments_parse(call.arguments)
    except ArgumentsInvalid as error:
        return _Wish(
            call_id, name, info, signature=raw, refusal=f"Not taken: {error}.", control=control
        )
    signature = f"{info.slug}|{canonical_json(arguments)}"
    repeats = None if control else exchange.answered.get(signature)
    return _Wish(call_id, name, info, arguments, signature, repeats=repeats, control=control)


def _not_taken(
    wish: _Wish, place: int, reply: ModelReply, turn: Turn, exchange: _Exchange, *, taken: bool
) -> str:
    """Return why a readable call is not sent, in words for the model; "" when it may be."""
    if place >= MAX_CALLS_PER_REPLY:
        return f"Not taken: at most {MAX_CALLS_PER_REPLY} calls at once."
    if reply.finish_reason == "length":
        return "Not taken: the reply was cut off before its end. Ask again, shorter."
    if wish.info is None or not wish.action or wish.repeats is not None:
        return ""
    if wish.info.confirmation_required and exchange.asking.transactions is None:
        return "Not taken: the customer has to confirm this first."
    if wish.info.confirmation_required and turn.dialogue.transaction is not None:
        return "Not taken: the customer is being asked about another action."
    if taken or not action_open(wish.info, turn.tool_calls, exchange.infos):
        return "Not taken: one action per message, and one was chosen already."
    return ""


def _record_refusals(
    turn: Turn, wishes: Sequence[_Wish], results: dict[int, ToolCall], speaker: str
) -> Turn:
    """Give every refused wish its result; refusals are part of the turn's record."""
    recorded: list[ToolCall] = []
    for index, wish in enumerate(wishes):
        if wish.refusal:
            results[index] = ToolCall(
                tool=wish.tool,
                server="",
                arguments=wish.arguments,
                status="refused",
                error=wish.refusal,
                ordinal=len(turn.tool_calls) + len(recorded),
                action=wish.action,
                agent=speaker,
            )
            recorded.append(results[index])
    return turn.evolve(tool_calls=(*turn.tool_calls, *recorded))
