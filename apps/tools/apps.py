"""Registers the app."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ToolsConfig(AppConfig):
    name = "apps.tools"
    label = "tools"
    verbose_name = _("Tools")

    def ready(self) -> None:
        from apps.runtime.config import register_kind
        from apps.tools import config

        register_kind(config.ParameterMappingConfig)
        register_kind(config.ToolConfig)
        register_kind(config.ToolServerConfig)
        register_kind(config.WorkflowConfig)
