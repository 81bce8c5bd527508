"""What a person may do in the tenant they are in."""

import pytest
from django.contrib.auth.models import AnonymousUser

from apps.tenants.backends import MembershipBackend, permissions_here
from apps.tenants.models import ApiKey, Role
from apps.tenants.roles import (
    AREA_OF,
    EVERY_PERMISSION,
    KEY_SCOPES,
    PERMISSIONS,
    permission_for,
    permissions_of,
    scopes_of,
)
from apps.tenants.scope import tenant_scope, tenant_transaction
from apps.tenants.services import membership_grant

pytestmark = pytest.mark.django_db


def may(user, tenant, *permissions):
    with tenant_scope(tenant):
        return [user.has_perm(permission) for permission in permissions]


def test_alice__in_her_tenant__may_what_bob_may_only_see(world):
    asked = ("config.view", "config.change", "keys.change", "audit.view", "debug")
    assert may(world.alice, world.acme, *asked) == [True, True, True, True, True]
    assert may(world.bob, world.acme, *asked) == [True, False, False, True, False]
    assert may(world.charlie, world.acme, *asked) == [False] * 5


def test_django_permissions__of_an_admin_page__follow_the_roles(world):
    asked = (
        "tenants.view_apikey",
        "tenants.add_apikey",
        "releases.view_release",
        "releases.change_release",
        "agents.change_agent",  # a proxy: what counts is the table below it
        "tenants.view_tenant",
        "nothing.view_nothing",
        "nonsense",
    )
    assert may(world.alice, world.acme, *asked) == [True] * 5 + [False] * 3
    assert may(world.bob, world.acme, *asked) == [True, False, True, False] + [False] * 4


def test_permission__outside_a_tenant__is_nobodys(world):
    assert not world.alice.has_perm("config.view")
    assert not world.alice.has_module_perms("tenants")
    assert permissions_here(world.alice) == frozenset()
    assert MembershipBackend().get_all_permissions(world.alice) == set()


def test_permission__on_a_row_of_another_tenant__is_refused(world):
    with tenant_transaction(world.other):
        theirs = ApiKey.objects.get()
    with tenant_transaction(world.acme):
        own = ApiKey.objects.get()
        assert world.alice.has_perm("tenants.view_apikey", own)
        assert not world.alice.has_perm("tenants.view_apikey", theirs)


def test_module__is_shown_to_whom_may_see_something_in_it(world):
    with tenant_scope(world.acme):
        assert world.bob.has_module_perms("tenants")
        assert not world.charlie.has_module_perms("tenants")
        assert not MembershipBackend().has_module_perms(AnonymousUser(), "tenants")


def test_roles__of_one_person__add_up(world):
    with tenant_transaction(world.acme):
        membership_grant(user=world.bob, role=Role.OPERATOR, actor="user:alice")
    again = type(world.bob).objects.get(pk=world.bob.pk)
    assert may(again, world.acme, "audit.view", "debug", "config.change") == [True, True, False]


def test_inactive_person__may_nothing(world):
    world.alice.is_active = False
    world.alice.save()
    again = type(world.alice).objects.get(pk=world.alice.pk)
    assert may(again, world.acme, "config.view") == [False]


def test_platform_admin__may_everything_in_every_tenant(world, django_user_model):
    root = django_user_model.objects.create_superuser("root")
    for tenant in (world.acme, world.other):
        assert may(root, tenant, "config.change", "keys.change", "tenants.add_tenant") == [True] * 3


def test_tables__of_tenants__have_an_area():
    from apps.tenants.row_security import owned_models

    assert {model._meta.label_lower for model in owned_models()} == set(AREA_OF)


def test_roles__give_known_permissions_and_scopes_only():
    assert set(PERMISSIONS) == set(Role.values)
    assert permissions_of(frozenset({"emperor"})) == frozenset()
    assert scopes_of(EVERY_PERMISSION) == set(KEY_SCOPES)
    for label in AREA_OF:
        for action in ("view", "add", "change", "delete"):
            wanted = permission_for(label, action)
            # The trail and conversations' rows are changed by nobody's page.
            assert wanted in EVERY_PERMISSION or label == "tenants.auditentry", (label, action)
