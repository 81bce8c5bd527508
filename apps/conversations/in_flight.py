"""What conversations know of a release: the functions behind the port ``releases.environments.in_flight``."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from apps.conversations.models import Session, TurnRecord
from apps.releases.environments.in_flight import OpenConversation, TurnRates
from apps.releases.evidence.blast_radius import reaching, users_of
from apps.releases.selectors import release_load
from apps.tenants.scope import current_tenant_id, tenant_transaction

OPEN_HOURS = 24
MOST_PRICED = 200
"""Of how many turns, the newest, the records are read for what a turn costs."""


def open_conversations(
    *, environment: str, using: Sequence[tuple[str, str]] = (), limit: int = 200
) -> tuple[int, list[OpenConversation]]:
    """Return how many conversations of ``environment`` are open, and the newest of them.

    See ``releases.environments.in_flight.open_conversations``. A conversation stands on the agent that answers in
    it, on the agent that was asked for, and on the policy of the state it is in; through them on
    whatever these name in the release it runs on: their prompt, tools, servers.
    """
    with tenant_transaction():
        found = _open(environment)
        if not using:
            return found.count(), [_conversation(*row) for row in _rows(found)[:limit]]
        standing = _standing_on(using, found)
        named = set[str]().union(*standing.values())
        agents = [name.removeprefix("agent:") for name in named if name.startswith("agent:")]
        wanted = Q(active_agent__in=agents) | Q(agent__in=agents)
        if any(name.startswith("state_policy:") for name in named):
            wanted |= ~Q(next_state="")
        rows = _rows(found.filter(wanted)).iterator()
        conversations = [
            conversation
            for conversation in (_conversation(*row) for row in rows)
            if standing[conversation.release_id].intersection(conversation.uses)
        ]
    return len(conversations), conversations[:limit]


def _standing_on(
    using: Sequence[tuple[str, str]], found: QuerySet[Session]
) -> dict[UUID | None, set[str]]:
    """Return release → "kind:slug" of what is one of ``using`` or names one, also through others."""
    standing: dict[UUID | None, set[str]] = {}
    for release_id in found.order_by().values_list("release_id", flat=True).distinct():
        users = users_of(release_load(current_tenant_id(), release_id))
        keys = {*using}.union(*(reaching(key, users) for key in using))
        standing[release_id] = {f"{kind}:{slug}" for kind, slug in keys}
    return standing


def _open(environment: str) -> QuerySet[Session]:
    found: QuerySet[Session] = Session.objects.filter(
        environment=environment,
        release__isnull=False,
        updated_at__gte=timezone.now() - timedelta(hours=OPEN_HOURS),
    )
    return found


_Row = tuple[UUID, str, UUID, bool, datetime, str, str, str]


def _rows(found: QuerySet[Session]) -> "QuerySet[Session, _Row]":
    return found.order_by("-updated_at", "pk").values_list(
        "id", "key", "release_id", "pending", "updated_at", "agent", "active_agent", "next_state"
    )


def _conversation(
    session_id: UUID,
    key: str,
    release_id: UUID,
    pending: bool,
    updated_at: datetime,
    agent: str,
    active_agent: str,
    state: str,
) -> OpenConversation:
    agents = dict.fromkeys(slug for slug in (active_agent, agent) if slug)
    return OpenConversation(
        session_id=session_id,
        key=key,
        release_id=release_id,
        pending=pending or bool(state),
        updated_at=updated_at,
        uses=(
            *(f"agent:{slug}" for slug in agents),
            *(f"state_policy:{slug}" for slug in _policies(release_id, state)),
        ),
    )


def _policies(release_id: UUID, state: str) -> Iterator[str]:
    """Return the state policies of a release that are about ``state``; the release is in memory."""
    if not state:
        return
    release = release_load(current_tenant_id(), release_id)
    for (kind, slug), config in release.items.items():
        # By name: which class it is only routing knows.
        if kind == "state_policy" and getattr(config, "state", "") == state:
            yield slug


def turn_rates(
    *, release_id: UUID, environment: str = "", since: datetime | None = None
) -> TurnRates:
    """Return what became of the turns that ``release_id`` answered (in ``environment``, ``since``).

    The cost is that of the newest ``MOST_PRICED`` turns, projected on all of them; turns of which a
    price is unknown do not count for it.
    """
    with tenant_transaction():
        turns = TurnRecord.objects.filter(release_id=release_id, status="settled")
        if environment:
            turns = turns.filter(environment=environment)
        if since is not None:
            turns = turns.filter(accepted_at__gte=since)
        counts = turns.order_by().aggregate(
            turns=Count("pk"),
            failed=Count("pk", filter=Q(outcome="failed")),
            blocked=Count("pk", filter=Q(outcome="blocked")),
        )
        records = list(
            turns.order_by("-accepted_at").values_list("record", flat=True)[:MOST_PRICED]
        )
    costs = [cost for cost in map(_cost, records) if cost is not None]
    return TurnRates(
        turns=counts["turns"],
        failed=counts["failed"],
        blocked=counts["blocked"],
        cost_usd=sum(costs) / len(costs) * counts["turns"] if costs else None,
    )


def _cost(record: str) -> float | None:
    usage = json.loads(record).get("usage") or {}
    cost = usage.get("cost_usd")
    return None if cost is None else float(cost)
