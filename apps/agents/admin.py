"""Admin of agents, prompts, model profiles and memory policies."""

import json
from typing import Any

from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.decorators import display
from unfold.views import ChangeList

from apps.agents.models import Agent, MemoryPolicy, ModelProfile, Prompt
from apps.releases.change_models import ChangePatch, ChangeRequest
from apps.releases.changes.states import OPEN
from apps.releases.environments.live import (
    OLDER,
    SAME,
    UNREADABLE,
    ItemLive,
    item_live,
    releases_running,
)
from apps.releases.models import ConfigItem
from apps.releases.pages.kind_admin import KindAdmin

STATUS_LABELS = {
    "active": gettext_lazy("active"),
    "deprecated": gettext_lazy("deprecated"),
    "retired": gettext_lazy("retired"),
}
LIVE_LABELS = {OLDER: gettext_lazy("older"), UNREADABLE: gettext_lazy("not readable")}


class AgentList(ChangeList):
    """The list of agents: what runs is read once for all of its rows."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        running = releases_running()
        for item in self.result_list:
            item.live_in = item_live(item, running)


@admin.register(Agent)
class AgentAdmin(KindAdmin):
    icon = "smart_toy"
    list_display = (  # type: ignore[assignment]
        "slug", "name", "life", "live", "changing", *KindAdmin.list_display[2:],
    )  # fmt: skip

    def get_changelist(  # type: ignore[override]  # Unfold's annotation says an instance
        self, request: HttpRequest, **kwargs: Any
    ) -> type[AgentList]:
        return AgentList

    def get_queryset(self, request: HttpRequest) -> QuerySet[ConfigItem]:
        found: QuerySet[ConfigItem] = super().get_queryset(request)
        newest = ChangePatch.objects.filter(
            kind="agent", slug=OuterRef("slug"), request__status__in=OPEN
        ).order_by("-request__number")
        return found.annotate(open_status=Subquery(newest.values("request__status")[:1]))

    @display(description=gettext_lazy("live release"))  # type: ignore[arg-type]
    def live(self, item: Any) -> str:
        """Which environments run the agent: as its head is now, or with an older content."""
        return ", ".join(map(_live_text, item.live_in)) or "–"

    @display(
        description=gettext_lazy("being changed"),  # type: ignore[arg-type]
        label={"draft": "info", "in_review": "warning", "approved": "success"},
    )
    def changing(self, item: Any) -> tuple[str, Any]:
        """The state of the newest open request that changes the agent; nothing for none."""
        status = item.open_status or ""
        return status, ChangeRequest.Status(status).label if status else "–"

    @display(
        description=gettext_lazy("status"),  # type: ignore[arg-type]
        label={"deprecated": "warning", "retired": "danger"},
    )
    def life(self, item: ConfigItem) -> tuple[str, Any]:
        head = json.loads(item.head.content) if item.head else {}
        status = head.get("lifecycle", {}).get("status", "active")
        return status, STATUS_LABELS.get(status, status)

    def more_tabs(self, item: ConfigItem) -> list[dict[str, Any]]:
        page = reverse("admin:governance_readiness", args=[item.slug])
        return [{"name": "readiness", "title": _("Readiness"), "url": page}]


def _live_text(found: ItemLive) -> str:
    where = found.environment
    if found.is_canary:
        where = _("%(environment)s (canary)") % {"environment": where}
    return where if found.state == SAME else f"{where}: {LIVE_LABELS[found.state]}"


@admin.register(Prompt)
class PromptAdmin(KindAdmin):
    icon = "description"


@admin.register(ModelProfile)
class ModelProfileAdmin(KindAdmin):
    icon = "memory"


@admin.register(MemoryPolicy)
class MemoryPolicyAdmin(KindAdmin):
    icon = "history"
