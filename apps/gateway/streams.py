"""Waiting for a session: events in order, whoever else watches.

Events are rows; the channel layer only says "look again", so a lost wake-up costs a poll and never
an event. Nothing here holds a thread or a database connection while it waits.
"""

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from channels.layers import get_channel_layer
from django.conf import settings

from apps.conversations import selectors
from apps.conversations.announcing import LAYER_ERRORS, LAYER_SECONDS, session_group
from apps.conversations.selectors import EventRow, TurnView
from apps.tenants.threads import in_thread

POLL_SECONDS = 2.0
"""How often somebody who waits looks without being told; a quiet stream's polls get rarer."""

POLL_SECONDS_MAX = 15.0
PAGE = 500


class Wake:
    """Hears that a session changed. Use as an async context manager around the first read."""

    def __init__(self, tenant_id: int, session_name: str) -> None:
        self._group = session_group(tenant_id, session_name)
        self._layer = get_channel_layer()
        self._channel = ""
        self._heard: asyncio.Future[dict[str, Any]] | None = None

    async def __aenter__(self) -> "Wake":
        # A layer that is down leaves the poll.
        with contextlib.suppress(*LAYER_ERRORS):
            async with asyncio.timeout(LAYER_SECONDS):
                channel = await self._layer.new_channel()
                await self._layer.group_add(self._group, channel)
            self._channel = channel
            self._listen()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._channel:
            return
        with contextlib.suppress(*LAYER_ERRORS):
            async with asyncio.timeout(LAYER_SECONDS):
                await self._layer.group_discard(self._group, self._channel)
        # The Redis layer unsubscribes a channel when its receive is cancelled, once it has begun.
        await asyncio.sleep(0)
        if self._heard is not None:
            self._heard.cancel()

    async def wait(self, seconds: float) -> str | None:
        """Return ``None`` after ``seconds``, or earlier the id of the turn that settled, "" when
        something else changed."""
        if not self._channel:
            await asyncio.sleep(seconds)
            return None
        assert self._heard is not None
        await asyncio.wait({self._heard}, timeout=seconds)
        if not self._heard.done():
            return None
        heard = self._heard
        if heard.cancelled() or heard.exception() is not None:
            self._channel = ""
            return None
        self._listen()
        return str(heard.result().get("settled", ""))

    def _listen(self) -> None:
        # One receive stays open from wait to wait: the Redis layer forgets the channel of a
        # cancelled one, and what is announced meanwhile would be lost.
        self._heard = asyncio.ensure_future(self._layer.receive(self._channel))


