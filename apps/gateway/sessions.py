"""The doors of a session: its events, messages and checkpoint; tokens for visitors' browsers."""

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.conversations import selectors
from apps.gateway.answers import json_answer
from apps.gateway.api import not_deployed, still_allowed
from apps.gateway.contract import conversation_read, object_in, text_in, unknown
from apps.gateway.doors import (
    agent_held,
    caller,
    caller_and_body,
    door,
    event_stream,
    may_enter,
    whole_number,
)
from apps.gateway.problems import Problem, invalid, not_found
from apps.gateway.streams import KEEPALIVE, Frame, Watch, session_frames
from apps.runtime.turn import CANONICAL_KEYS
from apps.tenants.auth import MissingScope, Principal
from apps.tenants.threads import in_thread
from apps.tenants.tokens import TOKEN_SCOPES, session_token_issue

PRINCIPAL_CHARS = 200
"""What a stored principal may have (``Session.principal``)."""

SESSION_CHARS = 400
"""What a session's key may have (``Session.key``)."""

LIFETIME_MIN_SECONDS = 60


@door("GET")
async def session_events(
    request: HttpRequest, session_id: str, request_id: str
) -> HttpResponseBase:
    """A session's events as server-sent events, from ``Last-Event-ID`` on."""
    after = last_event_id(request)
    principal, key = await entered(request, session_id, query_token=True)
    watch = Watch(
        tenant_id=principal.tenant_id,
        tenant_slug=principal.tenant_slug,
        key=key,
        name=watched_name(principal, session_id),
        allowed=still_allowed(request, principal),
    )
    return event_stream(_session_stream(watch, after))


async def _session_stream(watch: Watch, after: int | None) -> AsyncIterator[bytes]:
    frames = session_frames(watch, after=after)
    async with aclosing(frames):
        async for frame in frames:
            yield frame.sse() if isinstance(frame, Frame) else KEEPALIVE


@door("GET")
async def session_messages(
    request: HttpRequest, session_id: str, request_id: str
) -> HttpResponseBase:
    """The last messages of a session, oldest first."""
    limit = whole_number(request, "limit", default=50, low=1, high=500)
    principal, key = await entered(request, session_id)
    found = await in_thread(
        selectors.session_messages, tenant_id=principal.tenant_id, key=key, limit=limit
    )
    if found is None:
        raise not_found()
    return json_answer({"session_id": key, "messages": found})


@door("GET")
async def session_checkpoint(
    request: HttpRequest, session_id: str, request_id: str
) -> HttpResponseBase:
    """Where a session stands after its last settled turn."""
    principal, key = await entered(request, session_id)
    found = await in_thread(
        selectors.session_checkpoint,
        tenant_id=principal.tenant_id,
        key=key,
        full=principal.has("trace:read"),
    )
    if found is None:
        raise not_found()
    return json_answer(found)


@door("GET")
async def agents_list(request: HttpRequest, request_id: str) -> HttpResponseBase:
    """The agents of the release that the caller's environment runs."""
    principal = await caller(request, tenant=request.GET.get("tenant_id", ""))
    found = await in_thread(
        selectors.agents_deployed,
        tenant_id=principal.tenant_id,
        environment=principal.environment,
    )
    return json_answer(found)


@door("POST")
async def session_token(request: HttpRequest, request_id: str) -> HttpResponseBase:
    """Issue a signed token with which a visitor's browser talks in one session, for a while.

    The session need not exist yet; without ``session_id`` it is a new one that nobody can guess.
    Only a caller that may name the customer (``identity:assert``) may vouch for ``customer`` keys.
    """
    principal, body = await caller_and_body(request, "message:write")
    if principal.session:
        raise MissingScope(_("A session token cannot issue tokens."))
    agent, name = conversation_read(
        text_in(body, "agent_id", "agent_id") or None,
        text_in(body, "session_id", "session_id"),
        tenant_slug=principal.tenant_slug,
        field="session_id",
    )
    agent = agent_held(principal, agent)
    customer = _customer(body)
    if customer and not principal.has("identity:assert"):
        raise MissingScope(_("This needs the scope %(scope)s.") % {"scope": "identity:assert"})
    scopes = _scopes(body)
    seconds = _lifetime(body)
    key = await _key_under(principal, agent, name or secrets.token_urlsafe(24))
    token = session_token_issue(
        tenant_id=principal.tenant_id,
        tenant_slug=principal.tenant_slug,
        session=key,
        principal=f"visitor:{key.split(':', 2)[2]}"[:PRINCIPAL_CHARS],
        environment=principal.environment,
        customer=customer,
        scopes=principal.scopes & scopes,
        lifetime=timedelta(seconds=seconds),
    )
    expires_at = timezone.now() + timedelta(seconds=seconds)
    return JsonResponse(
        {"token": token, "session_id": key, "expires_at": expires_at.isoformat()}, status=201
    )


