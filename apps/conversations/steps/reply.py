"""Settles a checked draft, and says in which state the session waits for its next turn."""

from collections.abc import Callable, Mapping
from typing import Literal, cast, get_args

from apps.runtime.outcomes import Answered, Blocked, Failed, Waiting
from apps.runtime.turn import SAID, BusinessContext, Draft, Turn

WaitingFor = Literal["confirmation", "parameter", "approval", "clarification"]
WAITING = "waiting"
# Routes in which no subject was settled: they lead into no state.
WITHOUT_SUBJECT = ("fallback", "clarify")


class NothingToSay(RuntimeError):
    """The turn reached its reply without a draft: a step forgot to answer."""


def _no_label(turn: Turn) -> str:
    return ""


def _no_states(turn: Turn) -> Mapping[str, str]:
    return {}


class Reply:
    """Turns the draft into ``Answered`` or ``Waiting`` and sets ``turn.next_state``.

    ``label_for`` gives the name to put before the answer, "" for none. ``agent_next_state`` gives
    the answering agent's map from outcome to state; what the route says wins over it. A turn that
    has its outcome already is left as it is. Raises ``NothingToSay``.
    """

    def __init__(
        self,
        label_for: Callable[[Turn], str] = _no_label,
        agent_next_state: Callable[[Turn], Mapping[str, str]] = _no_states,
    ) -> None:
        self._label_for = label_for
        self._agent_next_state = agent_next_state

    async def __call__(self, turn: Turn) -> Turn:
        if turn.outcome is not None:
            return turn
        if turn.draft is None:
            raise NothingToSay("no draft: the reply stands after the agent's step")
        label = self._label_for(turn)
        text = f"[{label}] {turn.draft.text}" if label else turn.draft.text
        if turn.draft.outcome.startswith(WAITING):
            turn = turn.evolve(outcome=_waiting(turn, turn.draft, text))
        else:
            turn = turn.evolve(outcome=Answered(text=text))
        turn = turn.evolve(next_state=next_state_of(turn, self._agent_next_state(turn)))
        return _forgotten(_active(turn))


def next_state_of(turn: Turn, agent_states: Mapping[str, str] | None = None) -> str:
    """Return the state that the session has after ``turn``, "" for none.

    A blocked or broken turn changes nothing. Any other outcome leads where the route's map says,
    else where ``agent_states`` does; an outcome that neither names clears the state. The draft's
    own word ("waiting_confirmation") is looked up before the outcome's kind ("waiting").
    """
    outcome = turn.outcome
    if outcome is None or isinstance(outcome, (Blocked, Failed)):
        return turn.session.next_state
    route = turn.route
    if route is None or route.method in WITHOUT_SUBJECT or turn.dialogue.pending:
        # An open action or sub-conversation is its own state; two truths would contradict.
        return ""
    states = {**(agent_states or {}), **route.next_state}
    words: list[str] = [outcome.kind]
    if isinstance(outcome, Waiting):
        words.insert(0, f"{WAITING}_{outcome.waiting_for}")
    if turn.draft is not None and turn.draft.outcome.startswith(f"{outcome.kind}_"):
        words.insert(0, turn.draft.outcome)
    return next((states[word] for word in words if word in states), "")


def _active(turn: Turn) -> Turn:
    """Note who answered what, so that the next message can go on with it."""
    route = turn.route
    if route is None or route.method in (*WITHOUT_SUBJECT, "literal"):
        return turn
    dialogue = turn.dialogue.evolve(active_agent=route.agent, active_intent=route.intent)
    return turn if dialogue == turn.dialogue else turn.evolve(dialogue=dialogue)


def _forgotten(turn: Turn) -> Turn:
    """Leave out a value the customer said that no tool knew: carried on, it would block a right one."""
    known = turn.business_context
    said = {key for key, source in known.sources.items() if source == SAID}
    if not said or isinstance(turn.outcome, Waiting) or any(call.ok for call in turn.tool_calls):
        return turn
    kept = BusinessContext(
        values={key: value for key, value in known.values.items() if key not in said},
        sources={key: source for key, source in known.sources.items() if key not in said},
        missing=known.missing,
    )
    return turn.evolve(business_context=kept)


def _waiting(turn: Turn, draft: Draft, text: str) -> Waiting:
    """Return the outcome of a draft that asks: what for is its own word, else what the turn shows."""
    said = draft.outcome[len(WAITING) :].strip("_:- ")
    missing = _missing_fields(turn)
    if said in get_args(WaitingFor):
        waiting_for = cast("WaitingFor", said)
    elif turn.route is not None and turn.route.method == "clarify":
        waiting_for, missing = "clarification", ()
    elif missing:
        waiting_for = "parameter"
    elif any(call.metadata.get("reason") == "confirmation_required" for call in turn.tool_calls):
        waiting_for = "confirmation"
    else:
        waiting_for = "clarification"
    return Waiting(text=text, waiting_for=waiting_for, missing_fields=missing)


def _missing_fields(turn: Turn) -> tuple[str, ...]:
    """Return what is still open: the action's arguments, else those that tools were refused for."""
    if turn.dialogue.transaction is not None:
        return turn.dialogue.transaction.missing
    fields = [
        str(error["field"])
        for call in turn.tool_calls
        if call.status == "refused"
        for error in call.field_errors
        if error.get("field")
    ]
    return tuple(dict.fromkeys(fields))
