"""Writes of who holds which duty: granted by a governor, delegated by its holder, ended.

All inside a tenant scope; each is one transaction: the change, its audit entry, its event.
"""

from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from apps.governance.approval_models import DutyAssignment
from apps.governance.duties import assignments_in_force, duties_held, is_member, person_of
from apps.governance.governing import (
    GovernanceRefused,
    PersonRequired,
    governor_required,
    is_alone,
    is_governor,
)
from apps.governance.raci import DUTIES
from apps.releases.changes.events import ChangeEvent, change_told
from apps.releases.services import configuration_locked
from apps.tenants.models import User
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import audit_append

DELEGATION_DAYS = 30
REASON_MAX = 500


class InvalidDuty(GovernanceRefused):
    """A grant or delegation is not acceptable. ``field``: ``user``, ``duty``, ``expires_at`` or
    ``reason``."""

    code = "invalid_duty"

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(message)


class SelfGrant(GovernanceRefused):
    """Somebody would give a duty to themselves."""

    code = "self_grant"


class DutyNotHeld(GovernanceRefused):
    """Somebody would delegate a duty that is not their own, or end one that is not theirs."""

    code = "duty_not_held"


def duty_grant(
    *,
    user: User,
    duty: str,
    actor: str,
    expires_at: datetime | None = None,
    reason: str = "",
) -> DutyAssignment:
    """Let ``user``, a member of the tenant, hold ``duty`` from now on (until ``expires_at``).

    What they were granted already and still holds as long is returned as it is; with another end it
    takes the place of the earlier grant. Raises ``InvalidDuty``, ``SelfGrant``, ``PersonRequired``,
    ``NotAGovernor``.
    """
    governor_required(actor)
    with tenant_transaction():
        configuration_locked()
        _checked(user=user, duty=duty, expires_at=expires_at, reason=reason)
        if person_of(actor) == user.get_username() and not is_alone(user.get_username()):
            raise SelfGrant(_("Nobody grants a duty to themselves: ask another tenant admin."))
        held = assignments_in_force().filter(user=user, duty=duty, delegated_by=None).first()
        if held is not None and held.expires_at == expires_at:
            return held
        if held is not None:
            _end(held, actor)
        return _assign(user=user, duty=duty, expires_at=expires_at, reason=reason, actor=actor)


def duty_delegate(
    *, user: User, duty: str, actor: str, expires_at: datetime, reason: str
) -> DutyAssignment:
    """Let ``user`` stand in for ``actor``, who holds ``duty`` as their own, until ``expires_at``.

    At most ``DELEGATION_DAYS``; a delegate cannot delegate on, and has it no longer than the
    delegator. Raises ``InvalidDuty``, ``SelfGrant``, ``DutyNotHeld``, ``PersonRequired``.
    """
    holder = User.objects.filter(username=person_of(actor), is_active=True).first()
    if holder is None:
        raise PersonRequired(_("A duty is delegated by the person who holds it."))
    if holder.pk == user.pk:
        raise SelfGrant(_("Name somebody else: the duty is yours already."))
    if not reason.strip():
        raise InvalidDuty("reason", _("Say why somebody stands in for you."))
    if expires_at > timezone.now() + timedelta(days=DELEGATION_DAYS):
        text = _("A duty is delegated for %d days at most.")
        raise InvalidDuty("expires_at", text % DELEGATION_DAYS)
    with tenant_transaction():
        configuration_locked()
        _checked(user=user, duty=duty, expires_at=expires_at, reason=reason)
        own = {held.duty for held in duties_held(actor) if not held.on_behalf_of}
        if duty not in own:
            raise DutyNotHeld(_("You do not hold this duty yourself, so you cannot delegate it."))
        held = assignments_in_force().filter(user=user, duty=duty, delegated_by=holder).first()
        if held is not None and held.expires_at == expires_at:
            return held
        if held is not None:
            _end(held, actor)
        return _assign(
            user=user, duty=duty, expires_at=expires_at, reason=reason, actor=actor, holder=holder
        )


def duty_end(*, assignment: DutyAssignment, actor: str) -> DutyAssignment:
    """End a granted or delegated duty now: by a governor, the delegator, or whoever holds it.

    Ending it twice changes nothing. Raises ``DutyNotHeld`` for anybody else.
    """
    with tenant_transaction():
        configuration_locked()
        rows = DutyAssignment.objects.select_related("user", "delegated_by")
        row: DutyAssignment = rows.get(pk=assignment.pk)
        if not may_end(row, actor):
            raise DutyNotHeld(_("Only a tenant admin, or whose duty it is, ends it."))
        if row.ended_at is None:
            _end(row, actor)
        return row


def may_end(row: DutyAssignment, actor: str) -> bool:
    """Return whether ``actor`` may end ``row``."""
    return is_involved(row, actor) or is_governor(actor)


def is_involved(row: DutyAssignment, actor: str) -> bool:
    """Return whether ``row`` is a duty ``actor`` holds or delegated."""
    involved = {person.get_username() for person in (row.user, row.delegated_by) if person}
    return person_of(actor) in involved


def _checked(*, user: User, duty: str, expires_at: datetime | None, reason: str) -> None:
    if duty not in DUTIES:
        raise InvalidDuty("duty", _("There is no duty “%s”.") % duty)
    if not is_member(user):
        raise InvalidDuty("user", _("There is no active member with this user name."))
    if expires_at is not None and expires_at <= timezone.now():
        raise InvalidDuty("expires_at", _("This is in the past."))
    if len(reason) > REASON_MAX:
        raise InvalidDuty("reason", _("At most %d characters.") % REASON_MAX)


def _assign(
    *,
    user: User,
    duty: str,
    expires_at: datetime | None,
    reason: str,
    actor: str,
    holder: User | None = None,
) -> DutyAssignment:
    row: DutyAssignment = DutyAssignment.objects.create(
        user=user,
        duty=duty,
        delegated_by=holder,
        expires_at=expires_at,
        reason=reason.strip(),
        granted_by=actor,
    )
    _told(row, actor, "duty.granted", {"reason": row.reason})
    return row


def _end(row: DutyAssignment, actor: str) -> None:
    row.ended_at = timezone.now()
    row.save(update_fields=["ended_at"])
    _told(row, actor, "duty.ended", {})


def _told(row: DutyAssignment, actor: str, event: str, more: dict[str, Any]) -> None:
    username = row.user.get_username()
    detail = {
        "user": f"user:{username}",
        "duty": row.duty,
        "on_behalf_of": f"user:{row.delegated_by.get_username()}" if row.delegated_by else "",
        "expires_at": row.expires_at.isoformat() if row.expires_at else None,
        **more,
    }
    entity = f"duty:{username}/{row.duty}"
    audit_append(actor=actor, action=event, entity=entity, detail=detail)
    change_told(ChangeEvent(event=event, actor=actor, subject=entity, detail=detail))
