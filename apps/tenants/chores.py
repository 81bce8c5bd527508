"""Work that is due by the clock: a schedule, an expiry, an e-mail, a webhook.

``settings.TENANT_CHORES`` names functions ``chore(now)``; each is called in every tenant's scope
every ``settings.CHORES_SECONDS``, by Celery beat or (embedded) by a thread of the web process. No
transaction is open: a chore opens its own, ``tenant_transaction()``, and holds none while it waits
for somebody outside. Two processes may run the same chore at once and one may die in it, so a chore
claims each piece of its work by compare-and-set and may be repeated.
"""

import logging
from collections.abc import Callable
from datetime import datetime

from django.conf import settings
from django.db import OperationalError
from django.utils import timezone
from django.utils.module_loading import import_string

from apps.tenants.models import Tenant
from apps.tenants.scope import release_connection, tenant_scope

logger = logging.getLogger(__name__)


def chores_run(now: datetime | None = None) -> None:
    """Run every chore of every tenant once; what breaks in one keeps no other waiting."""
    moment = now or timezone.now()
    tenants = list(Tenant.objects.order_by("pk").values_list("pk", flat=True))
    for name in settings.TENANT_CHORES:
        for tenant_id in tenants:
            _chore_run(name, tenant_id, moment)


def _chore_run(name: str, tenant_id: int, now: datetime) -> None:
    try:
        chore: Callable[[datetime], None] = import_string(name)
        with tenant_scope(tenant_id):
            chore(now)
    except OperationalError as error:
        # A database that restarts is no surprise; the next run finds what this one left.
        logger.warning("%s of tenant %s: %s", name, tenant_id, type(error).__name__)
    except Exception:
        logger.exception("%s of tenant %s failed; the next run tries again", name, tenant_id)
    finally:
        release_connection()
