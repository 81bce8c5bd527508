"""Another attempt: only where it can do no harm, and never past the turn's time."""

import asyncio
import time

import pytest

from apps.runtime.ports import RemoteResult, ToolRequest, ToolUnavailable
from apps.runtime.testing import FakeLedger, FakeTransport
from apps.tools.config import RetryPolicy
from apps.tools.tests.world import EXCHANGE, INVOICE, caller_of, release, turn

READ = ToolRequest("consultar_fatura", {"msisdn": "11999"})
ACT = ToolRequest("solicitar_troca", {"order_id": "1", "reason": "defeito"})
DONE = RemoteResult(ok=True, result="done")


def down(*, sent: bool, code: str = "unreachable") -> ToolUnavailable:
    return ToolUnavailable("down", sent=sent, code=code)


class Steps:
    """Plays results, exceptions or seconds to sleep, and keeps when each call came."""

    def __init__(self, *steps) -> None:
        self.steps = list(steps)
        self.at: list[float] = []
        self.timeouts: list[float] = []
        self.keys: set[str] = set()

    async def call(self, tool, arguments, *, idempotency_key):
        self.at.append(time.monotonic())
        self.timeouts.append(tool.timeout_seconds)
        self.keys.add(idempotency_key)
        step = self.steps.pop(0)
        if isinstance(step, float):
            async with asyncio.timeout(tool.timeout_seconds):
                await asyncio.sleep(step)
            return DONE
        if isinstance(step, Exception):
            raise step
        return step


async def ask(transport, request=READ, retry=None, seconds=None, number="t1", **changes):
    update = {"retry": RetryPolicy(**(retry or {})), **changes}
    tools = {
        "consultar_fatura": INVOICE.model_copy(update=update),
        "solicitar_troca": EXCHANGE.model_copy(update=update),
    }
    options = {} if seconds is None else {"turn_seconds": seconds}
    caller = caller_of(transport, FakeLedger(), **options)
    (done,) = await caller.call(turn(release=release(tools=tools), id=number), [request])
    return done


@pytest.mark.parametrize(("attempts", "calls"), [(1, 1), (2, 2), (4, 4)])
async def test_read__keeps_failing__is_tried_as_often_as_configured(attempts, calls):
    transport = Steps(*[down(sent=True)] * 5)

    done = await ask(transport, retry={"max_attempts": attempts, "backoff_ms": 0})

    assert (done.status, len(transport.at), len(transport.keys)) == ("error", calls, 1)
    assert done.metadata["unavailable"] == "unreachable"


async def test_read__comes_back__pauses_grow_between_attempts():
    transport = Steps(down(sent=True), down(sent=False), DONE)

    done = await ask(transport, retry={"max_attempts": 3, "backoff_ms": 40})

    first, second, third = transport.at
    assert done.ok
    assert second - first >= 0.04
    assert third - second >= 0.08


@pytest.mark.parametrize("code", ["circuit_open", "needs_sign_in", "forbidden_address"])
@pytest.mark.parametrize("request_", [READ, ACT], ids=["read", "action"])
async def test_failure__that_another_attempt_cannot_change__is_not_tried_again(code, request_):
    transport = Steps(down(sent=False, code=code), DONE)

    done = await ask(
        transport, request_, retry={"max_attempts": 5, "backoff_ms": 0}, idempotent=True
    )

    assert (done.status, len(transport.at)) == ("error", 1)
    assert done.metadata["unavailable"] == code


async def test_action__not_idempotent_and_sent__is_never_sent_again_whatever_is_configured():
    transport = Steps(down(sent=True), DONE)

    done = await ask(transport, ACT, retry={"max_attempts": 5, "backoff_ms": 0})

    assert (done.status, len(transport.at)) == ("unknown", 1)


async def test_action__idempotent__is_asked_again_under_the_same_key():
    transport = Steps(down(sent=True), down(sent=True), DONE)

    done = await ask(transport, ACT, retry={"max_attempts": 3, "backoff_ms": 0}, idempotent=True)

    assert (done.status, len(transport.at), len(transport.keys)) == ("ok", 3, 1)


