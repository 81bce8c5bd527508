"""A kind is one frozen pydantic class and one proxy of ``ConfigItem``::

    class Agent(ConfigItem):
        config_class = AgentConfig

        class Meta:
            proxy = True

The proxy gives the kind its own admin page, permissions and content type, and no table.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.core.checks import Error

from apps.runtime.config import KINDS
from apps.tenants.owned import TenantManager, TenantQuerySet

if TYPE_CHECKING:
    from apps.releases.models import ConfigItem


class KindManager(TenantManager):
    """Items of the current tenant; of a proxy, only those of its kind."""

    def get_queryset(self) -> TenantQuerySet[Any]:
        queryset: TenantQuerySet[Any] = super().get_queryset()
        config_class = self.model.config_class
        return queryset if config_class is None else queryset.filter(kind=config_class.kind)


def proxies() -> "Iterator[type[ConfigItem]]":
    """Yield every proxy of ``ConfigItem`` that names a ``config_class``."""
    from apps.releases.models import ConfigItem

    for model in apps.get_models():
        if issubclass(model, ConfigItem) and model.config_class is not None:
            yield model


def proxy_of(kind: str) -> "type[ConfigItem]":
    """Return the proxy of ``kind``; raise ``LookupError`` when there is none."""
    for model in proxies():
        if model.config_class is not None and model.config_class.kind == kind:
            return model
    raise LookupError(f"no model stands for the kind {kind!r}")


def kinds_check(app_configs: Any = None, **kwargs: Any) -> list[Error]:
    """System check: every registered kind has exactly one proxy, and every proxy a registered kind."""
    found: dict[str, list[type[ConfigItem]]] = {kind: [] for kind in KINDS}
    errors = []
    for model in proxies():
        config_class = model.config_class
        if config_class is None or KINDS.get(config_class.kind) is not config_class:
            errors.append(
                Error(
                    f"{model.__name__} names a config class that no app registers.",
                    hint="Call register_kind in the AppConfig.ready() of its app.",
                    obj=model,
                    id="releases.E001",
                )
            )
        else:
            found[config_class.kind].append(model)
    for kind, models in found.items():
        if len(models) != 1:
            names = ", ".join(model._meta.label for model in models) or "none"
            errors.append(
                Error(
                    f"The kind {kind!r} needs exactly one proxy of ConfigItem; found: {names}.",
                    hint="See apps/releases/kinds.py for the five lines of a proxy.",
                    id="releases.E002",
                )
            )
    return errors
