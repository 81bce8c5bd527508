"""The websocket of a session: its events out; messages in."""

import asyncio
import contextlib
import json
import logging
from typing import Any
from urllib.parse import parse_qs

from channels.generic.websocket import AsyncWebsocketConsumer
from rest_framework import exceptions

from apps.gateway.api import accept
from apps.gateway.bodies import body_read
from apps.gateway.contract import inbound_read
from apps.gateway.doors import caller_facts, may_enter
from apps.gateway.problems import Problem, not_found, refusal
from apps.gateway.sessions import (
    cursor_read,
    name_plausible,
    session_key,
    session_tenant,
    watched_name,
)
from apps.gateway.streams import Watch, session_frames
from apps.tenants.auth import Principal, aprincipal_of_scope

logger = logging.getLogger(__name__)
# Close codes of our own are 4000 + the HTTP status that says the same.
UNAUTHORIZED = 4401
BROKEN = 1011


class NoSuchSocket(AsyncWebsocketConsumer):  # type: ignore[misc]
    """Every other path: closed as absent."""

    async def connect(self) -> None:
        await self.accept()
        await self.close(code=4404)


class SessionConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """``/ws/sessions/{session_id}?after=N``. Closes with 4400 (a bad ``after``), 4401, 4403 or 4404.

    In: the payload of a GatewayRequest, ``{"message": …, "message_id": …}``. Out: the frames of the
    SSE stream as ``{"event": …, "id": …, "data": …}``, ``accepted`` for each message, and
    ``problem``. A credential that no longer counts closes the socket.
    """

    async def connect(self) -> None:
        self.pump: asyncio.Task[None] | None = None
        name = self.scope["url_route"]["kwargs"]["session_id"]
        # Accepted in any case: a browser is not told why a handshake was refused.
        await self.accept()
        try:
            after = self._after()
            if not name_plausible(name):
                raise not_found()
            self.principal = await self._principal(session_tenant(name))
            self.principal.require("session:read")
            self.key = await session_key(self.principal, name)
            may_enter(self.principal, self.key)
        except (Problem, exceptions.APIException) as error:
            await self.close(code=4000 + _problem(error).status)
            return
        watch = Watch(
            tenant_id=self.principal.tenant_id,
            tenant_slug=self.principal.tenant_slug,
            key=self.key,
            name=watched_name(self.principal, name),
            allowed=self._still_allowed,
        )
        self.pump = asyncio.create_task(self._pump(watch, after))

    async def _principal(self, tenant: str) -> Principal:
        return await aprincipal_of_scope(self.scope, tenant=tenant)

    async def _still_allowed(self) -> bool:
        try:
            now = await self._principal(self.principal.tenant_slug)
        except exceptions.APIException:
            return False
        return now.scopes >= self.principal.scopes and now.session == self.principal.session

    def _after(self) -> int | None:
        query = self.scope.get("query_string", b"").decode("latin-1")
        values = parse_qs(query, keep_blank_values=True).get("after", [])
        if not values:
            return None
        after = cursor_read(values[-1])
        if after is None:
            raise Problem(400, "INVALID_CURSOR", "after")
        return after

    async def _pump(self, watch: Watch, after: int | None) -> None:
        frames = session_frames(watch, after=after)
        code = UNAUTHORIZED
        try:
            async with contextlib.aclosing(frames):
                async for frame in frames:
                    if frame is not None:
                        await self._say(frame.event_type, frame.data, frame.sequence)
        except Exception:
            logger.exception("a websocket's stream broke")
            code = BROKEN
        await self.close(code=code)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self.pump is None:
            return
        try:
            # Anew for every message: keys are revoked and tokens expire while a socket is open.
            self.principal = await self._principal(self.principal.tenant_slug)
            self.principal.require("message:write")
            raw = bytes_data if text_data is None else text_data.encode("utf-8", "surrogatepass")
            inbound = inbound_read(
                self._request(body_read(raw or b"")),
                tenant_slug=self.principal.tenant_slug,
                caller=caller_facts(self.principal),
            )
            accepted = await accept(self.principal, inbound)
        except (Problem, exceptions.APIException) as error:
            problem = _problem(error)
            await self._say("problem", problem.body())
            if problem.status == 401:
                await self.close(code=UNAUTHORIZED)
        else:
            await self._say(
                "accepted",
                {
                    "turn_id": str(accepted.turn_id),
                    "message_id": inbound.message_id,
                    "duplicate": accepted.duplicate,
                },
            )

    def _request(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the GatewayRequest of a payload: the socket has said whose session it is."""
        _tenant, agent, name = self.key.split(":", 2)
        return {"channel": "web", "agent_id": agent, "payload": {**payload, "session_id": name}}

    async def _say(self, event: str, data: dict[str, Any], sequence: int | None = None) -> None:
        frame = {"event": event, "id": sequence, "data": data}
        await self.send(json.dumps(frame, ensure_ascii=False))

    async def disconnect(self, code: int) -> None:
        if self.pump is not None:
            self.pump.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self.pump


def _problem(error: Exception) -> Problem:
    if isinstance(error, exceptions.APIException):
        return refusal(error)
    assert isinstance(error, Problem)
    return error
