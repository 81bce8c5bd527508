"""A specialist holds the conversation for a while: who speaks, since when, and how it ends.

The state is ``turn.dialogue.sub_conversation``; it is stored with the session. What happened in a
turn is in ``turn.delegations``, so that a second attempt at the answer knows whose it is.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from apps.agents.config import AgentConfig, Delegate
from apps.agents.delegation import functions
from apps.agents.delegation.desk import noted
from apps.agents.delegation.functions import Signal
from apps.agents.evidence import Mask, inert_json, masked_value
from apps.agents.history import calls_of
from apps.runtime.dialogue import SubConversation
from apps.runtime.turn import Delegation, Turn

KEPT_BY = ("literal", "fallback", "clarify")
"""Routes that answer without an agent: they do not take the conversation from a specialist."""

_SPENT = {
    "turns": "its turns are used up",
    "minutes": "its time is used up",
    "gone": "it is not in service any more",
}
"""What routing says of a sub-conversation that is over."""

_HOLDS = (
    "You hold the conversation for a while: the customer's messages come to you. The customer was"
    " not told of a change; do not introduce yourself anew. When you are done, or cannot go on, call"
    " end_specialist_sub_conversation."
)
_ENDED = (
    "System note: a specialist talked with the customer and has ended. Go on with the customer: use"
    " the result, answer the last message, repeat nothing the customer has read, name no specialist."
)


def sub_start(
    turn: Turn, *, coordinator: str, delegate: Delegate, signal: Signal, mask: Mask
) -> Turn:
    """Return the turn in which ``delegate`` takes the conversation over from ``coordinator``."""
    number = turn.session.turn_number
    place = sum(d.kind == "sub_conversation" for d in turn.delegations)
    key = f"{number}-{place}"
    role = functions.role_of(delegate)
    context = mask(str(signal.details["initial_context"]))
    sub = SubConversation(
        id=key,
        role=role,
        agent=delegate.agent,
        coordinator=coordinator,
        thread=key,
        context=context,
        turns=1,
        started_turn=number,
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    trace = Delegation(
        kind="sub_conversation",
        caller=coordinator,
        agent=delegate.agent,
        tool=functions.REQUEST,
        status="started",
        request=context,
        outputs={"role": role, **masked_value(signal.wire, mask)},
        spoke=True,
    )
    return noted(turn.evolve(dialogue=turn.dialogue.evolve(sub_conversation=sub)), trace)


def sub_end(
    turn: Turn,
    *,
    status: str,
    tool: str = functions.END,
    final_result: Mapping[str, Any] | None = None,
    note: str | None = None,
    error: str = "",
    mask: Mask,
) -> Turn:
    """Return the turn in which the open sub-conversation has ended with ``status``.

    ``tool`` is "" when the customer went elsewhere: then nobody is given a note.
    """
    sub = turn.dialogue.sub_conversation
    assert sub is not None
    details = {
        "status": status,
        "final_result": dict(final_result or {}),
        "last_user_message": turn.text,
        "message_to_coordinator": note,
    }
    signal = Signal("END_SUB_CONVERSATION", masked_value(details, mask))
    trace = Delegation(
        kind="sub_conversation",
        caller=sub.coordinator,
        agent=sub.agent,
        tool=tool,
        status=status,
        outputs={"role": sub.role, **signal.wire},
        error=error,
    )
    dialogue = turn.dialogue.evolve(sub_conversation=None, active_agent=sub.coordinator)
    return noted(turn.evolve(dialogue=dialogue), trace)


def sub_left(turn: Turn, mask: Mask) -> Turn:
    """Return the turn with the sub-conversation closed when the customer went elsewhere, or routing
    says that its turns or its time are used up.

    The coordinator gets a note, and so the word, unless another agent answers now.
    """
    sub, route = turn.dialogue.sub_conversation, turn.route
    if sub is None or route is None or sub.started_turn == turn.session.turn_number:
        return turn
    spent = str(route.metadata.get("delegation_expired") or "")
    away = str(route.metadata.get("delegation_abandoned") or "")
    if not (spent or away) and (holds(turn) or route.method in KEPT_BY):
        return turn
    back = route.method in ("fallback", "clarify") or route.agent in (sub.coordinator, sub.agent)
    turn = sub_end(
        turn,
        status="needs_followup" if spent else "user_cancelled",
        tool=functions.END if back else "",
        error=_SPENT.get(spent, "it is over") if spent else "",
        note="the customer gave it up" if away else None,
        mask=mask,
    )
    if back:
        return turn
    return turn.evolve(dialogue=turn.dialogue.evolve(active_agent=route.agent))


def holds(turn: Turn) -> bool:
    """Whether the specialist of the open sub-conversation is the one to speak now."""
    sub, route = turn.dialogue.sub_conversation, turn.route
    if sub is None or route is None:
        return False
    return route.agent == sub.agent or sub.started_turn == turn.session.turn_number


def sub_used_up(turn: Turn, delegate: Delegate, now: datetime) -> str:
    """Return why the specialist may not take this message any more, "" when it may."""
    sub = turn.session.dialogue.sub_conversation
    if sub is None:
        return ""
    if sub.turns >= delegate.max_turns:
        return _SPENT["turns"]
    try:
        started = datetime.fromisoformat(sub.started_at)
    except ValueError:
        return ""
    over = now - started > timedelta(minutes=delegate.max_minutes)
    return _SPENT["minutes"] if over else ""


def sub_counted(turn: Turn) -> Turn:
    """Return the turn with this message counted as one the specialist answers; once, however often
    the answer is written anew."""
    before, sub = turn.session.dialogue.sub_conversation, turn.dialogue.sub_conversation
    if sub is None or before is None or before.id != sub.id:
        return turn
    counted = sub.model_copy(update={"turns": before.turns + 1})
    return turn.evolve(dialogue=turn.dialogue.evolve(sub_conversation=counted))


def delegate_of(coordinator: AgentConfig | None, sub: SubConversation) -> Delegate:
    """Return how the specialist is configured; the defaults when nobody says so any more."""
    known = functions.specialists(coordinator) if coordinator is not None else {}
    found = known.get(sub.role)
    if found is not None and found.agent == sub.agent:
        return found
    return Delegate(kind="sub_conversation", agent=sub.agent, role=sub.role)


def specialist_notes(sub: SubConversation) -> tuple[str, ...]:
    """Return what a specialist is told: that it holds the conversation, and what it begins with."""
    given = inert_json({"role": sub.role, "initial_context": sub.context})
    return (f"{_HOLDS}\nGiven by the coordinator: {given}",)


def coordinator_notes(turn: Turn, coordinator: str) -> tuple[str, ...]:
    """Return a note for each sub-conversation of ``coordinator`` that ended in this turn."""
    return tuple(
        f"{_ENDED}\nResult: {inert_json(_result(turn, trace))}"
        for trace in turn.delegations
        if _ended(trace) and trace.caller == coordinator
    )


def ended_for(turn: Turn) -> str:
    """Return the coordinator that has the word since a sub-conversation ended in this turn, or ""."""
    traces = [d for d in turn.delegations if d.kind == "sub_conversation" and d.status != "refused"]
    return traces[-1].caller if traces and _ended(traces[-1]) else ""


def _ended(trace: Delegation) -> bool:
    return (
        trace.kind == "sub_conversation" and trace.status != "refused"
        and trace.tool == functions.END
    )  # fmt: skip


def _result(turn: Turn, trace: Delegation) -> dict[str, Any]:
    """Return what the coordinator is told of an ended sub-conversation, and of what was done in it:
    a specialist that broke off may have carried something out."""
    details = dict(trace.outputs.get("details", {}))
    result: dict[str, Any] = {"role": trace.outputs.get("role", ""), **details}
    result["message_to_coordinator"] = trace.error or details.get("message_to_coordinator")
    done = [
        {"tool": call.tool, "status": call.status, "result": call.result}
        for call in calls_of(turn, trace.agent)
        if call.action and call.status != "refused"
    ]
    return {**result, "actions": done} if done else result
