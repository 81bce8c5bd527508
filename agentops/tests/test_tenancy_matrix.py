"""The tenancy matrix: every route, table, task and name builder, each with a probe.

What is not listed fails, so a new route or model cannot go unprobed. Taking away one scope or one
policy must make its probe fail: that is tested too. Run with ``-s`` to see the figures.
"""

from collections import Counter
from collections.abc import Iterator

import pytest
from django.apps import apps
from django.conf import settings
from django.db import models

from agentops.tests.matrix import names, routes, walker
from agentops.tests.matrix.models import copies_take, orm_failures, role_lines, sql_failures
from agentops.tests.matrix.probes import kind_of
from agentops.tests.matrix.sides import Side, sides_make
from apps.runtime.config import KINDS
from apps.tenants.owned import TenantManager
from conftest import owner_connection

MODELS = walker.models()


@pytest.fixture
def sides(world) -> tuple[Side, Side]:
    return sides_make(world)


def route_failures(listed: list[str], me: Side, other: Side) -> list[str]:
    browser = me.browser()
    found = []
    for route in listed:
        probe = routes.probe_for(route)
        assert probe is not None
        try:
            found += [f"{route}: {wrong}" for wrong in probe(me, other, browser)]
        except Exception as error:  # the view's own: a route that breaks does not keep the rule
            found.append(f"{route}: it broke with {error!r}")
    return found


# -- nothing is unlisted -----------------------------------------------------------------------


def test_routes__all__have_a_probe():
    unlisted = [route for route in walker.routes() if routes.probe_for(route) is None]
    assert unlisted == []
    assert [route for route in walker.websocket_routes() if route not in routes.SOCKETS] == []


def test_table__names_no_route_that_is_gone():
    assert set(routes.ROUTES) <= set(walker.routes())
    assert set(routes.SOCKETS) <= set(walker.websocket_routes())


def test_tasks_and_name_builders__all__have_a_probe():
    assert walker.tasks() == sorted(names.TASKS)
    assert sorted(walker.name_builders()) == sorted(names.BUILDERS)


@pytest.mark.django_db
def test_models_and_kinds__all__have_a_row_on_each_side(sides):
    from agentops.tests.matrix.sides import contents

    for side in sides:
        assert set(MODELS) <= set(side.rows)
        assert set(contents(side)) == set(KINDS)


# -- the probes --------------------------------------------------------------------------------


@pytest.mark.django_db
def test_routes__of_the_other_tenant__are_answered_as_absent(sides):
    me, other = sides
    listed = walker.routes()
    found = route_failures(listed, me, other)
    assert not found, "\n".join(found)
    kinds = Counter(kind_of(probe) for route in listed if (probe := routes.probe_for(route)))
    print(f"\ntenancy matrix: {len(listed)} routes probed")
    for kind, count in kinds.most_common():
        print(f"  {count:4} {kind}")


# The application under a websocket starts with an empty context, on threads of its own.
@pytest.mark.django_db(transaction=True)
def test_websockets__of_the_other_tenant__are_closed_as_absent(sides):
    me, other = sides
    listed = walker.websocket_routes()
    for route in listed:
        assert routes.SOCKETS[route](me, other, me.browser()) == []
    print(f"\ntenancy matrix: {len(listed)} websocket route(s) probed")


@pytest.mark.django_db
@pytest.mark.parametrize("label", MODELS)
def test_model__in_one_scope__shows_no_row_of_another(sides, label):
    me, other = sides
    assert orm_failures(label, me, other) == []
    assert orm_failures(label, other, me) == []


@pytest.mark.django_db
def test_tasks__with_a_foreign_id__do_nothing(sides):
    me, other = sides
    assert names.failures(names.TASKS, me, other) == []


@pytest.mark.django_db
def test_names_outside_the_database__of_two_tenants__differ(sides):
    me, other = sides
    assert names.failures(names.BUILDERS, me, other) == []


# -- taking away one scope ---------------------------------------------------------------------


