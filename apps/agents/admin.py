"""Admin of agents, prompts, model profiles and memory policies."""

from django.contrib import admin

from apps.agents.models import Agent, MemoryPolicy, ModelProfile, Prompt
from apps.releases.kind_admin import KindAdmin


@admin.register(Agent)
class AgentAdmin(KindAdmin):
    icon = "smart_toy"


@admin.register(Prompt)
class PromptAdmin(KindAdmin):
    icon = "description"


@admin.register(ModelProfile)
class ModelProfileAdmin(KindAdmin):
    icon = "memory"


@admin.register(MemoryPolicy)
class MemoryPolicyAdmin(KindAdmin):
    icon = "history"
