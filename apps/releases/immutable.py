"""Rows that are written once. PostgreSQL's privileges repeat the rule below the ORM."""

from collections.abc import Iterable
from typing import Any, NoReturn, TypeVar

from django.db import models

from apps.tenants.owned import TenantManager, TenantOwned, TenantQuerySet

ModelT = TypeVar("ModelT", bound=models.Model)


class Immutable(RuntimeError):
    """A row that is written once was to be changed or deleted."""


def _refuse(model: type[models.Model], verb: str) -> NoReturn:
    raise Immutable(f"{model.__name__} rows are written once; {verb} is not possible")


class AppendOnlyQuerySet(TenantQuerySet[ModelT]):
    """A queryset that reads and inserts, and nothing else."""

    def update(self, **kwargs: Any) -> NoReturn:
        _refuse(self.model, "update")

    def delete(self) -> NoReturn:
        _refuse(self.model, "delete")

    def bulk_update(self, *args: Any, **kwargs: Any) -> NoReturn:
        _refuse(self.model, "update")

    def bulk_create(self, objs: Iterable[ModelT], *args: Any, **kwargs: Any) -> list[ModelT]:
        if kwargs.get("update_conflicts"):
            _refuse(self.model, "update")
        return super().bulk_create(objs, *args, **kwargs)


class AppendOnlyManager(TenantManager.from_queryset(AppendOnlyQuerySet)):  # type: ignore[misc]
    """Manager of append-only rows of the current tenant."""


class AppendOnly(TenantOwned):
    """A tenant's row that is written once: saving it again or deleting it raises ``Immutable``."""

    objects = AppendOnlyManager()

    class Meta(TenantOwned.Meta):
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            _refuse(type(self), "update")
        # Never an UPDATE, also when the primary key is already taken.
        super().save(force_insert=True, using=kwargs.get("using"))

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        _refuse(type(self), "delete")
