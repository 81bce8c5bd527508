"""Registers the app."""

from django.apps import AppConfig
from django.core import checks
from django.utils.translation import gettext_lazy as _


class ReleasesConfig(AppConfig):
    name = "apps.releases"
    label = "releases"
    verbose_name = _("Releases")

    def ready(self) -> None:
        from apps.releases.kinds import kinds_check

        checks.register(kinds_check)
