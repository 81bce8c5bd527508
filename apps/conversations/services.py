"""Writes of a conversation. The database is the truth, the broker a doorbell.

A message is accepted by one commit; a worker claims it by compare-and-set under a lease with a
fencing token; every write of a turn checks its fence. Lock order is always turn, then session.
"""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import F, OuterRef, QuerySet, Subquery
from django.utils import timezone
from django.utils.module_loading import import_string

# ``X as X``: callers find the acceptance and its refusals here.
from apps.conversations.accepting import Accepted as Accepted
from apps.conversations.accepting import ForeignSession as ForeignSession
from apps.conversations.accepting import MessageIdReused as MessageIdReused
from apps.conversations.accepting import NotDeployed as NotDeployed
from apps.conversations.accepting import OtherEnvironment as OtherEnvironment
from apps.conversations.accepting import UnknownAgent as UnknownAgent
from apps.conversations.accepting import doorbell as doorbell
from apps.conversations.accepting import turn_accept as turn_accept
from apps.conversations.appending import events_write
from apps.conversations.choosing import release_forced
from apps.conversations.confirming import confirmation_ask
from apps.conversations.events import reply_events
from apps.conversations.inbound import inbound_read
from apps.conversations.models import Message, OutboundMessage, Session, TurnRecord
from apps.conversations.record import turn_record
from apps.conversations.stored import stored_id
from apps.releases.environments.pointers import pointer_read
from apps.releases.models import Deployment
from apps.releases.selectors import release_load
from apps.runtime.canonical import canonical_json
from apps.runtime.dialogue import dialogue_load
from apps.runtime.ports import LeaseLost
from apps.runtime.turn import Inbound, SessionState, Turn
from apps.tenants.scope import tenant_transaction
from apps.tenants.sealing import seal, unseal


@dataclass(frozen=True)
class Taken:
    """A claimed turn, ready to walk."""

    turn_id: uuid.UUID
    tenant_id: int
    session_id: uuid.UUID
    session_key: str
    number: int
    fence: int
    environment: str
    release_id: uuid.UUID
    bindings_version: int
    inbound: Inbound
    session: SessionState


# -- claim -------------------------------------------------------------------------------------


def turn_take(*, tenant_id: int, turn_id: uuid.UUID, worker: str) -> Taken | None:
    """Claim the next queued turn of the session that ``turn_id`` belongs to.

    Returns ``None`` when the session is busy or has nothing queued. Order is the order of arrival,
    whichever turn the doorbell named.
    """
    with tenant_transaction(tenant_id):
        mine = TurnRecord.objects.filter(pk=turn_id).values("session_id")
        # By number, not by looking for a queued one: that would read the session's whole history.
        running = Deployment.objects.filter(environment=OuterRef("environment"))
        turn = (
            TurnRecord.objects.select_related("session")
            .annotate(pointer=Subquery(running.values("pointer")[:1]))
            .filter(
                session_id=Subquery(mine),
                number=F("session__settled_number") + 1,
                status="queued",
            )
            .first()
        )
        if turn is None:
            return None
        forced = _forced(turn, turn.pointer)
        if not _claim(turn, worker, forced):
            return None
        events_write(
            turn.session_id,
            turn.id,
            [("workflow.started", {"turn_id": str(turn.id)})],
            state={"release_id": stored_id(turn.release_id)} if forced else None,
        )
        session = turn.session
        return Taken(
            turn_id=turn.id,
            tenant_id=tenant_id,
            session_id=session.id,
            session_key=session.key,
            number=turn.number,
            fence=turn.fence + 1,
            environment=turn.environment,
            release_id=turn.release_id,
            bindings_version=turn.bindings_version,
            inbound=inbound_read(unseal(turn.inbound)),
            session=SessionState(
                id=str(session.id),
                key=session.key,
                agent=session.agent,
                turn_number=turn.number,
                next_state=session.next_state,
                active_agent=session.active_agent,
                business_context=json.loads(session.business_context),
                vault=unseal(session.vault),
                dialogue=dialogue_load(session.dialogue),
            ),
        )


def _forced(turn: TurnRecord, pointer: str | None) -> dict[str, Any]:
    """Return the columns of ``turn`` that a forced deployment changes while it waits.

    Looked at when it is taken, not when the release is deployed: so it holds too for a message whose
    acceptance and that deployment crossed. A turn that had begun keeps its release.
    """
    if turn.attempts or pointer is None or pointer == "{}":
        return {}
    release_id = release_forced(
        pointer_read(pointer),
        turn.tenant_id,
        turn.session.name,
        turn.release_id,
        turn.accepted_at.timestamp(),
    )
    if release_id is None:
        return {}
    bindings = Deployment.objects.filter(environment=turn.environment)
    turn.release_id = release_id
    turn.bindings_version = bindings.values_list("bindings_version", flat=True)[0]
    return {"release_id": release_id, "bindings_version": turn.bindings_version}


