"""The websocket of a session: its events out; messages in."""

import asyncio
import contextlib
import json
from typing import Any

from channels.generic.websocket import AsyncWebsocketConsumer
from rest_framework import exceptions

from apps.gateway.api import accept, caller_facts, session_key, session_tenant
from apps.gateway.contract import body_read, inbound_read
from apps.gateway.doors import may_enter, refusal
from apps.gateway.problems import Problem
from apps.gateway.streams import session_frames
from apps.tenants.auth import Principal, aprincipal_of_scope


class SessionConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """``/ws/sessions/{session_id}?after=N``. Closes with 4401, 4403 or 4404 when refused.

    In: a GatewayRequest payload ``{"message": …, "message_id": …}``. Out: the frames of the SSE
    stream as ``{"event": …, "id": …, "data": …}``, and ``{"event": "problem", "data": …}``.
    """

    async def connect(self) -> None:
        self.pump: asyncio.Task[None] | None = None
        name = self.scope["url_route"]["kwargs"]["session_id"]
        try:
            self.principal: Principal = await aprincipal_of_scope(
                self.scope, tenant=session_tenant(name)
            )
            self.principal.require("session:read")
            self.key = await session_key(self.principal, name)
            may_enter(self.principal, self.key)
        except (Problem, exceptions.APIException) as error:
            status = error.status if isinstance(error, Problem) else error.status_code
            await self.accept()
            await self.close(code=4000 + status)
            return
        await self.accept()
        self.pump = asyncio.create_task(self._pump(self._after()))

    def _after(self) -> int | None:
        for part in self.scope.get("query_string", b"").decode("latin-1").split("&"):
            name, _sign, value = part.partition("=")
            if name == "after" and value.isdigit():
                return int(value[:18])
        return None

    async def _pump(self, after: int | None) -> None:
        frames = session_frames(
            tenant_id=self.principal.tenant_id,
            tenant_slug=self.principal.tenant_slug,
            key=self.key,
            after=after,
        )
        async with contextlib.aclosing(frames):
            async for frame in frames:
                if frame is None:
                    continue
                out = {"event": frame.event_type, "id": frame.sequence, "data": frame.data}
                await self.send(json.dumps(out, ensure_ascii=False))

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        try:
            self.principal.require("message:write")
            raw = bytes_data if text_data is None else text_data.encode("utf-8", "surrogatepass")
            payload = body_read(raw or b"")
            _tenant, agent, name = self.key.split(":", 2)
            body: dict[str, Any] = {
                "channel": "web",
                "agent_id": agent,
                "payload": {**payload, "session_id": name},
            }
            inbound = inbound_read(
                body, tenant_slug=self.principal.tenant_slug, caller=caller_facts(self.principal)
            )
            accepted = await accept(self.principal, inbound)
        except Problem as problem:
            await self._say("problem", problem.body())
        except exceptions.APIException as error:
            await self._say("problem", refusal(error).body())
        else:
            await self._say(
                "accepted", {"turn_id": str(accepted.turn_id), "duplicate": accepted.duplicate}
            )

    async def _say(self, event: str, data: dict[str, Any]) -> None:
        await self.send(json.dumps({"event": event, "id": None, "data": data}, ensure_ascii=False))

    async def disconnect(self, code: int) -> None:
        if self.pump is not None:
            self.pump.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self.pump
