"""Admin pages of who must approve what: the matrix with the quorums, and duties of people."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from apps.governance.approval import raci_matrix, risk_quorums
from apps.governance.approval_forms import (
    DelegationForm,
    DutyForm,
    GrantForm,
    QuorumForm,
    ResponsibilityForm,
    RulesForm,
)
from apps.governance.approval_models import DutyAssignment, RaciEntry, RiskQuorum
from apps.governance.duties import assignments_in_force, duties_held, duty_holders
from apps.governance.duty_services import (
    duty_delegate,
    duty_end,
    duty_grant,
    is_involved,
    may_end,
)
from apps.governance.governing import PERMISSION, GovernanceRefused
from apps.governance.quorums import AT_LEAST
from apps.governance.raci import ACTIVITIES, DUTIES
from apps.governance.responsibility_selectors import DUTY_LABELS, RISK_LABELS, responsibilities
from apps.governance.responsibility_services import quorum_set, raci_set
from apps.releases.pages.config_admin import ConfigAdmin
from apps.tenants.models import Membership, User
from apps.tenants.tenant_admin import actor_of

ENDED_SHOWN = 50


class RulesAdmin(ConfigAdmin):
    """Pages of our own over rows that only services write."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def may_govern(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm(PERMISSION))

    def govern_or_403(self, request: HttpRequest) -> None:
        """Raise ``PermissionDenied`` unless the person may change the tenant's rules."""
        if not self.has_view_permission(request) or not self.may_govern(request):
            raise PermissionDenied

    def form_page(
        self,
        request: HttpRequest,
        *,
        form: RulesForm,
        save: Callable[[dict[str, Any]], object],
        title: Any,
        intro: Any,
        back: str,
        changed_by: str = "",
    ) -> HttpResponse:
        """Show ``form``; a valid one is given to ``save``, whose refusal is shown at its field."""
        if request.method == "POST" and form.is_valid():
            try:
                save(form.cleaned_data)
            except GovernanceRefused as refusal:
                form.refused(refusal)
            else:
                messages.success(request, _("Saved."))
                return HttpResponseRedirect(back)
        context = {
            "form": form,
            "errors": form.error_list() if form.is_bound else [],
            "intro": intro,
            "back": back,
            "changed_by": changed_by,
        }
        return self.page(request, "governance/rules_form.html", title, context)


@admin.register(RaciEntry)
class ResponsibilityAdmin(RulesAdmin):
    """The matrix as one page, with what is wrong with it on top; a row and a quorum have a form."""

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        context = {"rules": responsibilities(), "may_change": self.may_govern(request)}
        title = _("Who approves what")
        return self.page(request, "governance/responsibilities.html", title, context)

    def _changeform_view(
        self, request: HttpRequest, object_id: str | None, form_url: str, extra_context: Any
    ) -> HttpResponse:
        """A cell has no page of its own: its row has."""
        if object_id is None:
            raise PermissionDenied
        cell = self.row_or_404(request, object_id)
        return HttpResponseRedirect(reverse("admin:governance_raci_row", args=[cell.activity]))

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        return [
            path("row/<slug:activity>/", wrap(self.row_view), name="governance_raci_row"),
            path("quorum/<slug:risk>/", wrap(self.quorum_view), name="governance_quorum"),
            *super().get_urls(),
        ]

    def row_view(self, request: HttpRequest, activity: str) -> HttpResponse:
        """Change one row of the matrix."""
        self.govern_or_403(request)
        if activity not in ACTIVITIES:
            raise Http404
        data = request.POST if request.method == "POST" else None
        changed = RaciEntry.objects.filter(activity=activity).order_by("-updated_at").first()
        return self.form_page(
            request,
            form=ResponsibilityForm(data, initial=raci_matrix()[activity]),
            save=lambda typed: raci_set(activity=activity, letters=typed, actor=actor_of(request)),
            title=ACTIVITIES[activity],
            intro=_("Exactly one duty has an A: it approves every change of this sort."),
            back=reverse("admin:governance_racientry_changelist"),
            changed_by=changed.updated_by if changed else "",
        )

    def quorum_view(self, request: HttpRequest, risk: str) -> HttpResponse:
        """Change one quorum."""
        self.govern_or_403(request)
        if risk not in AT_LEAST:
            raise Http404
        data = request.POST if request.method == "POST" else None
        quorum = risk_quorums()[risk]
        changed = RiskQuorum.objects.filter(risk=risk).first()
        return self.form_page(
            request,
            form=QuorumForm(data, risk=risk, initial=vars(quorum)),
            save=lambda typed: quorum_set(risk=risk, actor=actor_of(request), **typed),
            title=RISK_LABELS[risk],
            intro=_("Approvals of different people that a request of this risk needs."),
            back=reverse("admin:governance_racientry_changelist"),
            changed_by=changed.updated_by if changed else "",
        )


