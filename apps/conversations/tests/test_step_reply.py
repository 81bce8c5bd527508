"""From a checked draft to an outcome and the state for the next turn."""

import pytest

from apps.conversations.steps.persist import Persist
from apps.conversations.steps.reply import NothingToSay, Reply, next_state_of
from apps.runtime.dialogue import Dialogue
from apps.runtime.outcomes import Answered, Blocked, Ended, Failed, HandedOver, Waiting
from apps.runtime.testing import FakeStore, turn_of
from apps.runtime.turn import SAID, BusinessContext, Draft, Route, SessionState, ToolCall

BLOCKED = Blocked(text="no", code="PINJ")
FAILED = Failed(text="sorry", code="RUNTIME_AGENT_ERROR", error_id="e1")
HANDED_OVER = HandedOver(text="a person", reason="REVPREC")


def route(method="keyword", **next_state):
    return Route(
        agent="billing_agent", intent="invoice", method=method, confidence=0.8,
        next_state=next_state,
    )  # fmt: skip


def drafted(outcome="answered", text="Sua fatura é R$ 89,90.", **changes):
    changes.setdefault("route", route())
    draft = Draft(text=text, agent="billing_agent", outcome=outcome)
    session = SessionState(id="1", next_state="BEFORE")
    return turn_of("oi", draft=draft, session=session, **changes)


async def settled(turn, **arguments):
    return await Reply(**arguments)(turn)


async def test_reply__draft__is_answered():
    turn = await settled(drafted())
    assert turn.outcome == Answered(text="Sua fatura é R$ 89,90.")


async def test_reply__label__stands_before_the_text():
    turn = await settled(drafted(), label_for=lambda t: t.route.agent)
    assert turn.outcome is not None
    assert turn.outcome.text == "[billing_agent] Sua fatura é R$ 89,90."


def refused(*fields, reason="missing_arguments"):
    return ToolCall(
        tool="consultar_pedido", server="retail", arguments={}, status="refused",
        field_errors=tuple({"field": f, "message": "required"} for f in fields),
        metadata={"reason": reason},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("outcome", "changes", "waiting_for", "missing"),
    [
        ("waiting_confirmation", {}, "confirmation", ()),
        ("waiting:approval", {}, "approval", ()),
        ("waiting", {"route": route("clarify")}, "clarification", ()),
        ("waiting", {"tool_calls": (refused("order_id", "reason", "order_id"),)},
         "parameter", ("order_id", "reason")),
        ("waiting", {"tool_calls": (refused(reason="confirmation_required"),)},
         "confirmation", ()),
        ("waiting", {}, "clarification", ()),
        ("waiting_whatever", {}, "clarification", ()),
    ],
)  # fmt: skip
async def test_reply__draft_that_asks__waits_for_what_the_turn_shows(
    outcome, changes, waiting_for, missing
):
    turn = await settled(drafted(outcome, **changes))
    assert turn.outcome == Waiting(
        text="Sua fatura é R$ 89,90.", waiting_for=waiting_for, missing_fields=missing
    )


async def test_reply__no_draft__is_a_fault_of_the_pipeline():
    with pytest.raises(NothingToSay):
        await settled(turn_of("oi"))


async def test_reply__turn_with_an_outcome__is_left_alone():
    turn = turn_of("oi", outcome=BLOCKED)
    assert await settled(turn) is turn


async def test_reply__intents_state__wins_over_the_agents():
    turn = drafted(route=route(answered="FROM_INTENT"))
    agents = {"answered": "FROM_AGENT", "waiting": "AGENT_WAITS"}
    assert (await settled(turn, agent_next_state=lambda _: agents)).next_state == "FROM_INTENT"
    turn = drafted("waiting", route=route(answered="FROM_INTENT"))
    assert (await settled(turn, agent_next_state=lambda _: agents)).next_state == "AGENT_WAITS"


async def test_reply__outcome_without_entry__clears_the_state():
    assert (await settled(drafted())).next_state == ""
    assert (await settled(drafted(route=route(waiting="X")))).next_state == ""


async def test_reply__state_that_the_route_cleared__stays_cleared():
    turn = drafted(route=route(answered=""))
    agents = {"answered": "DONE"}
    assert (await settled(turn, agent_next_state=lambda _: agents)).next_state == ""


@pytest.mark.parametrize("method", ["fallback", "clarify"])
async def test_reply__no_subject_settled__leads_into_no_state(method):
    turn = drafted(route=route(method, answered="X"))
    agents = {"answered": "FROM_AGENT"}
    assert (await settled(turn, agent_next_state=lambda _: agents)).next_state == ""


async def test_reply__exact_word_of_the_draft__is_looked_up_before_its_kind():
    states = {"waiting": "ANY", "waiting_confirmation": "CONFIRM"}
    turn = await settled(drafted("waiting_confirmation", route=route(**states)))
    assert turn.next_state == "CONFIRM"
    turn = await settled(drafted("waiting", tool_calls=(refused("x"),), route=route(
        waiting="ANY", waiting_parameter="COLLECT")))  # fmt: skip
    assert turn.next_state == "COLLECT"
    turn = await settled(drafted("waiting_approval", route=route(**states)))
    assert turn.next_state == "ANY"


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (BLOCKED, "BEFORE"),
        (FAILED, "BEFORE"),
        (HANDED_OVER, "WITH_A_PERSON"),
        (Ended(text="bye"), ""),
        (Answered(text="ok"), "ANSWERED"),
    ],
)
def test_next_state_of__any_outcome__has_a_state(outcome, state):
    turn = turn_of(
        "oi",
        session=SessionState(next_state="BEFORE"),
        route=route(answered="ANSWERED", handed_over="WITH_A_PERSON"),
        outcome=outcome,
    )
    assert next_state_of(turn) == state


async def test_persist__turn_that_ended_early__gets_its_state_before_it_is_stored():
    store = FakeStore()
    turn = turn_of("oi", outcome=HANDED_OVER, route=route(handed_over="WITH_A_PERSON"))
    await Persist(store)(turn)
    assert store.settled[0].next_state == "WITH_A_PERSON"


async def test_persist__state_set_by_the_reply__is_stored_as_it_is():
    store = FakeStore()
    await Persist(store)(await settled(drafted()))
    assert store.settled[0].next_state == ""


@pytest.mark.parametrize(
    ("status", "outcome", "kept"),
    [("error", "answered", False), ("ok", "answered", True), ("refused", "waiting", True)],
)
async def test_reply__value_the_customer_said__is_kept_unless_no_tool_knew_it(
    status, outcome, kept
):
    call = ToolCall(tool="consultar_pedido", server="retail", arguments={}, status=status)
    context = BusinessContext(
        values={"contract_key": "PED-9", "customer_key": "C-1"},
        sources={"contract_key": SAID, "customer_key": "session"},
    )
    turn = await settled(drafted(outcome, tool_calls=(call,), business_context=context))
    said = {"contract_key": "PED-9"} if kept else {}
    assert dict(turn.business_context.values) == {"customer_key": "C-1", **said}
    assert turn.business_context.sources.keys() == turn.business_context.values.keys()


@pytest.mark.parametrize(
    ("method", "active"),
    [
        ("keyword", "billing_agent"),
        ("fallback", "before"),
        ("clarify", "before"),
        ("literal", "before"),
    ],
)
async def test_reply__who_answered__is_who_the_next_message_may_go_on_with(method, active):
    """What nobody understood pins nobody (field case 4.1)."""
    turn = drafted(route=route(method), dialogue=Dialogue(active_agent="before"))

    assert (await settled(turn)).dialogue.active_agent == active
