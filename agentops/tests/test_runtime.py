"""The runtime of one process: started once, and stopped from a turn that is no longer its own."""

import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

from kombu.exceptions import OperationalError

from agentops import wiring
from agentops.runtime import Runtime
from apps.conversations import tasks
from apps.runtime.pipeline import Pipeline


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
