"""Starts and stops what belongs to a web process."""

import asyncio
import contextlib
import fcntl
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any

from channels.layers import get_channel_layer
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from agentops import tool_gateway, wiring
from agentops.mcp_door import McpDoor
from apps.conversations.announcing import LAYER_ERRORS, LAYER_SECONDS
from apps.conversations.tasks import sweep_all
from apps.tenants.chores import chores_run
from apps.tenants.threads import in_thread

logger = logging.getLogger(__name__)
# One thread of their own: a chore may wait for a mail server or another system, turns may not.
_chores_thread = ThreadPoolExecutor(1, thread_name_prefix="chores")


class Lifespan:
    """ASGI lifespan. Embedded, the turns run on the server's own loop; else workers run them."""

    def __init__(self, mcp: McpDoor | None = None) -> None:
        self._mcp = mcp
        self._lock: IO[str] | None = None
        self._sweeper: asyncio.Task[None] | None = None
        self._chores: asyncio.Task[None] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await self.startup()
                except ImproperlyConfigured as error:
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.shutdown()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def startup(self) -> None:
        """Take the single-process lock, start the runtime, the sweeper and the chores (embedded only)."""
        tool_gateway.kept.start()
        if not settings.EMBEDDED:
            await keep_listening()
            return
        self._lock = embedded_lock()
        await wiring.runtime.start()
        # Before the first message comes in. The lock says that nobody else runs what this file of a
        # database calls running: a former process left it behind.
        await sweep(alone=settings.EMBEDDED_DATABASE)
        self._sweeper = asyncio.create_task(sweep_forever())
        self._chores = asyncio.create_task(chores_forever())
        asyncio.get_running_loop().run_in_executor(None, wiring.warm)

    async def shutdown(self) -> None:
        """Stop what ``startup`` started."""
        if self._mcp is not None:
            await self._mcp.aclose()
        await tool_gateway.kept.aclose()
        if self._chores is not None:
            self._chores.cancel()
        if self._sweeper is not None:
            self._sweeper.cancel()
            await wiring.runtime.aclose()
        if self._lock is not None:
            self._lock.close()


async def keep_listening() -> None:
    """Subscribe this process to a group that nobody writes to, for as long as it lives.

    The Redis layer's receiver sleeps a tenth of a second while nothing is subscribed, and the first
    waiter after that would pay it. A layer that is down leaves that delay.
    """
    layer = get_channel_layer()
    with contextlib.suppress(*LAYER_ERRORS):
        async with asyncio.timeout(LAYER_SECONDS):
            await layer.group_add("listening", await layer.new_channel())


def embedded_lock() -> IO[str]:
    """Return the held lock file of the one embedded process; refuse to be a second one."""
    settings.DATA_DIR.mkdir(parents=True, exist_ok=True)
    lock = (settings.DATA_DIR / "embedded.lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise ImproperlyConfigured(
            f"another process already serves {settings.DATA_DIR}. Without REDIS_URL the product is "
            "one process: stop the other one, use another data folder, or set REDIS_URL."
        ) from None
    return lock


async def sweep_forever() -> None:
    """Sweep every ``TURN_SWEEP_SECONDS``."""
    while True:
        await asyncio.sleep(settings.TURN_SWEEP_SECONDS)
        await sweep()


async def chores_forever() -> None:
    """Do what is due in every tenant every ``CHORES_SECONDS``; see ``chores_run``."""
    while True:
        await asyncio.sleep(settings.CHORES_SECONDS)
        try:
            await asyncio.get_running_loop().run_in_executor(_chores_thread, chores_run)
        except Exception:
            logger.exception("the chores failed; the next run tries again")


async def sweep(*, alone: bool = False) -> None:
    """Sweep once; see ``services.tenant_sweep``. Whatever goes wrong is tried again next time."""
    try:
        await in_thread(sweep_all, alone=alone)
    except Exception:
        logger.exception("the sweep failed; the next one tries again")
