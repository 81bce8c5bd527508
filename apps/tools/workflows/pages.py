"""Admin pages of workflow runs: what was carried out, node by node. Nothing is changed here."""

from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from apps.releases.pages.config_admin import ConfigAdmin
from apps.tools.workflow_models import WorkflowRun
from apps.tools.workflows.selectors import run_seconds, run_shown, runs_recent

PAGE = 50
BADGES = {
    "RUNNING": "warn",
    "PAUSED": "warn",
    "COMPLETED": "good",
    "FAILED": "error",
    "COMPENSATED": "warn",
    "UNKNOWN": "error",
    "ok": "good",
    "answered": "good",
    "begun": "warn",
    "failed": "error",
    "refused": "error",
    "unknown": "error",
    "abandoned": "warn",
}
# Who may see what tools were asked and what they said, personal data masked.
TRACE = "conversations.trace"


class WorkflowRunPages(ConfigAdmin):
    """A list with pages, and a run with its nodes."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def changelist_view(  # type: ignore[override]  # a page of our own
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        status, search = request.GET.get("status", ""), request.GET.get("q", "").strip()
        found = runs_recent(status=status, search=search)
        page = Paginator(found, PAGE).get_page(request.GET.get("p"))
        context = {
            "rows": [_listed(run) for run in page.object_list],
            "page": page,
            "statuses": WorkflowRun.Status.choices,
            "status": status,
            "search": search,
        }
        return self.page(request, "tools/workflow_runs.html", _("Workflow runs"), context)

    def _changeform_view(
        self, request: HttpRequest, object_id: str | None, form_url: str, extra_context: Any
    ) -> HttpResponse:
        if object_id is None:
            raise PermissionDenied
        run: WorkflowRun = self.row_or_404(request, object_id)
        mask = import_string(settings.PERSONAL_DATA_MASK)
        shown = run_shown(run, mask)
        context = {
            "shown": shown,
            "run": run,
            "badge": BADGES[run.status],
            "seconds": run_seconds(run),
            "nodes": [(node, BADGES[node.row.status]) for node in shown.nodes],
            "sees_values": request.user.has_perm(TRACE),
            "workflow_url": reverse("admin:tools_workflow_by_slug", args=[run.workflow]),
            "release_url": reverse("admin:releases_release_change", args=[run.release_id]),
        }
        return self.page(request, "tools/workflow_run.html", run.workflow, context)


def _listed(run: WorkflowRun) -> dict[str, Any]:
    return {"run": run, "badge": BADGES[run.status], "seconds": run_seconds(run)}
