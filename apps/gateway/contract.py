"""The GatewayRequest: what a door accepts, read into an ``Inbound``.

Shape: contract ``gateway-request-v1``: a nested ``payload`` with ``message`` (aliases ``text``,
``input``, ``user_text``). The older flat shapes are read by the debug doors only, see
``older_shapes.py``.
"""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from apps.gateway.problems import Problem, invalid, not_found
from apps.runtime.text import strip_invisible
from apps.runtime.turn import CANONICAL_KEYS, Caller, Inbound

MESSAGE_NAMES = ("message", "text", "input", "user_text")
CONTRACT_HEADER = "X-Agent-Framework-Contract"
DEFAULT_CHANNEL = "web"
_NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,200}")
_NOT_IN_A_NAME = re.compile(r"[/\s]")


@dataclass(frozen=True)
class Envelope:
    """What stands around a body: headers, and the one session a token opens.

    ``session``: full key, or "". Headers that are absent are "".
    """

    contract: str = ""
    channel: str = ""
    ura_call_id: str = ""
    request_id: str = ""
    session: str = ""


def inbound_read(
    body: Mapping[str, Any],
    *,
    tenant_slug: str,
    caller: Caller,
    envelope: Envelope = Envelope(),  # frozen
    need_message: bool = True,
) -> Inbound:
    """Return the ``Inbound`` of a GatewayRequest, or raise a ``Problem`` naming the field.

    Absent and ``null`` are the same everywhere. Without a session id the session is a new one that
    nobody can guess, or the token's own.
    """
    payload = _payload(body, envelope)
    metadata = object_in(payload, "metadata", "payload.metadata")
    _versions_check(body, metadata, envelope)
    _backend_check(body)
    agent, session = _conversation(body, payload, tenant_slug, envelope)
    keys_check(payload, "payload")
    keys_check(object_in(payload, "business_context", "payload.business_context"), "payload.business_context")  # fmt: skip
    object_in(payload, "context", "payload.context")
    return Inbound(
        channel=_channel(body, envelope),
        text=_message(payload, need_message),
        agent=agent,
        message_id=text_in(payload, "message_id", "payload.message_id")
        or secrets.token_urlsafe(16),
        session=session or secrets.token_urlsafe(24),
        user_id=text_in(payload, "user_id", "payload.user_id"),
        payload=payload,
        tool_arguments=object_in(payload, "tool_arguments", "payload.tool_arguments"),
        caller=caller,
        request_id=text_in(metadata, "request_id", "payload.metadata.request_id")[:100]
        or envelope.request_id,
    )


def _payload(body: Mapping[str, Any], envelope: Envelope) -> dict[str, Any]:
    payload = body.get("payload")
    if payload is None:
        raise invalid("payload", _("is required and must be an object"))
    if not isinstance(payload, dict):
        raise invalid("payload", _("must be an object"))
    if payload.get("ura_call_id") is None and envelope.ura_call_id:
        call = {"ura_call_id": envelope.ura_call_id}
        payload = {**payload, "ura_call_id": text_in(call, "ura_call_id", "x-ura-call-id")}
    return payload


def _versions_check(
    body: Mapping[str, Any], metadata: Mapping[str, Any], envelope: Envelope
) -> None:
    """Refuse a contract version that is not ours, wherever it is said; none said is ours."""
    outer = object_in(body, "metadata", "metadata")
    for field, version in (
        (CONTRACT_HEADER, envelope.contract or None),
        ("metadata.contract_version", outer.get("contract_version")),
        ("payload.metadata.contract_version", metadata.get("contract_version")),
    ):
        if version is not None and version != settings.CONTRACT_VERSION:
            raise invalid(
                field,
                _("is not supported; send %(version)s or leave it out")
                % {"version": settings.CONTRACT_VERSION},
                code="UNSUPPORTED_CONTRACT",
            )


def _backend_check(body: Mapping[str, Any]) -> None:
    backend = text_in(body, "backend_id", "backend_id")
    if backend:
        raise unknown("backend_id", backend, code="UNKNOWN_BACKEND")


def _channel(body: Mapping[str, Any], envelope: Envelope) -> str:
    field = "channel" if body.get("channel") is not None else "x-channel"
    header = {"x-channel": envelope.channel or DEFAULT_CHANNEL}
    channel = text_in(body if field == "channel" else header, field, field)
    if channel not in settings.GATEWAY_CHANNELS:
        known = ", ".join(settings.GATEWAY_CHANNELS)
        raise invalid(field, _("is unknown; known: %(names)s") % {"names": known})
    return channel


def _conversation(
    body: Mapping[str, Any], payload: Mapping[str, Any], tenant_slug: str, envelope: Envelope
) -> tuple[str | None, str]:
    field = "payload.session_id"
    said = text_in(payload, "session_id", field)
    if not said:
        field, said = "session_id", text_in(body, "session_id", "session_id")
    if not said and envelope.session:
        field, said = "token", envelope.session
    agent = text_in(body, "agent_id", "agent_id") or None
    return conversation_read(agent, said, tenant_slug=tenant_slug, field=field)


def conversation_read(
    agent: str | None, session: str, *, tenant_slug: str, field: str
) -> tuple[str | None, str]:
    """Return the requested agent (``None``: the tenant's default) and the session's name or "".

    ``session``, which stood in ``field``, may be scoped: ``tenant:agent:name``. It then says the
    agent; another agent beside it is refused, another tenant's is no session of this caller.
    """
    parts = session.split(":", 2)
    if len(parts) < 3:
        return agent, session_name(session)
    if parts[0] != tenant_slug or not parts[1]:
        raise not_found()
    if agent is not None and agent != parts[1]:
        message = _("is a session of agent %(agent)s, and agent_id is another")
        raise invalid(field, message % {"agent": parts[1]})
    return parts[1], session_name(parts[2])


def session_name(name: str) -> str:
    """Return ``name`` as sessions are called: no blanks and slashes, so that paths can name it.

    Reference facts 1.6 (AgentIdentity).
    """
    return _NOT_IN_A_NAME.sub("_", name)


def _message(payload: Mapping[str, Any], needed: bool) -> str:
    for name in MESSAGE_NAMES:
        value = payload.get(name)
        if value is None:
            continue
        if not isinstance(value, str):
            raise invalid(f"payload.{name}", _("must be text"))
        if strip_invisible(value).strip():
            return value
    if needed:
        raise invalid("payload.message", _("is required and must not be empty"))
    return ""


def keys_check(source: Mapping[str, Any], path: str) -> None:
    """The canonical keys are text or whole numbers wherever they stand."""
    for key in CANONICAL_KEYS:
        value = source.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, (str, int))):
            raise invalid(f"{path}.{key}", _("must be text"))


def unknown(field: str, value: str, *, code: str) -> Problem:
    """Return the 404 for a name that the tenant's release does not have."""
    message = _("is unknown")
    return Problem(
        404, code, f"{field}: {value!r} {message}", errors=[{"field": field, "message": message}]
    )


def text_in(source: Mapping[str, Any], name: str, field: str) -> str:
    """Return the trimmed text under ``name``, "" when absent or null; else raise the 422."""
    value = source.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise invalid(field, _("must be text"))
    value = value.strip()
    if value and not _NAME.fullmatch(value):
        raise invalid(field, _("must be at most 200 characters without control characters"))
    return value


def object_in(source: Mapping[str, Any], name: str, field: str) -> dict[str, Any]:
    """Return the object under ``name``, empty when absent or null; else raise the 422."""
    value = source.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise invalid(field, _("must be an object"))
    return value
