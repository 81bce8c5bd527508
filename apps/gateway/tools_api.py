"""The doors of the tool gateway: list tools, call one, ask servers what they offer. Thin."""

import uuid
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.utils.translation import gettext as _

from apps.gateway.answers import json_answer
from apps.gateway.bodies import body_of
from apps.gateway.contract import text_in
from apps.gateway.doors import agent_held, caller, caller_and_body, door, whole_number
from apps.gateway.problems import not_found
from apps.gateway.tools_asking import asked_read
from apps.gateway.tools_invoking import Running, invoke, port_over, running_of
from apps.gateway.tools_offered import tool_shown, tools_of, tools_served
from apps.runtime.turn import Inbound, SessionState, Turn
from apps.tenants.auth import Principal
from apps.tenants.scope import tenant_scope, tenant_transaction
from apps.tenants.threads import in_thread
from apps.tools.config import ToolConfig
from apps.tools.contracts.refreshing import server_refresh_async
from apps.tools.contracts.selectors import ServerListed, UnknownServer
from apps.tools.contracts.selectors import servers_list as listed_servers
from apps.tools.invoking.ledger import InvocationLedger
from apps.tools.invoking.services import discovery_note

PAGE = 50
LONGEST_PAGE = 200


@door("GET")
async def tools_list(request: HttpRequest, request_id: str) -> HttpResponseBase:
    """The tools of the caller's agent; of the one named, or of all, for a key that is bound to none."""
    limit = whole_number(request, "limit", default=PAGE, low=1, high=LONGEST_PAGE)
    offset = whole_number(request, "offset", default=0, low=0, high=1_000_000)
    principal = await caller(request, "tool:read", tenant=request.GET.get("tenant_id", ""))
    agent = agent_held(principal, request.GET.get("agent_id") or None) or ""
    now = await running_of(principal)
    found = tools_of(now.release, agent) if agent else tools_served(now.release)
    chosen = dict(list(found.items())[offset : offset + limit])
    following = offset + limit if len(found) > offset + limit else None
    shown = await tools_shown(principal, now, agent, chosen)
    return json_answer({"results": shown, "next_offset": following})


@door("GET")
async def tool_get(request: HttpRequest, name: str, request_id: str) -> HttpResponseBase:
    """One of them; what the caller may not use is absent."""
    principal = await caller(request, "tool:read", tenant=request.GET.get("tenant_id", ""))
    agent = agent_held(principal, request.GET.get("agent_id") or None) or ""
    now = await running_of(principal)
    found = tools_of(now.release, agent) if agent else tools_served(now.release)
    if name not in found:
        raise not_found()
    shown = await tools_shown(principal, now, agent, {name: found[name]})
    return json_answer(shown[0])


async def tools_shown(
    principal: Principal, now: Running, agent: str, tools: dict[str, ToolConfig]
) -> list[dict[str, Any]]:
    """Return what a caller is told of ``tools``: schemas without what the platform fills itself."""
    inbound = Inbound(channel="", text="", agent=agent or None, message_id="", session="")
    turn = Turn(
        id="", tenant=str(principal.tenant_id), release=now.release, inbound=inbound,
        session=SessionState(agent=agent), environment=principal.environment, bindings=now.bindings,
    )  # fmt: skip
    nothing = InvocationLedger(principal.tenant_id, uuid.UUID(int=0), 0, "")
    async with port_over(nothing) as port:
        functions = {str(each["name"]): each for each in port.functions(turn, list(tools))}
    return [
        tool_shown(now.release, slug, tool, functions[slug])
        for slug, tool in tools.items()
        if slug in functions
    ]


@door("POST")
async def tool_invoke(request: HttpRequest, name: str, request_id: str) -> HttpResponseBase:
    """Call a tool once. A tool that failed is an answer with ``ok`` false; a refusal is a problem."""
    principal, body = await caller_and_body(request, "tool:invoke")
    asked = asked_read(body, tool=name, trace_id=request_id)
    return json_answer(await invoke(principal, asked))


@door("GET")
async def servers_list(request: HttpRequest, request_id: str) -> HttpResponseBase:
    """The tool servers of the caller's environment, as they were last seen. Asks none of them."""
    principal = await caller(request, "tool:read", tenant=request.GET.get("tenant_id", ""))
    found = await in_thread(_servers, principal)
    return json_answer({"results": [server_shown(each) for each in found]})


@door("POST")
async def discovery_sync(request: HttpRequest, request_id: str) -> HttpResponseBase:
    """Ask one server, or all, for their tools. What is new or differs becomes a draft; nothing is
    switched on, and what runs goes on as it is."""
    principal = await caller(request, "discovery:sync")
    body = body_of(request)
    await caller(request, "discovery:sync", tenant=text_in(body, "tenant_id", "tenant_id"))
    wanted = text_in(body, "server", "server")
    known = [each.server for each in await in_thread(_servers, principal)]
    if wanted and wanted not in known:
        raise not_found()
    results = [await _synced(principal, server) for server in ([wanted] if wanted else known)]
    return json_answer({"results": results})


def _servers(principal: Principal) -> list[ServerListed]:
    with tenant_transaction(principal.tenant_id):
        return listed_servers(principal.environment)


async def _synced(principal: Principal, server: str) -> dict[str, Any]:
    with tenant_scope(principal.tenant_id):
        try:
            done = await server_refresh_async(
                server=server, environment=principal.environment, actor=principal.name
            )
        except UnknownServer:
            raise not_found() from None
        answered = done.state in ("listed", "empty")
        event = "mcp.discovery.completed" if answered else "mcp.discovery.failed"
        await in_thread(
            discovery_note, event=event, server=server, environment=principal.environment,
            actor=principal.name, found=done.count, error=done.error,
        )  # fmt: skip
    return {
        "server": done.server,
        "environment": done.environment,
        "event": event,
        "state": done.state,
        "tools": done.count,
        "added": list(done.added),
        "drifted": list(done.drifted),
        "gone": list(done.gone),
        "released": list(done.released),
        "change_request": done.request,
        "error": (_(done.error) if done.error else None),
        "latency_ms": done.milliseconds,
    }


def server_shown(server: ServerListed) -> dict[str, Any]:
    """Return what a caller is told of a server: no address, no credential."""
    return {
        "name": server.server,
        "environment": server.environment,
        "description": server.config.description,
        "transport": server.config.transport,
        "auth": server.config.auth,
        "enabled": server.config.enabled,
        "bound": server.is_bound,
        "tools": server.count,
        "drifted": server.drifted,
        "checked_at": server.checked_at.isoformat() if server.checked_at else None,
        "listed_at": server.listed_at.isoformat() if server.listed_at else None,
        "error": server.error or None,
        "code": server.code or None,
    }
