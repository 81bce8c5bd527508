"""Reads for the console: sessions, their turns, one turn. All inside the current tenant's scope.

Every function makes the same number of queries whatever the number of rows.
"""

import json
import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext_lazy as _

from apps.conversations.details import TurnDetails, turn_details
from apps.conversations.models import Event, Message, Session, TurnRecord

SESSIONS_PER_PAGE = 25
TURNS_PER_PAGE = 25

STATES = {
    "sending": _("Sending"),
    "queued": _("Waiting for its turn"),
    "running": _("Thinking"),
    "answering": _("Answering"),
    "answered": _("Answered"),
    "blocked": _("Blocked"),
    "waiting": _("Waiting for the customer"),
    "handed_over": _("Handed over"),
    "ended": _("Ended"),
    "failed": _("Failed"),
    "refused": _("Not sent"),
}
"""What can be seen of a turn: how it is sent, its status while it is open, then its outcome."""


@dataclass(frozen=True)
class TurnRow:
    """One turn of a conversation as a page shows it. ``question``: "" while it is not stored."""

    id: uuid.UUID
    session_id: uuid.UUID
    number: int
    state: str
    question: str
    answer: str
    message_id: str
    request_id: str
    environment: str
    user: str
    attempts: int
    accepted_at: datetime
    settled_at: datetime | None
    release_id: uuid.UUID
    release_number: int
    release_sha256: str
    details: TurnDetails

    @property
    def settled(self) -> bool:
        return self.settled_at is not None

    @property
    def state_label(self) -> Any:
        return STATES.get(self.state, self.state)

    @property
    def milliseconds(self) -> float | None:
        """From acceptance to the answer, queueing included."""
        if self.settled_at is None:
            return None
        return (self.settled_at - self.accepted_at).total_seconds() * 1000


@dataclass(frozen=True)
class SessionPage:
    """Some sessions, newest first. ``older``: the cursor of the next page, "" on the last."""

    sessions: list[Session]
    older: str


def sessions_page(*, before: str = "", wanted: str = "") -> SessionPage:
    """Return the sessions last written to before the cursor ``before`` ("": the newest), those
    whose name or agent contains ``wanted``. A cursor that is none is no cursor."""
    rows = Session.objects.order_by("-updated_at", "-id").only(
        "key", "name", "agent", "active_agent", "channel", "principal", "turn_number", "updated_at"
    )
    if wanted:
        rows = rows.filter(Q(name__icontains=wanted) | Q(agent__icontains=wanted))
    if cursor := _cursor_read(before):
        at, key = cursor
        rows = rows.filter(Q(updated_at__lt=at) | Q(updated_at=at, id__lt=key))
    found = list(rows[: SESSIONS_PER_PAGE + 1])
    page = found[:SESSIONS_PER_PAGE]
    more = len(found) > SESSIONS_PER_PAGE
    older = f"{page[-1].updated_at.isoformat()},{page[-1].id}" if more else ""
    return SessionPage(sessions=page, older=older)


def _cursor_read(text: str) -> tuple[datetime, uuid.UUID] | None:
    at, _comma, key = text.partition(",")
    try:
        moment = parse_datetime(at)
        return (moment, uuid.UUID(key)) if moment and moment.tzinfo else None
    except ValueError:
        return None


def session_get(*, session_id: uuid.UUID) -> Session | None:
    """Return one session of the tenant, or ``None``."""
    found: Session | None = Session.objects.defer("vault").filter(pk=session_id).first()
    return found


def session_by_key(*, key: str) -> Session | None:
    """Return the tenant's session called ``key``, or ``None``."""
    found: Session | None = Session.objects.defer("vault").filter(key=key).first()
    return found


def turns_page(
    *, session_id: uuid.UUID, trace: bool, before: int | None = None
) -> tuple[list[TurnRow], bool]:
    """Return the last turns numbered below ``before`` (``None``: the newest), oldest first, and
    whether there are earlier ones."""
    rows = _turns().filter(session_id=session_id).order_by("-number")
    if before is not None:
        rows = rows.filter(number__lt=before)
    found = list(rows[: TURNS_PER_PAGE + 1])
    page = found[TURNS_PER_PAGE - 1 :: -1]
    return _rows(page, trace=trace), len(found) > TURNS_PER_PAGE


def turn_row(*, turn_id: uuid.UUID, trace: bool) -> TurnRow | None:
    """Return one turn of the tenant, or ``None``."""
    found = list(_turns().filter(pk=turn_id))
    return _rows(found, trace=trace)[0] if found else None


def stream_cursor(*, session: Session) -> int:
    """Return where a viewer who has just read the session's turns goes on in its events.

    Just before the first event of the oldest open turn, so that text already streamed of it is
    replayed; read ``session`` before the turns, so that nothing falls between the two.
    """
    open_turns = TurnRecord.objects.filter(session=session).exclude(status="settled")
    turn_id = open_turns.order_by("number").values_list("id", flat=True).first()
    if turn_id is None:
        return session.event_sequence
    events = Event.objects.filter(turn_id=turn_id).order_by("sequence")
    first: int | None = events.values_list("sequence", flat=True).first()
    return session.event_sequence if first is None else first - 1


def _turns() -> QuerySet[TurnRecord]:
    found: QuerySet[TurnRecord] = TurnRecord.objects.select_related("release").only(
        "session_id", "number", "status", "outcome", "answer", "record", "message_id",
        "request_id", "environment", "user", "attempts", "accepted_at", "settled_at",
        "release__number", "release__sha256",
    )  # fmt: skip
    return found


def _rows(turns: Sequence[TurnRecord], *, trace: bool) -> list[TurnRow]:
    questions: dict[uuid.UUID, str] = defaultdict(str)
    asked = Message.objects.filter(turn__in=[turn.pk for turn in turns], role="user")
    questions.update(asked.values_list("turn_id", "text"))
    return [
        TurnRow(
            id=turn.id,
            session_id=turn.session_id,
            number=turn.number,
            state=turn.outcome or turn.status,
            question=questions[turn.id],
            answer=turn.answer,
            message_id=turn.message_id,
            request_id=turn.request_id,
            environment=turn.environment,
            user=turn.user,
            attempts=turn.attempts,
            accepted_at=turn.accepted_at,
            settled_at=turn.settled_at,
            release_id=turn.release_id,
            release_number=turn.release.number,
            release_sha256=turn.release.sha256,
            details=turn_details(json.loads(turn.record), trace=trace),
        )
        for turn in turns
    ]
