"""The ChannelResponse: what a door gives back for a settled turn."""

import json
from typing import Any

from django.http import HttpResponse, JsonResponse

from apps.conversations.record import public_metadata, trace_metadata
from apps.conversations.selectors import TurnView


def answer_body(view: TurnView, *, trace: bool) -> dict[str, Any]:
    """Return the body for a settled turn: ``{channel, session_id, text, metadata}``.

    ``trace`` (scope ``trace:read``) adds the full record to the metadata.
    """
    record = json.loads(view.record)
    tenant, agent = view.session_key.split(":", 2)[:2]
    metadata: dict[str, Any] = {
        "tenant_id": tenant,
        "agent_id": agent,
        "original_session_id": view.session_name,
        "conversation_key": view.session_key,
        "message_id": view.message_id,
        "turn_id": str(view.id),
        "outcome": view.outcome,
        **public_metadata(record),
    }
    if trace:
        metadata.update(trace_metadata(record))
    return {
        "channel": view.channel,
        "session_id": view.session_key,
        "text": view.answer,
        "metadata": metadata,
    }


def answer_response(view: TurnView, *, trace: bool) -> HttpResponse:
    """Return 200 with the answer of a settled turn."""
    return json_answer(answer_body(view, trace=trace))


def json_answer(body: dict[str, Any]) -> HttpResponse:
    """Return what was stored as JSON in readable UTF-8: a store has kept it, so it can be encoded."""
    return JsonResponse(body, json_dumps_params={"ensure_ascii": False})


def turn_path(turn_id: object) -> str:
    """Return where a turn's answer is asked for later."""
    return f"/gateway/turns/{turn_id}"


def waiting_response(view_id: object, session_key: str) -> HttpResponse:
    """Return 202: accepted, not done; ``Location`` answers the same body when it is."""
    return JsonResponse(
        {
            "status": "accepted",
            "session_id": session_key,
            "metadata": {"turn_id": str(view_id)},
            "location": turn_path(view_id),
        },
        status=202,
        headers={"Location": turn_path(view_id), "Retry-After": "1"},
    )
