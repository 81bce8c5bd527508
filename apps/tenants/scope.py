"""The current tenant. A query without one raises; ``unscoped`` is the only other way.

May be imported by every app above ``runtime``.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.db import connection, transaction
from django_scopes import scope, scopes_disabled
from django_scopes.state import get_scope as _get_scope

if TYPE_CHECKING:
    from apps.tenants.models import Tenant

P = ParamSpec("P")
T = TypeVar("T")

# Which tenant the open transaction of a connection carries, kept on the connection itself.
_CARRIED = "agentops_tenant_id"


class NoTenant(RuntimeError):
    """A tenant-owned row was asked for outside a tenant scope."""


class ForeignTenant(RuntimeError):
    """A row of one tenant was written inside the scope of another."""


@contextmanager
def tenant_scope(tenant: "Tenant | int") -> Iterator[None]:
    """Make ``tenant`` (or its primary key) current in this context (thread or task).

    Enough for keys and names. Rows need ``tenant_transaction``: PostgreSQL shows none without it.
    """
    with scope(tenant=_id_of(tenant)):
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
    return not _state().get("_enabled", True)


def has_tenant() -> bool:
    """Return whether a tenant is current."""
    return _state().get("tenant") is not None


def current_tenant_id() -> int:
    """Return the primary key of the current tenant; raise ``NoTenant`` when there is none."""
    tenant_id = _state().get("tenant")
    if tenant_id is None:
        raise NoTenant("open tenant_scope(tenant) before touching a tenant's rows")
    return int(tenant_id)


@contextmanager
def tenant_transaction(tenant: "Tenant | int | None" = None) -> Iterator[None]:
    """Run one database transaction as ``tenant`` (default: the current one).

    On PostgreSQL the transaction carries ``app.tenant`` for row-level security. ``SET LOCAL`` in
    autocommit does nothing, which is why every scoped read and write runs in here. Nested calls
    are savepoints; one for another tenant gives the setting back when it ends.
    """
    tenant_id = current_tenant_id() if tenant is None else _id_of(tenant)
    before: int | None = getattr(connection, _CARRIED, None)
    try:
        with tenant_scope(tenant_id), transaction.atomic():
            if before != tenant_id:
                _carry(tenant_id)
            yield
    finally:
        if before != tenant_id:
            setattr(connection, _CARRIED, before)
            # Inside an outer transaction the setting would outlive this block.
            if connection.in_atomic_block and not connection.needs_rollback:
                _carry(before)


async def in_tenant(
    tenant: "Tenant | int | None", function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run the sync ``function`` in a thread, in one ``tenant_transaction``, and give the
    connection back, so that an async view that waits afterwards holds none."""

    def run() -> T:
        try:
            with tenant_transaction(tenant):
                return function(*args, **kwargs)
        finally:
            release_connection()

    return await sync_to_async(run)()


def release_connection() -> None:
    """Return this thread's pooled PostgreSQL connection, unless a transaction is open on it."""
    if connection.vendor == "postgresql" and not connection.in_atomic_block:
        connection.close()


def _carry(tenant_id: int | None) -> None:
    setattr(connection, _CARRIED, tenant_id)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('app.tenant', %s, true)", [str(tenant_id or "")])


def _state() -> dict[str, Any]:
    state: dict[str, Any] = _get_scope()
    return state


def _id_of(tenant: "Tenant | int") -> int:
    return tenant if isinstance(tenant, int) else int(tenant.pk)
