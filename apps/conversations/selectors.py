"""Reads of conversations."""

import uuid
from dataclasses import dataclass

from apps.conversations.models import Event, Message, Session, TurnRecord
from apps.runtime.turn import ChatMessage
from apps.tenants.scope import tenant_transaction


def messages_recent(
    *, tenant_id: int, session_id: uuid.UUID, limit: int
) -> tuple[ChatMessage, ...]:
    """Return the last ``limit`` messages of a session, oldest first."""
    with tenant_transaction(tenant_id):
        rows = list(
            Message.objects.filter(session_id=session_id)
            .order_by("-sequence")
            .values_list("role", "text")[:limit]
        )
    return tuple(ChatMessage(role=role, text=text) for role, text in reversed(rows))


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


@dataclass(frozen=True)
class EventRow:
    """One event as streams send it."""

    sequence: int
    event_type: str
    payload: str
    created_at: str


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


def events_after(
    *, tenant_id: int, session_id: uuid.UUID, after: int, limit: int
) -> list[EventRow]:
    """Return up to ``limit`` events with a sequence above ``after``, in order."""
    with tenant_transaction(tenant_id):
        rows = list(
            Event.objects.filter(session_id=session_id, sequence__gt=after)
            .order_by("sequence")
            .values_list("sequence", "event_type", "payload", "created_at")[:limit]
        )
    return [EventRow(s, t, p, at.isoformat()) for s, t, p, at in rows]
