"""Doorbells of conversations. A task carries ids only, never what was said."""

import logging
import uuid

from celery import shared_task
from django.conf import settings
from django.utils.module_loading import import_string

from apps.conversations import services
from apps.tenants.models import Tenant

logger = logging.getLogger(__name__)


@shared_task(name="conversations.run_turn", ignore_result=True)
def run_turn(tenant_id: int, turn_id: str) -> None:
    """Run the next queued turn of the session that ``turn_id`` belongs to."""
    import_string(settings.TURN_RUNTIME_BLOCKING)(tenant_id, uuid.UUID(turn_id))


@shared_task(name="conversations.sweep", ignore_result=True)
def sweep() -> None:
    """Sweep every tenant; see ``services.tenant_sweep``."""
    sweep_all()


def sweep_all(*, alone: bool = False) -> None:
    """Sweep every tenant in turn; what breaks in one does not keep the next ones waiting.

    ``alone``: see ``services.tenant_sweep``.
    """
    idle = 0 if alone else settings.TURN_SWEEP_SECONDS
    for tenant_id in Tenant.objects.order_by("pk").values_list("pk", flat=True):
        try:
            services.tenant_sweep(tenant_id=tenant_id, idle_seconds=idle, alone=alone)
        except Exception:
            logger.exception("the sweep of tenant %s failed; the next one tries again", tenant_id)
