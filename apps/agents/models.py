"""Kinds of this app; their rows are configuration items."""

from django.utils.translation import gettext_lazy as _

from apps.agents.config import AgentConfig, MemoryPolicyConfig, ModelProfileConfig, PromptConfig
from apps.releases.models import ConfigItem


class Agent(ConfigItem):
    config_class = AgentConfig

    class Meta:
        proxy = True
        verbose_name = _(AgentConfig.label)
        verbose_name_plural = _(AgentConfig.label_plural)


class MemoryPolicy(ConfigItem):
    config_class = MemoryPolicyConfig

    class Meta:
        proxy = True
        verbose_name = _(MemoryPolicyConfig.label)
        verbose_name_plural = _(MemoryPolicyConfig.label_plural)


class ModelProfile(ConfigItem):
    config_class = ModelProfileConfig

    class Meta:
        proxy = True
        verbose_name = _(ModelProfileConfig.label)
        verbose_name_plural = _(ModelProfileConfig.label_plural)


class Prompt(ConfigItem):
    config_class = PromptConfig

    class Meta:
        proxy = True
        verbose_name = _(PromptConfig.label)
        verbose_name_plural = _(PromptConfig.label_plural)