async def _key_under(principal: Principal, agent: str | None, name: str) -> str:
    resolved = await in_thread(
        selectors.agent_requested,
        tenant_id=principal.tenant_id,
        environment=principal.environment,
        agent=agent,
    )
    if resolved is None:
        raise unknown("agent_id", agent, code="UNKNOWN_AGENT") if agent else not_deployed()
    return f"{principal.tenant_slug}:{resolved}:{name}"


def _customer(body: Mapping[str, Any]) -> dict[str, str]:
    said = object_in(body, "customer", "customer")
    unknown_keys = sorted(said.keys() - set(CANONICAL_KEYS))
    if unknown_keys:
        known = ", ".join(CANONICAL_KEYS)
        raise invalid(
            f"customer.{unknown_keys[0]}", _("is unknown; known: %(names)s") % {"names": known}
        )
    found = {key: text_in(said, key, f"customer.{key}") for key in said}
    return {key: value for key, value in found.items() if value}


def _scopes(body: Mapping[str, Any]) -> frozenset[str]:
    said = body.get("scopes")
    if said is None:
        return TOKEN_SCOPES
    if (
        not isinstance(said, list)
        or not said
        or not all(isinstance(s, str) and s in TOKEN_SCOPES for s in said)
    ):
        known = ", ".join(sorted(TOKEN_SCOPES))
        raise invalid("scopes", _("must be a list of: %(names)s") % {"names": known})
    return frozenset(said)


def _lifetime(body: Mapping[str, Any]) -> int:
    said = body.get("lifetime_seconds")
    longest = settings.SESSION_TOKEN_MAX_AGE_SECONDS
    if said is None:
        return longest
    if isinstance(said, bool) or not isinstance(said, int):
        raise invalid("lifetime_seconds", _("must be a whole number"))
    if not LIFETIME_MIN_SECONDS <= said <= longest:
        message = _("must be a whole number from %(low)d to %(high)d")
        raise invalid("lifetime_seconds", message % {"low": LIFETIME_MIN_SECONDS, "high": longest})
    return said


async def entered(
    request: HttpRequest, session_id: str, *, query_token: bool = False
) -> tuple[Principal, str]:
    """Return who reads and the full key of the session named in the path; raise its 404."""
    if not name_plausible(session_id):
        raise not_found()
    tenant = session_tenant(session_id)
    principal = await caller(request, "session:read", tenant=tenant, query_token=query_token)
    key = await session_key(principal, session_id)
    may_enter(principal, key)
    return principal, key


def name_plausible(session_id: str) -> bool:
    """Return whether a session could be called so: PostgreSQL does not even look for a NUL."""
    return len(session_id) <= SESSION_CHARS and session_id.isprintable()


def last_event_id(request: HttpRequest) -> int | None:
    """Return the client's cursor from header or query; 400 when it is no number."""
    value = request.headers.get("last-event-id") or request.GET.get("last_event_id") or ""
    if not value:
        return None
    cursor = cursor_read(value)
    if cursor is None:
        message = _("must be the number of an event")
        raise Problem(
            400, "INVALID_CURSOR", f"Last-Event-ID: {message}",
            errors=[{"field": "Last-Event-ID", "message": message}],
        )  # fmt: skip
    return cursor


def cursor_read(value: str) -> int | None:
    """Return the number of an event in ``value``, ``None`` when it is none."""
    return int(value) if value.isascii() and value.isdigit() and len(value) <= 18 else None


def session_tenant(session_id: str) -> str:
    """Return the tenant a scoped session id names, or ""."""
    parts = session_id.split(":", 2)
    return parts[0] if len(parts) == 3 else ""


def watched_name(principal: Principal, session_id: str) -> str:
    """Return the bare name whose newest session a stream follows; "" for a full key, a token or a
    key that is bound to one agent."""
    full = principal.session or principal.agent or session_tenant(session_id)
    return "" if full else session_id


async def session_key(principal: Principal, session_id: str) -> str:
    """Return the full key of a session named in a path.

    A bare name is that of the token's own session, or of the newest with it; one that nobody has
    opened yet is named for the tenant's default agent.
    """
    if session_tenant(session_id):
        return session_id
    if principal.session.split(":", 2)[-1] == session_id:
        return principal.session
    if principal.agent:
        return f"{principal.tenant_slug}:{principal.agent}:{session_id}"
    return await in_thread(
        selectors.session_key_named,
        tenant_id=principal.tenant_id,
        tenant_slug=principal.tenant_slug,
        environment=principal.environment,
        name=session_id,
    )
