"""What ``manage.py check`` refuses: a tenant's rows unguarded, the demo's open door in production."""

from collections.abc import Sequence
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import connections
from django.db.utils import DatabaseError

from apps.tenants.models import Tenant
from apps.tenants.owned import TenantManager, TenantOwned
from apps.tenants.row_security import APP_ROLE


@register(Tags.models)
def owned_models_are_scoped(**kwargs: Any) -> list[CheckMessage]:
    """Every manager of a tenant-owned model keeps to the current tenant."""
    problems: list[CheckMessage] = []
    for model in apps.get_models():
        if not issubclass(model, TenantOwned):
            continue
        managers = [*model._meta.managers, model._base_manager]
        loose = sorted({m.name or "_base_manager" for m in managers if not _scoped(m)})
        if loose:
            problems.append(
                Error(
                    f"{model._meta.label}: {', '.join(loose)} shows every tenant's rows.",
                    hint="Derive the manager from TenantManager and the Meta from TenantOwned.Meta.",
                    obj=model,
                    id="tenants.E001",
                )
            )
    return problems


@register(Tags.security, deploy=True)
def demo_is_off(**kwargs: Any) -> list[CheckMessage]:
    """DEMO=1 lets local callers in without a key; DEBUG shows settings and source."""
    problems: list[CheckMessage] = []
    if settings.DEMO:
        problems.append(Error("DEMO=1 is for a demo on one machine.", id="tenants.E002"))
    if settings.DEMO and settings.DEBUG:
        problems.append(Error("DEMO=1 and DEBUG=1 exclude each other.", id="tenants.E003"))
    if not settings.DEMO and not settings.HTTPS:
        problems.append(
            Warning("HTTPS=0: keys and cookies travel readable by others.", id="tenants.W004")
        )
    return problems


@register(Tags.security, deploy=True)
def no_tenant_is_keyless(**kwargs: Any) -> list[CheckMessage]:
    """A tenant that answers without a key belongs in a demo."""
    if settings.DEMO:
        return []
    try:
        open_ones = sorted(Tenant.objects.filter(demo_keyless=True).values_list("slug", flat=True))
    except DatabaseError:
        # Before the first migrate there is no tenant either.
        return []
    return [
        Error(
            f"The tenant {slug} accepts calls without a key.",
            hint="Switch “keyless demo calls” off in the admin, or remove the tenant.",
            id="tenants.E005",
        )
        for slug in open_ones
    ]


@register(Tags.database, deploy=True)
def application_role_is_bound(
    databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """On PostgreSQL the application connects as a role that row-level security holds for.

    Runs with ``check --deploy --database default``.
    """
    problems: list[CheckMessage] = []
    for alias in databases or []:
        connection = connections[alias]
        if connection.vendor != "postgresql":
            continue
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT current_user, rolsuper OR rolbypassrls, EXISTS (SELECT FROM pg_class"
                " WHERE relkind = 'r' AND relowner = pg_roles.oid)"
                " FROM pg_roles WHERE rolname = current_user"
            )
            user, passes_by, owns = cursor.fetchone() or ("", True, True)
        if passes_by or owns:
            problems.append(
                Error(
                    f"The database role {user} is not bound by row-level security.",
                    hint=f"Connect as {APP_ROLE}; see manage.py database_roles.",
                    id="tenants.E006",
                )
            )
    return problems


def _scoped(manager: Any) -> bool:
    return isinstance(manager, TenantManager)
