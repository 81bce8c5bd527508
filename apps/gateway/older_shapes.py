"""Bodies that older documentation shows for the debug doors, brought to the GatewayRequest.

- ``{"text": …, "context": {"agent_id": …, "tenant_id": …}}``
- flat: ``{"session_id": …, "customer_id": …, "message_id": …}``
- of a tool call: its arguments alone, or ``{"business_context": {…}, "original_context": {…}}``
"""

from collections.abc import Mapping
from typing import Any

from apps.gateway.contract import object_in

_ENVELOPE = ("channel", "tenant_id", "agent_id", "backend_id", "metadata")
_CALL_WRAPPERS = frozenset(
    {"payload", "business_context", "original_context", "arguments", "tool_arguments"}
)


def request_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``body`` as a GatewayRequest; a nested one is returned as it is."""
    if "payload" in body:
        return dict(body)
    context = object_in(body, "context", "context")
    request = {name: body.get(name) for name in _ENVELOPE}
    for name in ("tenant_id", "agent_id", "channel"):
        if request[name] is None:
            request[name] = context.get(name)
    payload = {name: value for name, value in body.items() if name not in (*_ENVELOPE, "context")}
    return {**request, "payload": {**payload, "context": context}}


def call_request_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a tool call as a GatewayRequest whose ``tool_arguments`` are explicit."""
    if "payload" in body:
        return dict(body)
    request = {name: body.get(name) for name in ("tenant_id", "agent_id", "channel")}
    if not _CALL_WRAPPERS & body.keys():
        arguments = {name: value for name, value in body.items() if name not in request}
        return {**request, "payload": {"tool_arguments": arguments}}
    context = object_in(body, "original_context", "original_context")
    arguments = {
        **object_in(body, "arguments", "arguments"),
        **object_in(body, "tool_arguments", "tool_arguments"),
    }
    payload = {
        "business_context": object_in(body, "business_context", "business_context"),
        "context": context,
        "tool_arguments": arguments,
        "session_id": body.get("session_id", context.get("session_id")),
    }
    return {**request, "payload": payload}
