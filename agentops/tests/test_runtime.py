"""The runtime of one process: started once, and stopped from a turn that is no longer its own."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from agentops import wiring
from agentops.runtime import Runtime
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
    wiring._loop_thread.stop()
    assert len(runtimes) == len(built) == 1