def take_scope(monkeypatch: pytest.MonkeyPatch, label: str) -> None:
    """Let the managers of one table, and of its proxies, show everything."""
    open_one = apps.get_model(label)
    scoped = TenantManager.get_queryset

    def get_queryset(manager):
        if manager.model._meta.concrete_model is open_one:
            return models.Manager.from_queryset(manager._queryset_class).get_queryset(manager)
        return scoped(manager)

    monkeypatch.setattr(TenantManager, "get_queryset", get_queryset)


@pytest.mark.django_db
@pytest.mark.parametrize("label", MODELS)
def test_mutation__without_the_scope_of_one_model__its_probe_fails(sides, monkeypatch, label):
    me, other = sides
    take_scope(monkeypatch, label)
    found = orm_failures(label, me, other)
    assert "it answers without a tenant" in found
    # On PostgreSQL the policies hide the rows all the same.
    assert ("a foreign row is shown" in found) is settings.EMBEDDED_DATABASE
    untouched = next(model for model in MODELS if model != label)
    assert orm_failures(untouched, me, other) == []


# table -> a route that shows its rows
SHOWN_BY = {
    "tenants.apikey": "admin/tenants/apikey/<path:object_id>/change/",
    "tenants.membership": "admin/tenants/membership/",
    "tenants.auditentry": "admin/tenants/auditentry/<path:object_id>/change/",
    "releases.configitem": "admin/agents/agent/<path:object_id>/change/",
    "releases.release": "admin/releases/release/<path:object_id>/change/",
    "releases.binding": "admin/releases/binding/",
}


@pytest.mark.django_db
@pytest.mark.parametrize("label", SHOWN_BY)
def test_mutation__without_the_scope_of_one_model__its_route_fails(sides, monkeypatch, label):
    me, other = sides
    route = SHOWN_BY[label]
    assert route_failures([route], me, other) == []
    take_scope(monkeypatch, label)
    found = route_failures([route], me, other)
    assert bool(found) is settings.EMBEDDED_DATABASE


# -- row-level security, as the application's role -----------------------------------------------


@pytest.mark.services
@pytest.mark.django_db
def test_tables__as_the_application__keep_to_app_tenant(sides):
    me, other = sides
    copies_take(me, MODELS)
    found = {label: sql_failures(label, me, other) for label in MODELS}
    print("\n" + "\n".join(role_lines(MODELS)))
    print(f"tenancy matrix: {len(MODELS)} models probed, by the ORM and by SQL")
    assert {label: wrong for label, wrong in found.items() if wrong} == {}


MUTATIONS = {
    "policy dropped": "DROP POLICY tenant_rows ON {table}",
    "policy let everything": "ALTER POLICY tenant_rows ON {table} USING (true) WITH CHECK (true)",
    "security disabled": "ALTER TABLE {table} DISABLE ROW LEVEL SECURITY",
}


@pytest.fixture
def mutate() -> Iterator:
    """Return a function that weakens one table as its owner may; everything is mended afterwards."""
    from apps.tenants.row_security import OWNER_ROLE, SAME_TENANT

    weakened = []

    def weaken(statement: str, table: str) -> None:
        weakened.append(table)
        with owner_connection() as owner:
            owner.execute(statement.format(table=table))

    yield weaken
    with owner_connection() as owner:
        owner.execute(f"SET ROLE {OWNER_ROLE}")
        for table in weakened:
            owner.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
            owner.execute(f"DROP POLICY IF EXISTS tenant_rows ON {table}")
            owner.execute(
                f"CREATE POLICY tenant_rows ON {table} USING ({SAME_TENANT})"
                f" WITH CHECK ({SAME_TENANT})"
            )


@pytest.mark.services
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", MUTATIONS)
def test_mutation__without_one_policy__its_probe_fails(sides, mutate, kind):
    me, other = sides
    copies_take(me, MODELS)
    for label in MODELS:
        assert sql_failures(label, me, other) == []
        mutate(MUTATIONS[kind], apps.get_model(label)._meta.db_table)
        found = sql_failures(label, me, other)
        expected = (
            "the own row is not shown" if kind == "policy dropped" else "a foreign row is shown"
        )
        assert expected in found, label
