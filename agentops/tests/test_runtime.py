"""The runtime of one process: started once, and stopped from a turn that is no longer its own."""

import asyncio
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from django.db import OperationalError as OperationalDatabaseError
from kombu.exceptions import OperationalError

from agentops import wiring
from agentops.runtime import Runtime
from apps.conversations import services, tasks
from apps.runtime.pipeline import Pipeline
from apps.runtime.testing import turn_of


async def closed():
    """Close nothing."""


def test_worker_runtime__first_tasks_come_at_once__one_loop_is_started(monkeypatch):
    built = []

    def build():
        time.sleep(0.05)
        built.append(threading.current_thread().name)
        return Pipeline(steps=[], closing=[], failure_text=lambda turn: ""), closed

    monkeypatch.setattr(wiring, "runtime", Runtime(build))
    monkeypatch.setattr(wiring, "_loop_thread", None)
    together = threading.Barrier(8)

    def first_task(_number):
        together.wait()
        runtime = wiring.worker_runtime()
        assert runtime.started
        return runtime

    with ThreadPoolExecutor(8) as tasks:
        runtimes = set(tasks.map(first_task, range(8)))
    assert wiring._loop_thread is not None
    wiring._loop_thread.stop()
    assert len(runtimes) == len(built) == 1


def test_doorbell__broker_does_not_answer__is_not_tried_again_before_the_sweep(
    monkeypatch, settings
):
    tried = []

    def apply_async(arguments, **options):
        tried.append(arguments)
        raise OperationalError

    settings.EMBEDDED = False
    monkeypatch.setattr(wiring, "_silent_until", 0.0)
    monkeypatch.setattr(tasks.run_turn, "apply_async", apply_async)
    for _ in range(3):
        wiring.ring(1, uuid.uuid4())
    assert len(tried) == 1
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + settings.TURN_SWEEP_SECONDS + 1)
    wiring.ring(1, uuid.uuid4())
    assert len(tried) == 2


def quick_runtime():
    return Runtime(lambda: (Pipeline(steps=[], closing=[], failure_text=lambda turn: ""), closed))


async def test_runtime__closed_while_a_turn_runs__waits_for_its_end():
    runtime = quick_runtime()
    await runtime.start()
    ended = []

    async def turn():
        await asyncio.sleep(0.05)
        ended.append("turn")

    runtime.spawn(turn())
    await asyncio.sleep(0)
    await runtime.aclose()
    assert ended == ["turn"]


async def test_runtime__closed_while_a_turn_does_not_end__lets_it_go(monkeypatch):
    monkeypatch.setattr("agentops.runtime.STOP_SECONDS", 0.05)
    runtime = quick_runtime()
    await runtime.start()
    let_go = []

    async def turn():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            let_go.append("turn")
            raise

    runtime.spawn(turn())
    await asyncio.sleep(0)
    await runtime.aclose()
    assert let_go == ["turn"]


async def test_runtime__closing__takes_no_further_turn(monkeypatch):
    taken = []
    monkeypatch.setattr("agentops.runtime.turn_take_open", lambda *turn: taken.append(turn))
    runtime = quick_runtime()
    await runtime.start()
    assert await runtime.run_turn(1, uuid.uuid4()) is False
    await runtime.aclose()
    assert await runtime.run_turn(1, uuid.uuid4()) is False
    assert len(taken) == 1


class Endless:
    """A step that never ends by itself."""

    async def __call__(self, turn):
        await asyncio.Event().wait()


async def test_walk__lease_lost__is_stopped_and_the_process_goes_on(monkeypatch, settings, caplog):
    beats = iter([True, OperationalDatabaseError("restarting"), True, False])

    def turn_extend(**held):
        beat = next(beats)
        if isinstance(beat, Exception):
            raise beat
        return beat

    settings.TURN_HEARTBEAT_SECONDS = 0.01
    monkeypatch.setattr(services, "turn_extend", turn_extend)
    runtime = Runtime(
        lambda: (Pipeline(steps=[Endless()], closing=[], failure_text=lambda turn: ""), closed)
    )
    await runtime.start()
    taken = SimpleNamespace(tenant_id=1, turn_id=uuid.uuid4(), fence=1, session_key="acme:agent:s1")
    await asyncio.wait_for(runtime._walk(taken, turn_of("oi")), 5)  # type: ignore[arg-type]
    assert next(beats, None) is None
    assert "no heartbeat, OperationalError" in caplog.text
    assert "another worker holds it now" in caplog.text


async def test_walk__cancelled_by_the_process__is_not_taken_for_a_lost_lease():
    runtime = Runtime(
        lambda: (Pipeline(steps=[Endless()], closing=[], failure_text=lambda turn: ""), closed)
    )
    await runtime.start()
    taken = SimpleNamespace(tenant_id=1, turn_id=uuid.uuid4(), fence=1, session_key="acme:agent:s1")
    walk = asyncio.create_task(runtime._walk(taken, turn_of("oi")))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    walk.cancel()
    with pytest.raises(asyncio.CancelledError):
        await walk
