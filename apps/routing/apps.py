"""Registers the app."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class RoutingConfig(AppConfig):
    name = "apps.routing"
    label = "routing"
    verbose_name = _("Routing")

    def ready(self) -> None:
        from apps.routing import config
        from apps.runtime.config import register_kind

        register_kind(config.IntentConfig)
        register_kind(config.RoutingPolicyConfig)
        register_kind(config.StatePolicyConfig)
