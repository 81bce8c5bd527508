"""The debug doors, for an operator's key (scope ``debug``). They change nothing."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from apps.conversations import services
from apps.conversations.usage import usage_totals
from apps.gateway.api import not_deployed, read_inbound
from apps.gateway.bodies import body_of
from apps.gateway.contract import text_in, unknown
from apps.gateway.doors import caller, door, may_enter, whole_number
from apps.gateway.older_shapes import call_request_of, request_of
from apps.gateway.problems import Problem, not_found
from apps.gateway.sessions import name_plausible, session_key, session_tenant
from apps.runtime.turn import Inbound, ToolCall
from apps.tenants.auth import Principal
from apps.tenants.threads import in_thread


class UnknownTool(LookupError):
    """The running release has no such tool."""


class ActionTool(RuntimeError):
    """The tool changes something: only a turn may call it, after the customer's yes."""


@door("POST")
async def debug_route(request: HttpRequest, request_id: str) -> HttpResponseBase:
    """Where a message would go, with every candidate; nothing is sent or stored."""
    principal, inbound = await _asked(request, request_of, request_id)
    return JsonResponse(await _explained("DEBUG_ROUTE", principal=principal, inbound=inbound))


@door("POST")
async def debug_identity(request: HttpRequest, request_id: str) -> HttpResponseBase:
    """Who and what a message would be about; nothing is stored."""
    principal, inbound = await _asked(request, request_of, request_id, need_message=False)
    return JsonResponse(await _explained("DEBUG_IDENTITY", principal=principal, inbound=inbound))


@door("GET")
async def debug_tools(request: HttpRequest, request_id: str) -> HttpResponseBase:
    """The tools of the running release."""
    principal = await caller(request, "debug", tenant=request.GET.get("tenant_id", ""))
    return JsonResponse(await _explained("DEBUG_TOOLS", principal=principal))


@door("POST")
async def debug_tool_call(request: HttpRequest, tool: str, request_id: str) -> HttpResponseBase:
    """Call one tool that changes nothing and show what came back; ``ok`` false is an answer too."""
    principal, inbound = await _asked(request, call_request_of, request_id, need_message=False)
    try:
        call: ToolCall = await _explained(
            "DEBUG_TOOL_CALL", principal=principal, inbound=inbound, tool=tool
        )
    except UnknownTool:
        raise not_found() from None
    except ActionTool:
        detail = _(
            "%(tool)s changes something. Only a conversation may call it, after the customer has "
            "confirmed."
        ) % {"tool": tool}
        raise Problem(403, "ACTION_TOOL", detail) from None
    if call.field_errors:
        errors = [{"field": e["field"], "message": e["message"]} for e in call.field_errors]
        raise Problem(422, "INVALID_TOOL_ARGUMENTS", call.error, errors=errors)
    return JsonResponse(
        {
            "tool_name": call.tool,
            "server_name": call.server,
            "ok": call.ok,
            "status": call.status,
            "arguments": dict(call.arguments),
            "result": call.result,
            "error": call.error or None,
            "metadata": dict(call.metadata),
            "latency_ms": call.latency_ms,
        }
    )


@door("GET")
async def debug_usage(request: HttpRequest, request_id: str) -> HttpResponseBase:
    """Tokens and cost of the last days, in total and by session."""
    days = whole_number(request, "days", default=30, low=1, high=366)
    session = request.GET.get("session_id", "")
    if not name_plausible(session):
        raise not_found()
    tenant = request.GET.get("tenant_id", "") or session_tenant(session)
    principal = await caller(request, "debug", tenant=tenant)
    key = await session_key(principal, session) if session else ""
    if key:
        may_enter(principal, key)
    totals = await in_thread(usage_totals, tenant_id=principal.tenant_id, key=key, days=days)
    if totals is None:
        raise not_found()
    return JsonResponse({"tenant_id": principal.tenant_slug, "session_id": key or None, **totals})


@door("GET")
async def debug_environment(request: HttpRequest, request_id: str) -> HttpResponseBase:
    """The settings that hold nothing secret, and which bindings the running release finds."""
    principal = await caller(request, "debug", tenant=request.GET.get("tenant_id", ""))
    return JsonResponse(await _explained("DEBUG_ENVIRONMENT", principal=principal))


async def _asked(
    request: HttpRequest,
    shape: Callable[[dict[str, Any]], dict[str, Any]],
    request_id: str,
    *,
    need_message: bool = True,
) -> tuple[Principal, Inbound]:
    body = shape(body_of(request))
    principal = await caller(request, "debug", tenant=text_in(body, "tenant_id", "tenant_id"))
    inbound = read_inbound(request, body, principal, request_id, need_message=need_message)
    return principal, inbound


async def _explained(setting: str, **facts: Any) -> Any:
    """Ask the composition root; its refusals become problems."""
    try:
        return await import_string(getattr(settings, setting))(**facts)
    except services.UnknownAgent as error:
        raise unknown("agent_id", str(error), code="UNKNOWN_AGENT") from None
    except services.NotDeployed:
        raise not_deployed() from None
