"""The current tenant. A query without one raises; ``unscoped`` is the only other way.

May be imported by every app above ``runtime``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.db import connection, transaction
from django_scopes import scope, scopes_disabled
from django_scopes.state import get_scope

if TYPE_CHECKING:
    from apps.tenants.models import Tenant


class NoTenant(RuntimeError):
    """A tenant-owned row was asked for outside a tenant scope."""


class ForeignTenant(RuntimeError):
    """A row of one tenant was written inside the scope of another."""


@contextmanager
def tenant_scope(tenant: "Tenant | int") -> Iterator[None]:
    """Make ``tenant`` (or its primary key) current in this context (thread or task)."""
    with scope(tenant=tenant if isinstance(tenant, int) else tenant.pk):
        yield


@contextmanager
def unscoped() -> Iterator[None]:
    """Switch the scope off. For migrations, tests and work that is not a tenant's.

    Row-level security still holds on PostgreSQL: nothing of any tenant is visible there.
    """
    with scopes_disabled():
        yield


def is_unscoped() -> bool:
    """Return whether ``unscoped`` is in force."""
    return not get_scope().get("_enabled", True)


def current_tenant_id() -> int:
    """Return the primary key of the current tenant; raise ``NoTenant`` when there is none."""
    tenant_id = get_scope().get("tenant")
    if tenant_id is None:
        raise NoTenant("open tenant_scope(tenant) before touching a tenant's rows")
    return int(tenant_id)


@contextmanager
def tenant_transaction(tenant: "Tenant | int | None" = None) -> Iterator[None]:
    """Run one database transaction as ``tenant`` (default: the current one).

    On PostgreSQL the transaction carries ``app.tenant`` for row-level security. ``SET LOCAL`` in
    autocommit does nothing, which is why every scoped read and write runs in here.
    """
    tenant_id = (
        current_tenant_id() if tenant is None else tenant if isinstance(tenant, int) else tenant.pk
    )
    with tenant_scope(tenant_id), transaction.atomic():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('app.tenant', %s, true)", [str(tenant_id)])
        yield
