"""Registers the app."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class TenantsConfig(AppConfig):
    name = "apps.tenants"
    label = "tenants"
    verbose_name = _("Tenants")

    def ready(self) -> None:
        from apps.tenants import checks as checks
        from apps.tenants import row_security

        # Sent per app after all migrations of all apps ran; once is enough.
        post_migrate.connect(row_security.apply_after_migrate, sender=self)
