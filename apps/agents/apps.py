"""Registers the app."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AgentsConfig(AppConfig):
    name = "apps.agents"
    label = "agents"
    verbose_name = _("Agents")

    def ready(self) -> None:
        from apps.agents import config
        from apps.agents.code import checks as checks
        from apps.runtime.config import register_kind

        register_kind(config.AgentConfig)
        register_kind(config.MemoryPolicyConfig)
        register_kind(config.ModelProfileConfig)
        register_kind(config.PromptConfig)
