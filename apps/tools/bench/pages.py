"""Admin pages of the bench: run a tool with sample arguments, and what stands in for its server."""

import json
import secrets
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import URLPattern, path
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.releases.change_models import ChangePatch
from apps.releases.changes.states import OPEN
from apps.releases.models import ConfigItem
from apps.runtime.release import Release
from apps.tenants.tenant_admin import actor_of
from apps.tools.bench.forms import BenchForm, StepForms, steps_initial
from apps.tools.bench.mocking import MockRefused
from apps.tools.bench.running import (
    NoSuchConfiguration,
    Plan,
    Tried,
    agents_of,
    channels,
    configuration,
    plan_make,
    plan_run,
)
from apps.tools.bench.services import mock_load, mock_save, run_audit
from apps.tools.config import ToolConfig
from apps.tools.contracts.asynchronous import async_page, in_transaction
from apps.tools.contracts.pages import ContractPages, environment_or_404
from apps.tools.contracts.selectors import tool_head

RUN, ACT, PERSONAL = "tools.change", "tools.act", "tools.personal"
SHOWN_CHARACTERS = 20_000
SENT_KEPT = 50
STATUS = {
    "ok": (gettext_lazy("answered"), "good"),
    "error": (gettext_lazy("the tool said no"), "error"),
    "refused": (gettext_lazy("not sent"), "warn"),
    "unknown": (gettext_lazy("sent, no end known"), "error"),
}


@dataclass
class _Bench:
    """A page of the bench in the making: what is tried, and with which form."""

    item: ConfigItem
    environment: str
    which: str
    release: Release | None = None
    form: BenchForm | None = None
    plan: Plan | None = None
    tried: Tried | None = None

    @property
    def tool(self) -> ToolConfig | None:
        return self.release.find(ToolConfig, self.item.slug) if self.release else None


class BenchPages(ContractPages):
    """A tool's bench and its mock, beside its contract."""

    def get_urls(self) -> list[URLPattern]:
        return [
            path(
                "<path:object_id>/bench/",
                async_page(self.admin_site, self.bench_view),
                name=self._name("bench"),
            ),
            path(
                "<path:object_id>/mock/",
                self.admin_site.admin_view(self.mock_view),
                name=self._name("mock"),
            ),
            *super().get_urls(),
        ]

    def more_tabs(self, item: ConfigItem) -> list[dict[str, Any]]:
        bench = {"name": "bench", "title": _("Bench"), "url": self._url("bench", item.pk)}
        return [*super().more_tabs(item), bench]

    async def bench_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the form; POST runs the tool once. No transaction is open while it runs."""
        bench = await in_transaction(self._bench, request, object_id)
        if bench.plan is not None:
            bench.tried = await plan_run(bench.plan)
        return await in_transaction(self._bench_page, request, bench)  # type: ignore[no-any-return]

    def _bench(self, request: HttpRequest, object_id: str) -> _Bench:
        item = self.row_or_404(request, object_id)
        environment = environment_or_404(request.GET.get("environment"))
        bench = _Bench(item, environment, request.GET.get("configuration") or "head")
        try:
            bench.release = configuration(item.slug, bench.which, environment)
        except NoSuchConfiguration:
            return bench
        tool = bench.tool
        assert tool is not None
        steps, may_run = mock_load(item.slug), request.user.has_perm(RUN)
        posted = request.POST if request.method == "POST" else None
        bench.form = BenchForm(
            posted,
            tool=tool,
            agents=agents_of(item.slug, bench.release),
            channels=tool.allowed_channels or channels(),
            has_mock=bool(steps),
            may_live=may_run and (not tool.transactional or request.user.has_perm(ACT)),
            needs_tick=tool.transactional,
            initial=_initial(tool, agents_of(item.slug, bench.release)),
        )
        if posted is not None:
            if not may_run:
                raise PermissionDenied
            if bench.form.is_valid() and self._is_first(request, tool, bench.form):
                bench.plan = self._plan(request, bench, posted, steps)
        return bench

    def _plan(self, request: HttpRequest, bench: _Bench, posted: QueryDict, steps: Any) -> Plan:
        assert bench.form is not None
        assert bench.release is not None
        typed = bench.form.cleaned_data
        return plan_make(
            slug=bench.item.slug,
            release=bench.release,
            environment=bench.environment,
            actor=actor_of(request),
            arguments=bench.form.arguments(),
            context=bench.form.context(),
            agent=typed["agent"],
            channel=typed["channel"],
            is_confirmed=typed["mode"] == "mock" or bool(typed.get("really")),
            steps=steps if typed["mode"] == "mock" else None,
        )

    def _is_first(self, request: HttpRequest, tool: ToolConfig, form: BenchForm) -> bool:
        """Return whether this very form was not sent before: a page loaded again acts no second time."""
        if not tool.transactional or form.cleaned_data["mode"] != "live":
            return True
        run, sent = request.POST.get("run", ""), request.session.get("bench_sent", [])
        if not run or run in sent:
            form.add_error("really", _("This was sent already. Tick again to send it once more."))
            return False
        request.session["bench_sent"] = [*sent, run][-SENT_KEPT:]
        return True

    def _bench_page(self, request: HttpRequest, bench: _Bench) -> HttpResponse:
        form, tried = bench.form, bench.tried
        if tried is not None and bench.plan is not None and form is not None:
            run_audit(plan=bench.plan, tried=tried, actor=actor_of(request))
            form.refused(tried.call)
        context = {
            "item": bench.item,
            "form": form,
            "tool": bench.tool,
            "errors": form.error_list() if form is not None and form.is_bound else [],
            "environment": bench.environment,
            "environments": settings.RELEASE_ENVIRONMENTS,
            "which": bench.which,
            "configurations": _configurations(bench.item.slug),
            "run": secrets.token_hex(8),
            "tried": _shown(request, tried, bench.tool) if tried and bench.tool else None,
            "may_run": request.user.has_perm(RUN),
            "mock_url": self._url("mock", bench.item.pk),
            "mock_steps": len(mock_load(bench.item.slug)),
            "media": self.media + form.media if form is not None else self.media,
        }
        page = self._item_page(request, "tools/bench.html", bench.item, bench.item, context)
        render = getattr(page, "render", None)
        return render() if callable(render) else page

    def mock_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Edit what the bench answers in the tool's place."""
        item = self.row_or_404(request, object_id)
        tool = tool_head(item.slug)
        if tool is None:
            raise Http404
        may_change = request.user.has_perm(RUN)
        data = request.POST if request.method == "POST" else None
        if data is not None and not may_change:
            raise PermissionDenied
        forms = StepForms(data, initial=steps_initial(mock_load(item.slug)), prefix="step")
        faults: list[str] = []
        if data is not None and forms.is_valid():
            steps = [form.content(tool) for form in forms if not form.is_blank]
            try:
                mock_save(
                    tool=item.slug,
                    steps=steps,
                    output_schema=tool.contract.output_schema,
                    actor=actor_of(request),
                )
            except MockRefused as refused:
                faults = [_(text) % words for text, words in refused.faults]
            else:
                messages.success(request, _("Saved."))
                return HttpResponseRedirect(self._url("bench", item.pk))
        context = {
            "item": item,
            "tab": "bench",
            "forms": forms,
            "errors": [*(("", "", text) for text in faults), *_step_errors(forms)],
            "may_mock": may_change,
            "bench_url": self._url("bench", item.pk),
            "schema": json.dumps(tool.contract.output_schema, ensure_ascii=False, indent=2)
            if tool.contract.output_schema
            else "",
        }
        return self._item_page(request, "tools/mock.html", item, item, context)