async def turn_wait(
    wake: Wake, *, tenant_id: int, turn_id: uuid.UUID, seconds: float, look_first: bool
) -> TurnView | None:
    """Return the settled turn, or ``None`` when ``seconds`` passed before it was."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    look = look_first
    while True:
        if look:
            view = await in_thread(selectors.turn_view, tenant_id=tenant_id, turn_id=turn_id)
            if view is not None and view.settled:
                return view
        left = until - loop.time()
        if left <= 0:
            return None
        woken = await wake.wait(min(left, POLL_SECONDS))
        # Another turn of the session is no news to whoever waits for this one.
        look = woken is None or woken == str(turn_id)


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
        return f"{head}event: {self.event_type}\ndata: {body}\n\n".encode("utf-8", "replace")


KEEPALIVE = b": keepalive\n\n"


async def _always() -> bool:
    return True


@dataclass(frozen=True)
class Watch:
    """Which session is watched, and by whom.

    ``name``: given when the path named the session without its agent: the newest session of that
    name is then watched, and ``key`` is the one it would have. ``allowed`` says whether the viewer's
    credential still counts; it is asked again while the stream lasts.
    """

    tenant_id: int
    tenant_slug: str
    key: str
    name: str = ""
    allowed: Callable[[], Awaitable[bool]] = field(default=_always)

    @property
    def session_name(self) -> str:
        return self.key.split(":", 2)[-1]

    def envelope(self, key: str) -> dict[str, Any]:
        """Return what every frame says of its session."""
        agent = key.split(":", 2)[1]
        return {"tenant_id": self.tenant_slug, "agent_id": agent, "session_id": key}

    def marker(self, event_type: str, key: str, **more: Any) -> Frame:
        """Return a frame that is no stored event and carries no id."""
        return Frame(event_type, {"event_type": event_type, **self.envelope(key), **more})


def event_frame(row: EventRow, envelope: dict[str, Any]) -> Frame:
    """Return a stored event in the public envelope."""
    data = {
        "event_type": row.event_type,
        "timestamp": row.created_at,
        **envelope,
        "trace_id": row.turn_id,
        "sequence": row.sequence,
        "payload": json.loads(row.payload),
    }
    return Frame(row.event_type, data, row.sequence)


async def session_frames(watch: Watch, *, after: int | None) -> AsyncGenerator[Frame | None]:
    """Yield a session's frames: ``connected``, what is stored after ``after``, then live, until the
    viewer's credential no longer counts.

    ``None`` in the stream is a keep-alive. Without a cursor the newest ``SSE_REPLAY_LIMIT`` events
    are replayed. A session that does not exist yet gives one ``waiting``. A cursor whose events are
    no longer all there, or that the session never reached, gives ``resync`` and what is there.
    """
    yield watch.marker("connected", watch.key)
    async with Wake(watch.tenant_id, watch.session_name) as wake:
        pace = _Pace(watch, wake)
        session = await _find(watch)
        if session is None:
            yield watch.marker("waiting", watch.key)
        while session is None:
            if not await pace.next():
                return
            if pace.keepalive_due:
                yield None
            session = await _find(watch)
        start = await in_thread(
            selectors.event_start,
            tenant_id=watch.tenant_id,
            session_id=session.id,
            after=after,
            limit=settings.SSE_REPLAY_LIMIT,
        )
        if start.resync:
            yield watch.marker("resync", session.key, oldest=start.cursor + 1)
        async for frame in _stored_frames(pace, session.id, session.key, start.cursor):
            yield frame


async def turn_frames(
    watch: Watch, *, session_id: uuid.UUID, turn_id: uuid.UUID
) -> AsyncGenerator[Frame | None]:
    """Yield ``connected`` and the events of one turn, up to its ``flow.end``."""
    yield watch.marker("connected", watch.key)
    async with Wake(watch.tenant_id, watch.session_name) as wake:
        pace = _Pace(watch, wake)
        cursor = await in_thread(selectors.turn_start, tenant_id=watch.tenant_id, turn_id=turn_id)
        frames = _stored_frames(pace, session_id, watch.key, cursor, turn_id)
        async with contextlib.aclosing(frames):
            async for frame in frames:
                yield frame
                if frame is not None and frame.event_type == "flow.end":
                    return


async def _find(watch: Watch) -> Any:
    if watch.name:
        return await in_thread(
            selectors.session_find_named, tenant_id=watch.tenant_id, name=watch.name
        )
    return await in_thread(selectors.session_find, tenant_id=watch.tenant_id, key=watch.key)


async def _stored_frames(
    pace: "_Pace",
    session_id: uuid.UUID,
    key: str,
    cursor: int,
    turn_id: uuid.UUID | None = None,
) -> AsyncGenerator[Frame | None]:
    envelope = pace.watch.envelope(key)
    while True:
        rows = await in_thread(
            selectors.events_after,
            tenant_id=pace.watch.tenant_id,
            session_id=session_id,
            after=cursor,
            limit=PAGE,
            turn_id=turn_id,
        )
        for row in rows:
            cursor = row.sequence
            yield event_frame(row, envelope)
        if rows:
            pace.busy()
        if len(rows) == PAGE:
            continue
        if not await pace.next():
            return
        if pace.keepalive_due:
            yield None


class _Pace:
    """When a stream looks again, says that it lives, and asks whether its viewer may still watch."""

    def __init__(self, watch: Watch, wake: Wake) -> None:
        self.watch = watch
        self.keepalive_due = False
        self._wake = wake
        self._loop = asyncio.get_running_loop()
        self._poll = POLL_SECONDS
        self._spoken_at = self._checked_at = self._loop.time()

    def busy(self) -> None:
        """Something was sent."""
        self._poll = POLL_SECONDS
        self._spoken_at = self._loop.time()

    async def next(self) -> bool:
        """Wait until it is worth looking again; ``False`` when the viewer may no longer watch."""
        if self.keepalive_due:
            self._spoken_at = self._loop.time()
        quiet = self._loop.time() - self._spoken_at
        left = max(0.0, settings.SSE_KEEPALIVE_SECONDS - quiet)
        woken = await self._wake.wait(min(self._poll, left))
        self._poll = POLL_SECONDS if woken is not None else min(self._poll * 2, POLL_SECONDS_MAX)
        now = self._loop.time()
        self.keepalive_due = now - self._spoken_at >= settings.SSE_KEEPALIVE_SECONDS
        if now - self._checked_at >= settings.SSE_KEEPALIVE_SECONDS:
            self._checked_at = now
            return await self.watch.allowed()
        return True
