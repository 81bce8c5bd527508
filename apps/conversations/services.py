"""Writes of a conversation. The database is the truth, the broker a doorbell.

A message is accepted by one commit; a worker claims it by compare-and-set under a lease with a
fencing token; every write of a turn checks its fence. Lock order is always turn, then session.
"""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, OuterRef, QuerySet, Subquery
from django.utils import timezone
from django.utils.module_loading import import_string

from apps.conversations.asking import agent_asked, agent_in, standing_of
from apps.conversations.choosing import release_choose, release_forced, release_target
from apps.conversations.events import reply_events
from apps.conversations.inbound import inbound_digest, inbound_read, inbound_values
from apps.conversations.models import Message, OutboundMessage, Session, TurnRecord
from apps.conversations.record import turn_record
from apps.conversations.sealing import seal, unseal
from apps.conversations.stored import stored_id, stored_time
from apps.releases.models import Deployment
from apps.releases.pointers import Pointer, pointer_read
from apps.releases.selectors import (
    deployed_note,
    deployed_pointer,
    deployed_seen,
    release_load,
)
from apps.runtime.canonical import canonical_json
from apps.runtime.ports import LeaseLost
from apps.runtime.turn import Inbound, SessionState, Turn
from apps.tenants.scope import current_tenant_id, tenant_transaction


class NotDeployed(Exception):
    """The tenant's environment runs no release."""


class UnknownAgent(Exception):
    """The deployed release has no such agent."""


class ForeignSession(Exception):
    """The caller's token opens another session."""


class OtherEnvironment(Exception):
    """The conversation belongs to another environment than the caller's, which it names."""


class MessageIdReused(Exception):
    """The same message id came with another body."""


@dataclass(frozen=True)
class Accepted:
    """A message that is stored. ``duplicate``: it had been stored before, nothing was added."""

    turn_id: uuid.UUID
    session_id: uuid.UUID
    session_key: str
    status: str
    duplicate: bool


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


# -- accept ------------------------------------------------------------------------------------


def turn_accept(
    *, inbound: Inbound, tenant_slug: str, environment: str, only_session: str = ""
) -> Accepted:
    """Store ``inbound`` as a queued turn of the current tenant, once.

    ``only_session``: the one session key the caller may write to, when a token says so.

    The statement that locks the session also reads what the environment runs, so a deploy holds from
    the very next message; which release that is for this conversation says ``choosing``. Raises
    ``NotDeployed``, ``UnknownAgent``, ``ForeignSession``, ``OtherEnvironment``, ``MessageIdReused``.
    """
    tenant_id = current_tenant_id()
    known = deployed_seen(tenant_id, environment) or _deployed_now(environment)
    while True:
        agent = agent_asked(
            pointer=known, tenant_slug=tenant_slug, name=inbound.session, agent=inbound.agent
        )
        if agent is None:
            # What this process last saw may be old.
            known, seen = _deployed_now(environment), known
            if known == seen:
                raise UnknownAgent(inbound.agent or "")
            continue
        if only_session and only_session != f"{tenant_slug}:{agent}:{inbound.session}":
            raise ForeignSession(only_session)
        with tenant_transaction(tenant_id):
            session, pointer, bindings_version = _session_lock(
                inbound, tenant_slug, agent, environment
            )
            deployed_note(tenant_id, environment, pointer)
            release_id = _release_of(session, agent, inbound.agent, pointer, known)
            if release_id is not None:
                return _turn_store(inbound, session, release_id, bindings_version)
            # What runs changed between the two reads: begin again with what runs now.
            transaction.set_rollback(True)
        known = pointer


def _deployed_now(environment: str) -> Pointer:
    with tenant_transaction():
        pointer = deployed_pointer(environment)
    if pointer is None:
        raise NotDeployed(f"no release is deployed in {environment}")
    return pointer


def _release_of(
    session: Session, agent: str, asked: str | None, pointer: Pointer, known: Pointer
) -> uuid.UUID | None:
    """Return the release of the next message of ``session``, or None when the session is not the
    one that ``pointer`` means. ``known``: what ``agent`` was found with."""
    tenant_id = current_tenant_id()
    standing = standing_of(session)
    chosen = release_choose(pointer, tenant_id, standing, timezone.now().timestamp())
    if chosen != release_target(pointer, tenant_id, standing.name):
        return chosen  # It stays where it is, and its agent is there.
    found = agent if pointer == known and not pointer.kept else agent_in(chosen, asked)
    if found is None:
        raise UnknownAgent(asked or "")
    return chosen if found == agent else None


def _session_lock(
    inbound: Inbound, tenant_slug: str, agent: str, environment: str
) -> tuple[Session, Pointer, int]:
    key = f"{tenant_slug}:{agent}:{inbound.session}"
    deployed = Deployment.objects.filter(environment=environment)
    query = (
        Session.objects.select_for_update(of=("self",))
        .annotate(
            pointer=Subquery(deployed.values("pointer")[:1]),
            bindings_version=Subquery(deployed.values("bindings_version")[:1]),
        )
        .filter(key=key)
    )
    session = query.first()
    if session is None:
        fresh = Session(
            key=key,
            name=inbound.session,
            agent=agent,
            channel=inbound.channel,
            principal=inbound.caller.principal,
            user_id=inbound.user_id,
            environment=environment,
        )
        Session.objects.bulk_create([fresh], ignore_conflicts=True)
        session = query.get()
    if session.environment != environment:
        raise OtherEnvironment(session.environment)
    if session.pointer is None:
        raise NotDeployed(f"no release is deployed in {environment}")
    return session, _pointer(session.pointer, environment), session.bindings_version


