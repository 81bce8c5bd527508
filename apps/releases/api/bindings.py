"""Operations on bindings: addresses and names of secrets of one environment, and their proposals."""

from typing import Any

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied

from apps.releases.api.environments import environment_or_404
from apps.releases.api.inputs import Given, Nothing, Paging
from apps.releases.api.operations import Operation, Page, page_of
from apps.releases.api.shapes import BindingShape, ProposalShape
from apps.releases.change_models import BindingProposal
from apps.releases.environments import services as environments
from apps.releases.models import Binding


class BindingList(Operation):
    """The bindings of an environment."""

    tag = "bindings"
    many = True
    Query = Paging
    Output = BindingShape

    def answer(self, **given: Any) -> Page:
        name = environment_or_404(self.named["environment"])
        return page_of(Binding.objects.filter(environment=name).order_by("what", "name"), given)


class BindingPut(Operation):
    """Bind a name where no second person is asked for; in production, propose it instead."""

    scope = "release:deploy"
    tag = "bindings"
    Output = BindingShape

    class Input(Given):
        value = serializers.CharField(max_length=500)

    def answer(self, **given: Any) -> Binding:
        binding_permission(self)
        environment_or_404(self.named["environment"])
        return environments.binding_set(**self.named, **given, actor=self.actor)


class ProposalList(Operation):
    """Proposed changes of an environment's bindings, newest first."""

    tag = "bindings"
    many = True
    Output = ProposalShape

    class Query(Paging):
        status = serializers.ChoiceField(BindingProposal.Status.choices, required=False)

    def answer(self, **given: Any) -> Page:
        name = environment_or_404(self.named["environment"])
        rows = BindingProposal.objects.filter(environment=name)
        if "status" in given:
            rows = rows.filter(status=given["status"])
        return page_of(rows.order_by("-proposed_at", "-pk"), given)


class ProposalAdd(Operation):
    """Ask for a name to be bound to a value, or (`remove`) to be unbound."""

    scope = "release:deploy"
    tag = "bindings"
    status = 201
    Output = ProposalShape

    class Input(Given):
        what = serializers.ChoiceField(Binding.What.choices)
        name = serializers.CharField(max_length=120)
        value = serializers.CharField(max_length=500, default="", allow_blank=True)
        remove = serializers.BooleanField(default=False)
        reason = serializers.CharField(max_length=500)

    def answer(self, **given: Any) -> BindingProposal:
        binding_permission(self)
        name = environment_or_404(self.named["environment"])
        return environments.binding_propose(environment=name, actor=self.actor, **given)


class ProposalDecide(Operation):
    """Let a proposal in, or refuse it with a comment: a second person with a duty for it."""

    scope = "change:review"
    tag = "bindings"
    Output = ProposalShape

    class Input(Given):
        approve = serializers.BooleanField()
        comment = serializers.CharField(max_length=500, default="", allow_blank=True)

    def answer(self, **given: Any) -> BindingProposal:
        return environments.binding_decide(
            proposal=_proposal(self.named), actor=self.actor, **given
        )


class ProposalWithdraw(Operation):
    """Take back one's own open proposal."""

    scope = "release:deploy"
    tag = "bindings"
    Input = Nothing
    Output = ProposalShape

    def answer(self, **given: Any) -> BindingProposal:
        return environments.binding_withdraw(proposal=_proposal(self.named), actor=self.actor)


def binding_permission(operation: Operation) -> None:
    """A person's role must allow changing bindings, as on the pages."""
    principal = operation.principal
    if principal.name.startswith("user:") and "bindings.change" not in principal.permissions:
        raise PermissionDenied


def _proposal(named: dict[str, Any]) -> BindingProposal:
    found: BindingProposal = get_object_or_404(
        BindingProposal,
        environment=environment_or_404(named["environment"]),
        pk=named["proposal"],
    )
    return found
