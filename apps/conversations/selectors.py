"""Reads of conversations."""

import json
import uuid
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from apps.conversations.models import Event, Message, Session, TurnRecord
from apps.releases.selectors import deployed_release, release_load
from apps.runtime.canonical import sha256_text
from apps.runtime.dialogue import dialogue_load
from apps.runtime.release import Release
from apps.runtime.turn import ChatMessage, SessionState
from apps.tenants.scope import tenant_transaction


def messages_recent(
    *, tenant_id: int, session_id: uuid.UUID, limit: int
) -> tuple[ChatMessage, ...]:
    """Return the last ``limit`` messages of a session, oldest first."""
    with tenant_transaction(tenant_id):
        rows = list(
            Message.objects.filter(session_id=session_id)
            .order_by("-sequence")
            .values_list("role", "text", "agent", "thread")[:limit]
        )
    return tuple(
        ChatMessage(role=role, text=text, agent=agent, thread=thread)
        for role, text, agent, thread in reversed(rows)
    )


@dataclass(frozen=True)
class TurnView:
    """A turn as a door shows it."""

    id: uuid.UUID
    session_id: uuid.UUID
    session_key: str
    session_name: str
    channel: str
    message_id: str
    status: str
    outcome: str
    answer: str
    record: str

    @property
    def settled(self) -> bool:
        return self.status == "settled"


def turn_view(*, tenant_id: int, turn_id: uuid.UUID) -> TurnView | None:
    """Return one turn of the tenant, or ``None``."""
    with tenant_transaction(tenant_id):
        row = (
            TurnRecord.objects.filter(pk=turn_id)
            .values_list(
                "id", "session_id", "session__key", "session__name", "channel", "message_id",
                "status", "outcome", "answer", "record",
            )
            .first()
        )  # fmt: skip
    return TurnView(*row) if row else None


def session_find(*, tenant_id: int, key: str) -> Session | None:
    """Return the tenant's session with this key, or ``None``."""
    with tenant_transaction(tenant_id):
        found: Session | None = Session.objects.filter(key=key).first()
    return found


def session_find_named(*, tenant_id: int, name: str) -> Session | None:
    """Return the tenant's newest session called ``name``, whoever was asked for in it, or ``None``."""
    with tenant_transaction(tenant_id):
        found: Session | None = (
            Session.objects.filter(name=name).order_by("-updated_at", "-created_at").first()
        )
    return found


def session_state(*, tenant_id: int, key: str) -> SessionState | None:
    """Return what the session ``key`` would bring to its next turn, but for its vault."""
    session = session_find(tenant_id=tenant_id, key=key)
    if session is None:
        return None
    return SessionState(
        id=str(session.id),
        key=session.key,
        agent=session.agent,
        turn_number=session.turn_number + 1,
        next_state=session.next_state,
        active_agent=session.active_agent,
        business_context=json.loads(session.business_context),
        dialogue=dialogue_load(session.dialogue),
    )


def session_key_named(*, tenant_id: int, tenant_slug: str, environment: str, name: str) -> str:
    """Return the key of the newest session called ``name``.

    When there is none: the key it will have under the tenant's default agent.
    """
    known = session_find_named(tenant_id=tenant_id, name=name)
    if known is not None:
        return known.key
    agent = agent_requested(tenant_id=tenant_id, environment=environment, agent=None)
    return f"{tenant_slug}:{agent or ''}:{name}"


def release_running(*, tenant_id: int, environment: str) -> Release | None:
    """Return the release that the tenant's ``environment`` runs, parsed, or ``None``."""
    with tenant_transaction(tenant_id):
        deployed = deployed_release(environment)
    return None if deployed is None else release_load(tenant_id, deployed.pk)


def agent_requested(*, tenant_id: int, environment: str, agent: str | None) -> str | None:
    """Return the agent a message for ``agent`` (``None``: the default) is for; ``None`` when the
    running release has none of that name, or there is no release."""
    release = release_running(tenant_id=tenant_id, environment=environment)
    if release is None:
        return None
    found: str | None = import_string(settings.TURN_AGENT_RESOLVER)(release, agent)
    return found


def session_messages(*, tenant_id: int, key: str, limit: int) -> list[dict[str, Any]] | None:
    """Return the last ``limit`` messages of a session, oldest first; ``None`` without a session."""
    session = session_find(tenant_id=tenant_id, key=key)
    if session is None:
        return None
    with tenant_transaction(tenant_id):
        rows = list(
            Message.objects.filter(session=session)
            .order_by("-sequence")
            .values_list("role", "text", "turn_id", "turn__release__number", "created_at")[:limit]
        )
    return [
        {
            "role": role,
            "content": text,
            "turn_id": str(turn_id),
            "release": release,
            "created_at": created_at.isoformat(),
        }
        for role, text, turn_id, release, created_at in reversed(rows)
    ]


