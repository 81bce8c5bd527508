"""The one writer of ``Deployment``: pointer, history, audit trail and event in one transaction.

For ``environments.services``, ``canaries`` and ``environments.binding_services`` only. Whoever calls it holds the
tenant's configuration lock (``configuration_locked``) and has read the deployment after taking it.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.releases.change_models import ChangeRequest, DeploymentEvent
from apps.releases.changes.events import ChangeEvent, change_told
from apps.releases.changes.states import DEPLOYED, PUBLISHED, state_after
from apps.releases.environments.pointers import (
    FORCE,
    Pointer,
    kept_after,
    pointer_text,
)

# Where they are asked for beside the writer.
from apps.releases.environments.rules import Frozen as Frozen
from apps.releases.environments.rules import UnboundBindings as UnboundBindings
from apps.releases.environments.rules import ancestry
from apps.releases.environments.rules import frozen_check as frozen_check
from apps.releases.models import Deployment, Release
from apps.releases.selectors import pointer_of as pointer_of
from apps.runtime.canonical import canonical_json
from apps.tenants.services import audit_append

_EVENTS = {
    DeploymentEvent.Verb.DEPLOY: "environment.deployed",
    DeploymentEvent.Verb.BREAK_GLASS: "environment.deployed",
    DeploymentEvent.Verb.PROMOTE: "environment.promoted",
    DeploymentEvent.Verb.ROLL_BACK: "environment.rolled_back",
    DeploymentEvent.Verb.REVERT: "environment.rolled_back",
    DeploymentEvent.Verb.CANARY_START: "environment.canary_started",
    DeploymentEvent.Verb.CANARY_CHANGE: "environment.canary_changed",
    DeploymentEvent.Verb.CANARY_STOP: "environment.canary_stopped",
    DeploymentEvent.Verb.CANARY_FINISH: "environment.canary_finished",
}
# The two acts that were there first keep their names in the audit trail.
_AUDITED = {
    "environment.deployed": "release.deployed",
    "environment.rolled_back": "release.rolled_back",
}
TAKING_BACK = (DeploymentEvent.Verb.ROLL_BACK, DeploymentEvent.Verb.REVERT)
"""Verbs after which nobody stays on what ran before."""


def deployment_find(environment: str) -> Deployment | None:
    """Return what ``environment`` runs, with release and canary but for their manifests."""
    found: Deployment | None = (
        Deployment.objects.select_related("release", "canary")
        .defer("release__manifest", "canary__manifest")
        .filter(environment=environment)
        .first()
    )
    return found


def deployment_write(
    deployment: Deployment,
    *,
    verb: str,
    actor: str,
    reason: str = "",
    now: datetime,
    taken_back: Iterable[UUID] = (),
    detail: Mapping[str, Any] | None = None,
) -> Deployment:
    """Save ``deployment`` as it now stands, its pointer made anew: the only place that writes one.

    Its history, the audit trail and whoever listens are told by the same transaction, and requests
    that reached their environment are marked. ``taken_back``: see ``pointers``.
    """
    stored = deployment_find(deployment.environment)
    before = pointer_of(stored) if stored else None
    previous = stored.release if stored else None
    deployment.pointer = pointer_text(_pointer_after(before, deployment, now, taken_back))
    deployment.deployed_by = actor
    deployment.save()
    DeploymentEvent.objects.create(
        environment=deployment.environment,
        verb=verb,
        release=deployment.release,
        previous=previous,
        canary=deployment.canary,
        canary_share=deployment.canary_share,
        terms=canonical_json(
            {
                "in_flight": deployment.in_flight,
                "max_pin_hours": deployment.max_pin_hours,
                **(
                    {"canary_rules": json.loads(deployment.canary_rules)}
                    if deployment.canary_id
                    else {}
                ),
            }
        ),
        reason=reason,
        actor=actor,
    )
    facts = {
        "release": deployment.release.number,
        "sha256": deployment.release.sha256,
        "previous": previous.number if previous else None,
        "canary": deployment.canary.number if deployment.canary else None,
        "canary_share": deployment.canary_share,
        "verb": str(verb),
        "in_flight": deployment.in_flight,
        "max_pin_hours": deployment.max_pin_hours,
        "reason": reason,
        **(detail or {}),
    }
    _told(_EVENTS[DeploymentEvent.Verb(verb)], actor, deployment.environment, facts)
    if stored is None or stored.release_id != deployment.release_id:
        requests_arrived(
            release=deployment.release, environment=deployment.environment, actor=actor
        )
    return deployment


def _pointer_after(
    before: Pointer | None, deployment: Deployment, now: datetime, taken_back: Iterable[UUID]
) -> Pointer:
    after = _pointer(deployment)
    moment = now.timestamp()
    arrives = before is None or (before.release, before.canary) != (after.release, after.canary)
    if arrives and after.in_flight == FORCE:
        forced_at = moment
    else:
        forced_at = before.forced_at if before else 0.0
    kept = kept_after(before, after, now=moment, taken_back=frozenset(taken_back))
    return replace(after, kept=kept, forced_at=forced_at)


def _pointer(deployment: Deployment) -> Pointer:
    started = deployment.canary_started_at
    return Pointer(
        release=deployment.release_id,
        canary=deployment.canary_id,
        share=deployment.canary_share if deployment.canary_id else 0,
        canary_at=started.timestamp() if started and deployment.canary_id else 0.0,
        in_flight=deployment.in_flight,
        max_pin_hours=deployment.max_pin_hours,
    )


def _told(event: str, actor: str, environment: str, facts: Mapping[str, Any]) -> None:
    audit_append(
        actor=actor,
        action=_AUDITED.get(event, event),
        entity=f"environment:{environment}",
        detail=facts,
    )
    subject = f"{environment}: #{facts['release']}"
    change_told(
        ChangeEvent(
            event=event, actor=actor, subject=subject, environment=environment, detail=facts
        )
    )


def requests_arrived(*, release: Release, environment: str, actor: str) -> int:
    """Mark what ``release`` brings to and takes from ``environment`` among the requests aimed at it.

    Published ones that it brings are deployed; deployed ones that it no longer holds (something was
    rolled back, an emergency taken back) are published again: they wait for their way there. Returns
    how many arrived.
    """
    aimed = ChangeRequest.objects.filter(environment=environment, status__in=(PUBLISHED, DEPLOYED))
    if not aimed.exists():
        return 0
    held = ancestry(release.pk)
    arrived = list(aimed.filter(status=PUBLISHED, release_id__in=held))
    for request in aimed.filter(status=DEPLOYED).exclude(release_id__in=held):
        _request_moved(request, "leave", "change.left", release, actor)
    for request in arrived:
        _request_moved(request, "deploy", "change.deployed", release, actor)
    return len(arrived)


def _request_moved(
    request: ChangeRequest, act: str, event: str, release: Release, actor: str
) -> None:
    after = state_after(act, request.status)
    assert after is not None
    request.status = after
    request.save(update_fields=["status", "updated_at"])
    facts = {
        "release": release.number,
        "sha256": release.sha256,
        "environment": request.environment,
    }
    audit_append(actor=actor, action=event, entity=f"change:{request.number}", detail=facts)
    change_told(
        ChangeEvent(
            event=event,
            actor=actor,
            subject=str(request),
            request=request,
            environment=request.environment,
            detail=facts,
        )
    )
