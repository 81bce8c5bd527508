"""Row-level security and privileges on PostgreSQL, for every tenant-owned table of every app.

Applied after every ``migrate`` by walking the models, so a new one cannot be forgotten. Two roles:
the owner of the tables runs migrations; the application's role owns nothing and is bound by the
policies, as is the owner itself (FORCE).
"""

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model

from apps.runtime.canonical import sha256_text
from apps.tenants.owned import TenantOwned

OWNER_ROLE = "agentops_owner"
APP_ROLE = "agentops_app"
FUNCTIONS = (
    "agentops_key_find(text)",
    "agentops_key_caller(text)",
    "agentops_key_sender(text)",
    "agentops_key_used(uuid)",
    "agentops_memberships_of(bigint)",
)

POLICY = "tenant_rows"
# "" is what the setting falls back to after a transaction that had set it.
SAME_TENANT = "tenant_id = NULLIF(current_setting('app.tenant', true), '')::bigint"
# What the SECURITY DEFINER functions of migrations 0002, 0004 and 0005 may see, and only while they run.
LOOKUP_POLICY = "lookup_rows"
LOOKUP = "current_setting('app.lookup', true) = 'on'"
LOOKED_UP = {"tenants_apikey": ("SELECT", "UPDATE"), "tenants_membership": ("SELECT",)}

# Written by migrations only; the application reads them.
READ_ONLY = frozenset({"django_migrations", "django_content_type", "auth_permission"})
# A tenant is never deleted; what it owns would be left without one.
NEVER_DELETED = frozenset({"tenants_tenant"})


def owned_models() -> Iterator[type[TenantOwned]]:
    """Yield every model with a table of its own whose rows belong to a tenant."""
    for model in apps.get_models(include_auto_created=True):
        if issubclass(model, TenantOwned) and not model._meta.proxy and model._meta.managed:
            yield model


def apply_after_migrate(*, using: str, **kwargs: Any) -> None:
    """Receiver of ``post_migrate``: secure every table, when connected as the tables' owner."""
    connection = connections[using]
    if connection.vendor == "postgresql" and _owns_tables(connection):
        apply(connection)


def apply(connection: BaseDatabaseWrapper) -> None:
    """Put policies and privileges of every table as they should be. Repeatable.

    A table that is as it should be is not locked; one that is changed is so in one transaction,
    so that a running application never sees it without its policy or its privileges.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_user, EXISTS (SELECT FROM pg_roles WHERE rolname = %s)", [APP_ROLE]
        )
        owner, app_role_exists = cursor.fetchone() or ("", False)
        for model in owned_models():
            _secure(connection, model._meta.db_table, owner)
        if app_role_exists:
            with transaction.atomic(using=connection.alias):
                for statement in _grants(set(connection.introspection.table_names(cursor))):
                    cursor.execute(statement)


def _secure(connection: BaseDatabaseWrapper, table: str, owner: str) -> None:
    statements = list(_statements(table, owner))
    mark = sha256_text("\n".join(statements))
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relrowsecurity AND c.relforcerowsecurity"
            " AND obj_description(p.oid, 'pg_policy') = %s"
            " FROM pg_class c JOIN pg_policy p ON p.polrelid = c.oid AND p.polname = %s"
            " WHERE c.oid = to_regclass(%s)",
            [mark, POLICY, f'"{table}"'],
        )
        row = cursor.fetchone()
        if row and row[0]:
            return
        for statement in statements:
            cursor.execute(statement)
        # What the policies were made from: an unchanged mark means unchanged policies.
        cursor.execute(f"COMMENT ON POLICY {POLICY} ON \"{table}\" IS '{mark}'")


def _owns_tables(connection: BaseDatabaseWrapper) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_get_userbyid(relowner) = current_user FROM pg_class"
            " WHERE oid = to_regclass('tenants_tenant')"
        )
        row = cursor.fetchone()
    return bool(row and row[0])


def _statements(table: str, owner: str) -> Iterator[str]:
    yield f'ALTER TABLE "{table}" ENABLE ROW LEVEL SECURITY'
    yield f'ALTER TABLE "{table}" FORCE ROW LEVEL SECURITY'
    yield f'DROP POLICY IF EXISTS {POLICY} ON "{table}"'
    yield f'CREATE POLICY {POLICY} ON "{table}" USING ({SAME_TENANT}) WITH CHECK ({SAME_TENANT})'
    for command in LOOKED_UP.get(table, ()):
        name = f"{LOOKUP_POLICY}_{command.lower()}"
        yield f'DROP POLICY IF EXISTS {name} ON "{table}"'
        yield f'CREATE POLICY {name} ON "{table}" FOR {command} TO "{owner}" USING ({LOOKUP})'


def _grants(tables: set[str]) -> Iterator[str]:
    yield f"GRANT USAGE ON SCHEMA public TO {APP_ROLE}"
    yield f"GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {APP_ROLE}"
    for table in sorted(tables):
        yield f'REVOKE ALL ON "{table}" FROM {APP_ROLE}'
        yield f'GRANT {privileges(table)} ON "{table}" TO {APP_ROLE}'
    for function in FUNCTIONS:
        yield f"GRANT EXECUTE ON FUNCTION {function} TO {APP_ROLE}"


def privileges(table: str) -> str:
    """Return what the application's role may do with ``table``."""
    if table in READ_ONLY:
        return "SELECT"
    if table in _append_only_tables():
        return "SELECT, INSERT"
    if table in NEVER_DELETED:
        return "SELECT, INSERT, UPDATE"
    return "SELECT, INSERT, UPDATE, DELETE"


def _append_only_tables() -> set[str]:
    models: list[type[Model]] = [model for model in owned_models() if model.append_only]
    return {model._meta.db_table for model in models}
