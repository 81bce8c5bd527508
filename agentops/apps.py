"""The composition root is an app too: it holds operators' commands."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AgentopsConfig(AppConfig):
    name = "agentops"
    verbose_name = _("AgentOps")
