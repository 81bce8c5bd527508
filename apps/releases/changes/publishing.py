"""Writes that take a change request live: publish, schedule. Inside a tenant scope. See ``emergency``.

One transaction under the tenant's configuration lock checks everything again: the state, that nothing
is stale, the risk, the gates, and that everybody who must has approved exactly this manifest.
"""

from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo, available_timezones

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.releases.authority import authority
from apps.releases.change_models import (
    ChangeComment,
    ChangeRequest,
)
from apps.releases.changes import core
from apps.releases.changes.candidate import Candidate, candidate_release, labels_of
from apps.releases.changes.refusals import (
    ChangeRefused,
    IncompleteRequest,
    StaleRequest,
)
from apps.releases.content import InvalidContent
from apps.releases.environments.deploying import frozen_check, requests_arrived
from apps.releases.environments.services import release_deploy
from apps.releases.freezing import manifest_of_heads
from apps.releases.gates import Problem
from apps.releases.models import Release
from apps.releases.selectors import release_keep
from apps.releases.services import (
    item_leave,
    item_write,
    release_freeze,
    release_same,
)
from apps.runtime.canonical import sha256_text
from apps.tenants.models import AuditEntry
from apps.tenants.scope import current_tenant_id, tenant_transaction


def entry_environment(environment: str) -> str:
    """Return where a request aimed at ``environment`` enters: itself, or the last entry before it."""
    entries: list[str] = settings.RELEASE_ENTRY_ENVIRONMENTS
    if environment in entries:
        return environment
    known = settings.RELEASE_ENVIRONMENTS
    before = [name for name in known[: known.index(environment)] if name in entries]
    return before[-1] if before else entries[0]


# -- publish -----------------------------------------------------------------------------------
def request_publish(*, request: ChangeRequest, actor: str) -> Release:
    """Freeze the approved request into a release and let its entry environment run it.

    Promotion does the rest of the way. Raises ``WrongState``, ``StaleRequest``, ``MergeConflict``,
    ``ApprovalsMissing``, ``RiskUnderstated``, ``GateRefused``, ``Frozen``, ``UnboundBindings``.
    """
    with tenant_transaction():
        request = core.request_locked(request)
        after = core.state_check(request, "publish")
        environment = entry_environment(request.environment)
        frozen_check(environment)
        candidate = core.candidate_fresh(request)
        core.risk_declared(request)
        core.approvals_required(request, candidate)
        problems = core.gates_checked(request, candidate, actor)
        core.gates_passed(problems)
        with authority(f"change request {request.number}"):
            release = candidate_freeze(request, candidate, problems, actor)
            request.status = after
            request_live(request, release)
            core.told(request, "change.published", actor, release=release.number)
            release_deploy(
                release=release,
                environment=environment,
                actor=actor,
                in_flight=request.in_flight,
                max_pin_hours=request.max_pin_hours,
                reason=str(request)[:500],
            )
            requests_arrived(release=release, environment=environment, actor=actor)
        core.others_stale(request, actor)
        request.refresh_from_db()
        return release


def candidate_freeze(
    request: ChangeRequest, candidate: Candidate, problems: list[Problem], actor: str
) -> Release:
    """Move the heads, then freeze them; what comes out must be what was approved."""
    parent = release_same(candidate.heads_sha256)
    for found in candidate.items:
        if found.valid is not None:
            item_write(
                kind=found.patch.kind,
                slug=found.patch.slug,
                valid=found.valid,
                labels=labels_of(found.patch),
                actor=found.patch.edited_by,
                note=found.patch.note or str(request)[:500],
                bump=request.bump,
            )
        elif found.item is not None and not found.item.archived_at:
            item_leave(item=found.item, actor=found.patch.edited_by)
    manifest = manifest_of_heads()
    if sha256_text(manifest) != candidate.sha256:
        raise StaleRequest(seen=candidate.sha256, now=sha256_text(manifest))
    known = release_same(candidate.sha256)
    if known is not None:
        return known
    release = release_freeze(
        manifest=manifest,
        parent=parent,
        problems=problems,
        actor=actor,
        note=str(request)[:500],
    )
    parsed = replace(candidate_release(candidate), id=str(release.pk), number=release.number)
    release_keep(current_tenant_id(), parsed)
    return release


def request_live(request: ChangeRequest, release: Release) -> None:
    request.release, request.published_at = release, timezone.now()
    request.closed_at = request.published_at
    request.scheduled_for = None
    request.save()


# -- schedule ----------------------------------------------------------------------------------
def request_schedule(
    *, request: ChangeRequest, actor: str, at: datetime, zone: str
) -> ChangeRequest:
    """Publish it at ``at`` (aware), said in the time zone ``zone``; later than now.

    ``changes.chores.changes_due`` does it then. Raises ``IncompleteRequest`` for a bad time or zone,
    ``WrongState``, ``StaleRequest``.
    """
    if zone not in available_timezones():
        raise IncompleteRequest({"zone": _("Name a time zone, e.g. America/Sao_Paulo.")})
    if timezone.is_naive(at):
        at = at.replace(tzinfo=ZoneInfo(zone))
    if at <= timezone.now():
        raise IncompleteRequest({"at": _("Choose a time that is still to come.")})
    with tenant_transaction():
        request = core.request_locked(request)
        after = core.state_check(request, "schedule")
        candidate = core.candidate_fresh(request)
        core.approvals_required(request, candidate)
        request.status, request.scheduled_for, request.schedule_zone = after, at, zone
        request.save()
        core.told(request, "change.scheduled", actor, at=at.isoformat(), zone=zone)
        return request


def request_unschedule(*, request: ChangeRequest, actor: str) -> ChangeRequest:
    """Take the schedule back; the approvals stay. Raises ``WrongState``."""
    with tenant_transaction():
        request = core.request_locked(request)
        request.status = core.state_check(request, "unschedule")
        request.scheduled_for, request.schedule_zone = None, ""
        request.save()
        core.told(request, "change.scheduled", actor, at=None)
        return request


def schedule_failed(*, request: ChangeRequest, actor: str, reason: str) -> None:
    """Take back the schedule of a request that could not be published, and say why in its discussion.

    It goes back to review, or stays approved where only something else stood in the way: a frozen
    time, a binding, a gate.
    """
    with tenant_transaction():
        request = core.request_locked(request)
        if request.status != "scheduled":
            return
        asked = AuditEntry.objects.filter(
            action="change.scheduled", entity=f"change:{request.number}"
        )
        by = asked.order_by("-sequence").values_list("actor", flat=True).first() or ""
        if _is_still_approved(request):
            request.status = core.state_check(request, "unschedule")
            request.scheduled_for, request.schedule_zone = None, ""
        else:
            core.void(request, actor, reason)
        request.save()
        text = _("Not published at its time. %(reason)s") % {"reason": reason}
        ChangeComment.objects.create(request=request, author=actor, text=text)
        core.told(request, "change.schedule_failed", actor, reason=reason, scheduled_by=by)


def _is_still_approved(request: ChangeRequest) -> bool:
    try:
        return core.approvals_of(request, core.candidate_fresh(request)).is_complete
    except (ChangeRefused, InvalidContent):
        return False
