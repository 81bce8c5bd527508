"""Probes of the tables: through the ORM, and with raw SQL as the application's own role."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.apps import apps
from django.db import DatabaseError, connection, models, transaction

from agentops.tests.matrix.sides import Side
from apps.tenants.scope import NoTenant, tenant_transaction


def orm_failures(label: str, me: Side, other: Side) -> list[str]:
    """Return what the model's managers show that they must not, or the other way round."""
    model = apps.get_model(label)
    mine, theirs = me.rows[label], other.rows[label]
    wrong = []
    for manager in (model._default_manager, model._base_manager):
        try:
            manager.all()
            wrong.append("it answers without a tenant")
        except NoTenant:
            pass
        with tenant_transaction(me.tenant):
            if not manager.filter(pk=mine.pk).exists():
                wrong.append("the own row is not shown")
            if manager.filter(pk=theirs.pk).exists():
                wrong.append("a foreign row is shown")
            tenants = set(manager.values_list("tenant_id", flat=True))
            if tenants != {me.tenant.pk}:
                wrong.append(f"rows of the tenants {sorted(tenants)} are shown")
    return sorted(set(wrong))


# -- PostgreSQL --------------------------------------------------------------------------------


def _rows(statement: str, *values: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description else []


@contextmanager
def _as(side: Side | None) -> Iterator[None]:
    """One transaction with ``app.tenant`` set by hand, below scope and ORM."""
    with transaction.atomic():
        if side is not None:
            _rows("SELECT set_config('app.tenant', %s, true)", str(side.tenant.pk))
        yield
        transaction.set_rollback(True)


def sql_failures(label: str, me: Side, other: Side) -> list[str]:
    """Return what the table shows or takes as the application's role, row-level security alone."""
    model = apps.get_model(label)
    table = model._meta.db_table
    mine, theirs = me.rows[label], other.rows[label]
    wrong = []
    with _as(None):
        if _rows(f'SELECT count(*) FROM "{table}"') != [(0,)]:
            wrong.append("rows are shown without app.tenant")
    with _as(me):
        by_pk = f'SELECT count(*) FROM "{table}" WHERE "{model._meta.pk.column}" = %s'
        if _rows(by_pk, mine.pk) != [(1,)]:
            wrong.append("the own row is not shown")
        if _rows(by_pk, theirs.pk) != [(0,)]:
            wrong.append("a foreign row is shown")
    for side in (None, me):
        with _as(side):
            if not _refused(lambda: _insert_as(model, other)):
                wrong.append(f"a foreign row was inserted {'in scope' if side else 'unscoped'}")
    with _as(me):
        moved = f'UPDATE "{table}" SET tenant_id = %s WHERE "{model._meta.pk.column}" = %s'
        if not _refused(lambda: _rows(moved, other.tenant.pk, mine.pk)):
            wrong.append("a row was moved to another tenant")
    return wrong


def _insert_as(model: type[models.Model], side: Side) -> None:
    """Insert the remembered copy of the own row as a row of ``side``."""
    row = dict(_COPIES[model._meta.label_lower])
    row["tenant_id"] = side.tenant.pk
    columns = ", ".join(f'"{column}"' for column in row)
    marks = ", ".join(["%s"] * len(row))
    _rows(f'INSERT INTO "{model._meta.db_table}" ({columns}) VALUES ({marks})', *row.values())


_COPIES: dict[str, dict[str, Any]] = {}


def copies_take(me: Side, labels: list[str]) -> None:
    """Remember the values of each own row, under a key of its own, to insert them elsewhere."""
    for label in labels:
        model = apps.get_model(label)
        with tenant_transaction(me.tenant):
            row = model._base_manager.filter(pk=me.rows[label].pk).values().get()
        copy: dict[str, Any] = {}
        for field in model._meta.concrete_fields:
            value = field.get_db_prep_save(row[field.attname], connection)
            copy[field.column] = value
        key = model._meta.pk
        is_number = isinstance(key, models.AutoField | models.BigAutoField)
        copy[key.column] = 900_000_000 if is_number else key.get_default()
        _COPIES[label] = copy


def _refused(write: Callable[[], Any]) -> bool:
    """Return whether row-level security or a missing privilege refused ``write``."""
    try:
        with transaction.atomic():
            write()
    except DatabaseError as error:
        text = str(error)
        return "row-level security" in text or "permission denied" in text
    return False


def role_lines(labels: list[str]) -> list[str]:
    """Return the facts to print: the role, and each table's flags."""
    role = _rows(
        "SELECT current_user, rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user"
    )[0]
    lines = [f"current_user={role[0]} rolsuper={role[1]} rolbypassrls={role[2]}"]
    for label in labels:
        table = apps.get_model(label)._meta.db_table
        flags = _rows(
            "SELECT relrowsecurity, relforcerowsecurity FROM pg_class WHERE oid = to_regclass(%s)",
            table,
        )[0]
        lines.append(f"  {table}: relrowsecurity={flags[0]} relforcerowsecurity={flags[1]}")
    return lines
