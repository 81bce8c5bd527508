"""Every public way to a tenant-owned row asks for a tenant, and keeps to it.

The table below names every public method of the queryset and its manager. One that it does not
name fails the first test, so a Django upgrade cannot open a door unnoticed.
"""

import inspect
from collections.abc import AsyncIterator

import pytest
from asgiref.sync import async_to_sync
from django.db import IntegrityError, models
from django.db.models import Count, F, Q
from django.db.models.functions import Upper

from apps.tenants.models import ApiKey, AuditEntry, Membership
from apps.tenants.owned import AppendOnly, TenantManager, TenantOwned, TenantQuerySet
from apps.tenants.scope import (
    ForeignTenant,
    NoTenant,
    tenant_scope,
    tenant_transaction,
    unscoped,
)

CANARY = "canary of the other tenant"


def given(*args, **kwargs):
    return args, kwargs


# name -> arguments that aim at the other tenant's row ``f`` as well as the method allows
CASES = {
    "aggregate": lambda f: given(rows=Count("pk")),
    "alias": lambda f: given(shouted=Upper("name")),
    "all": lambda f: given(),
    "annotate": lambda f: given(shouted=Upper("name")),
    "bulk_create": lambda f: given([ApiKey(name="x", prefix="x", tenant_id=f.tenant_id)]),
    "bulk_update": lambda f: given([f], ["name"]),
    "complex_filter": lambda f: given(Q(pk=f.pk)),
    "contains": lambda f: given(f),
    "count": lambda f: given(),
    "create": lambda f: given(name="x", prefix="x", tenant_id=f.tenant_id),
    "dates": lambda f: given("created_at", "day"),
    "datetimes": lambda f: given("created_at", "second"),
    "defer": lambda f: given("digest"),
    "delete": lambda f: given(),
    "difference": lambda f: given(ApiKey.objects.order_by().filter(pk=f.pk)),
    "distinct": lambda f: given(),
    "earliest": lambda f: given("created_at"),
    "exclude": lambda f: given(name="nobody's"),
    "exists": lambda f: given(),
    "explain": lambda f: given(),
    "extra": lambda f: given(where=["1 = 1"]),
    "filter": lambda f: given(Q(pk=f.pk) | Q(tenant_id=f.tenant_id)),
    "first": lambda f: given(),
    "get": lambda f: given(pk=f.pk),
    "get_or_create": lambda f: given(pk=f.pk, defaults={"name": "taken", "prefix": "taken"}),
    "in_bulk": lambda f: given([f.pk]),
    "intersection": lambda f: given(ApiKey.objects.order_by()),
    "iterator": lambda f: given(),
    "last": lambda f: given(),
    "latest": lambda f: given("created_at"),
    "none": lambda f: given(),
    "only": lambda f: given("name"),
    "order_by": lambda f: given("name"),
    "prefetch_related": lambda f: given("tenant"),
    "raw": lambda f: given("SELECT * FROM tenants_apikey"),
    "reverse": lambda f: given(),
    "select_for_update": lambda f: given(),
    "select_related": lambda f: given("tenant"),
    "union": lambda f: given(ApiKey.objects.order_by(), all=True),
    "update": lambda f: given(name="taken"),
    "update_or_create": lambda f: given(pk=f.pk, defaults={"name": "taken", "prefix": "taken"}),
    "using": lambda f: given("default"),
    "values": lambda f: given("name"),
    "values_list": lambda f: given("name"),
}
# With one key of its own and the other tenant's canary about, what a number must be.
NUMBERS = {"aggregate": {"rows": 1}, "count": 1, "contains": False, "bulk_update": 0}
# Do not reach rows by themselves: what they return is a manager, a class or a description.
WITHOUT_ROWS = {
    "as_manager", "auto_created", "check", "contribute_to_class", "creation_counter", "db",
    "db_manager", "deconstruct", "from_queryset", "is_compatible_query_object_type", "model",
    "name", "ordered", "query", "resolve_expression", "totally_ordered", "use_in_migrations",
    "as_sql", "get_queryset",
}  # fmt: skip
# SQLite takes no ordered parts in these.
COMPOUND = {"difference", "intersection", "union"}
WAYS = sorted(
    name
    for name in {*dir(TenantQuerySet), *dir(TenantManager)}
    if not name.startswith("_") and name not in WITHOUT_ROWS
)


def arguments(name, foreign):
    case = CASES.get(name) or CASES[name.removeprefix("a")]
    return case(foreign)


def call(name, foreign):
    manager = ApiKey.objects
    # Looked up on the manager first: unscoped it must not even give a queryset to call it on.
    target = manager if hasattr(manager, name) else manager.all()
    if name in COMPOUND:
        target = manager.order_by()
    args, kwargs = arguments(name, foreign)
    return evaluate(getattr(target, name)(*args, **kwargs))


