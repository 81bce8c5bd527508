"""The closing steps are thin: the store writes and sends."""

import pytest

from apps.conversations.steps.deliver import Deliver
from apps.conversations.steps.persist import Persist
from apps.runtime.outcomes import Answered
from apps.runtime.ports import LeaseLost
from apps.runtime.testing import FakeStore, turn_of


async def test_persist_then_deliver__settled_turn__is_stored_once_and_sent_once():
    store = FakeStore()
    turn = turn_of("oi", outcome=Answered(text="olá"))
    turn = await Deliver(store)(await Persist(store)(turn))
    assert [t.outcome for t in store.settled] == [Answered(text="olá")]
    assert store.delivered == [turn]


async def test_persist__lease_lost__goes_up():
    class Lost(FakeStore):
        async def settle(self, turn):
            raise LeaseLost(turn.id)

    with pytest.raises(LeaseLost):
        await Persist(Lost())(turn_of("oi", outcome=Answered(text="olá")))
