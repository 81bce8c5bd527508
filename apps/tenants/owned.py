"""Base of every tenant-owned table."""

from collections.abc import Iterable
from typing import Any, TypeVar

from django.db import models

from apps.tenants.scope import ForeignTenant, current_tenant_id, is_unscoped

ModelT = TypeVar("ModelT", bound=models.Model)


class TenantQuerySet(models.QuerySet[ModelT]):
    """A queryset that writes only rows of the current tenant."""

    def create(self, **kwargs: Any) -> ModelT:
        obj = self.model(**kwargs)
        self._for_write = True
        obj.save(force_insert=True, using=self.db)
        return obj

    def bulk_create(self, objs: Iterable[ModelT], *args: Any, **kwargs: Any) -> list[ModelT]:
        objs = list(objs)
        for obj in objs:
            claim_tenant(obj)
        return super().bulk_create(objs, *args, **kwargs)


class TenantManager(models.Manager.from_queryset(TenantQuerySet)):  # type: ignore[misc]
    """Returns only rows of the current tenant; raises ``NoTenant`` when there is none."""

    def get_queryset(self) -> TenantQuerySet[Any]:
        queryset: TenantQuerySet[Any] = super().get_queryset()
        if is_unscoped():
            return queryset
        return queryset.filter(tenant_id=current_tenant_id())


def claim_tenant(obj: Any) -> None:
    """Give ``obj`` the current tenant, or raise ``ForeignTenant`` when it has another."""
    if is_unscoped():
        return
    current = current_tenant_id()
    if obj.tenant_id is None:
        obj.tenant_id = current
    elif obj.tenant_id != current:
        raise ForeignTenant(f"{type(obj).__name__} of another tenant")


class TenantOwned(models.Model):
    """A row that belongs to exactly one tenant."""

    tenant = models.ForeignKey("tenants.Tenant", on_delete=models.PROTECT, editable=False)

    objects = TenantManager()

    class Meta:
        abstract = True
        base_manager_name = "objects"

    def save(self, *args: Any, **kwargs: Any) -> None:
        claim_tenant(self)
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        claim_tenant(self)
        return super().delete(*args, **kwargs)