def session_checkpoint(*, tenant_id: int, key: str, full: bool) -> dict[str, Any] | None:
    """Return where a session stands after its last settled turn; ``None`` without a session.

    ``full`` adds the business context. ``payload_hash`` is the sha256 of the turn's stored record.
    """
    session = session_find(tenant_id=tenant_id, key=key)
    if session is None:
        return None
    with tenant_transaction(tenant_id):
        last = (
            TurnRecord.objects.filter(session=session, status="settled")
            .select_related("release")
            .defer("release__manifest")
            .order_by("-number")
            .first()
        )
    state: dict[str, Any] = {
        "agent_id": session.agent,
        "active_agent": session.active_agent,
        "next_state": session.next_state or None,
        "turn_number": last.number if last else 0,
        "event_sequence": session.event_sequence,
    }
    if full:
        state["business_context"] = json.loads(session.business_context)
    return {
        "conversation_key": session.key,
        "checkpoint_id": str(last.id) if last else None,
        "schema_version": 1,
        "state": state,
        "release": {"number": last.release.number, "sha256": last.release.sha256} if last else None,
        "payload_hash": sha256_text(last.record) if last else None,
        "created_at": last.settled_at.isoformat() if last and last.settled_at else None,
    }


def agents_deployed(*, tenant_id: int, environment: str) -> dict[str, Any]:
    """Return the enabled agents of the running release, and which is the default."""
    release = release_running(tenant_id=tenant_id, environment=environment)
    if release is None:
        return {"agents": [], "default_agent_id": None, "release": None}
    agents = [
        {
            "agent_id": slug,
            "description": getattr(item, "description", ""),
            "domain": getattr(item, "domain", ""),
            "members": list(getattr(item, "members", ())),
        }
        for (kind, slug), item in sorted(release.items.items(), key=lambda entry: entry[0])
        if kind == "agent" and getattr(item, "enabled", True)
    ]
    return {
        "agents": agents,
        "default_agent_id": import_string(settings.TURN_AGENT_RESOLVER)(release, None),
        "release": {"number": release.number, "sha256": release.sha256},
    }


@dataclass(frozen=True)
class EventRow:
    """One event as streams send it. ``turn_id`` is "" for what belongs to no turn."""

    sequence: int
    event_type: str
    payload: str
    created_at: str
    turn_id: str = ""


@dataclass(frozen=True)
class EventStart:
    """Where a stream begins: after ``cursor``. ``resync``: events after the client's are gone."""

    cursor: int
    resync: bool


def event_start(
    *, tenant_id: int, session_id: uuid.UUID, after: int | None, limit: int
) -> EventStart:
    """Return where a stream begins that last saw ``after`` (``None``: nothing yet)."""
    with tenant_transaction(tenant_id):
        events = Event.objects.filter(session_id=session_id)
        oldest = events.order_by("sequence").values_list("sequence", flat=True).first() or 1
        newest = events.order_by("-sequence").values_list("sequence", flat=True).first() or 0
    if after is None:
        return EventStart(cursor=max(oldest - 1, newest - limit), resync=False)
    if after < oldest - 1 or after > newest:
        return EventStart(cursor=oldest - 1, resync=True)
    return EventStart(cursor=after, resync=False)


def turn_start(*, tenant_id: int, turn_id: uuid.UUID) -> int:
    """Return the cursor just before the first event of a turn."""
    with tenant_transaction(tenant_id):
        events = Event.objects.filter(turn_id=turn_id).order_by("sequence")
        first = events.values_list("sequence", flat=True).first()
    return (first or 1) - 1


def events_after(
    *,
    tenant_id: int,
    session_id: uuid.UUID,
    after: int,
    limit: int,
    turn_id: uuid.UUID | None = None,
) -> list[EventRow]:
    """Return up to ``limit`` events with a sequence above ``after``, in order; with ``turn_id``
    only that turn's."""
    with tenant_transaction(tenant_id):
        events = Event.objects.filter(session_id=session_id, sequence__gt=after)
        if turn_id is not None:
            events = events.filter(turn_id=turn_id)
        rows = list(
            events.order_by("sequence").values_list(
                "sequence", "event_type", "payload", "created_at", "turn_id"
            )[:limit]
        )
    return [EventRow(s, t, p, at.isoformat(), str(turn or "")) for s, t, p, at, turn in rows]