@admin.register(DutyAssignment)
class DutyAdmin(RulesAdmin):
    """Who holds which duty: by role, granted, delegated. Whoever holds one may delegate it."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[DutyAssignment]:
        found: QuerySet[DutyAssignment] = super().get_queryset(request)
        return found.select_related("user", "delegated_by")

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        actor, mine = actor_of(request), "mine" in request.GET
        governs = self.may_govern(request)
        rows, ended = assignments_in_force(), self.get_queryset(request)
        if mine:
            of_person = Q(user=request.user.pk) | Q(delegated_by=request.user.pk)
            rows, ended = rows.filter(of_person), ended.filter(of_person)
        own = [held.duty for held in duties_held(actor) if not held.on_behalf_of]
        over = ended.exclude(pk__in=rows.values("pk")).order_by("-pk")[:ENDED_SHOWN]
        context = {
            "mine": mine,
            "holders": [] if mine else [_shown(holder) for holder in duty_holders()],
            "rows": [
                (row, DUTY_LABELS[row.duty], governs or is_involved(row, actor)) for row in rows
            ],
            "ended": [(row, DUTY_LABELS[row.duty]) for row in over],
            "own": [DUTY_LABELS[duty] for duty in own],
            "may_grant": governs,
        }
        return self.page(request, "governance/duties.html", _("Duties"), context)

    def _changeform_view(
        self, request: HttpRequest, object_id: str | None, form_url: str, extra_context: Any
    ) -> HttpResponse:
        if object_id is None:
            return self.grant_view(request)
        return self.end_view(request, object_id)

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        return [
            path("delegate/", wrap(self.delegate_view), name="governance_duty_delegate"),
            *super().get_urls(),
        ]

    def grant_view(self, request: HttpRequest) -> HttpResponse:
        """Grant a duty to a member."""
        self.govern_or_403(request)
        form = GrantForm(
            request.POST if request.method == "POST" else None, people=_members(), duties=DUTIES
        )
        return self._duty_page(
            request,
            form,
            save=lambda typed: duty_grant(actor=actor_of(request), **typed),
            title=_("Grant a duty"),
            intro=_("Nobody grants a duty to themselves. The member approves from now on."),
        )

    def delegate_view(self, request: HttpRequest) -> HttpResponse:
        """Let somebody stand in for a duty of one's own."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        own = [held.duty for held in duties_held(actor_of(request)) if not held.on_behalf_of]
        if not own:
            raise PermissionDenied
        people = _members().exclude(username=request.user.get_username())
        form = DelegationForm(
            request.POST if request.method == "POST" else None, people=people, duties=own
        )
        return self._duty_page(
            request,
            form,
            save=lambda typed: duty_delegate(actor=actor_of(request), **typed),
            title=_("Delegate a duty"),
            intro=_("Who stands in cannot delegate it on, nor approve what you edited."),
        )

    def end_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show one granted or delegated duty, and end it (POST)."""
        row: DutyAssignment = self.row_or_404(request, object_id)
        actor = actor_of(request)
        if request.method == "POST":
            try:
                duty_end(assignment=row, actor=actor)
            except GovernanceRefused as refusal:
                raise PermissionDenied from refusal
            messages.success(request, _("The duty is ended."))
            return HttpResponseRedirect(reverse("admin:governance_dutyassignment_changelist"))
        context = {
            "row": row,
            "duty": DUTY_LABELS[row.duty],
            "may_end": row.ended_at is None and may_end(row, actor),
        }
        title = f"{row.user.get_username()} · {DUTY_LABELS[row.duty]}"
        return self.page(request, "governance/duty.html", title, context)

    def _duty_page(self, request: HttpRequest, form: DutyForm, **more: Any) -> HttpResponse:
        back = reverse("admin:governance_dutyassignment_changelist")
        return self.form_page(request, form=form, back=back, **more)


def _members() -> QuerySet[User]:
    members = Membership.objects.order_by().values("user_id")
    return User.objects.filter(pk__in=members, is_active=True).order_by("username")


def _shown(holder: Any) -> tuple[str, list[Any], list[tuple[Any, str, Any]]]:
    """Return a person's own duties, and those they hold for others with whose and until when."""
    own = [DUTY_LABELS[held.duty] for held in holder.held if not held.on_behalf_of]
    others = [
        (DUTY_LABELS[held.duty], held.on_behalf_of.removeprefix("user:"), held.expires_at)
        for held in holder.held
        if held.on_behalf_of
    ]
    return holder.username, own, others
