"""A personal key acts as its person: within their roles now, and no longer than they are a member."""

import json

import pytest
from django.test import RequestFactory
from django.urls import reverse

from apps.tenants.acting import acting_with_key
from apps.tenants.auth import CallerRefused, principal_of
from apps.tenants.models import ApiKey, AuditEntry, Membership, Role, User
from apps.tenants.roles import KEY_SCOPES
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import (
    ForeignPerson,
    api_key_issue,
    audit_append,
    membership_grant,
    membership_revoke,
)

pytestmark = pytest.mark.django_db
ADD = "admin:tenants_apikey_add"


def issue(world, person, *, actor=None, scopes=KEY_SCOPES):
    with tenant_transaction(world.acme):
        return api_key_issue(
            name="mine",
            scopes=scopes,
            environment="production",
            expires_at=None,
            actor=actor or f"user:{person.username}",
            person=person,
        )[1]


def caller(key):
    return principal_of(RequestFactory().get("/", HTTP_X_API_KEY=key))


def refused(key):
    with pytest.raises(CallerRefused) as raised:
        caller(key)
    return raised.value.get_codes()


def test_personal_key__is_its_person_within_their_roles_and_its_scopes(world):
    mine = caller(issue(world, world.alice, scopes=["config:read", "config:write"]))
    assert (mine.name, mine.tenant_slug) == ("user:alice", "acme")
    assert mine.scopes == {"config:read", "config:write"}
    auditor = caller(issue(world, world.bob))
    assert auditor.name == "user:bob"
    assert "config:read" in auditor.scopes
    assert auditor.scopes & {"config:write", "change:review", "release:publish"} == set()
    assert len(auditor.key) == 8


def test_system_key__is_no_person(world):
    system = caller(world.acme_key)
    assert system.name.startswith("key:")
    assert (system.key, system.permissions) == ("", frozenset())


def test_personal_key__of_a_role_taken_away__loses_its_scopes_at_once(world):
    with tenant_transaction(world.acme):
        second = membership_grant(user=world.bob, role=Role.APPROVER, actor="test")
    key = issue(world, world.bob)
    assert caller(key).has("change:review")
    with tenant_transaction(world.acme):
        membership_revoke(membership=second, actor="test")
    assert not caller(key).has("change:review")


def test_personal_key__of_somebody_who_left__is_refused(world):
    key = issue(world, world.bob)
    with tenant_transaction(world.acme):
        membership_revoke(membership=Membership.objects.get(user=world.bob), actor="test")
    assert refused(key) == "person_gone"


def test_personal_key__of_an_inactive_person__is_refused(world):
    key = issue(world, world.bob)
    User.objects.filter(pk=world.bob.pk).update(is_active=False)
    assert refused(key) == "person_gone"


def test_personal_key__of_a_role_in_another_tenant__counts_for_nothing(world):
    with tenant_transaction(world.other):
        membership_grant(user=world.bob, role=Role.TENANT_ADMIN, actor="test")
    assert not caller(issue(world, world.bob)).has("config:write")


@pytest.mark.parametrize("actor", ["user:alice", "key:00000000", "command:x"])
def test_personal_key__issued_by_somebody_else__is_refused(world, actor):
    with pytest.raises(ForeignPerson):
        issue(world, world.bob, actor=actor)


def test_personal_key__for_an_outsider__is_refused(world):
    with pytest.raises(ForeignPerson):
        issue(world, world.charlie)
    with tenant_transaction(world.acme):
        assert not ApiKey.objects.filter(name="mine").exists()


def test_audit__of_what_a_personal_key_does__names_person_and_key(world):
    with tenant_transaction(world.acme), acting_with_key("0a1b2c3d"):
        audit_append(actor="user:alice", action="x.done", entity="x:1", detail={"a": 1})
    with tenant_transaction(world.acme):
        entry = AuditEntry.objects.get(action="x.done")
    assert entry.actor == "user:alice"
    assert json.loads(entry.detail) == {"a": 1, "by_key": "0a1b2c3d"}


class TestPages:
    fields = {"name": "crm", "scopes": ["config:read"], "environment": "production"}

    def key(self, world, name="crm"):
        with tenant_transaction(world.acme):
            return ApiKey.objects.select_related("person").get(name=name)

    def test_key__of_alice__is_a_systems_unless_she_says_it_acts_as_her(self, world, as_alice):
        as_alice.post(reverse(ADD), self.fields)
        assert self.key(world).person is None
        as_alice.post(reverse(ADD), {**self.fields, "name": "own", "personal": "on"})
        assert self.key(world, "own").person == world.alice

    def test_key__of_an_approver__is_always_their_own(self, world, as_bob):
        with tenant_transaction(world.acme):
            membership_revoke(membership=Membership.objects.get(user=world.bob), actor="test")
            membership_grant(user=world.bob, role=Role.APPROVER, actor="test")
        assert as_bob.post(reverse(ADD), self.fields).status_code == 200
        own = self.key(world)
        assert own.person == world.bob
        assert "/admin/tenants/apikey/" in as_bob.get("/admin/").content.decode()
        listed = as_bob.get(reverse("admin:tenants_apikey_changelist")).content.decode()
        assert f"ak_{own.prefix}…" in listed
        assert f"ak_{world.acme_key[3:11]}…" not in listed
        foreign = self.key(world, "every scope")
        absent = "00000000-0000-0000-0000-000000000000"
        refused = [
            as_bob.post(f"/admin/tenants/apikey/{key}/revoke/") for key in (foreign.pk, absent)
        ]
        assert [answer.status_code for answer in refused] == [403, 403]
        assert refused[0].content == refused[1].content
        assert self.key(world, "every scope").revoked_at is None
        assert as_bob.post(f"/admin/tenants/apikey/{own.pk}/revoke/").status_code == 302
        assert self.key(world).revoked_at is not None

    def test_key__of_an_auditor__is_not_issued(self, world, as_bob):
        assert as_bob.post(reverse(ADD), self.fields).status_code == 403
