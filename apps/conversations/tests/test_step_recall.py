"""The window of memory: whole exchanges, bounded messages."""

from dataclasses import dataclass

import pytest

from apps.conversations.steps.recall import Recall
from apps.runtime.dialogue import Dialogue
from apps.runtime.testing import FakeHistory, turn_of
from apps.runtime.turn import ChatMessage, Decision, SessionState


@dataclass(frozen=True)
class Policy:
    strategy: str = "window"
    recent_messages: int = 4
    max_chars_per_message: int = 50


TALK = tuple(
    ChatMessage(role=role, text=f"{role} {number}")
    for number in range(1, 6)
    for role in ("user", "assistant")
)


async def recalled(policy, *messages, **changes):
    history = FakeHistory(*(messages or TALK))
    return (await Recall(history, policy_for=lambda _: policy)(turn_of("oi", **changes))).memory


async def test_recall__window__is_the_last_messages_in_order():
    memory = await recalled(Policy())
    assert [m.text for m in memory] == ["user 4", "assistant 4", "user 5", "assistant 5"]


@pytest.mark.parametrize(("size", "kept"), [(1, 0), (2, 2), (3, 2), (5, 4), (80, 10)])
async def test_recall__window_that_cuts_an_exchange__leaves_the_answer_out(size, kept):
    memory = await recalled(Policy(recent_messages=size))
    assert len(memory) == kept
    assert not memory or memory[0].role == "user"


async def test_recall__long_message__is_cut_to_the_limit():
    memory = await recalled(Policy(), ChatMessage(role="user", text="a" * 51))
    assert memory[0].text == "a" * 49 + "…"
    memory = await recalled(Policy(), ChatMessage(role="user", text="a" * 50))
    assert memory[0].text == "a" * 50


@pytest.mark.parametrize("policy", [Policy(strategy="none"), Policy(recent_messages=0)])
async def test_recall__nothing_to_remember__does_not_ask_the_history(policy):
    class Forbidden(FakeHistory):
        async def recent(self, turn, limit):
            raise AssertionError("asked")

    turn = await Recall(Forbidden(*TALK), policy_for=lambda _: policy)(turn_of("oi"))
    assert turn.memory == ()


async def test_recall__another_customer_in_the_session__does_not_hear_the_former():
    changed = Decision(phase="identity", code="IDENTITY_CHANGED", action="observe")
    assert await recalled(Policy(), decisions=(changed,)) == ()


async def test_recall__first_turn__remembers_nothing():
    history = FakeHistory()
    turn = await Recall(history, policy_for=lambda _: Policy())(turn_of("oi"))
    assert turn.memory == ()


@pytest.mark.parametrize(
    "dialogue", [Dialogue(boundary=True), Dialogue(control="ended", boundary=True)]
)
async def test_recall__flow_closed_with_the_last_turn__is_forgotten_once(dialogue: Dialogue):
    turn = turn_of(
        "oi", session=SessionState(id="1", turn_number=6, dialogue=dialogue), dialogue=dialogue
    )
    recall = Recall(FakeHistory(*TALK), policy_for=lambda _: Policy())
    turn = await recall(turn)
    assert turn.memory == ()
    assert turn.dialogue == Dialogue(since=6 if dialogue.control else 0)


async def test_recall__began_anew_after_a_person_had_it__remembers_nothing_from_before():
    before = Dialogue(control="handed_over")
    session = SessionState(id="1", turn_number=4, dialogue=before)
    recall = Recall(FakeHistory(*TALK), policy_for=lambda _: Policy(recent_messages=8))
    turn = await recall(turn_of("oi", session=session, dialogue=before))
    assert turn.memory == ()
    # Two turns later, turns 4 and 5 are all there is.
    session = SessionState(id="1", turn_number=6, dialogue=turn.dialogue)
    later = await recall(turn_of("e aí", session=session, dialogue=turn.dialogue))
    assert [m.text for m in later.memory] == ["user 4", "assistant 4", "user 5", "assistant 5"]


async def test_recall__who_spoke_and_in_which_thread__is_kept():
    line = ChatMessage("user", "a", thread="1-0")
    answer = ChatMessage("assistant", "b", agent="expert", thread="1-0")
    assert await recalled(Policy(), line, answer) == (line, answer)
