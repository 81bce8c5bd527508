"""Tasks, and the names of things outside the database: each is listed with its probe."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.conf import settings
from django.test import override_settings

from agentops.tests.matrix.sides import Side
from apps.agents.code.stores import answer_name
from apps.conversations import services
from apps.conversations.announcing import session_group
from apps.conversations.models import TurnRecord
from apps.runtime.turn import Inbound
from apps.tenants.chores import chores_run
from apps.tenants.keys import scoped_key
from apps.tenants.scope import current_tenant_id, has_tenant, tenant_scope, tenant_transaction

Failures = list[str]


# -- tasks -------------------------------------------------------------------------------------


def _run_turn(me: Side, other: Side) -> Failures:
    """A task that names this tenant and another's turn claims nothing."""
    inbound = Inbound(
        channel="web",
        text="hello",
        agent=other.item("agent"),
        message_id="task",
        session=f"{other.slug}:{other.item('agent')}:task",
    )
    with tenant_scope(other.tenant):
        theirs = services.turn_accept(
            inbound=inbound,
            tenant_slug=other.slug,
            environment=settings.DEFAULT_ENVIRONMENT,
            only_session="",
        ).turn_id
    claimed = services.turn_take(tenant_id=me.tenant.pk, turn_id=theirs, worker="matrix")
    wrong = [] if claimed is None else ["a foreign turn was claimed"]
    own = services.turn_take(tenant_id=other.tenant.pk, turn_id=theirs, worker="matrix")
    if own is None or own.turn_id != theirs:
        wrong.append("the owner's turn was not claimed")
    return wrong


def _sweep(me: Side, other: Side) -> Failures:
    """Sweeping goes tenant by tenant and leaves no scope open."""
    services.tenant_sweep(tenant_id=me.tenant.pk, idle_seconds=0)
    wrong = ["a scope was left open"] if has_tenant() else []
    with tenant_transaction(other.tenant):
        row = TurnRecord.objects.get(pk=other.rows["conversations.turnrecord"].pk)
    if row.attempts != other.rows["conversations.turnrecord"].attempts:
        wrong.append("another tenant's turn was touched")
    return wrong


def _chores(me: Side, other: Side) -> Failures:
    """Chores go tenant by tenant, each in its own scope, and leave none open."""
    seen.clear()
    with override_settings(TENANT_CHORES=[f"{__name__}.chore_noting"]):
        chores_run()
    wrong = ["a scope was left open"] if has_tenant() else []
    if sorted(seen) != sorted({me.tenant.pk, other.tenant.pk}):
        wrong.append(f"the chores ran in {seen}")
    return wrong


seen: list[int] = []


def chore_noting(now: datetime) -> None:
    """A chore that notes whose scope it ran in."""
    seen.append(current_tenant_id())


TASKS: dict[str, Callable[[Side, Side], Failures]] = {
    "conversations.run_turn": _run_turn,
    "conversations.sweep": _sweep,
    "tenants.chores": _chores,
}


# -- names outside the database ----------------------------------------------------------------


def _apart(build: Callable[[int, str], str]) -> Callable[[Side, Side], Failures]:
    """The same thing of two tenants has two names, and so have two things of one."""

    def probe(me: Side, other: Side) -> Failures:
        wrong = []
        if build(me.tenant.pk, "thing") == build(other.tenant.pk, "thing"):
            wrong.append("two tenants share a name")
        if build(me.tenant.pk, "thing") == build(me.tenant.pk, "another"):
            wrong.append("two things share a name")
        if build(me.tenant.pk, "thing") != build(me.tenant.pk, "thing"):
            wrong.append("the name is not stable")
        return wrong

    return probe


def _uses(module: str) -> Callable[[Side, Side], Failures]:
    """This file takes its names from ``module``."""

    def probe(me: Side, other: Side) -> Failures:
        return [] if module in BUILDERS else [f"{module} is not listed"]

    return probe


def _no_tenant(me: Side, other: Side) -> Failures:
    """This file names nothing of a tenant's."""
    return []


BUILDERS: dict[str, Callable[[Side, Side], Failures]] = {
    "apps/tenants/keys.py": _apart(lambda tenant, name: scoped_key(name, tenant_id=tenant)),
    "apps/conversations/announcing.py": _apart(session_group),
    "apps/agents/code/stores.py": _apart(answer_name),
    "apps/gateway/streams.py": _uses("apps/conversations/announcing.py"),
    # A channel of the check's own, gone when it ends.
    "agentops/readiness.py": _no_tenant,
    # Keeps the process subscribed; nobody writes to it.
    "agentops/lifespan.py": _no_tenant,
}


def failures(table: dict[str, Any], me: Side, other: Side) -> Failures:
    """Run every probe of ``table``; return its findings with their names."""
    return [f"{name}: {wrong}" for name, probe in table.items() for wrong in probe(me, other)]