async def test_answer__that_says_no__is_an_answer_and_not_tried_again():
    transport = Steps(RemoteResult(ok=False, error="não existe"), DONE)

    done = await ask(transport, retry={"max_attempts": 5, "backoff_ms": 0})

    assert (done.error, len(transport.at)) == ("não existe", 1)


async def test_read__attempts__share_the_timeout_of_one_call():
    transport = Steps(down(sent=True), down(sent=True), DONE)
    started = time.monotonic()

    done = await ask(transport, retry={"max_attempts": 5, "backoff_ms": 60}, timeout_seconds=0.1)

    assert done.status == "error"
    assert len(transport.at) == 2
    assert transport.timeouts[1] < 0.1
    assert time.monotonic() - started < 2


# -- the time of a turn ------------------------------------------------------------------------


async def test_turn__its_time_is_over__later_calls_are_refused_and_other_turns_are_not():
    transport = FakeTransport({"consultar_fatura": 1})

    class Slow:
        async def call(self, tool, arguments, *, idempotency_key):
            await asyncio.sleep(0.15)
            return DONE

    caller = caller_of(Slow(), FakeLedger(), turn_seconds=0.1)
    world = release()
    (first,) = await caller.call(turn(release=world, id="t1"), [READ])
    caller._transport = transport
    other = ToolRequest("consultar_fatura", {"msisdn": "11888"}, ordinal=1)
    (second,) = await caller.call(turn(release=world, id="t1"), [other])
    (elsewhere,) = await caller.call(turn(release=world, id="t2"), [other])

    assert first.ok
    assert (second.status, second.metadata["reason"]) == ("refused", "no_time_left")
    assert (elsewhere.status, len(transport.calls)) == ("ok", 1)


async def test_turn__confirmed_action_and_no_time_left__its_yes_is_not_used_up():
    class Yes:
        used = 0

        async def use(self, turn, grant):
            self.used += 1
            return "granted"

    yes = Yes()
    needs = release(
        tools={"solicitar_troca": EXCHANGE.model_copy(update={"confirmation_required": True})}
    )
    caller = caller_of(Steps(0.05), FakeLedger(), turn_seconds=0.01, confirmations=yes)
    await caller.call(turn(release=needs, id="t1"), [READ])
    confirmed = ToolRequest(ACT.tool, ACT.arguments, confirmation="c1")

    (done,) = await caller.call(turn(release=needs, id="t1"), [confirmed])

    assert (done.metadata["reason"], yes.used) == ("no_time_left", 0)


async def test_turn__little_time_left__a_call_gets_no_more_than_that():
    transport = Steps(DONE)

    await ask(transport, seconds=3.0, timeout_seconds=60.0)

    assert transport.timeouts[0] <= 3.0


async def test_turn__calls_at_once__count_once():
    class Slow:
        async def call(self, tool, arguments, *, idempotency_key):
            await asyncio.sleep(0.1)
            return DONE

    caller = caller_of(Slow(), FakeLedger(), turn_seconds=5)
    asked = turn(id="t1")

    await caller.call(
        asked, [ToolRequest("consultar_fatura", {"msisdn": str(n)}) for n in range(8)]
    )

    assert caller._time.left(asked) > 5 - 0.5


async def test_turn__server_sends_a_sign_of_life_for_ever__ends_with_the_turns_time(monkeypatch):
    monkeypatch.setattr("apps.tools.calling.BACKSTOP_SECONDS", 0.05)

    class Chatty:
        async def call(self, tool, arguments, *, idempotency_key):
            while True:  # noqa: ASYNC110 - nothing ever ends it
                await asyncio.sleep(0.01)

    started = time.monotonic()
    caller = caller_of(Chatty(), FakeLedger(), turn_seconds=0.2)
    (done,) = await caller.call(turn(id="t1"), [READ])

    assert (done.status, done.metadata["unavailable"]) == ("error", "timeout")
    assert time.monotonic() - started < 1.5
