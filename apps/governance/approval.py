"""Who must approve what in this tenant: the matrix, the quorums and the duties put together.

``POLICY`` is what ``settings.CHANGE_POLICY`` names.
"""

from collections.abc import Sequence

from django.conf import settings

from apps.governance import raci
from apps.governance.approval_models import RaciEntry, RiskQuorum
from apps.governance.duties import duties_held, duty_holders, may_decide
from apps.governance.quorums import DEFAULTS as QUORUMS
from apps.governance.quorums import Quorum
from apps.governance.risk import risk_class, risks
from apps.releases.changes.policy import HeldDuty, ItemEdit, Requirement, Risk


def raci_matrix() -> dict[str, dict[str, str]]:
    """Return the tenant's matrix: activity → duty → letters; rows of its own before the defaults."""
    own: dict[str, dict[str, str]] = {}
    for entry in RaciEntry.objects.all():
        own.setdefault(entry.activity, {})[entry.duty] = entry.letters
    return {
        activity: {duty: own.get(activity, default).get(duty, "") for duty in raci.DUTIES}
        for activity, default in raci.DEFAULTS.items()
    }


def risk_quorums() -> dict[str, Quorum]:
    """Return the tenant's quorum of each risk class."""
    own = {
        row.risk: Quorum(approvals=row.approvals, extra_duty=row.extra_duty)
        for row in RiskQuorum.objects.all()
    }
    return {name: own.get(name, default) for name, default in QUORUMS.items()}


def requirement_by(matrix: raci.Matrix, quorum: Quorum, activities: Sequence[str]) -> Requirement:
    """Return who must approve a change that is ``activities``, by these rules. Pure."""
    duties = {duty for activity in activities for duty in raci.approving(matrix[activity])}
    second = quorum.second_duty(duties)
    if second:
        duties.add(second)
    # Where nobody is accountable, one person more stands in.
    unanswered = any(not raci.accountable(matrix[activity]) for activity in activities)
    return Requirement(
        approvals=max(quorum.approvals, len(duties) + unanswered),
        duties=tuple(duty for duty in raci.DUTIES if duty in duties),
        activities=tuple(activities),
        problems=tuple(
            problem.message
            for activity in activities
            for problem in raci.row_problems(activity, matrix[activity])
        ),
    )


class Policy:
    """``ChangePolicy`` by the tenant's own rules."""

    def risks(self, edits: Sequence[ItemEdit]) -> list[Risk]:
        return risks(edits)

    def risk_class(self, edits: Sequence[ItemEdit]) -> str:
        return risk_class(edits)

    def requirement(self, *, edits: Sequence[ItemEdit], risk: str) -> Requirement:
        return self.requirements([(edits, risk)])[0]

    def requirements(self, asked: Sequence[tuple[Sequence[ItemEdit], str]]) -> list[Requirement]:
        matrix, quorums = raci_matrix(), risk_quorums()
        return [
            requirement_by(matrix, quorums[risk], raci.activities_of(edits))
            for edits, risk in asked
        ]

    def deployment_requirement(self, environment: str) -> Requirement:
        if not _is_production(environment):
            return Requirement(approvals=1, duties=raci.DUTIES)
        row = raci_matrix()[raci.PRODUCTION_DEPLOY]
        return Requirement(
            approvals=1,
            duties=raci.approving(row),
            activities=(raci.PRODUCTION_DEPLOY,),
            problems=tuple(p.message for p in raci.row_problems(raci.PRODUCTION_DEPLOY, row)),
        )

    def binding_requirement(self, environment: str) -> Requirement:
        # Where customers' data goes: operations, or whoever answers for security.
        duties = (raci.SRE, raci.SECURITY) if _is_production(environment) else raci.DUTIES
        return Requirement(approvals=1, duties=duties)

    def duties_of(self, actor: str) -> list[HeldDuty]:
        return duties_held(actor)

    def holders(self, duties: Sequence[str]) -> dict[str, list[HeldDuty]]:
        found = {
            holder.username: [held for held in holder.held if held.duty in duties]
            for holder in (duty_holders() if duties else ())
        }
        deciding = may_decide([name for name, held in found.items() if held])
        return {f"user:{name}": held for name, held in found.items() if name in deciding}


POLICY = Policy()


def _is_production(environment: str) -> bool:
    """Return whether ``environment`` is the last one: where customers are answered."""
    return environment == settings.RELEASE_ENVIRONMENTS[-1]
