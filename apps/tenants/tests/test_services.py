"""Writes of tenants, members and keys."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from apps.tenants import services
from apps.tenants.models import ApiKey, AuditEntry, Membership, Role, Tenant
from apps.tenants.scope import NoTenant, tenant_transaction

pytestmark = pytest.mark.django_db


def last_entry():
    entry = AuditEntry.objects.order_by("-sequence").first()
    return entry.actor, entry.action, entry.entity, json.loads(entry.detail)


def test_tenant_create__writes_its_first_audit_entry():
    tenant = services.tenant_create(slug="nova", name="Nova", actor="user:root")
    with tenant_transaction(tenant):
        assert last_entry() == (
            "user:root",
            "tenant.created",
            "tenant:nova",
            {"name": "Nova", "demo_keyless": False},
        )


@pytest.mark.parametrize("slug", ["", "Nova", "no va", "a:b", "../x", "a" * 64, "-a", "nova\n"])
def test_tenant_create__slug_that_is_no_name__is_refused(slug):
    with pytest.raises(services.InvalidSlug):
        services.tenant_create(slug=slug, name="x")
    assert not Tenant.objects.exists()


def test_tenant_create__taken_slug__is_refused_and_changes_nothing(world):
    with pytest.raises(services.TenantExists):
        services.tenant_create(slug="acme", name="Second")
    assert Tenant.objects.get(slug="acme").name == "Acme"


def test_tenant_update__is_audited_once(world):
    for _time in range(2):
        services.tenant_update(
            tenant=world.acme, name="Acme S/A", demo_keyless=False, actor="user:root"
        )
    with tenant_transaction(world.acme):
        assert AuditEntry.objects.filter(action="tenant.updated").count() == 1
        assert last_entry()[3]["after"] == {"name": "Acme S/A", "demo_keyless": False}


def test_membership_grant__twice__is_one_membership(in_acme, django_user_model):
    dora = django_user_model.objects.create_user("dora")
    first = services.membership_grant(user=dora, role=Role.OPERATOR, actor="user:alice")
    second = services.membership_grant(user=dora, role=Role.OPERATOR, actor="user:alice")
    assert first == second
    assert AuditEntry.objects.filter(entity="user:dora").count() == 1
    dora.refresh_from_db()
    assert dora.is_staff


def test_membership_grant__unknown_role__is_refused(in_acme):
    with pytest.raises(services.UnknownRole):
        services.membership_grant(user=in_acme.alice, role="emperor", actor="x")


def test_membership_grant__without_a_tenant__raises(world):
    with pytest.raises(NoTenant):
        services.membership_grant(user=world.alice, role=Role.OPERATOR, actor="x")


def test_membership_revoke__last_tenant_admin__is_kept(in_acme):
    only = Membership.objects.get(role=Role.TENANT_ADMIN)
    with pytest.raises(services.LastTenantAdmin):
        services.membership_revoke(membership=only, actor="user:bob")
    services.membership_grant(user=in_acme.bob, role=Role.TENANT_ADMIN, actor="user:alice")
    services.membership_revoke(membership=only, actor="user:bob")
    assert last_entry()[:3] == ("user:bob", "membership.revoked", "user:alice")
    assert not Membership.objects.filter(user=in_acme.alice).exists()


def issue(**changes):
    fields = {
        "name": "crm",
        "scopes": ["message:write"],
        "environment": "production",
        "expires_at": None,
        "actor": "user:alice",
    }
    return services.api_key_issue(**{**fields, **changes})


def test_api_key_issue__keeps_only_the_hash(in_acme):
    key, text = issue(expires_at=timezone.now() + timedelta(days=1))
    kind, prefix, secret = text.split("_", 2)
    assert (kind, prefix) == ("ak", key.prefix)
    assert len(secret) >= 43
    stored = json.dumps(ApiKey.objects.filter(pk=key.pk).values().get(), default=str)
    trail = "".join(AuditEntry.objects.values_list("detail", flat=True))
    assert secret not in stored + trail
    assert last_entry()[3]["scopes"] == ["message:write"]


@pytest.mark.parametrize("scopes", [[], ["everything"], ["debug", "admin"]])
def test_api_key_issue__unknown_scope__is_refused(in_acme, scopes):
    with pytest.raises(services.UnknownScope):
        issue(scopes=scopes)


def test_api_key_issue__unknown_environment__is_refused(in_acme):
    with pytest.raises(services.UnknownEnvironment):
        issue(environment="moon")


def test_api_key_revoke__twice__is_audited_once(in_acme):
    key, _text = issue()
    services.api_key_revoke(key=key, actor="user:alice")
    first = key.revoked_at
    services.api_key_revoke(key=key, actor="user:alice")
    assert key.revoked_at == first
    assert AuditEntry.objects.filter(action="api_key.revoked").count() == 1


def test_services__in_the_other_tenant__do_not_reach_a_key(world):
    with tenant_transaction(world.acme):
        key, _text = issue()
    with tenant_transaction(world.other), pytest.raises(ApiKey.DoesNotExist):
        services.api_key_revoke(key=key, actor="user:charlie")
    with tenant_transaction(world.acme):
        assert ApiKey.objects.get(pk=key.pk).revoked_at is None


def test_membership_grant__to_oneself__is_refused_unless_nobody_else_is_there(in_acme):
    with pytest.raises(services.OwnRole):
        services.membership_grant(user=in_acme.alice, role=Role.APPROVER, actor="user:alice")
    assert set(Membership.objects.values_list("user__username", "role")) == {
        ("alice", "tenant_admin"),
        ("bob", "auditor"),
    }
    in_acme.bob.is_active = False
    in_acme.bob.save()
    services.membership_grant(user=in_acme.alice, role=Role.APPROVER, actor="user:alice")
    assert Membership.objects.filter(user=in_acme.alice).count() == 2


@pytest.mark.parametrize("agent", ["no spaces", "ção", "/", "a" * 121])
def test_api_key_issue__bound_to_what_is_no_slug__is_refused(in_acme, agent):
    with pytest.raises(services.InvalidAgent):
        issue(agent=agent)


def test_api_key_issue__bound_to_an_agent__is_in_the_trail(in_acme):
    key, _text = issue(agent="telecom.contas")
    assert key.agent == "telecom.contas"
    entry = AuditEntry.objects.get(action="api_key.issued", entity=f"key:{key.prefix}")
    assert '"agent":"telecom.contas"' in entry.detail
