"""Registers the app."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class GovernanceConfig(AppConfig):
    name = "apps.governance"
    label = "governance"
    verbose_name = _("Governance")

    def ready(self) -> None:
        from apps.governance import config
        from apps.runtime.config import register_kind

        register_kind(config.RailPolicyConfig)
