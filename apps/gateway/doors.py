"""What every async door does around its one call: who is it, which problem, which request id."""

import functools
import logging
import re
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt
from rest_framework import exceptions

from apps.gateway.contract import body_read
from apps.gateway.problems import Problem, not_found
from apps.tenants.auth import Principal, aprincipal_of

logger = logging.getLogger(__name__)
_REQUEST_ID = re.compile(r"^[A-Za-z0-9._:-]{1,100}$")
View = Callable[..., Awaitable[HttpResponseBase]]


def door(*methods: str) -> Callable[[View], View]:
    """Make an async view a door: its methods, problem bodies, and the echo of ``x-request-id``.

    Doors take keys and tokens, so Django's CSRF check is off here; for logins
    ``tenants.auth`` checks it.
    """

    def decorate(view: View) -> View:
        @csrf_exempt
        @functools.wraps(view)
        async def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            request_id = request.headers.get("x-request-id", "")
            if not _REQUEST_ID.match(request_id):
                request_id = uuid.uuid4().hex
            with structlog.contextvars.bound_contextvars(request_id=request_id):
                response = await _answered(
                    view, methods, request, args, {**kwargs, "request_id": request_id}
                )
            response.headers["x-request-id"] = request_id
            return response

        return answer

    return decorate


async def _answered(
    view: View, methods: tuple[str, ...], request: HttpRequest, args: Any, kwargs: Mapping[str, Any]
) -> HttpResponseBase:
    if request.method not in methods:
        allowed = ", ".join(methods)
        problem = Problem(405, "METHOD_NOT_ALLOWED", f"Use {allowed}.", headers={"Allow": allowed})
        return problem.response()
    try:
        return await view(request, *args, **kwargs)
    except Problem as problem:
        return problem.response()
    except exceptions.APIException as error:
        return refusal(error).response()
    except Exception:
        error_id = uuid.uuid4().hex
        logger.exception("a door broke, error %s", error_id)
        return Problem(
            500, "INTERNAL_ERROR", _("Something went wrong on our side.") + f" ({error_id})"
        ).response()


def refusal(error: exceptions.APIException) -> Problem:
    """Return the problem body of a refusal by ``tenants.auth``."""
    if error.status_code == 404:
        return not_found()
    headers = {"WWW-Authenticate": 'Bearer realm="agentops"'} if error.status_code == 401 else {}
    return Problem(
        error.status_code, str(error.get_codes()).upper(), str(error.detail), headers=headers
    )


async def caller(
    request: HttpRequest, *scopes: str, tenant: str = "", query_token: bool = False
) -> Principal:
    """Return the principal of ``request``, who holds every one of ``scopes``."""
    principal = await aprincipal_of(request, tenant=tenant, query_token=query_token)
    for scope in scopes:
        principal.require(scope)
    return principal


async def caller_and_body(request: HttpRequest, *scopes: str) -> tuple[Principal, dict[str, Any]]:
    """Return the principal and the JSON body of a request that may name its tenant there."""
    body = body_read(request.body)
    named = body.get("tenant_id")
    if named is not None and not isinstance(named, str):
        raise Problem(
            422, "INVALID_GATEWAY_REQUEST", "tenant_id: must be text",
            errors=[{"field": "tenant_id", "message": "must be text"}],
        )  # fmt: skip
    return await caller(request, *scopes, tenant=(named or "").strip()), body


def may_enter(principal: Principal, session_key: str) -> None:
    """Raise the 404 of an absent session unless ``principal`` may see ``session_key``.

    A token opens one session. A key or a login opens those of its tenant; the key of a session
    begins with its tenant's slug.
    """
    if principal.session and principal.session != session_key:
        raise not_found()
    if session_key.split(":", 1)[0] != principal.tenant_slug:
        raise not_found()


def event_stream(content: Any) -> StreamingHttpResponse:
    """Return ``content`` (async iterator of bytes) as server-sent events."""
    return StreamingHttpResponse(
        content,
        content_type="text/event-stream",
        headers={"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"},
    )
