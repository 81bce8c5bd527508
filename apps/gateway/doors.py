"""What every async door does around its one call: who is it, which problem, which request id."""

import functools
import logging
import re
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Any

import structlog
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils import translation
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt
from rest_framework import exceptions

from apps.gateway.bodies import body_of
from apps.gateway.contract import text_in
from apps.gateway.problems import Problem, broken, invalid, not_found, refusal
from apps.runtime.turn import Caller
from apps.tenants.auth import Principal, TenantAbsent, principal_of
from apps.tenants.threads import in_thread

logger = logging.getLogger(__name__)
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,100}")
View = Callable[..., Coroutine[Any, Any, HttpResponseBase]]


def door(*methods: str) -> Callable[[View], View]:
    """Make an async view a door: its methods, problem bodies, and the echo of ``x-request-id``.

    Doors take keys and tokens, so Django's CSRF check is off here; for logins ``tenants.auth``
    checks it. The view gets ``request_id``.
    """

    def decorate(view: View) -> View:
        @csrf_exempt
        @functools.wraps(view)
        async def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            request_id = request.headers.get("x-request-id", "")
            if not _REQUEST_ID.fullmatch(request_id):
                request_id = uuid.uuid4().hex
            with (
                structlog.contextvars.bound_contextvars(request_id=request_id),
                # The short way to the doors has no locale middleware.
                translation.override(translation.get_language_from_request(request)),
            ):
                response = await _answered(
                    view, methods, request, args, {**kwargs, "request_id": request_id}
                )
            response.headers["x-request-id"] = request_id
            if isinstance(response, HttpResponse):
                response.headers["Content-Length"] = str(len(response.content))
            return response

        answer.methods = methods  # type: ignore[attr-defined]  # read by the schema's test
        return answer

    return decorate


async def _answered(
    view: View, methods: tuple[str, ...], request: HttpRequest, args: Any, kwargs: Mapping[str, Any]
) -> HttpResponseBase:
    if request.method not in methods:
        allowed = ", ".join(methods)
        detail = _("Use %(methods)s.") % {"methods": allowed}
        return Problem(405, "METHOD_NOT_ALLOWED", detail, headers={"Allow": allowed}).response()
    try:
        return await view(request, *args, **kwargs)
    except Problem as problem:
        return problem.response()
    except exceptions.APIException as error:
        return refusal(error).response()
    except SuspiciousOperation:
        return Problem(400, "BAD_REQUEST", _("The request is not valid.")).response()
    except Exception:
        error_id = uuid.uuid4().hex
        logger.exception("a door broke, error %s", error_id)
        surprise = broken()
        surprise.extra["error_id"] = error_id
        return surprise.response()


async def caller(
    request: HttpRequest, *scopes: str, tenant: str = "", query_token: bool = False
) -> Principal:
    """Return the principal of ``request``, who holds every one of ``scopes``."""
    principal = await in_thread(principal_of, request, tenant=tenant, query_token=query_token)
    for scope in scopes:
        principal.require(scope)
    return principal


async def caller_and_body(request: HttpRequest, *scopes: str) -> tuple[Principal, dict[str, Any]]:
    """Return the principal and the JSON body of a request that may name its tenant there."""
    body = body_of(request)
    tenant = text_in(body, "tenant_id", "tenant_id")
    try:
        return await caller(request, *scopes, tenant=tenant), body
    except TenantAbsent:
        # The same for another's tenant and for one that there is not.
        error = {"field": "tenant_id", "message": _("is unknown")}
        raise Problem(404, "NOT_FOUND", f"tenant_id: {error['message']}", errors=[error]) from None


def caller_facts(principal: Principal) -> Caller:
    """Return what a turn may know of its caller's credential."""
    return Caller(
        principal=principal.name,
        may_name_customer=principal.has("identity:assert") and not principal.session,
        customer=dict(principal.customer),
        demo=principal.demo,
    )


def may_enter(principal: Principal, session_key: str) -> None:
    """Raise the 404 of an absent session unless ``principal`` may see ``session_key``.

    A token opens one session. A key or a login opens those of its tenant; the key of a session
    begins with its tenant's slug and its agent's, which a key may be bound to.
    """
    if principal.session and principal.session != session_key:
        raise not_found()
    tenant, _colon, rest = session_key.partition(":")
    if tenant != principal.tenant_slug:
        raise not_found()
    if principal.agent and rest.split(":", 1)[0] != principal.agent:
        raise not_found()


def agent_held(principal: Principal, agent: str | None, *, field: str = "agent_id") -> str | None:
    """Return the agent a request is for: the one ``principal``'s key is bound to, else ``agent``.

    Raises the 403 of a request that names another one.
    """
    if not principal.agent:
        return agent
    if agent and agent != principal.agent:
        message = _("is another agent than the one this key is bound to")
        raise Problem(
            403, "AGENT_NOT_ALLOWED", f"{field}: {message}",
            errors=[{"field": field, "message": message}],
        )  # fmt: skip
    return principal.agent


def whole_number(request: HttpRequest, name: str, *, default: int, low: int, high: int) -> int:
    """Return the whole number in a query parameter."""
    value = request.GET.get(name)
    if value is None:
        return default
    if not value.isascii() or not value.isdigit() or not low <= int(value[:9]) <= high:
        message = _("must be a whole number from %(low)d to %(high)d") % {"low": low, "high": high}
        raise invalid(name, message, code="INVALID_PARAMETER")
    return int(value)


def event_stream(content: AsyncIterator[bytes]) -> StreamingHttpResponse:
    """Return ``content`` as server-sent events."""
    return StreamingHttpResponse(
        content,
        content_type="text/event-stream",
        headers={"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"},
    )
