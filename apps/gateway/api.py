"""The doors: messages in, answers and events out. Thin: parse, one service, render."""

import re
import uuid
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.utils.translation import gettext as _

from apps.conversations import selectors, services
from apps.conversations.services import Accepted
from apps.gateway.answers import answer_response, waiting_response
from apps.gateway.contract import CONTRACT_HEADER, inbound_read
from apps.gateway.doors import caller, caller_and_body, door, event_stream, may_enter
from apps.gateway.problems import Problem, invalid, not_found
from apps.gateway.streams import KEEPALIVE, Frame, Wake, session_frames, turn_wait
from apps.runtime.turn import Caller, Inbound
from apps.tenants.auth import Principal
from apps.tenants.scope import tenant_scope

_WAIT = re.compile(r"(?:^|[,;\s])wait=(\d{1,6})(?:$|[,;\s])")


@door("POST")
async def message_post(request: HttpRequest, request_id: str) -> HttpResponseBase:
    """Accept a message and wait for its answer: 200, or 202 with a ``Location`` after the wait."""
    principal, body = await caller_and_body(request, "message:write")
    inbound = read_inbound(request, body, principal, request_id)
    async with Wake(principal.tenant_id, inbound.session) as wake:
        accepted = await accept(principal, inbound)
        view = await turn_wait(
            wake,
            tenant_id=principal.tenant_id,
            turn_id=accepted.turn_id,
            seconds=wait_seconds(request),
            look_first=accepted.duplicate,
        )
    if view is None:
        return waiting_response(accepted.turn_id, accepted.session_key)
    return answer_response(view, trace=principal.has("trace:read"))


@door("POST")
async def message_stream(request: HttpRequest, request_id: str) -> HttpResponseBase:
    """The same turn; with ``Accept: text/event-stream`` its events as they happen, else JSON."""
    if "text/event-stream" not in request.headers.get("accept", ""):
        return await message_post(request)
    principal, body = await caller_and_body(request, "message:write")
    inbound = read_inbound(request, body, principal, request_id)
    accepted = await accept(principal, inbound)
    return event_stream(_turn_stream(principal, accepted))


async def _turn_stream(principal: Principal, accepted: Accepted) -> AsyncIterator[bytes]:
    turn_id = str(accepted.turn_id)
    frames = session_frames(
        tenant_id=principal.tenant_id, tenant_slug=principal.tenant_slug,
        key=accepted.session_key, after=0,
    )  # fmt: skip
    async with aclosing(frames):
        async for frame in frames:
            if frame is None:
                yield KEEPALIVE
            elif frame.sequence is None or frame.data["trace_id"] == turn_id:
                yield frame.sse()
                if frame.event_type == "flow.end":
                    return


@door("GET")
async def turn_get(request: HttpRequest, turn_id: uuid.UUID, request_id: str) -> HttpResponseBase:
    """The answer of a turn: 200 when it is done, 202 while it is not."""
    principal = await caller(request, "session:read")
    view = await sync_to_async(selectors.turn_view)(tenant_id=principal.tenant_id, turn_id=turn_id)
    if view is None:
        raise not_found()
    may_enter(principal, view.session_key)
    if not view.settled:
        return waiting_response(view.id, view.session_key)
    return answer_response(view, trace=principal.has("trace:read"))


@door("GET")
async def session_events(
    request: HttpRequest, session_id: str, request_id: str
) -> HttpResponseBase:
    """A session's events as server-sent events, from ``Last-Event-ID`` on."""
    principal = await caller(
        request, "session:read", tenant=session_tenant(session_id), query_token=True
    )
    key = await session_key(principal, session_id)
    may_enter(principal, key)
    after = last_event_id(request)
    return event_stream(_session_stream(principal, key, after))


async def _session_stream(
    principal: Principal, key: str, after: int | None
) -> AsyncIterator[bytes]:
    frames = session_frames(
        tenant_id=principal.tenant_id, tenant_slug=principal.tenant_slug, key=key, after=after
    )
    async with aclosing(frames):
        async for frame in frames:
            yield frame.sse() if isinstance(frame, Frame) else KEEPALIVE


@door("GET")
async def session_messages(
    request: HttpRequest, session_id: str, request_id: str
) -> HttpResponseBase:
    """The last messages of a session, oldest first."""
    principal, key = await _readable(request, session_id)
    limit = number_in(request, "limit", default=50, low=1, high=500)
    found = await sync_to_async(selectors.session_messages)(
        tenant_id=principal.tenant_id, key=key, limit=limit
    )
    if found is None:
        raise not_found()
    return JsonResponse({"session_id": key, "messages": found})


