"""Runs turns on one event loop of this process: claim, walk, heartbeat, next.

In the embedded default the loop is the web server's own; a Celery worker has one in a thread.
"""

import asyncio
import contextvars
import logging
import os
import socket
import threading
import uuid
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any

import structlog
from django.conf import settings
from django.db.utils import Error as DatabaseError

from apps.conversations import services
from apps.conversations.announcing import announce
from apps.conversations.services import Taken
from apps.releases.selectors import bindings_load, release_load
from apps.runtime.pipeline import Pipeline
from apps.runtime.ports import LeaseLost
from apps.runtime.turn import Turn
from apps.tenants.scope import tenant_scope
from apps.tenants.threads import in_thread

logger = logging.getLogger(__name__)
SECRET_PREFIX = "AGENTOPS_SECRET__"  # noqa: S105  # a prefix of variables' names


STOP_SECONDS = 5.0
"""How long a process that is asked to end waits for its turns: an action that is broken off would
be of unknown outcome."""


class Runtime:
    """Everything of this process that is bound to one event loop.

    ``build`` makes the pipeline on that loop (kept tool and model clients live there) and returns
    it with a coroutine function that closes it.
    """

    def __init__(
        self, build: Callable[[], tuple[Pipeline, Callable[[], Coroutine[Any, Any, None]]]]
    ) -> None:
        self._build = build
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._pipeline: Pipeline | None = None
        self._close: Callable[[], Coroutine[Any, Any, None]] | None = None
        self._slots: asyncio.Semaphore | None = None
        self._closing = False
        self.worker = ""

    @property
    def started(self) -> bool:
        return self._loop is not None and not self._loop.is_closed()

    async def start(self) -> None:
        """Bind to the running loop. Call once."""
        self._closing = False
        self.worker = f"{socket.gethostname()}:{os.getpid()}"  # of the child, when a pool forks
        self._slots = asyncio.Semaphore(settings.TURN_CONCURRENCY)
        self._pipeline, self._close = self._build()
        self._loop = asyncio.get_running_loop()

    async def aclose(self) -> None:
        """Take no more turns, give running ones ``STOP_SECONDS`` to end, and close kept clients.

        Those that do not end are let go: a restart or the end of their lease brings them back.
        """
        self._closing = True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_SECONDS)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._close is not None:
            await self._close()
        self._loop = None

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Run ``coroutine`` on the loop from any thread, in a fresh context.

        A task born in a request would otherwise keep the request's executor, tenant and log
        context, and lose the first when the response is out.
        """
        assert self._loop is not None

        def begin() -> None:
            assert self._loop is not None
            task = self._loop.create_task(coroutine, context=contextvars.Context())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        self._loop.call_soon_threadsafe(begin)

    def ring(self, tenant_id: int, turn_id: uuid.UUID) -> None:
        """Run the turn's session on the loop; callable from any thread."""
        self.spawn(self.run_turn(tenant_id, turn_id))

    def submit(self, tenant_id: int, turn_id: uuid.UUID) -> "Future[bool]":
        """Like ``ring``, for a thread that waits for the end."""
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(self.run_turn(tenant_id, turn_id), self._loop)

    async def run_turn(self, tenant_id: int, turn_id: uuid.UUID) -> bool:
        """Run the session's next queued turn; return whether there was one."""
        assert self._slots is not None
        async with self._slots:
            if self._closing:
                return False
            opened = await in_thread(turn_take_open, tenant_id, turn_id, self.worker)
            if opened is None:
                return False
            taken, turn = opened
            with (
                tenant_scope(tenant_id),
                structlog.contextvars.bound_contextvars(
                    tenant_id=tenant_id, turn_id=str(taken.turn_id), session=str(taken.session_id)
                ),
            ):
                await self._walk(taken, turn)
            return True

    async def _walk(self, taken: Taken, turn: Turn) -> None:
        assert self._pipeline is not None
        walk = asyncio.current_task()
        assert walk is not None
        heartbeat = asyncio.create_task(self._heartbeat(taken, walk))
        try:
            await announce(taken.tenant_id, taken.session_key.split(":", 2)[-1])
            await self._pipeline.run(turn)
        except LeaseLost:
            logger.warning("turn %s: another worker holds it now", taken.turn_id)
        except asyncio.CancelledError:
            if not heartbeat.done():
                raise
            walk.uncancel()
            logger.warning("turn %s: stopped, another worker holds it now", taken.turn_id)
        finally:
            heartbeat.cancel()

    async def _heartbeat(self, taken: Taken, walk: "asyncio.Task[Any]") -> None:
        """Prolong the lease while the turn walks; stop the walk when the lease is lost.

        A database that does not answer is asked again: the lease lasts several heartbeats.
        """
        held = True
        while held:
            await asyncio.sleep(settings.TURN_HEARTBEAT_SECONDS)
            try:
                held = await in_thread(
                    services.turn_extend,
                    tenant_id=taken.tenant_id,
                    turn_id=taken.turn_id,
                    fence=taken.fence,
                )
            except DatabaseError as error:
                logger.warning("turn %s: no heartbeat, %s", taken.turn_id, type(error).__name__)
        walk.cancel("lease lost")


def turn_take_open(tenant_id: int, turn_id: uuid.UUID, worker: str) -> tuple[Taken, Turn] | None:
    """Claim and open in one go: a warm turn's release and bindings cost no query."""
    taken = services.turn_take(tenant_id=tenant_id, turn_id=turn_id, worker=worker)
    return None if taken is None else (taken, turn_open(taken))


def turn_open(taken: Taken) -> Turn:
    """Return the claimed turn with its release and the bindings of its environment."""
    release = release_load(taken.tenant_id, taken.release_id)
    tenant_slug = taken.session_key.split(":", 1)[0]
    bindings = bindings_load(taken.tenant_id, taken.environment, taken.bindings_version)
    return Turn(
        id=str(taken.turn_id),
        tenant=str(taken.tenant_id),
        release=release,
        inbound=taken.inbound,
        session=taken.session,
        environment=taken.environment,
        bindings={
            name: secret_variable(tenant_slug, value) if name.startswith("credential:") else value
            for name, value in bindings.items()
        },
        fence=taken.fence,
        text=taken.inbound.text,
        dialogue=taken.session.dialogue,
        vault=taken.session.vault,
    )


def secret_variable(tenant_slug: str, name: str) -> str:
    """Return the environment variable that holds the secret ``name`` of a tenant.

    A binding is a tenant's to edit: it reaches variables of its own tenant only, never another's or
    the process's own. ``-`` and ``_`` of a slug become ``_H`` and ``_U``, so no two slugs meet.
    """
    slug = tenant_slug.replace("_", "_U").replace("-", "_H").upper()
    return f"{SECRET_PREFIX}{slug}__{name}"


class LoopThread:
    """An event loop in a thread of its own, for processes whose main thread is not async."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="turns", daemon=True)
        self._thread.start()

    def call(self, coroutine: Coroutine[Any, Any, Any], timeout: float = 30) -> Any:
        """Run ``coroutine`` on the loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(timeout)

    def stop(self) -> None:
        """Stop the loop and join its thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(5)
        self.loop.close()
