"""Operations on versions that work together, and on contracts. Changed by a person only."""

from typing import Any

from django.http import Http404
from django.shortcuts import get_object_or_404
from rest_framework import serializers

from apps.governance import compatibility, contracts
from apps.governance.approval_models import CompatibilityRow, ContractVersion
from apps.releases.api.inputs import Given
from apps.releases.api.operations import Operation
from apps.releases.api.shapes import Shape


# -- versions --------------------------------------------------------------------------------------
class CompatibilityShape(Shape):
    id = serializers.IntegerField(source="pk")
    framework = serializers.CharField()
    runtime = serializers.CharField()
    agent_gateway = serializers.CharField()
    supported = serializers.BooleanField()
    note = serializers.CharField()
    updated_by = serializers.CharField()


class CompatibilityList(Operation):
    """The compatibility matrix. Without rows this version is supported."""

    tag = "governance"

    class Output(Shape):
        rows = CompatibilityShape(many=True)

    def answer(self, **given: Any) -> dict[str, Any]:
        return {"rows": list(CompatibilityRow.objects.order_by("framework", "pk"))}


class CompatibilityGiven(Given):
    framework = serializers.CharField(max_length=40)
    runtime = serializers.CharField(max_length=40)
    agent_gateway = serializers.CharField(max_length=40)
    supported = serializers.BooleanField()
    note = serializers.CharField(default="", allow_blank=True, max_length=500)


class CompatibilityAdd(Operation):
    """Add a row; each part is a version (2.1.0) or a pattern (2.1.x)."""

    scope = "governance:write"
    tag = "governance"
    status = 201
    Input = CompatibilityGiven
    Output = CompatibilityShape

    def answer(self, **given: Any) -> CompatibilityRow:
        return compatibility.compatibility_save(actor=self.actor, **given)


class CompatibilityChange(Operation):
    """Change a row."""

    scope = "governance:write"
    tag = "governance"
    Input = CompatibilityGiven
    Output = CompatibilityShape

    def answer(self, **given: Any) -> CompatibilityRow:
        row = get_object_or_404(CompatibilityRow, pk=self.named["row"])
        return compatibility.compatibility_save(actor=self.actor, row=row, **given)


# -- contracts -------------------------------------------------------------------------------------
class ContractShape(Shape):
    """``built_in``: what this product speaks, of which the tenant keeps no row."""

    name = serializers.CharField()
    version = serializers.IntegerField()
    status = serializers.CharField()
    schema = serializers.CharField()
    deprecated_on = serializers.DateField(allow_null=True)
    retired_on = serializers.DateField(allow_null=True)
    owner = serializers.CharField()
    built_in = serializers.SerializerMethodField()

    def get_built_in(self, contract: contracts.ShownContract) -> bool:
        return contract.pk is None


class ContractList(Operation):
    """Contracts by name and version, and where each is in its life."""

    tag = "governance"

    class Output(Shape):
        contracts = ContractShape(many=True)

    def answer(self, **given: Any) -> dict[str, Any]:
        return {"contracts": contracts.contracts_shown()}


class ContractSet(Operation):
    """Add a contract, or change what is said of it. Its life goes forward only."""

    scope = "governance:write"
    tag = "governance"
    Output = ContractShape

    class Input(Given):
        status = serializers.ChoiceField(ContractVersion.Status.choices)
        schema = serializers.CharField(default="", allow_blank=True, max_length=200_000)
        deprecated_on = serializers.DateField(default=None, allow_null=True)
        retired_on = serializers.DateField(default=None, allow_null=True)
        owner = serializers.CharField(default="", allow_blank=True, max_length=200)

    def answer(self, **given: Any) -> contracts.ShownContract:
        name, version = self.named["name"], self.named["version"]
        contracts.contract_save(name=name, version=version, actor=self.actor, **given)
        for shown in contracts.contracts_shown():
            if (shown.name, shown.version) == (name, version):
                return shown
        raise Http404
