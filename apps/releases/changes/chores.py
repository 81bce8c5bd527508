"""What is due by the clock: scheduled requests, emergencies nobody ratified. Inside a tenant scope."""

import logging
from datetime import datetime

from django.utils.translation import gettext as _

from apps.releases.change_models import ChangeRequest
from apps.releases.changes.emergency import break_glass_revert
from apps.releases.changes.publishing import request_publish, schedule_failed
from apps.releases.changes.refusals import ChangeRefused, WrongState
from apps.releases.content import InvalidContent
from apps.releases.environments.deploying import Frozen, UnboundBindings
from apps.releases.freezing import CorruptRelease
from apps.releases.services import GateRefused
from apps.tenants.scope import tenant_transaction

logger = logging.getLogger(__name__)
ACTOR = "schedule"
REFUSALS = (ChangeRefused, GateRefused, Frozen, UnboundBindings, InvalidContent, CorruptRelease)


def changes_due(now: datetime) -> None:
    """Publish what is scheduled for ``now`` or earlier, and revert overdue emergencies.

    Each request is its own transaction; which of several processes does it is decided under the
    tenant's lock, and the others find its state changed.
    """
    for request in _found(status="scheduled", scheduled_for__lte=now):
        _publish(request)
    for request in _found(
        broken_glass_until__lte=now, ratified_at__isnull=True, reverted_at__isnull=True
    ):
        try:
            reason = _("Nobody ratified it in time.")
            break_glass_revert(request=request, actor=ACTOR, reason=reason)
        except WrongState:
            continue  # Ratified, or another process was first.
        except REFUSALS:
            # It stays due; the others do not wait for it.
            logger.exception("change request %s: the emergency cannot be taken back", request)


def _found(**conditions: object) -> list[ChangeRequest]:
    with tenant_transaction():
        return list(ChangeRequest.objects.filter(**conditions).order_by("scheduled_for", "number"))


def _publish(request: ChangeRequest) -> None:
    try:
        request_publish(request=request, actor=ACTOR)
    except WrongState:
        logger.info("change request %s: another process was first", request.number)
    except REFUSALS as refusal:
        schedule_failed(request=request, actor=ACTOR, reason=str(refusal))