def _pointer(text: str, environment: str) -> Pointer:
    # A deployment from before the column was there has nothing in it until the next one.
    return pointer_read(text) if text != "{}" else _deployed_now(environment)


def _turn_store(
    inbound: Inbound, session: Session, release_id: uuid.UUID, bindings_version: int
) -> Accepted:
    user = inbound.user_id or inbound.caller.principal
    digest = inbound_digest(inbound)
    known = TurnRecord.objects.filter(
        session=session, channel=inbound.channel, user=user, message_id=inbound.message_id
    ).only("id", "body_digest", "status")
    # A turn number of 0 is a session nobody has written to: there is nothing to look up.
    before = known.first() if session.turn_number else None
    if before is not None:
        if before.body_digest != digest:
            raise MessageIdReused(inbound.message_id)
        return Accepted(before.id, session.id, session.key, before.status, duplicate=True)
    turn = TurnRecord.objects.create(
        session=session,
        number=session.turn_number + 1,
        channel=inbound.channel,
        user=user,
        message_id=inbound.message_id,
        body_digest=digest,
        request_id=inbound.request_id[:100],
        release_id=release_id,
        environment=session.environment,
        bindings_version=bindings_version,
        inbound=seal(inbound_values(inbound)),
    )
    facts = {"turn_id": str(turn.id), "message_id": turn.message_id}
    _events_write(
        session.id,
        turn.id,
        [
            ("flow.start", facts),
            ("session.upserted", {"session_id": session.key}),
            ("message.received", facts),
        ],
        turns=1,
        state={"release_id": stored_id(release_id)},
    )
    tenant_id = current_tenant_id()
    transaction.on_commit(lambda: doorbell(tenant_id, turn.id))
    return Accepted(turn.id, session.id, session.key, turn.status, duplicate=False)


def doorbell(tenant_id: int, turn_id: uuid.UUID) -> None:
    """Say that ``turn_id`` waits. What does not hear it is found by the sweeper."""
    import_string(settings.TURN_DOORBELL)(tenant_id, turn_id)


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
        _events_write(
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
            "active_agent": turn.route.agent if turn.route else turn.session.active_agent,
            "settled_number": turn.session.turn_number,
            "pending": outcome.kind == "waiting",
        }
        if outcome.kind == "ended":
            # What comes next is a new conversation: nothing pins it to a release.
            state["release_id"] = None
        if turn.vault != turn.session.vault:
            state["vault"] = seal(turn.vault)
        _events_write(
            session_id,
            uuid.UUID(turn.id),
            [("workflow.completed", {"turn_id": turn.id, "outcome": outcome.kind})],
            state=state,
        )
        number = turn.session.turn_number
        Message.objects.bulk_create(
            Message(session_id=session_id, turn_id=turn.id, sequence=sequence, role=role, text=text)
            for sequence, role, text in (
                (number * 2 - 1, "user", turn.text),
                (number * 2, "assistant", outcome.text),
            )
        )
        OutboundMessage.objects.create(
            turn_id=turn.id, session_id=session_id, channel=turn.inbound.channel, text=outcome.text
        )


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
                last_number = _events_write(
                    row.turn.session_id, row.turn_id, reply_events(row.turn)
                )
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


# -- events ------------------------------------------------------------------------------------


def _events_write(
    session_id: uuid.UUID,
    turn_id: uuid.UUID | None,
    events: Sequence[tuple[str, Mapping[str, Any]]],
    *,
    turns: int = 0,
    state: Mapping[str, Any] | None = None,
) -> int:
    """Append ``events`` to the session's sequence; return its last turn number.

    ``state``: columns of the session that change with them (names from this file only).

    One statement gives out the numbers and locks the session, so numbers and commits have the same
    order and a reader's cursor never skips a row.
    """
    tenant_id = current_tenant_id()
    now = stored_time(timezone.now())
    changed = dict(state or {})
    columns = "".join(f", {column} = %s" for column in changed)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE conversations_session SET event_sequence = event_sequence + %s,"  # noqa: S608
            f" turn_number = turn_number + %s, updated_at = %s{columns}"
            " WHERE id = %s AND tenant_id = %s RETURNING event_sequence, turn_number",
            [len(events), turns, now, *changed.values(), stored_id(session_id), tenant_id],
        )
        last, turn_number = cursor.fetchone()
        first = last - len(events) + 1
        # One statement, not the ORM's: a turn writes events four times.
        rows = ", ".join(["(%s, %s, %s, %s, %s, %s, %s)"] * len(events))
        cursor.execute(
            "INSERT INTO conversations_event (tenant_id, session_id, turn_id, sequence,"  # noqa: S608
            f" event_type, payload, created_at) VALUES {rows}",
            [
                value
                for offset, (event_type, payload) in enumerate(events)
                for value in (
                    tenant_id,
                    stored_id(session_id),
                    stored_id(turn_id),
                    first + offset,
                    event_type,
                    canonical_json(dict(payload)),
                    now,
                )
            ],
        )
    return int(turn_number)
