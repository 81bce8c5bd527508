"""Operations on who must approve what: the matrix, quorums, duties. Changed by a person only."""

from typing import Any

from django.http import Http404
from django.shortcuts import get_object_or_404
from rest_framework import serializers

from apps.governance import duty_services, responsibility_services
from apps.governance.approval import raci_matrix, risk_quorums
from apps.governance.approval_models import Duty, DutyAssignment
from apps.governance.duties import assignments_in_force, duty_holders
from apps.governance.raci import ACTIVITIES, raci_problems
from apps.releases.api.inputs import Given, JsonObject, Nothing
from apps.releases.api.operations import Operation
from apps.releases.api.shapes import AnyJson, Shape
from apps.tenants.models import User


class MatrixGet(Operation):
    """Who is responsible (R), accountable (A), consulted (C), informed (I), for each activity.

    `problems`: activities that nobody, or more than one, is accountable for.
    """

    tag = "governance"

    class Output(Shape):
        class Problem(Shape):
            activity = serializers.CharField()
            message = serializers.CharField()

        matrix = AnyJson()
        problems = Problem(many=True)

    def answer(self, **given: Any) -> dict[str, Any]:
        matrix = raci_matrix()
        return {"matrix": matrix, "problems": raci_problems(matrix)}


class MatrixSet(Operation):
    """Change the row of one activity: duty → letters; a duty left out has none."""

    scope = "governance:write"
    tag = "governance"

    class Input(Given):
        letters = JsonObject()

    Output = MatrixGet.Output

    def answer(self, **given: Any) -> dict[str, Any]:
        if self.named["activity"] not in ACTIVITIES:
            raise Http404
        letters = {str(duty): str(cell) for duty, cell in given["letters"].items()}
        responsibility_services.raci_set(
            activity=self.named["activity"], letters=letters, actor=self.actor
        )
        matrix = raci_matrix()
        return {"matrix": matrix, "problems": raci_problems(matrix)}


class QuorumShape(Shape):
    risk = serializers.CharField()
    approvals = serializers.IntegerField()
    extra_duty = serializers.CharField()


class QuorumList(Operation):
    """How many people approve a request of each risk class, and which second duty."""

    tag = "governance"

    class Output(Shape):
        quorums = QuorumShape(many=True)

    def answer(self, **given: Any) -> dict[str, Any]:
        return {
            "quorums": [
                {"risk": risk, "approvals": found.approvals, "extra_duty": found.extra_duty}
                for risk, found in risk_quorums().items()
            ]
        }


class QuorumSet(Operation):
    """Change the quorum of one risk class; never below what holds for every tenant."""

    scope = "governance:write"
    tag = "governance"
    Output = QuorumShape

    class Input(Given):
        approvals = serializers.IntegerField(min_value=1, max_value=100)
        extra_duty = serializers.CharField(default="", allow_blank=True, max_length=12)

    def answer(self, **given: Any) -> dict[str, Any]:
        risk = self.named["risk"]
        if risk not in risk_quorums():
            raise Http404
        found = responsibility_services.quorum_set(risk=risk, actor=self.actor, **given)
        return {"risk": risk, "approvals": found.approvals, "extra_duty": found.extra_duty}


# -- duties --------------------------------------------------------------------------------------
class AssignmentShape(Shape):
    id = serializers.IntegerField(source="pk")
    user = serializers.CharField(source="user.username")
    duty = serializers.CharField()
    on_behalf_of = serializers.SerializerMethodField()
    expires_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    reason = serializers.CharField()
    granted_by = serializers.CharField()

    def get_on_behalf_of(self, row: DutyAssignment) -> str:
        return row.delegated_by.get_username() if row.delegated_by else ""


class DutyList(Operation):
    """Who holds which duty now, by role, grant or delegation; and the grants in force."""

    tag = "governance"

    class Output(Shape):
        class Holder(Shape):
            class Held(Shape):
                duty = serializers.CharField()
                on_behalf_of = serializers.CharField()
                expires_at = serializers.DateTimeField(allow_null=True)

            username = serializers.CharField()
            held = Held(many=True)

        holders = Holder(many=True)
        assignments = AssignmentShape(many=True)

    def answer(self, **given: Any) -> dict[str, Any]:
        return {"holders": duty_holders(), "assignments": assignments_in_force()}


class DutyGrant(Operation):
    """Let a member hold a duty. Nobody grants one to themselves."""

    scope = "governance:write"
    tag = "governance"
    status = 201
    Output = AssignmentShape

    class Input(Given):
        user = serializers.CharField(max_length=150)
        duty = serializers.ChoiceField(Duty.choices)
        expires_at = serializers.DateTimeField(required=False)
        reason = serializers.CharField(default="", allow_blank=True, max_length=500)

    def answer(self, **given: Any) -> DutyAssignment:
        given["user"] = _member(given["user"])
        return duty_services.duty_grant(actor=self.actor, **given)


class DutyDelegate(Operation):
    """Let a member stand in for the caller, who holds the duty as their own, until a moment."""

    scope = "change:review"
    tag = "governance"
    status = 201
    Output = AssignmentShape

    class Input(Given):
        user = serializers.CharField(max_length=150)
        duty = serializers.ChoiceField(Duty.choices)
        expires_at = serializers.DateTimeField()
        reason = serializers.CharField(max_length=500)

    def answer(self, **given: Any) -> DutyAssignment:
        given["user"] = _member(given["user"])
        return duty_services.duty_delegate(actor=self.actor, **given)


class DutyEnd(Operation):
    """End a granted or delegated duty now: by a governor, the delegator, or whoever holds it."""

    scope = "change:review"
    tag = "governance"
    Input = Nothing
    Output = AssignmentShape

    def answer(self, **given: Any) -> DutyAssignment:
        row = get_object_or_404(DutyAssignment, pk=self.named["assignment"])
        return duty_services.duty_end(assignment=row, actor=self.actor)


def _member(username: str) -> User:
    """Return the person; a stranger is refused as one who is no member, in the same words."""
    user = User.objects.filter(username=username).first()
    return user or User(username="", is_active=False)
