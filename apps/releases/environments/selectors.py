"""Reads of environments that are about more than what they run now. Inside a tenant scope.

What an environment ran at a moment: ``history``. What its page shows: ``pages.environment_shown``.
"""

import json
from datetime import datetime

from django.conf import settings
from django.db.models import QuerySet

from apps.releases.change_models import BindingProposal, ChangeRequest
from apps.releases.changes.states import LIVE
from apps.releases.environments.rules import ancestry, environment_before
from apps.releases.models import Deployment, Release
from apps.tenants.models import AuditEntry


def bindings_at(environment: str, moment: datetime) -> dict[tuple[str, str], str]:
    """Return (type, name) → value as ``environment`` was bound at ``moment``, from the audit trail."""
    prefix = f"binding:{environment}/"
    entries = AuditEntry.objects.filter(
        action__in=("binding.set", "binding.removed"), entity__startswith=prefix, at__lte=moment
    ).order_by("sequence")
    bound: dict[tuple[str, str], str] = {}
    for action, entity, detail in entries.values_list("action", "entity", "detail"):
        what, _colon, name = entity.removeprefix(prefix).partition(":")
        if action == "binding.set":
            bound[what, name] = json.loads(detail)["value"]
        else:
            bound.pop((what, name), None)
    return bound


def release_promotable(environment: str) -> Release | None:
    """Return the release that may be promoted to ``environment``: what the environment before runs,
    when it is another one than what runs; without its manifest."""
    before = environment_before(environment)
    arriving: Release | None = (
        Release.objects.defer("manifest").filter(deployments__environment=before).first()
    )
    runs = Deployment.objects.filter(environment=environment).values_list("release_id", flat=True)
    return None if arriving is None or runs.first() == arriving.pk else arriving


def requests_awaiting(environment: str = "") -> QuerySet[ChangeRequest]:
    """Return the published requests that ``environment`` ("": the last one) does not run yet."""
    environment = environment or settings.RELEASE_ENVIRONMENTS[-1]
    runs = Deployment.objects.filter(environment=environment).values_list("release_id", flat=True)
    found: QuerySet[ChangeRequest] = ChangeRequest.objects.filter(status__in=LIVE)
    return found.exclude(release_id__in=ancestry(runs.first()))


def proposals_open(environment: str = "") -> QuerySet[BindingProposal]:
    """Return the proposals that wait for a decision, newest first."""
    found: QuerySet[BindingProposal] = BindingProposal.objects.filter(
        status=BindingProposal.Status.OPEN
    )
    return found.filter(environment=environment) if environment else found