def _claim(turn: TurnRecord, worker: str, forced: Mapping[str, Any]) -> bool:
    now = timezone.now()
    return bool(
        TurnRecord.objects.filter(pk=turn.pk, status="queued", fence=turn.fence).update(
            status="running",
            fence=F("fence") + 1,
            attempts=F("attempts") + 1,
            lease_until=now + timedelta(seconds=settings.TURN_LEASE_SECONDS),
            claimed_at=now,
            worker=worker,
            **forced,
        )
    )


def turn_extend(*, tenant_id: int, turn_id: uuid.UUID, fence: int) -> bool:
    """Prolong the lease; ``False`` when the turn was taken away.

    One that its holder has settled is still its own: the reply has yet to leave.
    """
    until = timezone.now() + timedelta(seconds=settings.TURN_LEASE_SECONDS)
    with tenant_transaction(tenant_id):
        mine = TurnRecord.objects.filter(pk=turn_id, fence=fence)
        prolonged = mine.filter(status="running").update(lease_until=until)
        return bool(prolonged) or mine.filter(status="settled").exists()


# -- settle, deliver ---------------------------------------------------------------------------


def turn_settle(*, turn: Turn, tenant_id: int) -> None:
    """Write the outcome: record, messages, session state, outbox. Raises ``LeaseLost``."""
    outcome = turn.outcome
    assert outcome is not None
    with tenant_transaction(tenant_id):
        record = turn_record(turn)
        settled = TurnRecord.objects.filter(pk=turn.id, fence=turn.fence, status="running").update(
            status="settled",
            outcome=outcome.kind,
            answer=outcome.text,
            record=canonical_json(record),
            inbound="",
            lease_until=None,
            settled_at=timezone.now(),
        )
        if not settled:
            raise LeaseLost(turn.id)
        session_id = uuid.UUID(turn.session.id)
        state: dict[str, Any] = {
            "business_context": canonical_json(dict(turn.business_context.values)),
            "next_state": turn.next_state
            if turn.next_state is not None
            else turn.session.next_state,
            # Who goes on, which after a sub-conversation is not who was routed to.
            "active_agent": turn.dialogue.active_agent
            or (turn.route.agent if turn.route else turn.session.active_agent),
            "settled_number": turn.session.turn_number,
            "pending": outcome.kind == "waiting" or turn.dialogue.pending,
        }
        if turn.dialogue != turn.session.dialogue:
            state["dialogue"] = turn.dialogue.dump()
            confirmation_ask(turn)
        if outcome.kind == "ended":
            # What comes next is a new conversation: nothing pins it to a release.
            state["release_id"] = None
        if turn.vault != turn.session.vault:
            state["vault"] = seal(turn.vault)
        ended = ("workflow.completed", {"turn_id": turn.id, "outcome": outcome.kind})
        events_write(session_id, uuid.UUID(turn.id), [*control_events(turn), ended], state=state)
        number = turn.session.turn_number
        agent, thread = speaker_of(turn)
        Message.objects.bulk_create(
            Message(
                session_id=session_id,
                turn_id=turn.id,
                sequence=sequence,
                role=role,
                text=text,
                agent=said_by,
                thread=thread,
            )
            for sequence, role, text, said_by in (
                (number * 2 - 1, "user", turn.text, ""),
                (number * 2, "assistant", outcome.text, agent),
            )
        )
        OutboundMessage.objects.create(
            turn_id=turn.id, session_id=session_id, channel=turn.inbound.channel, text=outcome.text
        )


CONTROL_EVENTS = {
    "HUMAN_HANDOFF": "session.human_handoff.requested",
    "END_SESSION": "session.end.requested",
}
"""Platform facts 3.5."""


def control_events(turn: Turn) -> list[tuple[str, dict[str, Any]]]:
    """Return the events of a conversation that its customer gave away or ended."""
    name = CONTROL_EVENTS.get(turn.route.control) if turn.route else None
    return [(name, {"turn_id": turn.id})] if name else []


def speaker_of(turn: Turn) -> tuple[str, str]:
    """Return who gave the answer of ``turn``, and the sub-conversation the exchange belongs to."""
    agent = turn.draft.agent if turn.draft else turn.route.agent if turn.route else ""
    sub = turn.dialogue.sub_conversation
    return agent, sub.thread if sub is not None and sub.agent == agent else ""