def _initial(tool: ToolConfig, agents: list[str]) -> dict[str, Any]:
    """Return what the form begins with: somebody and something that the tool's policy allows."""
    return {
        "agent": agents[0] if agents else "",
        "channel": tool.allowed_channels[0] if tool.allowed_channels else "",
    }


def _configurations(slug: str) -> list[tuple[str, str]]:
    """Return what the tool can be tried as: today's configuration, what runs, open requests."""
    patches = ChangePatch.objects.filter(
        kind=ToolConfig.kind, slug=slug, request__status__in=OPEN
    ).select_related("request")
    text = _("as in change request #%(number)s")
    drafts = [
        (f"request:{patch.request.number}", text % {"number": patch.request.number})
        for patch in patches.order_by("-request__number")[:10]
    ]
    return [("head", _("as configured now")), ("running", _("as it runs there")), *drafts]


def _step_errors(forms: Any) -> list[tuple[str, str, str]]:
    if not forms.is_bound:
        return []
    return [
        (form[name].id_for_label, f"{number}. {form[name].label}", str(message))
        for number, form in enumerate(forms, 1)
        for name, found in form.errors.items()
        for message in found
        if name in form.fields
    ]


def _shown(request: HttpRequest, tried: Tried, tool: ToolConfig) -> dict[str, Any]:
    """Return what came of a run as the page shows it, personal data masked for most."""
    sees_all = request.user.has_perm(PERSONAL)
    label, badge = STATUS[tried.call.status]

    def text(value: Any) -> str:
        if value is None:
            return ""
        shown = value if sees_all else import_string(settings.PERSONAL_DATA_MASK)(value)
        written = json.dumps(shown, ensure_ascii=False, indent=2)
        if len(written) > SHOWN_CHARACTERS:
            more = _("… %(count)s more characters") % {"count": len(written) - SHOWN_CHARACTERS}
            return f"{written[:SHOWN_CHARACTERS]}\n{more}"
        return written

    call = tried.call
    normalised = {"ok": call.ok, "result": call.result, "error": call.error}
    if call.metadata:
        normalised["metadata"] = dict(call.metadata)
    return {
        "status": label,
        "badge": badge,
        "mode": tried.mode,
        "milliseconds": tried.milliseconds,
        "error": call.error if sees_all else import_string(settings.PERSONAL_DATA_MASK)(call.error),
        "request": text(tried.request),
        "raw": text(tried.raw if tried.raw is not None else tried.answer),
        "normalised": text(normalised),
        "events": list(call.events),
        "cache": tool.cache,
        "is_masked": not sees_all,
    }
