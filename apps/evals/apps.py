"""Registers the app."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class EvalsConfig(AppConfig):
    name = "apps.evals"
    label = "evals"
    verbose_name = _("Evals")

    def ready(self) -> None:
        from apps.evals import config
        from apps.runtime.config import register_kind

        register_kind(config.JudgePolicyConfig)
