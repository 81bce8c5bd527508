"""Admin pages of calls from outside: who called what, when, and how it ended. Nothing is changed here."""

import json
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from apps.releases.pages.config_admin import ConfigAdmin
from apps.tools.invocation_models import ToolInvocation
from apps.tools.invoking.selectors import answer_of, invocations_recent

PAGE = 50
BADGES = {"ok": "ok", "error": "error", "unknown": "error", "denied": "warn", "running": "warn"}
# Who may see what tools were asked and what they said, personal data masked.
TRACE = "conversations.trace"


class InvocationPages(ConfigAdmin):
    """A list with pages, and one call with what happened to it."""

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
        found = invocations_recent(status=status, search=search)
        page = Paginator(found, PAGE).get_page(request.GET.get("p"))
        context = {
            "rows": [{"call": call, "badge": BADGES[call.status]} for call in page.object_list],
            "page": page,
            "statuses": ToolInvocation.Status.choices,
            "status": status,
            "search": search,
        }
        return self.page(request, "tools/invocations.html", _("Tool calls from outside"), context)

    def _changeform_view(
        self, request: HttpRequest, object_id: str | None, form_url: str, extra_context: Any
    ) -> HttpResponse:
        if object_id is None:
            raise PermissionDenied
        call: ToolInvocation = self.row_or_404(request, object_id)
        sees = request.user.has_perm(TRACE)
        context = {
            "call": call,
            "badge": BADGES[call.status],
            "events": json.loads(call.events),
            "sees_values": sees,
            "arguments": _shown(json.loads(call.arguments)) if sees else "",
            "answer": _shown(answer_of(call)) if sees else "",
            "release_url": reverse("admin:releases_release_change", args=[call.release_id]),
        }
        return self.page(request, "tools/invocation.html", call.tool, context)


def _shown(value: Any) -> str:
    masked = import_string(settings.PERSONAL_DATA_MASK)(value)
    return json.dumps(masked, ensure_ascii=False, indent=2) if masked else ""
