"""Tells whoever listens that the tools of a server have changed."""

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Callable

from apps.runtime.ports import RemoteTool

logger = logging.getLogger(__name__)

SETTLE_SECONDS = 0.2
"""How long more notices of the same server are taken for the same change."""

Changed = Callable[[str, str], Awaitable[None]]
"""Called with the tenant's primary key as text and the tool server's slug; may ask the server."""


async def nobody(tenant: str, server: str) -> None:
    """Listens to nothing."""


class Changes:
    """Calls ``listener`` once for a burst of notices, in a task and a context of its own."""

    def __init__(self, listener: Changed = nobody) -> None:
        self._listener = listener
        self._waiting: set[tuple[str, str]] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def noticed(self, remote: RemoteTool) -> None:
        """Note that the tools of ``remote``'s server are others than before."""
        key = (remote.tenant, remote.server)
        if key in self._waiting:
            return
        self._waiting.add(key)
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._tell(key), context=contextvars.Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def aclose(self) -> None:
        """Tell nobody any more."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _tell(self, key: tuple[str, str]) -> None:
        try:
            await asyncio.sleep(SETTLE_SECONDS)
        finally:
            self._waiting.discard(key)
        try:
            await self._listener(*key)
        except Exception:
            logger.exception("tools of server %s changed, and the listener failed", key[1])
