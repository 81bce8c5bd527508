"""The doors for messages: one in, one answer out. Thin: parse, one service, render."""

import re
import uuid
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils.translation import gettext as _

from apps.conversations import announcing, selectors, services
from apps.conversations.services import Accepted
from apps.gateway.answers import answer_response, waiting_response
from apps.gateway.contract import CONTRACT_HEADER, Envelope, inbound_read, unknown
from apps.gateway.doors import (
    agent_held,
    caller,
    caller_and_body,
    caller_facts,
    door,
    event_stream,
    may_enter,
)
from apps.gateway.problems import Problem, not_found
from apps.gateway.streams import KEEPALIVE, Frame, Wake, Watch, turn_frames, turn_wait
from apps.runtime.turn import Inbound
from apps.tenants.auth import MissingScope, Principal, principal_of
from apps.tenants.scope import tenant_scope
from apps.tenants.threads import in_thread

_WAIT = re.compile(r"\s*wait\s*=\s*(.*?)\s*", re.IGNORECASE)


@door("POST")
async def message_post(request: HttpRequest, request_id: str) -> HttpResponseBase:
    """Accept a message and wait for its answer: 200, or 202 with a ``Location`` after the wait."""
    seconds = wait_seconds(request)
    principal, body = await caller_and_body(request, "message:write")
    inbound = read_inbound(request, body, principal, request_id)
    async with Wake(principal.tenant_id, inbound.session) as wake:
        accepted = await accept(principal, inbound)
        view = await turn_wait(
            wake,
            tenant_id=principal.tenant_id,
            turn_id=accepted.turn_id,
            seconds=seconds,
            look_first=accepted.duplicate,
        )
    if view is None:
        return waiting_response(accepted.turn_id, accepted.session_key)
    return answer_response(view, trace=principal.has("trace:read"))


@door("POST")
async def message_stream(request: HttpRequest, request_id: str) -> HttpResponseBase:
    """The same turn; with ``Accept: text/event-stream`` its events as they happen, else JSON."""
    if "text/event-stream" not in request.headers.get("accept", ""):
        response: HttpResponseBase = await message_post(request)
        return response
    principal, body = await caller_and_body(request, "message:write")
    inbound = read_inbound(request, body, principal, request_id)
    accepted = await accept(principal, inbound)
    watch = Watch(
        tenant_id=principal.tenant_id,
        tenant_slug=principal.tenant_slug,
        key=accepted.session_key,
        allowed=still_allowed(request, principal),
    )
    return event_stream(_turn_stream(watch, accepted))


async def _turn_stream(watch: Watch, accepted: Accepted) -> AsyncIterator[bytes]:
    frames = turn_frames(watch, session_id=accepted.session_id, turn_id=accepted.turn_id)
    async with aclosing(frames):
        async for frame in frames:
            yield frame.sse() if isinstance(frame, Frame) else KEEPALIVE


@door("GET")
async def turn_get(request: HttpRequest, turn_id: uuid.UUID, request_id: str) -> HttpResponseBase:
    """The answer of a turn: 200 when it is done, 202 while it is not.

    Who may write may ask for the answer of what it wrote: the id is nobody else's to know.
    """
    principal = await caller(request)
    if not (principal.has("session:read") or principal.has("message:write")):
        raise MissingScope
    view = await in_thread(selectors.turn_view, tenant_id=principal.tenant_id, turn_id=turn_id)
    if view is None:
        raise not_found()
    may_enter(principal, view.session_key)
    if not view.settled:
        return waiting_response(view.id, view.session_key)
    return answer_response(view, trace=principal.has("trace:read"))


# -- what the doors for messages share ---------------------------------------------------------


def read_inbound(
    request: HttpRequest,
    body: dict[str, Any],
    principal: Principal,
    request_id: str,
    *,
    need_message: bool = True,
) -> Inbound:
    """Return the message in ``body`` with what the credential says of its sender."""
    inbound = inbound_read(
        body,
        tenant_slug=principal.tenant_slug,
        caller=caller_facts(principal),
        envelope=Envelope(
            contract=request.headers.get(CONTRACT_HEADER, "").strip(),
            channel=request.headers.get("x-channel", "").strip(),
            ura_call_id=request.headers.get("x-ura-call-id", "").strip(),
            request_id=request_id,
            session=principal.session,
        ),
        need_message=need_message,
    )
    return replace(inbound, agent=agent_held(principal, inbound.agent))


async def accept(principal: Principal, inbound: Inbound) -> Accepted:
    """Store ``inbound``; turn the service's refusals into problems."""

    def stored() -> Accepted:
        with tenant_scope(principal.tenant_id):
            return services.turn_accept(
                inbound=inbound,
                tenant_slug=principal.tenant_slug,
                environment=principal.environment,
                only_session=principal.session,
            )

    try:
        accepted = await in_thread(stored)
    except services.UnknownAgent as error:
        raise unknown("agent_id", str(error), code="UNKNOWN_AGENT") from None
    except services.NotDeployed:
        raise not_deployed() from None
    except services.ForeignSession:
        raise not_found() from None
    except services.OtherEnvironment as other:
        field = "payload.session_id"
        message = _("belongs to the environment %(name)s; use another session") % {
            "name": str(other)
        }
        raise Problem(
            409, "SESSION_OF_ANOTHER_ENVIRONMENT", f"{field}: {message}",
            errors=[{"field": field, "message": message}],
        ) from None  # fmt: skip
    except services.MessageIdReused:
        field, message = "payload.message_id", _("was sent before with another body; use a new id")
        raise Problem(
            409, "MESSAGE_ID_REUSED", f"{field}: {message}",
            errors=[{"field": field, "message": message}],
        ) from None  # fmt: skip
    if not accepted.duplicate:
        await announcing.announce(principal.tenant_id, inbound.session)
    return accepted


def not_deployed() -> Problem:
    """Return the 503 of a tenant whose environment runs no release."""
    return Problem(503, "NOT_DEPLOYED", _("No release is deployed in this environment yet."))


def still_allowed(request: HttpRequest, principal: Principal) -> "partial[Any]":
    """Return what tells a long stream whether its viewer's credential still counts."""
    return partial(_still_allowed, request, principal)


async def _still_allowed(request: HttpRequest, principal: Principal) -> bool:
    from rest_framework.exceptions import APIException

    try:
        now = await in_thread(principal_of, request, tenant=principal.tenant_slug, query_token=True)
    except APIException:
        return False
    return now.scopes >= principal.scopes and now.session == principal.session


def wait_seconds(request: HttpRequest) -> float:
    """Return how long to wait: ``Prefer: wait=N`` up to the maximum, else the default.

    Other preferences are not ours (RFC 7240: ignored); a wait that is no number is refused, so that
    nobody waits by mistake. ``respond-async`` alone does not wait at all.
    """
    said = [part for part in request.headers.get("prefer", "").split(",") if part.strip()]
    for part in said:
        match = _WAIT.fullmatch(part.split(";")[0])
        if match is None:
            continue
        value = match[1].strip('"')
        if not value.isascii() or not value.isdigit() or len(value) > 9:
            message = _("must be wait= and a whole number of seconds")
            raise Problem(
                400, "INVALID_PREFERENCE", f"Prefer: {message}",
                errors=[{"field": "Prefer", "message": message}],
            )  # fmt: skip
        return min(float(value), settings.WAIT_SECONDS_MAX)
    if any(part.strip().lower() == "respond-async" for part in said):
        return 0.0
    return float(settings.WAIT_SECONDS)
