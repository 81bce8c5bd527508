"""Which agent a message is for, before its conversation is found."""

import uuid
from functools import lru_cache

from django.conf import settings
from django.utils import timezone
from django.utils.module_loading import import_string

from apps.conversations.choosing import Standing, release_choose, release_target
from apps.conversations.models import Session
from apps.releases.environments.pointers import STAYING, Pointer
from apps.releases.selectors import release_load
from apps.tenants.scope import current_tenant_id, tenant_transaction


def standing_of(session: Session) -> Standing:
    """Return where ``session`` stands for the choice of its next release."""
    return Standing(
        name=session.name,
        release=session.release_id,
        at_boundary=not session.pending
        and not session.next_state
        and session.settled_number == session.turn_number,
    )


def agent_in(release_id: uuid.UUID, agent: str | None) -> str | None:
    """Return the agent that ``release_id`` has for a message to ``agent`` (None: its default)."""
    resolve = import_string(settings.TURN_AGENT_RESOLVER)
    resolved: str | None = resolve(release_load(current_tenant_id(), release_id), agent)
    return resolved


@lru_cache(maxsize=4096)
def _agent_kept(tenant_id: int, release_id: uuid.UUID, agent: str | None) -> str | None:
    """``agent_in`` for releases that are only kept: many of them would push others out of memory."""
    del tenant_id
    return agent_in(release_id, agent)


def agent_asked(*, pointer: Pointer, tenant_slug: str, name: str, agent: str | None) -> str | None:
    """Return the agent that a message to ``agent`` in conversation ``name`` is for, None for none.

    Where conversations may stay on releases that answer this differently (another default, an agent
    that is gone), the conversation that is there decides: it goes on with the agent it has.
    """
    tenant_id = current_tenant_id()
    target = release_target(pointer, tenant_id, name)
    wanted = agent_in(target, agent)
    if pointer.in_flight not in STAYING:
        return wanted
    staying = [pointer.release, *([pointer.canary] if pointer.canary else []), *pointer.kept]
    others = {_agent_kept(tenant_id, release, agent) for release in staying} - {wanted, None}
    if not others:
        return wanted
    agents = {f"{tenant_slug}:{found}:{name}": found for found in (wanted, *others) if found}
    with tenant_transaction():
        found = Session.objects.filter(key__in=agents).order_by("-updated_at")
        sessions = list(found.defer("vault", "business_context"))
    now = timezone.now().timestamp()
    for session in sessions:
        chosen = release_choose(pointer, tenant_id, standing_of(session), now)
        if agent_in(chosen, agent) == agents[session.key]:
            return agents[session.key]
    return wanted
