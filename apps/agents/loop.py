"""The model asks, tools answer, until the model answers the customer.

What a model writes is a wish. Whether a tool runs is decided here from the release (allow-list,
confirmation, one action per turn) and again by the tool port (arguments, policy).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from apps.agents.arguments import ArgumentsInvalid, arguments_parse
from apps.agents.evidence import Mask, tool_content, wire_name
from apps.agents.tooling import Offers, ToolInfo, action_open, is_action
from apps.runtime.canonical import canonical_json
from apps.runtime.ports import (
    ModelFailed,
    ModelMessage,
    ModelPort,
    ModelReply,
    ModelRequest,
    ModelToolCall,
    ToolPort,
    ToolRequest,
)
from apps.runtime.turn import Decision, ToolCall, Turn

MAX_CALLS_PER_REPLY = 8
# The same call failing twice will fail a third time (field case 1.12).
MAX_SAME_FAILURES = 2
# Beyond this a reply's calls are not even answered: no model needs so many, and each is recorded.
MAX_CALLS_ANSWERED = 32


@dataclass(frozen=True)
class Conversation:
    """How the exchange ended: the model's ``reply``, or the ``failure`` that stopped it.

    ``turn`` holds every model and tool call made until then.
    """

    turn: Turn
    reply: ModelReply | None = None
    failure: ModelFailed | None = None


@dataclass
class _Exchange:
    """What is remembered between the rounds of one exchange."""

    infos: Mapping[str, ToolInfo]
    offers: Offers
    failures: Counter[str] = field(default_factory=Counter)
    answered: dict[str, ToolCall] = field(default_factory=dict)

    @property
    def stuck(self) -> bool:
        return any(count >= MAX_SAME_FAILURES for count in self.failures.values())


@dataclass(frozen=True)
class _Wish:
    """One call a model asked for, and what becomes of it.

    It is sent, unless there is a ``refusal`` or it ``repeats`` a call that was answered.
    """

    id: str
    name: str
    info: ToolInfo | None = None
    arguments: Mapping[str, object] = field(default_factory=dict)
    signature: str = ""
    refusal: str = ""
    repeats: ToolCall | None = None

    @property
    def tool(self) -> str:
        return self.info.slug if self.info else self.name

    @property
    def action(self) -> bool:
        return self.info is not None and self.info.action

    @property
    def sent(self) -> bool:
        return not self.refusal and self.repeats is None


async def converse(
    turn: Turn,
    messages: Sequence[ModelMessage],
    *,
    profile: str,
    infos: Mapping[str, ToolInfo],
    max_rounds: int,
    tools: ToolPort,
    models: ModelPort,
    mask: Mask,
) -> Conversation:
    """Run the exchange that starts with ``messages`` and return how it ended.

    Without ``infos`` it is one model call. Otherwise the model may ask for those tools in at most
    ``max_rounds`` replies; then, or when it repeats a failing call, it is asked once more without
    tools. Model failures are returned, not raised; ``LeaseLost`` goes up.
    """
    history = list(messages)
    exchange = _Exchange(infos=infos, offers=Offers(infos))
    rounds = max_rounds if infos else 0
    while True:
        functions = exchange.offers.functions if rounds > 0 else ()
        request = ModelRequest(
            profile=profile,
            messages=tuple(history),
            tools=functions,
            ordinal=len(turn.model_calls),
        )
        try:
            reply, model_call = await models.complete(turn, request)
        except ModelFailed as failure:
            return Conversation(turn=turn, failure=failure)
        turn = turn.evolve(model_calls=(*turn.model_calls, model_call))
        if not functions or not reply.tool_calls or reply.finish_reason == "content_filter":
            return Conversation(turn=turn, reply=reply)
        turn, said = await _round(turn, reply, exchange, tools, mask)
        history.extend(said)
        rounds -= 1
        if rounds == 0 or exchange.stuck:
            turn = turn.decide(
                _stopped("TOOL_LOOP_STUCK" if exchange.stuck else "TOOL_ROUNDS_USED")
            )
            rounds = 0


def _stopped(code: str) -> Decision:
    return Decision(
        phase="tool", code=code, action="observe", reason="asked to answer without tools"
    )


async def _round(
    turn: Turn, reply: ModelReply, exchange: _Exchange, tools: ToolPort, mask: Mask
) -> tuple[Turn, list[ModelMessage]]:
    """Answer every call of ``reply``; return the turn and the messages that tell the model."""
    wishes = _wishes(turn, reply, exchange)
    results = {i: wish.repeats for i, wish in enumerate(wishes) if wish.repeats is not None}
    # An action goes after the reads of the same reply: they run at once and must not race it.
    for action in (False, True):
        batch = [i for i, wish in enumerate(wishes) if wish.sent and wish.action is action]
        if batch:
            turn = await _send(turn, batch, wishes, results, exchange, tools)
    turn = _record_refusals(turn, wishes, results)
    failed = {wish.signature for i, wish in enumerate(wishes) if not results[i].ok}
    exchange.failures.update(failed)
    return turn, _told(reply, wishes, results, mask)


async def _send(
    turn: Turn,
    batch: Sequence[int],
    wishes: Sequence[_Wish],
    results: dict[int, ToolCall],
    exchange: _Exchange,
    tools: ToolPort,
) -> Turn:
    """Call the tools of ``batch`` at once; identical calls of one batch are sent once."""
    first: dict[str, _Wish] = {}
    for index in batch:
        first.setdefault(wishes[index].signature, wishes[index])
    ordinal = len(turn.tool_calls)
    calls = await tools.call(
        turn,
        [
            ToolRequest(tool=wish.tool, arguments=wish.arguments, ordinal=ordinal + place)
            for place, wish in enumerate(first.values())
        ],
    )
    by_signature = dict(zip(first, calls, strict=True))
    for index in batch:
        results[index] = by_signature[wishes[index].signature]
    if any(is_action(call, exchange.infos) for call in calls):
        exchange.answered.clear()  # what was read before may have changed
    exchange.answered.update({key: call for key, call in by_signature.items() if call.ok})
    return turn.evolve(tool_calls=(*turn.tool_calls, *calls))


def _wishes(turn: Turn, reply: ModelReply, exchange: _Exchange) -> list[_Wish]:
    """Decide each call of ``reply``, in the order the model wrote them."""
    wishes: list[_Wish] = []
    taken = False
    for place, call in enumerate(reply.tool_calls[:MAX_CALLS_ANSWERED]):
        used = {wish.id for wish in wishes}
        # Some servers send no id, or the same one twice.
        call_id = (
            call.id if call.id and call.id not in used else f"call_{len(turn.model_calls)}_{place}"
        )
        wish = _wish(call, call_id, exchange)
        refusal = wish.refusal or _not_taken(wish, place, reply, turn, exchange, taken=taken)
        if refusal:
            wish = replace(wish, refusal=refusal, repeats=None)
        taken = taken or (wish.sent and wish.action)
        wishes.append(wish)
    return wishes


def _wish(call: ModelToolCall, call_id: str, exchange: _Exchange) -> _Wish:
    """Read ``call``: known tool, readable arguments, not answered before."""
    info = exchange.offers.find(call.name)
    name = wire_name(call.name) or "unnamed"
    raw = f"{name}|{call.arguments}"
    if info is None:
        known = ", ".join(exchange.offers.names)
        return _Wish(call_id, name, signature=raw, refusal=f"No such tool here. Tools: {known}.")
    try:
        arguments = arguments_parse(call.arguments)
    except ArgumentsInvalid as error:
        return _Wish(call_id, name, info, signature=raw, refusal=f"Not taken: {error}.")
    signature = f"{info.slug}|{canonical_json(arguments)}"
    return _Wish(
        call_id, name, info, arguments, signature, repeats=exchange.answered.get(signature)
    )


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
    if wish.info.confirmation_required:
        return "Not taken: the customer has to confirm this first."
    if taken or not action_open(wish.info, turn.tool_calls, exchange.infos):
        return "Not taken: one action per message, and one was chosen already."
    return ""


def _record_refusals(turn: Turn, wishes: Sequence[_Wish], results: dict[int, ToolCall]) -> Turn:
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
            )
            recorded.append(results[index])
    return turn.evolve(tool_calls=(*turn.tool_calls, *recorded))


def _told(
    reply: ModelReply, wishes: Sequence[_Wish], results: Mapping[int, ToolCall], mask: Mask
) -> list[ModelMessage]:
    """Return the reply and its results as history.

    Arguments that are no JSON go back as ``{}``: servers refuse a history with broken JSON in it.
    """
    asked = tuple(
        ModelToolCall(id=w.id, name=w.name, arguments=canonical_json(dict(w.arguments)))
        for w in wishes
    )
    told = [
        ModelMessage(
            role="tool",
            content=tool_content(results[index], mask),
            tool_call_id=wish.id,
            name=wish.name,
        )
        for index, wish in enumerate(wishes)
    ]
    return [ModelMessage(role="assistant", content=reply.text, tool_calls=asked), *told]
