"""Base of every tenant-owned table."""

from collections.abc import Collection, Iterable
from functools import cache, lru_cache
from typing import Any, ClassVar, TypeVar

from django.db import models
from django.db.models.sql.query import Query

from apps.tenants.scope import ForeignTenant, current_tenant_id, is_unscoped

ModelT = TypeVar("ModelT", bound=models.Model)
TENANT_FIELDS = frozenset({"tenant", "tenant_id"})


class AppendOnly(RuntimeError):
    """A row that is only ever added was changed or deleted."""


class TenantQuerySet(models.QuerySet[ModelT]):
    """A queryset that reads and writes only rows of the current tenant.

    Reads are filtered by ``TenantManager``; what is closed here are the ways past that filter.
    """

    def bulk_create(
        self,
        objs: Iterable[ModelT],
        batch_size: int | None = None,
        ignore_conflicts: bool = False,
        update_conflicts: bool = False,
        update_fields: Collection[str] | None = None,
        unique_fields: Collection[str] | None = None,
    ) -> list[ModelT]:
        if update_conflicts:
            refuse_append_only(self.model)
            # The row that conflicts may be another tenant's.
            if not is_unscoped() and not TENANT_FIELDS.intersection(unique_fields or ()):
                raise ForeignTenant("update_conflicts needs the tenant in unique_fields")
        rows = list(objs)
        for row in rows:
            claim_tenant(row)
        return super().bulk_create(
            rows, batch_size, ignore_conflicts, update_conflicts, update_fields, unique_fields
        )

    def bulk_update(
        self, objs: Iterable[ModelT], fields: Iterable[str], batch_size: int | None = None
    ) -> int:
        # Django's own refusal would come inside a transaction, and spoil it.
        refuse_append_only(self.model)
        rows = list(objs)
        for row in rows:
            claim_tenant(row)
        return super().bulk_update(rows, fields, batch_size)

    def update(self, **kwargs: Any) -> int:
        refuse_append_only(self.model)
        if not is_unscoped():
            if TENANT_FIELDS.intersection(kwargs):
                raise ForeignTenant("a row never moves to another tenant")
            for value in kwargs.values():
                claim_related(value)
        return super().update(**kwargs)

    def delete(self) -> tuple[int, dict[str, int]]:
        refuse_append_only(self.model)
        return super().delete()

    def raw(self, *args: Any, **kwargs: Any) -> Any:
        if not is_unscoped():
            raise ForeignTenant("raw SQL passes the tenant filter by: use unscoped()")
        return super().raw(*args, **kwargs)


class TenantManager(models.Manager.from_queryset(TenantQuerySet)):  # type: ignore[misc]
    """Returns only rows of the current tenant; raises ``NoTenant`` when there is none."""

    def get_queryset(self) -> TenantQuerySet[Any]:
        queryset: TenantQuerySet[Any] = super().get_queryset()
        if is_unscoped():
            return queryset
        # The filter is built once per model and tenant: it would be a twentieth of a turn's work.
        queryset.query = _scoped_query(self.model, current_tenant_id()).chain()
        return queryset


@lru_cache(maxsize=4096)
def _scoped_query(model: type[models.Model], tenant_id: int) -> Query:
    query = Query(model)
    query.add_q(models.Q(tenant_id=tenant_id))
    return query


def claim_tenant(obj: Any) -> None:
    """Give ``obj`` the current tenant, or raise ``ForeignTenant`` when it has another.

    A related row that is already loaded must be the same tenant's: a foreign key to another
    tenant's row passes the database's own check.
    """
    if is_unscoped():
        return
    current = current_tenant_id()
    if obj.tenant_id is None:
        obj.tenant_id = current
    elif obj.tenant_id != current:
        raise ForeignTenant(f"{type(obj).__name__} of another tenant")
    model: type[models.Model] = type(obj)
    for name in _owned_relations(model):
        claim_related(obj._state.fields_cache.get(name))


def claim_related(value: Any) -> None:
    """Raise ``ForeignTenant`` when ``value`` is a row of another tenant than the current one."""
    if isinstance(value, TenantOwned) and value.tenant_id != current_tenant_id():
        raise ForeignTenant(f"{type(value).__name__} of another tenant")


def refuse_append_only(model: type[models.Model]) -> None:
    """Raise ``AppendOnly`` for a model whose rows are never changed or deleted."""
    if getattr(model, "append_only", False):
        raise AppendOnly(f"{model.__name__} rows are never changed or deleted")


@cache
def _owned_relations(model: type[models.Model]) -> tuple[str, ...]:
    return tuple(
        field.name
        for field in model._meta.concrete_fields
        if isinstance(field, models.ForeignKey)
        and isinstance(field.related_model, type)
        and issubclass(field.related_model, TenantOwned)
    )


class TenantOwned(models.Model):
    """A row that belongs to exactly one tenant.

    ``append_only``: rows are added, never changed or deleted; the application's database role has
    neither privilege.
    """

    append_only: ClassVar[bool] = False

    # No index of its own: with one, a database without statistics reads all of a tenant's rows to
    # find one. Every table has a key or an index that begins with what it is asked for.
    tenant = models.ForeignKey(
        "tenants.Tenant", on_delete=models.PROTECT, editable=False, db_index=False
    )

    objects = TenantManager()

    class Meta:
        abstract = True
        base_manager_name = "objects"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.append_only:
            if not self._state.adding:
                refuse_append_only(type(self))
            # A new object with a primary key that is taken would otherwise be an UPDATE.
            kwargs["force_insert"] = True
        claim_tenant(self)
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        refuse_append_only(type(self))
        claim_tenant(self)
        return super().delete(*args, **kwargs)
