"""Kinds of this app; their rows are configuration items. Its tables are in ``approval_models``."""

from django.utils.translation import gettext_lazy as _

from apps.governance.config import RailPolicyConfig
from apps.releases.models import ConfigItem


class RailPolicy(ConfigItem):
    config_class = RailPolicyConfig

    class Meta:
        proxy = True
        verbose_name = _(RailPolicyConfig.label)
        verbose_name_plural = _(RailPolicyConfig.label_plural)


# Django looks for models here.
from apps.governance import approval_models as approval_models  # noqa: E402
