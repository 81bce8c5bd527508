"""Wires that stay open: requests go down, answers come up whenever they are ready."""

import asyncio
import contextlib
import logging
from abc import abstractmethod
from collections.abc import Coroutine, Mapping
from typing import Any

from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp.types import REQUEST_TIMEOUT

from apps.tools.transports.rpc import (
    NoAnswer,
    Notified,
    SessionGone,
    Wire,
    answer_of,
    headers_of,
    notification_message,
    reply_message,
    request_message,
)

logger = logging.getLogger(__name__)


class DuplexWire(Wire):
    """One task owns the channel: it opens it, reads it, and closes it.

    Whoever asks waits for a future of its own. When the channel ends, every open request ends with
    it as sent and unanswered, and the wire is dead; nothing else is torn down.
    """

    def __init__(self, notified: Notified) -> None:
        self._notified = notified
        self._ids = 0
        self._open: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._owner: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None] | None = None
        self._aside: set[asyncio.Task[None]] = set()

    @abstractmethod
    async def _own(self) -> None:
        """Open the channel, call ``_opened``, hand over each message to ``_heard``, close it."""

    @abstractmethod
    async def _write(self, message: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        """Send one message. Raises as requests do."""

    async def start(self) -> None:
        """Open the channel. Raises what opening raises."""
        self._ready = asyncio.get_running_loop().create_future()
        self._owner = asyncio.create_task(self._run())
        try:
            await self._ready
        except asyncio.CancelledError:
            self._owner.cancel()
            raise

    async def aclose(self) -> None:
        """End the owner; open requests end with it."""
        self.alive = False
        tasks = [task for task in (self._owner, *self._aside) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Return the ``result`` of the answer to ``method``."""
        if not self.alive:
            raise SessionGone
        options: CallOptions = opts or {}
        self._ids += 1
        number = self._ids
        future = self._open[number] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(options.get("timeout")):
                await self._write(
                    request_message(number, method, params), headers_of(params, options)
                )
                return answer_of(await future)
        except TimeoutError:
            raise MCPError(code=REQUEST_TIMEOUT, message="The server did not answer.") from None
        finally:
            del self._open[number]
            if not future.cancel() and not future.cancelled():
                future.exception()  # It was told; nobody may be left to hear it.
            elif method != "initialize" and self.alive:
                self._later(self._give_up(number))

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Send a message that has no answer."""
        if self.alive:
            await self._write(notification_message(method, params), (opts or {}).get("headers", {}))

    def _opened(self) -> None:
        if self._ready is not None and not self._ready.done():
            self._ready.set_result(None)

    def _heard(self, message: Mapping[str, Any]) -> None:
        """Take one message from the server."""
        if "method" in message:
            if "id" in message:
                self._later(self._write(reply_message(message), {}))
            else:
                self._notified(str(message["method"]))
            return
        number = message.get("id")
        future = self._open.get(number) if isinstance(number, int) else None
        if future is not None and not future.done():
            future.set_result(dict(message))

    async def _run(self) -> None:
        failure: Exception = NoAnswer("The connection was closed.")
        try:
            await self._own()
        except Exception as error:
            failure = error
        finally:
            self.alive = False
            self._ended(failure)

    def _ended(self, failure: Exception) -> None:
        if self._ready is not None and not self._ready.done():
            self._ready.set_exception(failure)
        for future in self._open.values():
            if not future.done():
                future.set_exception(NoAnswer(str(failure) or "The server broke off."))

    async def _give_up(self, number: int) -> None:
        params = {"requestId": number, "reason": "The caller no longer waits."}
        await self._write(notification_message("notifications/cancelled", params), {})

    def _later(self, sending: Coroutine[Any, Any, None]) -> None:
        """Send something nobody waits for."""

        async def quietly() -> None:
            with contextlib.suppress(Exception):
                await sending

        task = asyncio.create_task(quietly())
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)
