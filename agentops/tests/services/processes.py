"""Processes of a test, each in a group of its own, with its log in a file."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from agentops.env import BASE_DIR

FoundT = TypeVar("FoundT")
POLL_SECONDS = 0.02


def until(
    condition: Callable[[], FoundT | None],
    what: str | Callable[[], str],
    *,
    seconds: float = 60,
    every: float = POLL_SECONDS,
) -> FoundT:
    """Return the first true result of ``condition``; fail with ``what`` after ``seconds``."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() >= end:
            raise AssertionError(
                f"waited {seconds:g} s in vain for {what if isinstance(what, str) else what()}"
            )
        time.sleep(every)


class Process:
    """One started program. Everything it prints is in ``log``."""

    def __init__(
        self, name: str, *command: str, environment: Mapping[str, str], folder: Path
    ) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        with self.log.open("wb") as log:
            self._popen = subprocess.Popen(
                [sys.executable, *command],
                cwd=BASE_DIR,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pid = self._popen.pid

    @property
    def running(self) -> bool:
        return self._popen.poll() is None

    def said(self) -> str:
        """Return its log."""
        return self.log.read_text(errors="replace")

    def ready(self, condition: Callable[[], object], *, seconds: float = 90) -> None:
        """Return when ``condition`` holds; fail with the log when it ends before."""

        def holds() -> object:
            assert self.running, f"{self.name} ended:\n{self.said()[-3000:]}"
            return condition()

        until(holds, lambda: f"{self.name}:\n{self.said()[-3000:]}", seconds=seconds, every=0.05)

    def wait(self, seconds: float) -> int:
        """Wait for its end and return its exit code."""
        return self._popen.wait(seconds)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the whole group."""
        if self.running:
            os.killpg(self.pid, number)

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        self.signal(signal.SIGKILL)
        self._popen.wait(10)

    def stop(self) -> None:
        """Ask it to end; after five seconds do not ask."""
        self.signal(signal.SIGTERM)
        try:
            self._popen.wait(5)
        except subprocess.TimeoutExpired:
            self.kill()

    def descriptors(self) -> int:
        """Return how many file descriptors it has open (Linux)."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))
