"""Admin pages of gates, evidence, versions that work together and contracts."""

from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.decorators import display

from apps.governance.approval_admin import RulesAdmin
from apps.governance.approval_models import (
    CompatibilityRow,
    ContractVersion,
    Evidence,
    GateLevel,
)
from apps.governance.compatibility import PARTS, built_in, compatibility_save, is_supported
from apps.governance.contracts import contract_save, contracts_shown
from apps.governance.evidence import evidence_record
from apps.governance.gate_levels import InvalidGateLevel, gate_level_set, gates_shown
from apps.governance.proof_forms import CompatibilityForm, ContractForm, EvidenceForm
from apps.releases.pages.config_admin import ConfigAdmin
from apps.tenants.tenant_admin import actor_of


@admin.register(GateLevel)
class GateLevelAdmin(RulesAdmin):
    """Every gate with what its findings do here; a governor sets it."""

    def changelist_view(  # type: ignore[override]  # a page, or the way back to it
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        refusal = None
        if request.method == "POST":
            self.govern_or_403(request)
            try:
                gate_level_set(
                    gate=request.POST.get("gate", ""),
                    level=request.POST.get("level", ""),
                    actor=actor_of(request),
                )
            except InvalidGateLevel as refused:
                refusal = refused
            else:
                messages.success(request, _("Saved."))
                return HttpResponseRedirect(request.path)
        context = {
            "gates": gates_shown(),
            "levels": GateLevel.Level.choices,
            "may_change": self.may_govern(request),
            "refusal": refusal,
        }
        return self.page(request, "governance/gates.html", _("Gates"), context)

    def _changeform_view(
        self, request: HttpRequest, object_id: str | None, form_url: str, extra_context: Any
    ) -> HttpResponse:
        """A level has no page of its own: its gate stands in the list."""
        if object_id is None:
            raise PermissionDenied
        row = self.row_or_404(request, object_id)
        page = reverse("admin:governance_gatelevel_changelist")
        return HttpResponseRedirect(f"{page}#gate-{row.gate}")


@admin.register(Evidence)
class EvidenceAdmin(RulesAdmin):
    """Results about manifests, newest first. Nothing of it is ever changed."""

    list_display = ("manifest", "what", "outcome", "summary", "recorded_by", "recorded_at")
    list_filter = ("what", "passed")
    search_fields = ("manifest_sha256", "summary", "recorded_by")
    search_help_text = gettext_lazy("Manifest, summary or who recorded it")

    @display(description=gettext_lazy("manifest"), ordering="manifest_sha256")  # type: ignore[arg-type]
    def manifest(self, row: Evidence) -> str:
        return format_html("<code>{}</code>", row.manifest_sha256[:12])

    @display(description=gettext_lazy("result"), ordering="passed")  # type: ignore[arg-type]
    def outcome(self, row: Evidence) -> str:
        return _("passed") if row.passed else _("failed")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return ConfigAdmin.has_add_permission(self, request)

    def _changeform_view(
        self, request: HttpRequest, object_id: str | None, form_url: str, extra_context: Any
    ) -> HttpResponse:
        if object_id is not None:
            # Django's own page, on which nothing can be typed.
            shown: HttpResponse = super()._changeform_view(  # type: ignore[misc]
                request, object_id, form_url, extra_context
            )
            return shown
        if not self.has_add_permission(request):
            raise PermissionDenied
        data = request.POST if request.method == "POST" else None
        given = {
            name: request.GET[name] for name in EvidenceForm.base_fields if name in request.GET
        }
        return self.form_page(
            request,
            form=EvidenceForm(data, initial=given),
            save=lambda typed: evidence_record(actor=actor_of(request), **typed),
            title=_("Record a result"),
            intro=_(
                "It counts for exactly this manifest, and stays: a newer result stands beside it."
            ),
            back=reverse("admin:governance_evidence_changelist"),
        )


@admin.register(CompatibilityRow)
class CompatibilityAdmin(RulesAdmin):
    """Which versions work together."""

    list_display = ("framework", "runtime", "agent_gateway", "supported", "note", "updated_by")
    list_filter = ("supported",)
    list_before_template = "governance/_compatibility.html"  # type: ignore[assignment]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        extra: dict[str, Any] = {
            "version": settings.VERSION,
            "is_supported": is_supported(settings.VERSION),
            "built_in": None if CompatibilityRow.objects.exists() else built_in(),
        }
        shown: TemplateResponse = super().changelist_view(
            request, {**(extra_context or {}), **extra}
        )
        return shown

    def has_add_permission(self, request: HttpRequest) -> bool:
        return ConfigAdmin.has_add_permission(self, request)

    def _changeform_view(
        self, request: HttpRequest, object_id: str | None, form_url: str, extra_context: Any
    ) -> HttpResponse:
        row = self.row_or_404(request, object_id) if object_id else None
        self.govern_or_403(request)
        names = (*PARTS, "supported", "note")
        held = {name: getattr(row, name) for name in names} if row else {"supported": True}
        data = request.POST if request.method == "POST" else None
        return self.form_page(
            request,
            form=CompatibilityForm(data, initial=held),
            save=lambda typed: compatibility_save(row=row, actor=actor_of(request), **typed),
            title=row or _("Add a row"),
            intro=_("Versions that were tried together, and whether they are supported."),
            back=reverse("admin:governance_compatibilityrow_changelist"),
            changed_by=row.updated_by if row else "",
        )


@admin.register(ContractVersion)
class ContractAdmin(RulesAdmin):
    """Contracts by name and version; those the product speaks are there from the beginning."""

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        context = {"contracts": contracts_shown(), "may_change": self.may_govern(request)}
        return self.page(request, "governance/contracts.html", _("Contracts"), context)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return ConfigAdmin.has_add_permission(self, request)

    def _changeform_view(
        self, request: HttpRequest, object_id: str | None, form_url: str, extra_context: Any
    ) -> HttpResponse:
        row = self.row_or_404(request, object_id) if object_id else None
        self.govern_or_403(request)
        held = _contract_held(request, row)
        data = request.POST if request.method == "POST" else None
        return self.form_page(
            request,
            form=ContractForm(data, initial=held, fixed=bool(held)),
            save=lambda typed: contract_save(actor=actor_of(request), **typed),
            title=row or _("Contract"),
            intro=_("A contract is active, then deprecated, then retired, and never comes back."),
            back=reverse("admin:governance_contractversion_changelist"),
            changed_by=row.updated_by if row else "",
        )


def _contract_held(request: HttpRequest, row: ContractVersion | None) -> dict[str, Any]:
    """Return what is known of a contract: of its row, or of a built-in one (``?contract=``)."""
    label = str(row) if row else request.GET.get("contract", "")
    known = next((found for found in contracts_shown() if str(found) == label), None)
    names = ("name", "version", "status", "schema", "deprecated_on", "retired_on", "owner")
    return {name: getattr(known, name) for name in names} if known else {}