def evaluate(result):
    if inspect.iscoroutine(result):

        async def awaited():
            return await result

        return async_to_sync(awaited)()
    if isinstance(result, AsyncIterator):

        async def collected():
            return [row async for row in result]

        return async_to_sync(collected)()
    if isinstance(result, models.QuerySet) or inspect.isgenerator(result):
        return list(result)
    return result


@pytest.fixture
def foreign(world):
    with tenant_transaction(world.other):
        return ApiKey.objects.create(name=CANARY, prefix="canary", created_by=CANARY)


def rows_of(tenant):
    with tenant_transaction(tenant):
        return list(ApiKey.objects.order_by("pk").values())


def test_table__names_every_public_method__and_nothing_else():
    public = {name for name in WAYS if name not in CASES and name.removeprefix("a") not in CASES}
    assert public == set()
    assert set(WAYS) >= set(CASES)


@pytest.mark.django_db
@pytest.mark.parametrize("name", WAYS)
def test_method__without_a_tenant__raises(foreign, name):
    with pytest.raises(NoTenant):
        case_without_scope(name, foreign)


def case_without_scope(name, foreign):
    """Call it unscoped; arguments that need a queryset are made in a scope first."""
    with tenant_scope(foreign.tenant_id):
        args, kwargs = arguments(name, foreign)
    manager = ApiKey.objects
    target = manager if hasattr(manager, name) else manager.all()
    return evaluate(getattr(target, name)(*args, **kwargs))


@pytest.mark.django_db
@pytest.mark.parametrize("name", WAYS)
def test_method__in_a_scope__neither_shows_nor_changes_the_other_tenants_rows(world, foreign, name):
    before = rows_of(world.other)
    try:
        with tenant_transaction(world.acme):
            result = call(name, foreign)
            shown = repr(result)
    except (ApiKey.DoesNotExist, ForeignTenant, IntegrityError):
        result, shown = None, ""
    assert CANARY not in shown
    if name.removeprefix("a") in NUMBERS and result is not None:
        assert result == NUMBERS[name.removeprefix("a")]
    assert rows_of(world.other) == before
    assert any(row["name"] == CANARY for row in before)


