"""Servers are asked again by the clock, and soon after one said that its list changed."""

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q

from apps.releases.models import Deployment
from apps.tenants.scope import tenant_transaction
from apps.tools.contract_models import ServerState
from apps.tools.contracts.refreshing import server_refresh
from apps.tools.contracts.selectors import UnknownServer, servers_list
from apps.tools.contracts.services import SYSTEM

logger = logging.getLogger(__name__)
CLAIM_SECONDS = 300


def tools_due(now: datetime) -> None:
    """Ask every server that is due, of every environment that runs something.

    Due: its list was said to have changed, or it was asked ``TOOLS_REFRESH_SECONDS`` ago (0: never by
    the clock). Each is claimed first, so two processes ask one server once.
    """
    with tenant_transaction():
        due = list(_due(now))
    for server, environment, asked in due:
        if not _claimed(server, environment, asked, now):
            continue
        try:
            done = server_refresh(server=server, environment=environment, actor=SYSTEM)
        except UnknownServer:
            continue  # Gone meanwhile.
        if done.drifted or done.gone:
            names = ", ".join((*done.drifted, *done.gone))
            logger.warning("tools of %s in %s differ: %s", server, environment, names)


def _due(now: datetime) -> Iterator[tuple[str, str, datetime | None]]:
    every = settings.TOOLS_REFRESH_SECONDS
    environments = Deployment.objects.order_by("environment")
    for environment in environments.values_list("environment", flat=True):
        for found in servers_list(environment):
            if not (found.config.enabled and found.is_bound):
                continue
            asked = found.checked_at
            late = every > 0 and (asked is None or asked <= now - timedelta(seconds=every))
            if found.changed_at is not None or late:
                yield found.server, environment, asked


def _claimed(server: str, environment: str, asked: datetime | None, now: datetime) -> bool:
    """Claim a server that nobody asked since it was found due."""
    with tenant_transaction():
        ServerState.objects.get_or_create(environment=environment, server=server)
        free = Q(claimed_until=None) | Q(claimed_until__lte=now)
        rows = ServerState.objects.filter(
            free, environment=environment, server=server, checked_at=asked
        )
        return bool(rows.update(claimed_until=now + timedelta(seconds=CLAIM_SECONDS)))
