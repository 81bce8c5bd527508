"""Who holds which duty now: what their roles bring, what was granted, what was delegated to them.

Reads only; inside a tenant's scope. Nobody holds a duty in a tenant they are no active member of.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet
from django.utils import timezone

from apps.governance.approval_models import Duty, DutyAssignment
from apps.governance.raci import DUTIES
from apps.releases.changes.policy import HeldDuty
from apps.tenants.models import Membership, Role, User
from apps.tenants.roles import permissions_of

OF_ROLE: dict[str, tuple[str, ...]] = {
    Role.TENANT_ADMIN: (Duty.PLATFORM, Duty.SECURITY),
    Role.BUSINESS_OWNER: (),
    Role.APPROVER: (Duty.DOMAIN, Duty.INTEGRATION, Duty.SRE),
    Role.OPERATOR: (Duty.SRE,),
    Role.AUDITOR: (),
}
"""The duties a role brings."""
DECIDE = frozenset({"changes.review", "config.change"})
"""Permissions of which one lets its holder decide on a request, once they hold a duty too."""


@dataclass(frozen=True)
class Holder:
    """A person and the duties they hold now."""

    username: str
    held: tuple[HeldDuty, ...]

    @property
    def own(self) -> frozenset[str]:
        return frozenset(held.duty for held in self.held if not held.on_behalf_of)


def person_of(actor: str) -> str:
    """Return the username in ``user:ana``; "" for a key, a command or a visitor."""
    kind, _colon, name = actor.partition(":")
    return name if kind == "user" else ""


def duties_held(actor: str) -> list[HeldDuty]:
    """Return the duties ``actor`` holds now, their own before delegated ones.

    None for a key, a command or somebody who is no active member of the tenant.
    """
    username = person_of(actor)
    if not username:
        return []
    # Whoever delegated to them matters too: what they lost, nobody holds for them.
    delegators = _in_force().filter(user__username=username, delegated_by__isnull=False)
    names = {username, *delegators.values_list("delegated_by__username", flat=True)}
    found = {holder.username: holder for holder in duty_holders(names)}
    return list(found[username].held) if username in found else []


def duty_holders(usernames: Collection[str] | None = None) -> list[Holder]:
    """Return everybody (or of ``usernames``) who holds a duty now, by name. Two queries."""
    members = Membership.objects.filter(user__is_active=True)
    assigned = _in_force().filter(user__is_active=True)
    if usernames is not None:
        members = members.filter(user__username__in=usernames)
        assigned = assigned.filter(user__username__in=usernames)
    own = _own(members.order_by().values_list("user__username", "role"))
    rows = list(assigned.select_related("user", "delegated_by"))
    for row in rows:
        if row.delegated_by is None and row.user.get_username() in own:
            own[row.user.get_username()].setdefault(row.duty, row.expires_at)
    delegated: dict[str, list[HeldDuty]] = {}
    for row in rows:
        held = _delegated(row, own)
        if held is not None:
            delegated.setdefault(row.user.get_username(), []).append(held)
    return [
        Holder(name, (*_ordered(own[name]), *delegated.get(name, ())))
        for name in sorted(own)
        if own[name] or name in delegated
    ]


def holders_of(duties: Iterable[str]) -> set[str]:
    """Return the usernames of everybody who holds one of ``duties`` now, delegated or not."""
    wanted = set(duties)
    return {
        holder.username
        for holder in duty_holders()
        if wanted.intersection(held.duty for held in holder.held)
    }


def may_decide(usernames: Collection[str]) -> set[str]:
    """Return whom of ``usernames`` a role lets decide on requests, duty or not. One query."""
    roles = Membership.objects.filter(user__username__in=usernames).order_by()
    return {
        name
        for name, role in roles.values_list("user__username", "role")
        if permissions_of(frozenset({role})) & DECIDE
    }


def is_member(user: User) -> bool:
    """Return whether ``user`` is an active member of the current tenant."""
    return user.is_active and Membership.objects.filter(user=user).exists()


def assignments_in_force() -> QuerySet[DutyAssignment]:
    """Return the duties that were granted or delegated and hold now."""
    return _in_force().select_related("user", "delegated_by")


def _in_force(now: datetime | None = None) -> QuerySet[DutyAssignment]:
    now = now or timezone.now()
    found: QuerySet[DutyAssignment] = DutyAssignment.objects.filter(
        Q(expires_at=None) | Q(expires_at__gt=now), starts_at__lte=now, ended_at=None
    ).order_by("pk")
    return found


def _own(memberships: Iterable[tuple[str, str]]) -> dict[str, dict[str, datetime | None]]:
    own: dict[str, dict[str, datetime | None]] = {}
    for username, role in memberships:
        duties = own.setdefault(username, {})
        duties.update(dict.fromkeys(OF_ROLE.get(role, ())))
    return own


def _delegated(row: DutyAssignment, own: dict[str, dict[str, datetime | None]]) -> HeldDuty | None:
    """Return what ``row`` gives: nothing once the delegator no longer holds it as their own, which
    also keeps what was delegated from being delegated on."""
    if row.delegated_by is None or row.user.get_username() not in own:
        return None
    delegator = row.delegated_by.get_username()
    if row.duty not in own.get(delegator, {}):
        return None
    return HeldDuty(row.duty, on_behalf_of=f"user:{delegator}", expires_at=row.expires_at)


def _ordered(own: dict[str, datetime | None]) -> list[HeldDuty]:
    return [HeldDuty(duty, expires_at=own[duty]) for duty in DUTIES if duty in own]