def turn_deliver(*, tenant_id: int, turn_id: uuid.UUID) -> bool:
    """Let the reply of a settled turn leave, once; return whether the session has more to do.

    Replies of earlier turns that are still here (their worker died) leave before it. The events are
    the reply's way out on web channels: they are written by the same transaction that marks the
    outbox row as sent, so a second call adds nothing.
    """
    more = False
    with tenant_transaction(tenant_id):
        this = TurnRecord.objects.filter(pk=turn_id)
        unsent = OutboundMessage.objects.filter(
            sent_at=None,
            session_id=Subquery(this.values("session_id")),
            turn__number__lte=Subquery(this.values("number")),
        )
        for row in unsent.select_related("turn").only(*_DELIVERED).order_by("turn__number"):
            left = OutboundMessage.objects.filter(pk=row.pk, sent_at=None)
            if left.update(sent_at=timezone.now()):
                last_number = events_write(row.turn.session_id, row.turn_id, reply_events(row.turn))
                more = last_number > row.turn.number
    return more


_DELIVERED = (
    "turn__session_id", "turn__number", "turn__message_id", "turn__outcome", "turn__answer",
)  # fmt: skip


# -- sweep -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Swept:
    """What one sweep of one tenant found."""

    expired: int = 0
    rung: int = 0
    delivered: int = 0
    failed: int = 0


def tenant_sweep(*, tenant_id: int, idle_seconds: float, alone: bool = False) -> Swept:
    """Return expired leases to the queue, ring for turns nobody heard of, send what is unsent.

    ``alone``: this process is the only one and runs nothing yet, so no lease counts.
    """
    now = timezone.now()
    with tenant_transaction(tenant_id):
        expired = _open_turns().filter(status="running")
        if not alone:
            expired = expired.filter(lease_until__lt=now)
        stuck = list(
            expired.filter(attempts__gte=settings.TURN_MAX_ATTEMPTS).values_list("id", "fence")
        )
        requeued = expired.exclude(attempts__gte=settings.TURN_MAX_ATTEMPTS).update(
            status="queued", lease_until=None
        )
        before = now - timedelta(seconds=idle_seconds)
        # One doorbell per session: for its next turn, unless that runs.
        waiting = _open_turns().filter(status="queued", number=F("session__settled_number") + 1)
        if not requeued:
            waiting = waiting.filter(accepted_at__lt=before)
        open_turns = list(waiting.order_by("accepted_at").values_list("id", flat=True)[:500])
        unsent = list(
            OutboundMessage.objects.filter(sent_at=None, created_at__lt=before).values_list(
                "turn_id", flat=True
            )[:500]
        )
    failed = sum(turn_abandon(tenant_id=tenant_id, turn_id=pk, fence=fence) for pk, fence in stuck)
    for turn_id in unsent:
        if turn_deliver(tenant_id=tenant_id, turn_id=turn_id):
            open_turns.append(turn_id)
    for turn_id in open_turns:
        doorbell(tenant_id, turn_id)
    return Swept(expired=requeued, rung=len(open_turns), delivered=len(unsent), failed=failed)


def _open_turns() -> QuerySet[TurnRecord]:
    """Return the turns that are not settled, by their partial index.

    The condition stands in the text as it stands in the index, not in a parameter: only so can a
    database know, before it sees the value, that the index holds every row that is asked for.
    """
    found: QuerySet[TurnRecord] = TurnRecord.objects.extra(
        where=["NOT (conversations_turnrecord.status = 'settled')"]
    )
    return found


def turn_abandon(*, tenant_id: int, turn_id: uuid.UUID, fence: int) -> int:
    """Settle a turn that no worker survives as failed, so that its session goes on."""
    text = import_string(settings.TURN_FAILURE_TEXT)
    with tenant_transaction(tenant_id):
        turn = TurnRecord.objects.select_related("session").get(pk=turn_id)
        answer = text(release_load(tenant_id, turn.release_id))
        settled = TurnRecord.objects.filter(pk=turn_id, fence=fence, status="running").update(
            status="settled",
            fence=F("fence") + 1,
            outcome="failed",
            answer=answer,
            inbound="",
            lease_until=None,
            settled_at=timezone.now(),
            record=canonical_json(
                {
                    "outcome": {
                        "kind": "failed",
                        "code": "RUNTIME_TIMEOUT",
                        "attempts": turn.attempts,
                    }
                }
            ),
        )
        if settled:
            Session.objects.filter(pk=turn.session_id).update(settled_number=turn.number)
            OutboundMessage.objects.create(
                turn_id=turn.id, session_id=turn.session_id, channel=turn.channel, text=answer
            )
    if settled and turn_deliver(tenant_id=tenant_id, turn_id=turn_id):
        doorbell(tenant_id, turn_id)
    return int(settled)
