"""Who should know of what happened to a change: a table, and how each of its words finds people."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from apps.governance.approval_models import Duty
from apps.governance.duties import holders_of, person_of
from apps.releases.change_models import Approval, ChangeComment
from apps.releases.changes.events import ChangeEvent
from apps.releases.changes.policy import change_policy
from apps.tenants.models import Membership, Role, User

AUTHORS, REVIEWERS, MISSING, PARTICIPANTS = "authors", "reviewers", "missing", "participants"
APPROVERS, ADMINS, DEPLOYERS, BINDERS, NAMED = (
    "approvers",
    "admins",
    "deployers",
    "binders",
    "named",
)

AUDIENCE: dict[str, tuple[str, ...]] = {
    "change.submitted": (MISSING, REVIEWERS),
    "change.approved": (AUTHORS,),
    "change.decided": (AUTHORS,),
    "change.changes_requested": (AUTHORS,),
    "change.rejected": (AUTHORS,),
    "change.withdrawn": (REVIEWERS, PARTICIPANTS),
    # Whoever had approved has to look again.
    "change.voided": (AUTHORS, PARTICIPANTS),
    "change.stale": (AUTHORS,),
    "change.rebased": (AUTHORS, PARTICIPANTS),
    "change.scheduled": (AUTHORS,),
    "change.schedule_failed": (AUTHORS, NAMED),
    "change.published": (AUTHORS, PARTICIPANTS),
    "change.deployed": (AUTHORS,),
    "change.left": (AUTHORS,),
    "change.superseded": (AUTHORS, PARTICIPANTS),
    "change.commented": (AUTHORS, PARTICIPANTS),
    "change.broken_glass": (APPROVERS, ADMINS, AUTHORS),
    "change.ratified": (AUTHORS, ADMINS, NAMED),
    "change.reverted": (AUTHORS, APPROVERS, ADMINS, NAMED),
    "change.ratification_overdue": (APPROVERS, ADMINS, NAMED),
    "environment.deployed": (),
    "environment.promoted": (DEPLOYERS,),
    "environment.rolled_back": (DEPLOYERS, ADMINS),
    "environment.canary_started": (DEPLOYERS,),
    "environment.canary_changed": (DEPLOYERS,),
    "environment.canary_stopped": (DEPLOYERS, ADMINS),
    "environment.canary_finished": (DEPLOYERS,),
    "environment.frozen": (DEPLOYERS, ADMINS),
    "binding.proposed": (BINDERS,),
    "binding.decided": (NAMED,),
    "duty.granted": (NAMED,),
    "duty.ended": (NAMED,),
    "responsibility.changed": (ADMINS, APPROVERS),
    "quorum.changed": (ADMINS, APPROVERS),
}
"""Event → who is told; everybody at most once, and never the person who did it."""


def people_told(event: ChangeEvent) -> list[User]:
    """Return who is told of ``event``: active members of the tenant, by name."""
    words = AUDIENCE[event.event]
    names = {name for word in words for name in _FIND[word](event)}
    names.discard(person_of(event.actor))
    if not names:
        return []
    members = Membership.objects.filter(user__username__in=names, user__is_active=True)
    return list(
        User.objects.filter(pk__in=members.values("user_id")).order_by("username", "pk").distinct()
    )


def tenant_admins() -> list[User]:
    """Return the tenant's active admins."""
    found = Membership.objects.filter(role=Role.TENANT_ADMIN, user__is_active=True)
    return list(User.objects.filter(pk__in=found.values("user_id")).order_by("username"))


def _persons(actors: Iterable[Any]) -> set[str]:
    return {name for actor in actors if (name := person_of(str(actor)))}


def _authors(event: ChangeEvent) -> set[str]:
    request = event.request
    return _persons([request.author, *json.loads(request.editors)]) if request else set()


def _reviewers(event: ChangeEvent) -> set[str]:
    if event.request is None:
        return set()
    # Named by a person: with or without the prefix that actors carry.
    named = json.loads(event.request.reviewers)
    return {str(name).removeprefix("user:") for name in named}


def _participants(event: ChangeEvent) -> set[str]:
    if event.request is None:
        return set()
    said = ChangeComment.objects.filter(request=event.request).values_list("author", flat=True)
    decided = Approval.objects.filter(request=event.request).values_list("person", flat=True)
    return _persons(said) | _persons(decided)


def _missing(event: ChangeEvent) -> set[str]:
    """Whoever holds a duty that is still to approve; an event that names none: every approver."""
    duties = event.detail.get("missing")
    return holders_of(set(duties)) if duties else _approvers(event)


def _approvers(event: ChangeEvent) -> set[str]:
    return holders_of(set(Duty.values))


def _deployers(event: ChangeEvent) -> set[str]:
    requirement = change_policy().deployment_requirement(event.environment)
    return holders_of(set(requirement.duties))


def _binders(event: ChangeEvent) -> set[str]:
    return holders_of(set(change_policy().binding_requirement(event.environment).duties))


def _admins(event: ChangeEvent) -> set[str]:
    return {user.username for user in tenant_admins()}


def _named(event: ChangeEvent) -> set[str]:
    """Whoever the event itself is about: ``detail`` says who asked, or who gets or loses a duty."""
    about = [event.detail.get(key, "") for key in ("proposed_by", "person", "scheduled_by", "user")]
    request = event.request
    if request is not None and request.broken_glass_by:
        about.append(request.broken_glass_by)
    return _persons(about)


_FIND: dict[str, Callable[[ChangeEvent], set[str]]] = {
    AUTHORS: _authors,
    REVIEWERS: _reviewers,
    MISSING: _missing,
    PARTICIPANTS: _participants,
    APPROVERS: _approvers,
    DEPLOYERS: _deployers,
    BINDERS: _binders,
    ADMINS: _admins,
    NAMED: _named,
}
