"""The GatewayRequest: what a door accepts, read into an ``Inbound``.

Shape: reference contract ``gateway-request-v1``: nested ``payload`` with ``message`` (aliases
``text``, ``input``, ``user_text``); the flat form is read by the debug routes only.
"""

import json
import re
import secrets
from collections.abc import Mapping
from typing import Any

from django.conf import settings

from apps.gateway.problems import Problem, invalid
from apps.runtime.turn import Caller, Inbound

MESSAGE_NAMES = ("message", "text", "input", "user_text")
CONTRACT_HEADER = "X-Agent-Framework-Contract"
_NAME = re.compile(r"^[^\x00-\x1f\x7f]{1,200}$")


def body_read(raw: bytes) -> dict[str, Any]:
    """Return the JSON object in ``raw``.

    Refused with a problem: too large (413), not JSON or not UTF-8 (400), not an object, NUL
    characters or lone surrogates anywhere (422): no store of ours can keep them.
    """
    if len(raw) > settings.MESSAGE_MAX_BYTES:
        raise Problem(
            413,
            "MESSAGE_TOO_LARGE",
            f"The body has {len(raw)} bytes; at most {settings.MESSAGE_MAX_BYTES} are accepted.",
        )
    try:
        body = json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise Problem(400, "INVALID_JSON", "The body is not UTF-8 text.") from None
    except json.JSONDecodeError as error:
        raise Problem(
            400,
            "INVALID_JSON",
            f"The body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}.",
        ) from None
    except (RecursionError, ValueError):
        raise Problem(
            400, "INVALID_JSON", "The body is nested too deeply or has a huge number."
        ) from None
    if not isinstance(body, dict):
        raise invalid("body", "must be a JSON object")
    _refuse_unstorable(body, "")
    return body


def _refuse_unstorable(value: Any, path: str, depth: int = 0) -> None:
    if depth > 32:
        raise invalid(path, "is nested more than 32 levels deep")
    if isinstance(value, str):
        if "\x00" in value:
            raise invalid(path, "must not contain NUL characters")
        if any("\ud800" <= char <= "\udfff" for char in value):
            raise invalid(path, "must not contain lone surrogates")
    elif isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise invalid(path, "must be a finite number")
    elif isinstance(value, dict):
        for key, item in value.items():
            _refuse_unstorable(key, f"{path}.{key}".strip(".").encode("ascii", "replace").decode())
            _refuse_unstorable(item, f"{path}.{key}".strip("."), depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _refuse_unstorable(item, f"{path}[{index}]", depth + 1)


def inbound_read(
    body: Mapping[str, Any],
    *,
    tenant_slug: str,
    caller: Caller,
    contract: str = "",
    request_id: str = "",
) -> Inbound:
    """Return the ``Inbound`` of a GatewayRequest, or raise a ``Problem`` naming the field."""
    payload = body.get("payload")
    if payload is None:
        raise invalid("payload", "is required and must be an object")
    if not isinstance(payload, dict):
        raise invalid("payload", "must be an object")
    metadata = _object(payload, "metadata", "payload.metadata")
    _object(payload, "business_context", "payload.business_context")
    _object(payload, "context", "payload.context")
    contract_check(contract or metadata.get("contract_version"))
    channel = _text(body, "channel", "channel", default="web")
    if channel not in settings.GATEWAY_CHANNELS:
        raise invalid("channel", f"is unknown; known: {', '.join(settings.GATEWAY_CHANNELS)}")
    agent = _text(body, "agent_id", "agent_id", default="") or None
    session = _text(payload, "session_id", "payload.session_id", default="")
    return Inbound(
        channel=channel,
        text=_message(payload),
        agent=agent,
        message_id=_text(payload, "message_id", "payload.message_id", default="")
        or secrets.token_urlsafe(16),
        session=session_name(session, tenant_slug=tenant_slug, agent=agent)
        or secrets.token_urlsafe(24),
        user_id=_text(payload, "user_id", "payload.user_id", default=""),
        payload=payload,
        tool_arguments=_object(payload, "tool_arguments", "payload.tool_arguments"),
        caller=caller,
        request_id=request_id or str(metadata.get("request_id") or "")[:100],
    )


def session_name(session: str, *, tenant_slug: str, agent: str | None) -> str:
    """Return the name in ``session``, which may be scoped: ``tenant:agent:name``.

    A scoped id of another tenant, or of another agent than the one requested, is no session of
    this request: 404.
    """
    parts = session.split(":", 2)
    if len(parts) < 3:
        return session
    if parts[0] != tenant_slug or (agent is not None and parts[1] != agent):
        raise Problem(404, "UNKNOWN_SESSION", "There is no such session for this tenant and agent.")
    return parts[2]


def contract_check(version: Any) -> None:
    """Refuse a contract version that is not ours; none given is ours."""
    if version in (None, ""):
        return
    if version != settings.CONTRACT_VERSION:
        raise invalid(
            "payload.metadata.contract_version",
            f"is not supported; send {settings.CONTRACT_VERSION} or leave it out",
            code="UNSUPPORTED_CONTRACT",
        )


def _message(payload: Mapping[str, Any]) -> str:
    for name in MESSAGE_NAMES:
        value = payload.get(name)
        if value is None:
            continue
        if not isinstance(value, str):
            raise invalid(f"payload.{name}", "must be text")
        if value.strip():
            return value
    raise invalid("payload.message", "is required and must not be empty")


def _text(source: Mapping[str, Any], name: str, field: str, *, default: str) -> str:
    value = source.get(name)
    if value is None:
        return default
    if not isinstance(value, str):
        raise invalid(field, "must be text")
    value = value.strip()
    if value and not _NAME.match(value):
        raise invalid(field, "must be at most 200 characters without control characters")
    return value or default


def _object(source: Mapping[str, Any], name: str, field: str) -> dict[str, Any]:
    value = source.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise invalid(field, "must be an object")
    return value
