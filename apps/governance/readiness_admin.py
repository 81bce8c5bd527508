"""Admin pages of an agent's readiness: the agents, and the checklist of one."""

from collections import Counter
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.governance.approval_models import ReadinessCheck
from apps.governance.proof_forms import AnswerForm
from apps.governance.readiness import (
    NoSuchCheck,
    Readiness,
    ReadinessRefused,
    ShownSection,
    ShownTopic,
    agents_listed,
    exemption_approve,
    exemption_ask,
    readiness_of,
    readiness_set,
)
from apps.releases.pages.config_admin import ConfigAdmin
from apps.tenants.tenant_admin import actor_of

PAGE = 50


@admin.register(ReadinessCheck)
class ReadinessAdmin(ConfigAdmin):
    """Who still lacks what."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """List the agents with what people answered; the product's own answers are on each page."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        page = Paginator(agents_listed(), PAGE).get_page(request.GET.get("p"))
        rows = ReadinessCheck.objects.filter(agent__in=[item.slug for item in page.object_list])
        counted = Counter(
            (row.agent, "asked" if row.reason and row.state == "open" else row.state)
            for row in rows
        )
        agents = [
            {
                "item": item,
                **{state: counted[item.slug, state] for state in ("done", "exempt", "asked")},
            }
            for item in page.object_list
        ]
        context = {"agents": agents, "page": page}
        return self.page(request, "governance/readiness_list.html", _("Readiness"), context)

    def _changeform_view(
        self, request: HttpRequest, object_id: str | None, form_url: str, extra_context: Any
    ) -> HttpResponse:
        """An answer has no page of its own: it stands in its agent's checklist."""
        if object_id is None:
            raise PermissionDenied
        row = self.row_or_404(request, object_id)
        page = reverse("admin:governance_readiness", args=[row.agent])
        return HttpResponseRedirect(f"{page}#topic-{row.check_code}")

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.agent_view)
        return [
            path("agent/<path:agent>/", view, name="governance_readiness"),
            *super().get_urls(),
        ]

    def agent_view(self, request: HttpRequest, agent: str) -> HttpResponse:
        """Show the checklist of one agent; POST answers a point, asks for or approves an exemption."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        refusal, form = None, AnswerForm(request.POST or None)
        try:
            if request.method == "POST":
                if not self.has_change_permission(request):
                    raise PermissionDenied
                refusal = self._acted(request, agent, form)
                if refusal is None:
                    messages.success(request, _("Saved."))
                    check = request.POST.get("check", "")
                    return HttpResponseRedirect(f"{request.path}#topic-{check}")
            readiness = readiness_of(agent)
        except NoSuchCheck:
            raise Http404 from None
        context = {
            "readiness": readiness,
            "may_change": self.has_change_permission(request),
            "actor": actor_of(request),
            "today": timezone.localdate(),
            "refusal": refusal,
            "typed": request.POST,
            "sections": _with_forms(readiness),
        }
        title = _("Readiness of %(agent)s") % {"agent": agent}
        return self.page(request, "governance/readiness.html", title, context)

    def _acted(self, request: HttpRequest, agent: str, form: AnswerForm) -> ReadinessRefused | None:
        """Do what was asked for; return why not."""
        given: dict[str, Any] = {
            "agent": agent,
            "check": request.POST.get("check", ""),
            "actor": actor_of(request),
        }
        act = request.POST.get("act", "")
        form.is_valid()
        typed = form.cleaned_data
        try:
            if act in ("done", "open"):
                answer = {"note": typed.get("note", ""), "link": typed.get("link", "")}
                readiness_set(**given, state=act, **(answer if act == "done" else {}))
            elif act == "ask":
                until = form.expires_at()
                if until is None:
                    return ReadinessRefused(until=_("Give the day on which the exemption ends."))
                exemption_ask(**given, reason=typed.get("reason", ""), expires_at=until)
            elif act == "approve":
                exemption_approve(**given, seen=typed.get("seen"))
            else:
                raise Http404
        except NoSuchCheck:
            raise
        except ReadinessRefused as refused:
            return refused
        return None


def _with_forms(readiness: Readiness) -> list[tuple[ShownSection, list[tuple[ShownTopic, bool]]]]:
    """Return the sections with their topics, and whether a topic's form is here: only where the
    topic stands first."""
    seen: set[str] = set()
    sections = []
    for shown in readiness.sections:
        topics = [(topic, topic.code not in seen) for topic in shown.topics]
        seen.update(topic.code for topic in shown.topics)
        sections.append((shown, topics))
    return sections
