"""The ToolInvocation: what a request for a tool says, read and checked."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from apps.gateway.contract import keys_check, object_in, text_in
from apps.gateway.problems import invalid
from apps.runtime.canonical import canonical_json, sha256_text

CODE = "INVALID_TOOL_INVOCATION"
_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True)
class Confirmation:
    """The yes of somebody: to the question ``id`` ("": the newest), for exactly this call."""

    contract: str
    arguments_sha256: str
    id: str = ""


@dataclass(frozen=True)
class Asked:
    """One tool that somebody asks for, as it was said. ``digest`` tells two requests apart."""

    tool: str
    agent: str
    channel: str
    door: str
    request_id: str
    trace_id: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    business_context: Mapping[str, Any] = field(default_factory=dict)
    confirmation: Confirmation | None = None
    cache_bypass: bool = False
    digest: str = ""


def asked_read(body: Mapping[str, Any], *, tool: str, trace_id: str) -> Asked:
    """Return what ``body`` (contract tool-invocation-v1) asks of ``tool``. Raises the 422.

    Without ``metadata.request_id`` every request is a new one.
    """
    if text_in(body, "tool_name", "tool_name") != tool:
        raise invalid("tool_name", _("is required and must be the name in the path"), code=CODE)
    metadata = object_in(body, "metadata", "metadata")
    return asked_of(
        body,
        tool=tool,
        door="rest",
        request_id=text_in(metadata, "request_id", "metadata.request_id"),
        trace_id=text_in(metadata, "trace_id", "metadata.trace_id") or trace_id,
        cache_bypass=metadata.get("cache_bypass"),
    )


def asked_of(
    body: Mapping[str, Any],
    *,
    tool: str,
    door: str,
    request_id: str,
    trace_id: str,
    cache_bypass: Any,
) -> Asked:
    """Return ``Asked`` of the members that both doors share. Raises the 422."""
    if cache_bypass is not None and not isinstance(cache_bypass, bool):
        raise invalid("metadata.cache_bypass", _("must be true or false"), code=CODE)
    context = object_in(body, "business_context", "business_context")
    keys_check(context, "business_context")
    said: dict[str, Any] = {
        "tool": tool,
        "agent": text_in(body, "agent_id", "agent_id"),
        "channel": _channel(body),
        "arguments": object_in(body, "arguments", "arguments"),
        "business_context": context,
        "confirmation": object_in(body, "confirmation", "confirmation"),
        "cache_bypass": bool(cache_bypass),
    }
    return Asked(
        tool=tool,
        agent=said["agent"],
        channel=said["channel"],
        door=door,
        request_id=request_id or secrets.token_urlsafe(16),
        trace_id=trace_id,
        arguments=said["arguments"],
        business_context=context,
        confirmation=_confirmation(said["confirmation"]),
        cache_bypass=bool(cache_bypass),
        digest=sha256_text(canonical_json(said)),
    )


def _channel(body: Mapping[str, Any]) -> str:
    channel = text_in(body, "channel", "channel")
    if channel and channel not in settings.GATEWAY_CHANNELS:
        known = ", ".join(settings.GATEWAY_CHANNELS)
        raise invalid("channel", _("is unknown; known: %(names)s") % {"names": known}, code=CODE)
    return channel


def _confirmation(said: Mapping[str, Any]) -> Confirmation | None:
    if not said:
        return None
    found = {
        name: text_in(said, name, f"confirmation.{name}")
        for name in ("id", "contract", "arguments_sha256")
    }
    for name in ("contract", "arguments_sha256"):
        if len(found[name]) != 64 or not _HEX.issuperset(found[name]):
            message = _("is required: the sha256 that the refusal named")
            raise invalid(f"confirmation.{name}", message, code=CODE)
    return Confirmation(**found)
