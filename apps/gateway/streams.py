"""Waiting for a session: events in order, whoever else watches.

Events are rows; the channel layer only says "look again", so a lost wake-up costs a poll and never
an event. Nothing here holds a thread or a database connection while it waits.
"""

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from asgiref.sync import sync_to_async
from channels.layers import get_channel_layer
from django.conf import settings

from apps.conversations import selectors
from apps.conversations.announcing import session_group
from apps.conversations.selectors import EventRow, TurnView

POLL_SECONDS = 2.0
PAGE = 500


class Wake:
    """Hears that a session changed. Use as an async context manager around the first read."""

    def __init__(self, tenant_id: int, session_name: str) -> None:
        self._group = session_group(tenant_id, session_name)
        self._layer = get_channel_layer()
        self._channel = ""

    async def __aenter__(self) -> "Wake":
        # A layer that is down leaves the poll.
        with contextlib.suppress(OSError, RuntimeError):
            self._channel = await self._layer.new_channel()
            await self._layer.group_add(self._group, self._channel)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._channel:
            with contextlib.suppress(OSError, RuntimeError):
                await self._layer.group_discard(self._group, self._channel)

    async def wait(self, seconds: float) -> None:
        """Return when the session changed, or after ``seconds``."""
        if not self._channel:
            await asyncio.sleep(seconds)
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._layer.receive(self._channel), timeout=seconds)


async def turn_wait(
    wake: Wake, *, tenant_id: int, turn_id: uuid.UUID, seconds: float, look_first: bool
) -> TurnView | None:
    """Return the settled turn, or ``None`` when ``seconds`` passed before it was."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    look = look_first
    while True:
        if look:
            view = await sync_to_async(selectors.turn_view)(tenant_id=tenant_id, turn_id=turn_id)
            if view is not None and view.settled:
                return view
        left = until - loop.time()
        if left <= 0:
            return None
        await wake.wait(min(left, POLL_SECONDS))
        look = True


@dataclass(frozen=True)
class Frame:
    """One thing a stream sends. ``sequence`` is ``None`` for what is not a stored event."""

    event_type: str
    data: dict[str, Any]
    sequence: int | None = None

    def sse(self) -> bytes:
        """Return the frame as server-sent event bytes."""
        head = f"id: {self.sequence}\n" if self.sequence is not None else ""
        body = json.dumps(self.data, ensure_ascii=False, separators=(",", ":"))
        return f"{head}event: {self.event_type}\ndata: {body}\n\n".encode()


KEEPALIVE = b": keepalive\n\n"


def event_frame(row: EventRow, envelope: dict[str, Any]) -> Frame:
    """Return a stored event in the public envelope."""
    payload = json.loads(row.payload)
    return Frame(
        row.event_type,
        {
            "event_type": row.event_type,
            "timestamp": row.created_at,
            **envelope,
            "trace_id": payload.get("turn_id", ""),
            "sequence": row.sequence,
            "payload": payload,
        },
        row.sequence,
    )


async def session_frames(
    *, tenant_id: int, tenant_slug: str, key: str, after: int | None
) -> AsyncIterator[Frame | None]:
    """Yield a session's frames for ever: ``connected``, what is stored after ``after``, then live.

    ``None`` in the stream is a keep-alive. Without a cursor the newest ``SSE_REPLAY_LIMIT`` events
    are replayed. A session that does not exist yet gives ``waiting`` until it does. A cursor whose
    events are no longer all there gives ``resync``.
    """
    parts = key.split(":", 2)
    envelope = {
        "tenant_id": tenant_slug,
        "agent_id": parts[1] if len(parts) > 2 else "",
        "session_id": key,
    }
    yield Frame("connected", {"event_type": "connected", **envelope})
    async with Wake(tenant_id, parts[-1]) as wake:
        session_id = None
        while session_id is None:
            session = await sync_to_async(selectors.session_find)(tenant_id=tenant_id, key=key)
            if session is None:
                yield Frame("waiting", {"event_type": "waiting", **envelope})
                await wake.wait(POLL_SECONDS)
                continue
            session_id = session.id
        start = await sync_to_async(selectors.event_start)(
            tenant_id=tenant_id, session_id=session_id, after=after, limit=settings.SSE_REPLAY_LIMIT
        )
        if start.resync:
            yield Frame("resync", {"event_type": "resync", **envelope, "oldest": start.cursor + 1})
        async for frame in _stored_frames(wake, tenant_id, session_id, start.cursor, envelope):
            yield frame


async def _stored_frames(
    wake: Wake, tenant_id: int, session_id: uuid.UUID, cursor: int, envelope: dict[str, Any]
) -> AsyncIterator[Frame | None]:
    loop = asyncio.get_running_loop()
    quiet_since = loop.time()
    while True:
        rows = await sync_to_async(selectors.events_after)(
            tenant_id=tenant_id, session_id=session_id, after=cursor, limit=PAGE
        )
        for row in rows:
            cursor = row.sequence
            yield event_frame(row, envelope)
        if rows:
            quiet_since = loop.time()
        if len(rows) == PAGE:
            continue
        if loop.time() - quiet_since >= settings.SSE_KEEPALIVE_SECONDS:
            quiet_since = loop.time()
            yield None
        await wake.wait(min(POLL_SECONDS, settings.SSE_KEEPALIVE_SECONDS))
