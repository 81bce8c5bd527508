"""Kinds of this app; their rows are configuration items."""

from django.utils.translation import gettext_lazy as _

from apps.evals.config import JudgePolicyConfig
from apps.releases.models import ConfigItem


class JudgePolicy(ConfigItem):
    config_class = JudgePolicyConfig

    class Meta:
        proxy = True
        verbose_name = _(JudgePolicyConfig.label)
        verbose_name_plural = _(JudgePolicyConfig.label_plural)
