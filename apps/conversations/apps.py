"""Registers the app."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ConversationsConfig(AppConfig):
    name = "apps.conversations"
    label = "conversations"
    verbose_name = _("Conversations")

    def ready(self) -> None:
        from apps.conversations import config
        from apps.runtime.config import register_kind

        register_kind(config.IdentityKeyConfig)
