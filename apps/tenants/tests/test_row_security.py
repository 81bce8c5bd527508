"""Row-level security below the ORM, as the application's own database role."""

import psycopg
import pytest
from django.core.management import call_command
from django.db import ProgrammingError, connection
from django.db.utils import DatabaseError

from apps.tenants import database_roles, row_security
from apps.tenants.models import ApiKey, AuditEntry, Membership
from apps.tenants.row_security import APP_ROLE, OWNER_ROLE, owned_models, privileges
from apps.tenants.scope import tenant_transaction, unscoped

pytestmark = [pytest.mark.services, pytest.mark.django_db]


def rows(statement, *values):
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall()


@pytest.mark.parametrize("role", [APP_ROLE, OWNER_ROLE])
def test_role__is_neither_superuser_nor_bypasses_policies(role):
    attributes = rows(
        "SELECT rolsuper, rolbypassrls, rolcreaterole, rolcreatedb FROM pg_roles"
        " WHERE rolname = %s",
        role,
    )
    assert attributes == [(False, False, False, False)]


def test_application__owns_nothing():
    assert rows("SELECT current_user") == [(APP_ROLE,)]
    owned = "SELECT count(*) FROM pg_class WHERE pg_get_userbyid(relowner) = current_user"
    assert rows(owned) == [(0,)]


def test_every_table_with_a_tenant__is_forced_and_has_the_policy():
    found = rows(
        "SELECT c.relname, c.relrowsecurity, c.relforcerowsecurity FROM pg_class c"
        " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id'"
        " WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace"
    )
    assert {name for name, *_flags in found} == {m._meta.db_table for m in owned_models()}
    assert all(enabled and forced for _name, enabled, forced in found)
    policies = rows(
        "SELECT tablename FROM pg_policies WHERE policyname = %s AND cmd = 'ALL'"
        " AND qual LIKE '%%app.tenant%%' AND with_check LIKE '%%app.tenant%%'",
        row_security.POLICY,
    )
    assert {name for (name,) in policies} == {m._meta.db_table for m in owned_models()}


def test_rows__without_the_setting__are_invisible_even_unscoped(world):
    with unscoped():
        assert ApiKey.objects.count() == 0
        assert Membership.objects.count() == 0
    assert rows("SELECT count(*) FROM tenants_auditentry") == [(0,)]


def test_setting__after_a_transaction__is_gone(world):
    with tenant_transaction(world.acme):
        assert rows("SELECT count(*) FROM tenants_apikey") == [(1,)]
        with tenant_transaction(world.other):
            assert rows("SELECT prefix FROM tenants_apikey") == [(world.other_key[3:11],)]
        assert rows("SELECT prefix FROM tenants_apikey") == [(world.acme_key[3:11],)]
    assert rows("SELECT count(*) FROM tenants_apikey") == [(0,)]


def test_setting__after_an_error_in_a_nested_transaction__is_the_outer_ones(world):
    with tenant_transaction(world.acme):
        with pytest.raises(DatabaseError), tenant_transaction(world.other):
            rows("SELECT 1 / 0")
        assert rows("SELECT prefix FROM tenants_apikey") == [(world.acme_key[3:11],)]


def test_setting__in_one_transaction__is_written_once(world, django_assert_num_queries):
    # Two savepoints opened and released, the setting made, and taken back because the test's own
    # transaction goes on.
    with (
        django_assert_num_queries(6),
        tenant_transaction(world.acme),
        tenant_transaction(world.acme),
    ):
        pass


def test_insert__with_a_foreign_tenant__is_refused(world):
    with pytest.raises(ProgrammingError) as raised, tenant_transaction(world.acme), unscoped():
        Membership(user=world.bob, role="operator", tenant=world.other).save()
    assert "row-level security" in str(raised.value)


def test_foreign_key__to_a_row_of_the_same_tenant__is_checked_and_holds(world):
    from apps.releases.models import ConfigItem, Revision

    with tenant_transaction(world.acme):
        item = ConfigItem.objects.create(kind="agent", slug="a")
        revision = Revision.objects.create(
            item=item, number=1, content="{}", digest="d", author="x"
        )
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        assert Revision.objects.select_related("item").get(pk=revision.pk).item == item


@pytest.mark.parametrize("verb", ["UPDATE {} SET tenant_id = tenant_id", "DELETE FROM {}"])
@pytest.mark.parametrize("table", sorted(m._meta.db_table for m in owned_models() if m.append_only))
def test_append_only_table__is_not_changed_by_the_application(world, verb, table):
    with pytest.raises(ProgrammingError) as raised, tenant_transaction(world.acme):
        rows(verb.format(table))
    assert "permission denied" in str(raised.value)


@pytest.mark.django_db(transaction=True)
def test_audit_trail__is_not_changed_by_the_owner_either(world):
    from conftest import owner_connection

    with owner_connection() as owner:
        for statement in (
            "UPDATE tenants_auditentry SET actor = 'x'",
            "DELETE FROM tenants_auditentry",
        ):
            with pytest.raises(psycopg.errors.RaiseException):
                owner.execute(statement)
    with tenant_transaction(world.acme):
        assert AuditEntry.objects.exclude(actor="x").count() == 4


def test_append_only_tables__are_the_agreed_ones():
    names = {m._meta.label for m in owned_models() if m.append_only}
    assert names >= {
        "releases.Revision",
        "releases.Release",
        "tenants.AuditEntry",
        "conversations.Event",
        "conversations.Message",
    }