@pytest.mark.django_db
class TestWaysPastTheFilter:
    def test_base_and_default_manager__without_a_tenant__raise(self):
        for manager in (ApiKey._base_manager, ApiKey._default_manager):
            assert isinstance(manager, TenantManager)
            with pytest.raises(NoTenant):
                manager.all()

    def test_rows__of_the_other_tenant__are_not_saved_nor_deleted(self, world, foreign):
        with tenant_transaction(world.acme):
            for write in (foreign.save, foreign.delete):
                with pytest.raises(ForeignTenant):
                    write()
        for write in (foreign.save, foreign.delete):
            with pytest.raises(NoTenant):
                write()
        assert len(rows_of(world.other)) == 2

    def test_row__of_the_other_tenant__is_not_refreshed(self, world, foreign):
        with tenant_transaction(world.acme), pytest.raises(ApiKey.DoesNotExist):
            foreign.refresh_from_db()
        with pytest.raises(NoTenant):
            foreign.refresh_from_db()

    def test_pk__of_the_other_tenants_row__is_not_taken_over(self, world, foreign):
        with pytest.raises(IntegrityError), tenant_transaction(world.acme):
            ApiKey(pk=foreign.pk, name="mine now", prefix="mine").save()
        assert rows_of(world.other)[-1]["name"] != "mine now"

    def test_unique_value__of_the_other_tenants_row__is_not_upserted(self, world, foreign):
        with tenant_transaction(world.acme), pytest.raises(ForeignTenant):
            ApiKey.objects.bulk_create(
                [ApiKey(name="mine now", prefix=foreign.prefix)],
                update_conflicts=True,
                unique_fields=["prefix"],
                update_fields=["name"],
            )

    def test_tenant__of_a_row__never_changes(self, world):
        with tenant_transaction(world.acme):
            key = ApiKey.objects.get()
            for change in ({"tenant": world.other}, {"tenant_id": world.other.pk}):
                with pytest.raises(ForeignTenant):
                    ApiKey.objects.update(**change)
                with pytest.raises(ForeignTenant):
                    ApiKey.objects.update_or_create(pk=key.pk, defaults=change)
            with pytest.raises(ForeignTenant):
                ApiKey.objects.filter(pk=key.pk).update(tenant_id=F("tenant_id") + 1)
            key.tenant = world.other
            with pytest.raises(ForeignTenant):
                ApiKey.objects.bulk_update([key], ["tenant"])
            with pytest.raises(ForeignTenant):
                key.save()

    def test_reverse_relation__in_a_scope__is_that_tenants(self, world, foreign):
        with tenant_transaction(world.acme):
            assert list(world.other.apikey_set.all()) == []
            with pytest.raises(ForeignTenant):
                world.other.apikey_set.create(name="x", prefix="x")
            assert world.charlie.memberships.count() == 0
        with pytest.raises(NoTenant):
            world.acme.apikey_set.all()

    def test_prefetch__in_a_scope__is_that_tenants(self, world, foreign):
        with tenant_transaction(world.acme):
            people = type(world.alice).objects.prefetch_related("memberships").order_by("username")
            assert [len(person.memberships.all()) for person in people] == [1, 1, 0]

    def test_foreign_key__to_another_tenants_row__is_refused_when_it_is_known(self, world):
        from apps.releases.models import ConfigItem, Revision

        with tenant_transaction(world.other):
            item = ConfigItem.objects.create(kind="agent", slug="theirs")
        with tenant_transaction(world.acme):
            revision = Revision(item=item, number=1, content="{}", digest="d", author="x")
            with pytest.raises(ForeignTenant):
                revision.save()
            with pytest.raises(ForeignTenant):
                Revision.objects.bulk_create([revision])
            with pytest.raises(ConfigItem.DoesNotExist):
                _ = Revision(item_id=item.pk).item
        with pytest.raises(NoTenant):
            _ = Revision(item_id=item.pk).item

    def test_async_for__without_a_tenant__raises(self):
        async def walk():
            return [row async for row in ApiKey.objects.all()]

        with pytest.raises(NoTenant):
            async_to_sync(walk)()

    def test_queryset__made_in_a_scope__keeps_to_it_outside(self, world, foreign):
        with tenant_transaction(world.acme):
            mine = ApiKey.objects.all()
        with tenant_transaction(world.other):
            assert [key for key in mine if key.name == CANARY] == []

    def test_unscoped__inside_a_scope__is_the_only_other_way(self, world, foreign):
        with tenant_transaction(world.acme), unscoped():
            ApiKey.objects.count()
            ApiKey.objects.raw("SELECT * FROM tenants_apikey")

    def test_form_validation__of_a_unique_value__does_not_tell_of_another_tenant(
        self, world, foreign
    ):
        with tenant_transaction(world.acme):
            ApiKey(name="x", prefix=foreign.prefix, tenant=world.acme).validate_unique()


@pytest.mark.django_db
class TestAppendOnly:
    def test_entry__once_written__is_neither_changed_nor_deleted(self, in_acme):
        entry = AuditEntry.objects.first()
        entry.actor = "somebody else"
        for write in (
            entry.save,
            entry.delete,
            AuditEntry.objects.all().delete,
            lambda: AuditEntry.objects.update(actor="x"),
            lambda: AuditEntry.objects.bulk_update([entry], ["actor"]),
            lambda: AuditEntry.objects.bulk_create(
                [entry], update_conflicts=True, unique_fields=["tenant"], update_fields=["actor"]
            ),
        ):
            with pytest.raises(AppendOnly):
                write()
        assert not AuditEntry.objects.filter(actor="somebody else").exists()


def test_scope__nested_and_left__gives_the_outer_tenant_back():
    from apps.tenants.scope import current_tenant_id, has_tenant

    with tenant_scope(1):
        with tenant_scope(2):
            assert current_tenant_id() == 2
        assert current_tenant_id() == 1
        with unscoped(), tenant_scope(3):
            assert current_tenant_id() == 3
        assert current_tenant_id() == 1
    assert not has_tenant()


@pytest.mark.django_db
def test_scope__of_concurrent_tasks__stay_apart(world):
    import asyncio

    from apps.tenants.scope import in_tenant

    async def names(tenant):
        await asyncio.sleep(0)
        return await in_tenant(
            tenant, lambda: list(Membership.objects.values_list("user__username", flat=True))
        )

    async def both():
        return await asyncio.gather(names(world.acme), names(world.other), names(world.acme))

    acme, other, again = async_to_sync(both)()
    assert sorted(acme) == sorted(again) == ["alice", "bob"]
    assert other == ["charlie"]


def test_every_owned_model__of_every_app__has_the_scoped_managers():
    from django.apps import apps

    owned = [model for model in apps.get_models() if issubclass(model, TenantOwned)]
    assert len(owned) >= 15
    for model in owned:
        assert isinstance(model._default_manager, TenantManager), model
        assert isinstance(model._base_manager, TenantManager), model
        for manager in model._meta.managers:
            assert isinstance(manager, TenantManager), (model, manager.name)
