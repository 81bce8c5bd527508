"""Kinds of this app; their rows are configuration items."""

from django.utils.translation import gettext_lazy as _

from apps.releases.models import ConfigItem
from apps.routing.config import IntentConfig, RoutingPolicyConfig, StatePolicyConfig

# ``X as X``: Django finds an app's models here.
from apps.routing.vector_models import ExampleVector as ExampleVector
from apps.routing.vector_models import VectorWork as VectorWork


class Intent(ConfigItem):
    config_class = IntentConfig

    class Meta:
        proxy = True
        verbose_name = _(IntentConfig.label)
        verbose_name_plural = _(IntentConfig.label_plural)


class RoutingPolicy(ConfigItem):
    config_class = RoutingPolicyConfig

    class Meta:
        proxy = True
        verbose_name = _(RoutingPolicyConfig.label)
        verbose_name_plural = _(RoutingPolicyConfig.label_plural)


class StatePolicy(ConfigItem):
    config_class = StatePolicyConfig

    class Meta:
        proxy = True
        verbose_name = _(StatePolicyConfig.label)
        verbose_name_plural = _(StatePolicyConfig.label_plural)