@door("GET")
async def session_checkpoint(
    request: HttpRequest, session_id: str, request_id: str
) -> HttpResponseBase:
    """Where a session stands after its last settled turn."""
    principal, key = await _readable(request, session_id)
    found = await sync_to_async(selectors.session_checkpoint)(
        tenant_id=principal.tenant_id, key=key, full=principal.has("trace:read")
    )
    if found is None:
        raise not_found()
    return JsonResponse(found)


async def _readable(request: HttpRequest, session_id: str) -> tuple[Principal, str]:
    principal = await caller(request, "session:read", tenant=session_tenant(session_id))
    key = await session_key(principal, session_id)
    may_enter(principal, key)
    return principal, key


@door("GET")
async def agents_list(request: HttpRequest, request_id: str) -> HttpResponseBase:
    """The agents of the release that the caller's environment runs."""
    principal = await caller(request, tenant=request.GET.get("tenant_id", ""))
    found = await sync_to_async(selectors.agents_deployed)(
        tenant_id=principal.tenant_id, environment=principal.environment
    )
    return JsonResponse(found)


# -- what the doors share ----------------------------------------------------------------------


def read_inbound(
    request: HttpRequest, body: dict[str, Any], principal: Principal, request_id: str
) -> Inbound:
    """Return the message in ``body`` with what the credential says of its sender."""
    inbound = inbound_read(
        body,
        tenant_slug=principal.tenant_slug,
        caller=caller_facts(principal),
        contract=request.headers.get(CONTRACT_HEADER, ""),
        request_id=request_id,
    )
    return inbound


def caller_facts(principal: Principal) -> Caller:
    """Return what a turn may know of its caller's credential."""
    return Caller(
        principal=principal.name,
        may_name_customer=principal.has("identity:assert") and not principal.session,
        customer=dict(principal.customer),
        demo=principal.demo,
    )


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
        return await sync_to_async(stored)()
    except services.UnknownAgent as error:
        raise Problem(
            404, "UNKNOWN_AGENT", f"agent_id: there is no agent {str(error)!r}",
            errors=[{"field": "agent_id", "message": "is unknown"}],
        ) from None  # fmt: skip
    except services.NotDeployed:
        raise Problem(
            503, "NOT_DEPLOYED", _("No release is deployed in this environment yet.")
        ) from None
    except services.ForeignSession:
        raise not_found() from None
    except services.MessageIdReused:
        raise Problem(
            409, "MESSAGE_ID_REUSED",
            "payload.message_id: was sent before with another body; use a new id",
            errors=[{"field": "payload.message_id", "message": "was sent before with another body"}],
        ) from None  # fmt: skip


def wait_seconds(request: HttpRequest) -> float:
    """Return how long to wait: ``Prefer: wait=N`` up to the maximum, else the default."""
    match = _WAIT.search(request.headers.get("prefer", ""))
    return min(float(match.group(1)), settings.WAIT_SECONDS_MAX) if match else settings.WAIT_SECONDS


def last_event_id(request: HttpRequest) -> int | None:
    """Return the client's cursor from header or query; 400 when it is no number."""
    value = request.headers.get("last-event-id") or request.GET.get("last_event_id") or ""
    if not value:
        return None
    if not value.isascii() or not value.isdigit() or len(value) > 18:
        raise Problem(
            400, "INVALID_CURSOR", "Last-Event-ID: must be the number of an event",
            errors=[{"field": "Last-Event-ID", "message": "must be the number of an event"}],
        )  # fmt: skip
    return int(value)


def number_in(request: HttpRequest, name: str, *, default: int, low: int, high: int) -> int:
    """Return the whole number in a query parameter."""
    value = request.GET.get(name)
    if value is None:
        return default
    if not value.isascii() or not value.isdigit() or not low <= int(value[:9]) <= high:
        raise invalid(
            name, f"must be a whole number from {low} to {high}", code="INVALID_PARAMETER"
        )
    return int(value)


def session_tenant(session_id: str) -> str:
    """Return the tenant a scoped session id names, or ""."""
    parts = session_id.split(":", 2)
    return parts[0] if len(parts) == 3 else ""


async def session_key(principal: Principal, session_id: str) -> str:
    """Return the full key of a session named in a path.

    A bare name is that of the newest session with it; one that nobody has opened yet is named for
    the tenant's default agent.
    """
    if session_id.count(":") >= 2:
        return session_id
    return await sync_to_async(selectors.session_key_named)(
        tenant_id=principal.tenant_id,
        tenant_slug=principal.tenant_slug,
        environment=principal.environment,
        name=session_id,
    )
