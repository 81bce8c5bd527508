"""MCP with a program on this machine: one line in, one line out.

A program belongs to one tenant, server and credential: it may keep state, and nobody may find
another's. It is started by the first call, again after it died (at once, then after growing
pauses), and killed with its process group when the connection is closed.
"""

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import Callable, Mapping
from typing import Any

from apps.runtime.ports import ToolUnavailable
from apps.tools.results import NotJson, json_parse
from apps.tools.transports import connections
from apps.tools.transports.connections import AnswerTooLong
from apps.tools.transports.duplex import DuplexWire
from apps.tools.transports.programs import Program
from apps.tools.transports.rpc import NoAnswer, Notified, encode

logger = logging.getLogger(__name__)

MAX_PROGRAMS = 32
"""Programs at work per worker; the one unused for longest is stopped first."""

STEADY_SECONDS = 30.0
"""A program that lived so long did not die of its start."""

MAX_PAUSE_SECONDS = 60.0
CLOSE_SECONDS = 2.0
"""How long a program may take to end by itself, and again after SIGTERM."""

MAX_LOG_LINES = 200
"""Lines of a program's standard error that reach the log; the rest is read and dropped."""

MAX_LOG_CHARACTERS = 500


class Supervisor:
    """Remembers how one program's runs ended, and when the next may begin."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._deaths = 0
        self._not_before = 0.0

    def check(self) -> None:
        """Raise ``ToolUnavailable`` while the program is not to be started again."""
        wait = self._not_before - self._clock()
        if wait > 0:
            text = f"The program keeps stopping; it is started again in {wait:.0f} s."
            raise ToolUnavailable(text, sent=False)

    def ended(self, lived: float) -> None:
        """Note the end of a run that nobody asked for: the first is forgiven, then 1, 2, 4, … s."""
        self._deaths = 1 if lived >= STEADY_SECONDS else self._deaths + 1
        pause = min(MAX_PAUSE_SECONDS, 2.0 ** (self._deaths - 2)) if self._deaths > 1 else 0.0
        self._not_before = self._clock() + pause


class StdioWire(DuplexWire):
    """One run of ``program``."""

    def __init__(
        self,
        name: str,
        program: Program,
        credential: str,
        supervisor: Supervisor,
        notified: Notified,
    ) -> None:
        super().__init__(notified)
        self._name = name
        self._program = program
        self._credential = credential
        self._supervisor = supervisor
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the program. Raises ``ToolUnavailable``."""
        self._supervisor.check()
        await super().start()

    async def _own(self) -> None:
        self._process = process = await self._started()
        began = time.monotonic()
        errors = asyncio.create_task(self._log(process))
        asked = False
        try:
            self._opened()
            await self._lines(process)
        except asyncio.CancelledError:
            asked = True
            raise
        finally:
            if not asked:
                self._supervisor.ended(time.monotonic() - began)
            self.alive = False
            await asyncio.shield(_stopped(process))
            errors.cancel()
        raise NoAnswer(f"The program ended (status {process.returncode}).")

    async def _started(self) -> asyncio.subprocess.Process:
        program = self._program
        try:
            return await asyncio.create_subprocess_exec(
                program.command,
                *program.args,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=program.environment(self._credential),
                cwd=program.cwd,
                start_new_session=True,
                limit=connections.MAX_ANSWER_BYTES,
            )
        except (OSError, ValueError) as error:
            self._supervisor.ended(0.0)
            text = f"The program cannot be started ({type(error).__name__})."
            raise ToolUnavailable(text, sent=False) from error

    async def _lines(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while True:
            try:
                line = await process.stdout.readline()
            except ValueError:
                raise AnswerTooLong from None
            if not line:
                return
            try:
                message = json_parse(line)
            except NotJson:  # A banner, or a print that should have gone to standard error.
                continue
            if isinstance(message, dict):
                self._heard(message)

    async def _write(self, message: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        if self._process is None or self._process.stdin is None:
            raise NoAnswer("The program is not running.")
        try:
            self._process.stdin.write(encode(message) + b"\n")
            await self._process.stdin.drain()
        except (ConnectionError, RuntimeError) as error:
            raise NoAnswer("The program took no more input.") from error

    async def _log(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        count = 0
        with contextlib.suppress(ValueError):
            while line := await process.stderr.readline():
                count += 1
                if count <= MAX_LOG_LINES:
                    text = line.decode("utf-8", "replace").rstrip()[:MAX_LOG_CHARACTERS]
                    logger.info("program %s: %s", self._name, text)
                elif count == MAX_LOG_LINES + 1:
                    logger.info("program %s: more output is not logged", self._name)
        while await process.stderr.read(65536):
            pass


async def _stopped(process: asyncio.subprocess.Process) -> None:
    """End ``process`` and what it started: close its input, then SIGTERM, then SIGKILL to all."""
    if process.stdin is not None:
        process.stdin.close()
    for sign in (None, signal.SIGTERM, signal.SIGKILL):
        if sign is not None:
            _signal(process.pid, sign)
        if await _ended(process):
            break
    _signal(process.pid, signal.SIGKILL)
    # Pipes that something of the program's still holds would stay open until this process ends.
    process._transport.close()  # type: ignore[attr-defined]
    await asyncio.sleep(0)


async def _ended(process: asyncio.subprocess.Process) -> bool:
    """Whether it ends in time. ``wait()`` also waits for pipes that its own children may hold."""
    ends = time.monotonic() + CLOSE_SECONDS
    while process.returncode is None and time.monotonic() < ends:  # noqa: ASYNC110 - it says no more
        await asyncio.sleep(0.01)
    return process.returncode is not None


def _signal(group: int, sign: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, sign)
