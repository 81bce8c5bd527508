"""The first write of a turn: a message is accepted, once, for the release its conversation runs on.

``services`` says how a turn goes on; callers find all of it there.
"""

import uuid
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction
from django.db.models import Subquery
from django.utils import timezone
from django.utils.module_loading import import_string

from apps.conversations.appending import events_write
from apps.conversations.asking import agent_asked, agent_in, standing_of
from apps.conversations.choosing import release_choose, release_target
from apps.conversations.inbound import inbound_digest, inbound_values
from apps.conversations.models import Session, TurnRecord
from apps.conversations.stored import stored_id
from apps.releases.environments.pointers import Pointer, pointer_read
from apps.releases.models import Deployment
from apps.releases.selectors import deployed_note, deployed_pointer, deployed_seen
from apps.runtime.turn import Inbound
from apps.tenants.scope import current_tenant_id, tenant_transaction
from apps.tenants.sealing import seal


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
    events_write(
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
