"""The tool gateway as an MCP server: the governed tools of a key's agent, by streamable HTTP.

Stateless: every request carries its key, so no session is kept and none can be taken over. Both
protocol eras are served (the SDK's session manager tells them apart).
"""

import base64
import binascii
import json
import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils import translation
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from rest_framework.exceptions import APIException

from apps.gateway.bodies import storable_check
from apps.gateway.contract import text_in
from apps.gateway.problems import Problem, broken, refusal
from apps.gateway.tools_api import PAGE, tools_shown
from apps.gateway.tools_asking import Asked, asked_of
from apps.gateway.tools_invoking import agent_acting, invoke, running_of
from apps.gateway.tools_offered import tools_of
from apps.tenants.auth import Principal
from apps.tools.config import ToolConfig

logger = logging.getLogger(__name__)
CALLER = "agentops.mcp_caller"
"""Where the door leaves the caller in a request's scope."""


@dataclass(frozen=True)
class McpCaller:
    """Who sends a request. ``agent``: named in the address by a key that is bound to none."""

    principal: Principal
    agent: str = ""
    language: str = "en"


def manager_create() -> StreamableHTTPSessionManager:
    """Return a session manager over a new server. Its ``run`` must be entered before its first request."""
    server: Server[Any] = Server(
        "agentops",
        version=settings.VERSION,
        instructions="The tools one agent of this tenant may use, under its rules.",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        # Arguments are mirrored in no header of ours.
        get_tool_input_schema=lambda _name: None,
    )
    return StreamableHTTPSessionManager(
        server,
        json_response=True,
        stateless=True,
        max_request_body_size=settings.MESSAGE_MAX_BYTES,
    )


async def list_tools(
    ctx: ServerRequestContext[Any, Any], params: PaginatedRequestParams | None
) -> ListToolsResult:
    """Return a page of the tools the caller's agent may use."""
    caller = _caller(ctx)
    with translation.override(caller.language):
        try:
            return await tools_page(caller, (params and params.cursor) or "")
        except (Problem, APIException) as error:
            raise MCPError(code=INVALID_PARAMS, message=_problem(error).detail) from None


async def tools_page(caller: McpCaller, cursor: str) -> ListToolsResult:
    """Return the page after ``cursor`` ("": the first). Raises ``Problem`` and DRF's refusals."""
    principal = caller.principal
    principal.require("tool:read")
    now = await running_of(principal)
    agent = agent_acting(principal, now.release, caller.agent)
    after = _after(cursor)
    left = {slug: tool for slug, tool in tools_of(now.release, agent).items() if slug > after}
    page = dict(list(left.items())[:PAGE])
    shown = await tools_shown(principal, now, agent, page)
    return ListToolsResult(
        tools=[_tool(page[each["name"]], each) for each in shown],
        next_cursor=_cursor(list(page)[-1]) if len(left) > PAGE else None,
    )


def _tool(config: ToolConfig, shown: Mapping[str, Any]) -> Tool:
    reads = not config.transactional
    declared = config.contract.annotations.get("destructiveHint")
    return Tool(
        name=shown["name"],
        title=shown["title"],
        description=shown["description"],
        input_schema=shown["input_schema"],
        annotations=ToolAnnotations(
            title=shown["title"],
            read_only_hint=reads,
            destructive_hint=declared is not False and not reads,
            idempotent_hint=shown["idempotent"],
        ),
        _meta={
            "version": shown["version"],
            "confirmation_required": shown["confirmation_required"],
            "required_business_keys": shown["required_business_keys"],
            "allowed_channels": shown["allowed_channels"],
        },
    )


async def call_tool(
    ctx: ServerRequestContext[Any, Any], params: CallToolRequestParams
) -> CallToolResult:
    """Call a tool as the REST door does. What a ToolInvocation says besides stands in ``_meta``."""
    caller = _caller(ctx)
    with translation.override(caller.language):
        try:
            caller.principal.require("tool:invoke")
            return _result(await invoke(caller.principal, _asked(caller, ctx.meta or {}, params)))
        except (Problem, APIException) as error:
            problem = _problem(error)
        except Exception:
            error_id = uuid.uuid4().hex
            logger.exception("a call through the MCP server broke, error %s", error_id)
            problem = broken()
            problem.extra["error_id"] = error_id
    if problem.status == 404:
        raise MCPError(code=INVALID_PARAMS, message=problem.detail)
    return _refused(problem)


def _asked(caller: McpCaller, meta: Mapping[str, Any], params: CallToolRequestParams) -> Asked:
    said = {name: meta.get(name) for name in _SAID}
    body = {"agent_id": caller.agent or None, **said, "arguments": params.arguments}
    named = {name: meta.get(name) for name in _NAMED}
    storable_check({"name": params.name, **body, **named})
    # Cut or spelled anew, two requests' ids could be one.
    request_id = text_in(named, "request_id", "request_id")
    request_id = request_id or text_in(named, "idempotency_key", "idempotency_key")
    return asked_of(
        body,
        tool=params.name,
        door="mcp",
        request_id=request_id,
        trace_id=text_in(named, "trace_id", "trace_id"),
        cache_bypass=meta.get("cache_bypass"),
    )


_NAMED = ("request_id", "idempotency_key", "trace_id")
_SAID = ("channel", "business_context", "confirmation")


def _result(answer: Mapping[str, Any]) -> CallToolResult:
    data = answer["data"]
    meta = {**answer["metadata"], "version": answer["version"], "cache": answer["cache"]}
    if not answer["ok"]:
        return _error(str(answer["error"] or ""), data, meta)
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=data if isinstance(data, dict) else {"result": data},
        _meta=meta,
    )


def _refused(problem: Problem) -> CallToolResult:
    return _error(problem.detail, problem.body(), {"status": "refused", "code": problem.code})


def _error(text: str, data: Any, meta: Mapping[str, Any]) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=data if isinstance(data, dict) else None,
        is_error=True,
        _meta=dict(meta),
    )


def _problem(error: Problem | APIException) -> Problem:
    return refusal(error) if isinstance(error, APIException) else error


def _caller(ctx: ServerRequestContext[Any, Any]) -> McpCaller:
    assert ctx.request is not None
    caller = ctx.request.scope[CALLER]
    assert isinstance(caller, McpCaller)
    return caller


def _cursor(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()


def _after(cursor: str) -> str:
    try:
        return base64.b64decode(cursor, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise MCPError(code=INVALID_PARAMS, message="This cursor is none of ours.") from None
