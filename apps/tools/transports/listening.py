"""Hears what an MCP server over streamable HTTP says unasked: that its tools have changed."""

import asyncio
from collections.abc import Callable

import httpx2
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp.types import (
    SubscriptionFilter,
    SubscriptionsListenRequest,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)
from pydantic import ValidationError

from apps.runtime.ports import ToolUnavailable
from apps.tools.transports.connections import AnswerTooLong
from apps.tools.transports.post import PostWire
from apps.tools.transports.rpc import HttpRefused, NoAnswer, SessionGone

FIRST_PAUSE_SECONDS = 1.0
MAX_PAUSE_SECONDS = 60.0
_BROKE_OFF = (NoAnswer, AnswerTooLong, httpx2.HTTPError)
_NOT_OFFERED = (HttpRefused, SessionGone, MCPError, ValidationError, ToolUnavailable)


async def listen(session: ClientSession, wire: PostWire, missed: Callable[[], None]) -> None:
    """Listen as long as the session holds; return when the server offers nothing to hear.

    A stream that ended is opened again after a pause that grows; what was said meanwhile is lost,
    so ``missed`` is told.
    """
    capabilities = session.server_capabilities
    tools = capabilities.tools if capabilities else None
    if tools is None or not tools.list_changed:
        return
    pause = FIRST_PAUSE_SECONDS
    while True:
        try:
            await _stream(session, wire)
            pause = FIRST_PAUSE_SECONDS
        except _NOT_OFFERED:
            return
        except _BROKE_OFF:
            pause = min(MAX_PAUSE_SECONDS, pause * 2)
        await asyncio.sleep(pause)
        missed()


async def _stream(session: ClientSession, wire: PostWire) -> None:
    """Hear one stream to its end: the session's own, or a subscription where there is none."""
    if wire.has_session:
        await wire.listen()
        return
    if session.discover_result is None:
        raise NoAnswer("Neither a session nor a subscription.")
    params = SubscriptionsListenRequestParams(
        notifications=SubscriptionFilter(tools_list_changed=True)
    )
    request = SubscriptionsListenRequest(params=params)
    await session.send_request(request, SubscriptionsListenResult)