def test_granted_privileges__are_those_meant(world):
    granted = rows(
        "SELECT table_name, array_agg(privilege_type::text ORDER BY privilege_type::text)"
        " FROM information_schema.role_table_grants WHERE grantee = %s GROUP BY 1",
        APP_ROLE,
    )
    tables = set(connection.introspection.table_names())
    assert {name for name, _held in granted} == tables
    for name, held in granted:
        assert held == sorted(privileges(name).split(", ")), name


class TestLookups:
    def test_functions__are_pinned_and_not_public(self):
        found = rows(
            "SELECT proname, prosecdef, proconfig::text,"
            " has_function_privilege('public', oid, 'EXECUTE'),"
            " has_function_privilege(%s, oid, 'EXECUTE'), pg_get_userbyid(proowner)"
            " FROM pg_proc WHERE proname LIKE 'agentops%%' AND prorettype <> 'trigger'::regtype",
            APP_ROLE,
        )
        assert {name for name, *_rest in found} == {
            "agentops_key_find",
            "agentops_key_caller",
            "agentops_key_sender",
            "agentops_key_used",
            "agentops_memberships_of",
        }
        for _name, definer, config, public, granted, owner in found:
            assert (definer, public, granted, owner) == (True, False, True, OWNER_ROLE)
            assert "search_path=pg_catalog, public, pg_temp" in config

    def test_function__finds_one_key_and_leaves_nothing_open(self, world):
        for function in ("agentops_key_find", "agentops_key_caller", "agentops_key_sender"):
            found = rows(f"SELECT prefix FROM {function}(%s)", world.other_key[3:11])
            assert found == [(world.other_key[3:11],)]
            assert rows("SELECT count(*) FROM tenants_apikey") == [(0,)]
            assert rows(f"SELECT count(*) FROM {function}(%s)", "%") == [(0,)]

    def test_lookup_setting__made_by_the_application_itself__opens_nothing(self, world):
        rows("SELECT set_config('app.lookup', 'on', true)")
        for table in ("tenants_apikey", "tenants_membership"):
            assert rows(f"SELECT count(*) FROM {table}") == [(0,)]


@pytest.mark.django_db(transaction=True)
class TestOwner:
    @pytest.fixture
    def owner(self, world):
        from conftest import owner_connection

        with owner_connection() as admin:
            admin.execute(f"SET ROLE {OWNER_ROLE}")
            yield admin

    def test_owner__without_the_setting__sees_no_row(self, owner):
        for model in owned_models():
            count = owner.execute(f'SELECT count(*) FROM "{model._meta.db_table}"').fetchone()
            assert count == (0,)

    def test_policies__after_another_migrate__are_unchanged(self, owner):
        state = "SELECT tablename, policyname, cmd, roles::text, qual, with_check FROM pg_policies ORDER BY 1, 2"
        before = owner.execute(state).fetchall()
        assert len(before) >= len(list(owned_models()))
        call_command("migrate", verbosity=0)  # as the application: it changes nothing, quietly
        assert owner.execute(state).fetchall() == before


@pytest.mark.django_db(transaction=True)
class TestApply:
    @pytest.fixture
    def as_owner(self, world):
        from conftest import _connect_as

        name = connection.settings_dict["NAME"]
        _connect_as(name, OWNER_ROLE, "")
        yield
        _connect_as(name, APP_ROLE, "")

    def test_apply__weakened_table__is_mended_and_the_others_are_not_touched(self, as_owner):
        row_security.apply(connection)  # whatever another test mended by hand is the product's now
        policies = dict(
            rows(
                "SELECT polrelid::regclass::text, oid FROM pg_policy WHERE polname = 'tenant_rows'"
            )
        )
        rows_changed = ("tenants_apikey", "releases_release", "conversations_event")
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE tenants_apikey NO FORCE ROW LEVEL SECURITY")
            cursor.execute("DROP POLICY tenant_rows ON releases_release")
            cursor.execute("ALTER TABLE conversations_event DISABLE ROW LEVEL SECURITY")
        row_security.apply(connection)
        now = dict(
            rows(
                "SELECT polrelid::regclass::text, oid FROM pg_policy WHERE polname = 'tenant_rows'"
            )
        )
        assert {table for table in now if now[table] != policies[table]} == set(rows_changed)
        flags = rows("SELECT count(*) FROM pg_class WHERE relrowsecurity AND relforcerowsecurity")
        assert flags == [(len(policies),)]

    def test_apply__new_privilege_of_the_application__is_taken_back(self, as_owner):
        with connection.cursor() as cursor:
            cursor.execute(f"GRANT DELETE ON releases_release TO {APP_ROLE}")
        row_security.apply(connection)
        held = "SELECT has_table_privilege(%s, 'releases_release', 'DELETE')"
        assert rows(held, APP_ROLE) == [(False,)]


def test_connection__given_back_to_the_pool__carries_no_tenant(world):
    from conftest import ADMIN_URL

    name = connection.settings_dict["NAME"]
    with psycopg.connect(ADMIN_URL, dbname=name, user=APP_ROLE, autocommit=True) as raw:
        with raw.transaction():
            raw.execute("SELECT set_config('app.tenant', '1', true)")
        assert raw.execute("SELECT current_setting('app.tenant', true)").fetchone() == ("",)
        assert raw.execute("SELECT count(*) FROM tenants_apikey").fetchone() == (0,)


def test_database_roles__again__keeps_everything(capsys):
    from conftest import ADMIN_URL

    call_command("database_roles", admin_url=ADMIN_URL, database=connection.settings_dict["NAME"])
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"role {OWNER_ROLE}: kept",
        f"role {APP_ROLE}: kept",
        f"database {connection.settings_dict['NAME']}: kept",
    ]


def test_database_roles__server_that_does_not_answer__says_so():
    with pytest.raises(database_roles.Unreachable):
        database_roles.ensure("postgres://postgres@127.0.0.1:1/x", database="x")
