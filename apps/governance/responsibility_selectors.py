"""Reads of the rules of approval, as the page and the check show them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Max
from django.utils.translation import gettext as _

from apps.governance.approval import raci_matrix, risk_quorums
from apps.governance.approval_models import Duty, RaciEntry, RiskQuorum
from apps.governance.duties import Holder, duty_holders
from apps.governance.quorums import Quorum
from apps.governance.raci import (
    ACTIVITIES,
    ACTIVITY_OF_KIND,
    DUTIES,
    Matrix,
    RaciProblem,
    approving,
    raci_problems,
)
from apps.releases.change_models import ChangeRequest
from apps.runtime.config import KINDS

DUTY_LABELS: dict[str, Any] = dict(Duty.choices)
RISK_LABELS: dict[str, Any] = dict(ChangeRequest.Risk.choices)


@dataclass(frozen=True)
class ResponsibilityRow:
    """One activity as the page shows it. ``cells``: (duty's label, letters), in the matrix's order.

    ``kinds``: the kinds of configuration whose change it is. ``changed_by``: "" for a default row.
    """

    activity: str
    title: Any
    cells: tuple[tuple[Any, str], ...]
    kinds: tuple[Any, ...]
    changed_by: str


@dataclass(frozen=True)
class QuorumRow:
    """One risk class as the page shows it. ``extra``: label of the second duty, or ""."""

    risk: str
    title: Any
    quorum: Quorum
    extra: Any
    changed_by: str


@dataclass(frozen=True)
class Responsibilities:
    """The tenant's rules. ``holders``: duty's label → who holds it now."""

    rows: tuple[ResponsibilityRow, ...]
    quorums: tuple[QuorumRow, ...]
    holders: tuple[tuple[Any, tuple[str, ...]], ...]
    problems: tuple[RaciProblem, ...]


def responsibilities() -> Responsibilities:
    """Return the tenant's matrix and quorums, who holds the duties, and what is wrong with it."""
    matrix, quorums, holders = raci_matrix(), risk_quorums(), duty_holders()
    row_by = dict(RaciEntry.objects.order_by().values_list("activity").annotate(Max("updated_by")))
    quorum_by = dict(RiskQuorum.objects.order_by().values_list("risk", "updated_by"))
    return Responsibilities(
        rows=tuple(
            ResponsibilityRow(
                activity=activity,
                title=ACTIVITIES[activity],
                cells=tuple((DUTY_LABELS[duty], row[duty]) for duty in DUTIES),
                kinds=_kinds_of(activity),
                changed_by=row_by.get(activity, ""),
            )
            for activity, row in matrix.items()
        ),
        quorums=tuple(
            QuorumRow(
                risk=risk,
                title=RISK_LABELS[risk],
                quorum=quorum,
                extra=DUTY_LABELS.get(quorum.extra_duty, ""),
                changed_by=quorum_by.get(risk, ""),
            )
            for risk, quorum in quorums.items()
        ),
        holders=tuple((DUTY_LABELS[duty], _holding(duty, holders)) for duty in DUTIES),
        problems=tuple(_problems(matrix, quorums, holders)),
    )


def governance_problems() -> list[RaciProblem]:
    """Return what is wrong with the tenant's rules: rows, and duties or quorums nobody can fill."""
    return _problems(raci_matrix(), risk_quorums(), duty_holders())


def _problems(
    matrix: Matrix, quorums: dict[str, Quorum], holders: list[Holder]
) -> list[RaciProblem]:
    held = {duty.duty for holder in holders for duty in holder.held}
    found = raci_problems(matrix)
    for activity, row in matrix.items():
        found += [
            _unheld(activity, ACTIVITIES[activity], duty)
            for duty in approving(row)
            if duty not in held
        ]
    for risk, quorum in quorums.items():
        if quorum.extra_duty and quorum.extra_duty not in held:
            found.append(_unheld("", RISK_LABELS[risk], quorum.extra_duty))
        if quorum.approvals > len(holders):
            text = _("“%(risk)s” needs %(needed)d people, and %(count)d hold a duty here.")
            told = {"risk": RISK_LABELS[risk], "needed": quorum.approvals, "count": len(holders)}
            found.append(RaciProblem("", "too_few_people", text % told))
    return found


def _unheld(activity: str, title: Any, duty: str) -> RaciProblem:
    text = _(
        "“%(title)s” is approved by %(duty)s, and nobody holds that duty: grant it to a member."
    )
    return RaciProblem(activity, "nobody_holds", text % {"title": title, "duty": DUTY_LABELS[duty]})


def _kinds_of(activity: str) -> tuple[Any, ...]:
    return tuple(
        KINDS[kind].label
        for kind, found in ACTIVITY_OF_KIND.items()
        if found == activity and kind in KINDS
    )


def _holding(duty: str, holders: Iterable[Holder]) -> tuple[str, ...]:
    return tuple(
        holder.username for holder in holders if duty in {held.duty for held in holder.held}
    )
