"""Admin of agents, prompts, model profiles and memory policies."""

from typing import Any

from django.contrib import admin
from django.urls import reverse
from django.utils.translation import gettext as _

from apps.agents.models import Agent, MemoryPolicy, ModelProfile, Prompt
from apps.releases.kind_admin import KindAdmin
from apps.releases.models import ConfigItem


@admin.register(Agent)
class AgentAdmin(KindAdmin):
    icon = "smart_toy"

    def more_tabs(self, item: ConfigItem) -> list[dict[str, Any]]:
        page = reverse("admin:governance_readiness", args=[item.slug])
        return [{"name": "readiness", "title": _("Readiness"), "url": page}]


@admin.register(Prompt)
class PromptAdmin(KindAdmin):
    icon = "description"


@admin.register(ModelProfile)
class ModelProfileAdmin(KindAdmin):
    icon = "memory"


@admin.register(MemoryPolicy)
class MemoryPolicyAdmin(KindAdmin):
    icon = "history"
