"""Writes of who must approve what: rows of the responsibility matrix and quorums by risk.

All inside a tenant scope; each is one transaction: the change, its audit entry, its event. They
take the lock that publishing takes, so a publication sees the rules of before or after.
"""

from collections.abc import Mapping

from django.utils.translation import gettext as _

from apps.governance.approval import raci_matrix, risk_quorums
from apps.governance.approval_models import RaciEntry, RiskQuorum
from apps.governance.governing import GovernanceRefused, governor_required
from apps.governance.quorums import AT_LEAST, AT_MOST, Quorum
from apps.governance.raci import (
    ACTIVITIES,
    DUTIES,
    LETTERS,
    RaciProblem,
    accountable,
    row_problems,
)
from apps.releases.changes.events import ChangeEvent, change_told
from apps.releases.services import configuration_locked
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import audit_append


class InvalidResponsibility(GovernanceRefused):
    """A row of the matrix is not acceptable. ``field``: the activity or duty it is about."""

    code = "invalid_responsibility"

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(message)


class InvalidQuorum(GovernanceRefused):
    """A quorum is not acceptable. ``field``: ``risk``, ``approvals`` or ``extra_duty``."""

    code = "invalid_quorum"

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(message)


def raci_set(*, activity: str, letters: Mapping[str, str], actor: str) -> list[RaciProblem]:
    """Make ``letters`` (duty → R, A, C, I, R/A; a duty left out has none) the row of ``activity``.

    Returns what is wrong with the row all the same: a row without anybody accountable is kept and
    reported. Raises ``InvalidResponsibility``, ``PersonRequired``, ``NotAGovernor``.
    """
    governor_required(actor)
    row = _row_checked(activity, letters)
    with tenant_transaction():
        configuration_locked()
        before = raci_matrix()[activity]
        if before != row:
            for duty, cell in row.items():
                RaciEntry.objects.update_or_create(
                    activity=activity, duty=duty, defaults={"letters": cell, "updated_by": actor}
                )
            _told(
                actor,
                "responsibility.changed",
                f"responsibility:{activity}",
                {"before": _written(before), "after": _written(row)},
            )
    return row_problems(activity, row)


def quorum_set(*, risk: str, approvals: int, extra_duty: str, actor: str) -> Quorum:
    """Let requests of ``risk`` need so many people, and ``extra_duty`` ("" for none) beside the
    accountable one.

    Never below ``quorums.AT_LEAST``, and whatever weakens safety keeps a second duty. Raises
    ``InvalidQuorum``, ``PersonRequired``, ``NotAGovernor``.
    """
    governor_required(actor)
    quorum = _quorum_checked(risk, approvals, extra_duty)
    with tenant_transaction():
        configuration_locked()
        before = risk_quorums()[risk]
        if before != quorum:
            RiskQuorum.objects.update_or_create(
                risk=risk,
                defaults={"approvals": approvals, "extra_duty": extra_duty, "updated_by": actor},
            )
            detail = {
                "before": {"approvals": before.approvals, "extra_duty": before.extra_duty},
                "after": {"approvals": approvals, "extra_duty": extra_duty},
                "fewer": approvals < before.approvals,
            }
            _told(actor, "quorum.changed", f"quorum:{risk}", detail)
    return quorum


def _row_checked(activity: str, letters: Mapping[str, str]) -> dict[str, str]:
    if activity not in ACTIVITIES:
        raise InvalidResponsibility("activity", _("There is no activity “%s”.") % activity)
    for duty, cell in letters.items():
        if duty not in DUTIES:
            raise InvalidResponsibility(duty, _("There is no duty “%s”.") % duty)
        if cell not in LETTERS:
            known = ", ".join(letter for letter in LETTERS if letter)
            text = _("%(duty)s: use one of %(known)s, or nothing.")
            raise InvalidResponsibility(duty, text % {"duty": duty, "known": known})
    row = {duty: letters.get(duty, "") for duty in DUTIES}
    if len(accountable(row)) > 1:
        text = _("Only one duty is accountable (A) for “%(activity)s”; here are: %(duties)s.")
        names = {"activity": ACTIVITIES[activity], "duties": ", ".join(accountable(row))}
        raise InvalidResponsibility("activity", text % names)
    return row


def _quorum_checked(risk: str, approvals: int, extra_duty: str) -> Quorum:
    if risk not in AT_LEAST:
        raise InvalidQuorum("risk", _("There is no risk class “%s”.") % risk)
    if not AT_LEAST[risk] <= approvals <= AT_MOST:
        text = _("Between %(low)d and %(high)d people approve a change of this class.")
        raise InvalidQuorum("approvals", text % {"low": AT_LEAST[risk], "high": AT_MOST})
    if extra_duty and extra_duty not in DUTIES:
        raise InvalidQuorum("extra_duty", _("There is no duty “%s”.") % extra_duty)
    if AT_LEAST[risk] > 1 and not extra_duty:
        text = _("What weakens safety needs a second role: name its duty.")
        raise InvalidQuorum("extra_duty", text)
    return Quorum(approvals, extra_duty)


def _written(row: Mapping[str, str]) -> dict[str, str]:
    return {duty: cell for duty, cell in row.items() if cell}


def _told(actor: str, event: str, entity: str, detail: Mapping[str, object]) -> None:
    audit_append(actor=actor, action=event, entity=entity, detail=detail)
    change_told(ChangeEvent(event=event, actor=actor, subject=entity, detail=detail))
