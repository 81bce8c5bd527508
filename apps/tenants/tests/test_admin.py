"""The admin of tenants: Alice may, Bob may look, Charlie is somewhere else."""

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext, override

from apps.tenants.auth import principal_of
from apps.tenants.models import ApiKey, AuditEntry, Membership, Role, Tenant
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import membership_grant

pytestmark = pytest.mark.django_db

MEMBERSHIP = "admin:tenants_membership_"
KEY = "admin:tenants_apikey_"
AUDIT = "admin:tenants_auditentry_"


@pytest.fixture
def as_root(world, django_user_model):
    client = Client()
    client.force_login(django_user_model.objects.create_superuser("root"))
    return client


def key_of(tenant):
    with tenant_transaction(tenant):
        return ApiKey.objects.get()


class TestKeys:
    fields = {
        "name": "crm",
        "scopes": ["message:write", "session:read"],
        "environment": "production",
    }

    def test_key__issued_by_alice__is_shown_once_and_works(self, world, as_alice, rf):
        response = as_alice.post(reverse(KEY + "add"), self.fields)
        assert response.status_code == 200
        assert "no-store" in response.headers["Cache-Control"]
        text = response.context["text"]
        assert text in response.content.decode()
        assert principal_of(rf.get("/", HTTP_X_API_KEY=text)).scopes == {
            "message:write",
            "session:read",
        }
        listed = as_alice.get(reverse(KEY + "changelist")).content.decode()
        with tenant_transaction(world.acme):
            key = ApiKey.objects.get(name="crm")
        shown = as_alice.get(reverse(KEY + "change", args=[key.pk])).content.decode()
        for page in (listed, shown):
            assert f"ak_{key.prefix}…" in page
            assert text not in page
            assert key.digest not in page
        assert "message:write, session:read" in shown
        assert key.created_by == "user:alice"

    def test_key__bound_to_an_agent__says_so(self, world, as_alice, rf):
        bound = {**self.fields, "agent": "telecom_contas"}
        text = as_alice.post(reverse(KEY + "add"), bound).context["text"]
        assert principal_of(rf.get("/", HTTP_X_API_KEY=text)).agent == "telecom_contas"
        assert "telecom_contas" in as_alice.get(reverse(KEY + "changelist")).content.decode()

    @pytest.mark.parametrize(
        "change", [{"scopes": []}, {"scopes": ["x"]}, {"environment": "moon"}, {"agent": "a b"}]
    )
    def test_key__with_wrong_fields__is_not_issued(self, world, as_alice, change):
        response = as_alice.post(reverse(KEY + "add"), {**self.fields, **change})
        assert response.status_code == 200
        assert response.context["adminform"].errors
        assert key_of(world.acme).name == "every scope"

    @pytest.mark.parametrize(("days", "issued"), [(-1, False), (1, True)])
    def test_key__with_an_expiry__is_issued_when_it_lies_ahead(self, world, as_alice, days, issued):
        at = timezone.localtime() + timedelta(days=days)
        expiry = {"expires_at_0": at.strftime("%Y-%m-%d"), "expires_at_1": at.strftime("%H:%M:%S")}
        response = as_alice.post(reverse(KEY + "add"), {**self.fields, **expiry})
        assert ("This is in the past" in response.content.decode()) is not issued
        with tenant_transaction(world.acme):
            assert ApiKey.objects.filter(name="crm").exists() is issued

    def test_key__is_never_edited(self, world, as_alice):
        key = key_of(world.acme)
        response = as_alice.post(
            reverse(KEY + "change", args=[key.pk]), {"name": "x", "digest": "0" * 64}
        )
        assert response.status_code == 403
        assert key_of(world.acme).digest == key.digest

    def test_key__revoked_by_alice__ends_at_once(self, world, as_alice):
        address = f"/admin/tenants/apikey/{key_of(world.acme).pk}/revoke/"
        assert as_alice.get(address).status_code == 200
        assert key_of(world.acme).revoked_at is None
        assert as_alice.post(address).status_code == 302
        assert key_of(world.acme).revoked_at is not None

    def test_key__by_bob__is_looked_at_only(self, world, as_bob):
        address = f"/admin/tenants/apikey/{key_of(world.acme).pk}/"
        assert as_bob.get(reverse(KEY + "changelist")).status_code == 200
        assert as_bob.get(address + "change/").status_code == 200
        assert as_bob.get(reverse(KEY + "add")).status_code == 403
        assert as_bob.post(address + "revoke/").status_code == 403
        assert key_of(world.acme).revoked_at is None

    @pytest.mark.parametrize("page", ["change", "revoke", "history"])
    def test_key__of_acme__is_absent_for_charlie(self, world, as_charlie, page):
        address = f"/admin/tenants/apikey/{key_of(world.acme).pk}/{page}/"
        absent = f"/admin/tenants/apikey/00000000-0000-0000-0000-000000000000/{page}/"
        foreign, nothing = as_charlie.get(address), as_charlie.get(absent)
        assert foreign.status_code == nothing.status_code == 404
        assert foreign.content == nothing.content


class TestRefusals:
    def test_refusal__of_a_browser_in_the_admin__is_a_page_in_the_persons_language(self, as_bob):
        browser = {"HTTP_ACCEPT": "text/html", "HTTP_ACCEPT_LANGUAGE": "pt-BR"}
        for address, status, heading in (
            (reverse(KEY + "add"), 403, "Your role does not cover this"),
            ("/admin/nothing-here/", 404, "There is no such thing here"),
            ("/console/nothing-here", 404, "There is no such thing here"),
        ):
            response = as_bob.get(address, **browser)
            page = response.content.decode()
            assert response.status_code == status
            assert "css/console" in page
            assert address not in page
            with override("pt-br"):
                assert f"<h1>{gettext(heading)}</h1>" in page
                assert gettext(heading) != heading

    def test_refusal__of_a_program__stays_a_problem_body(self, as_bob):
        response = as_bob.get("/admin/nothing-here/", HTTP_ACCEPT="application/json")
        assert (response.status_code, response.json()["code"]) == (404, "NOT_FOUND")


class TestMemberships:
    def test_member__added_by_alice__has_the_role(self, world, as_alice, django_user_model):
        dora = django_user_model.objects.create_user("dora")
        response = as_alice.post(
            reverse(MEMBERSHIP + "add"), {"username": "dora", "role": Role.OPERATOR}
        )
        assert response.status_code == 302
        with tenant_transaction(world.acme):
            assert Membership.objects.get(user=dora).role == Role.OPERATOR
            assert AuditEntry.objects.order_by("-sequence").first().actor == "user:alice"
        browser = Client()
        browser.force_login(dora)
        assert browser.get(reverse("admin:index")).status_code == 200

    @pytest.mark.parametrize("username", ["nobody", "bob"])
    def test_member__unknown_or_there_already__is_refused(self, world, as_alice, username):
        response = as_alice.post(
            reverse(MEMBERSHIP + "add"), {"username": username, "role": Role.AUDITOR}
        )
        assert response.status_code == 200
        with tenant_transaction(world.acme):
            assert Membership.objects.count() == 2

    def test_member__removed_by_alice__loses_the_role(self, world, as_alice, as_bob):
        with tenant_transaction(world.acme):
            bobs = Membership.objects.get(user=world.bob)
        assert as_bob.get(reverse(AUDIT + "changelist")).status_code == 200
        response = as_alice.post(reverse(MEMBERSHIP + "delete", args=[bobs.pk]), {"post": "yes"})
        assert response.status_code == 302
        assert as_bob.get(reverse(AUDIT + "changelist")).status_code == 403

    def test_member__last_tenant_admin__is_not_removed(self, world, as_alice):
        with tenant_transaction(world.acme):
            hers = Membership.objects.get(user=world.alice)
        response = as_alice.post(reverse(MEMBERSHIP + "delete", args=[hers.pk]), {"post": "yes"})
        assert response.status_code == 403

    def test_member__by_bob__is_not_added(self, world, as_bob):
        assert as_bob.get(reverse(MEMBERSHIP + "changelist")).status_code == 200
        assert as_bob.get(reverse(MEMBERSHIP + "add")).status_code == 403


class TestAudit:
    def test_trail__is_read_by_bob_and_changed_by_nobody(self, world, as_bob, as_alice):
        with tenant_transaction(world.acme):
            entry = AuditEntry.objects.filter(entity="user:bob").get()
        page = as_bob.get(reverse(AUDIT + "change", args=[entry.pk]))
        assert entry.hash in page.content.decode()
        for client in (as_bob, as_alice):
            assert client.get(reverse(AUDIT + "add")).status_code == 403
            address = reverse(AUDIT + "change", args=[entry.pk])
            assert client.post(address, {"actor": "x"}).status_code == 403
            assert client.post(reverse(AUDIT + "delete", args=[entry.pk])).status_code == 403


class TestPlatform:
    def test_tenant__made_by_a_platform_admin__is_audited(self, as_root):
        response = as_root.post(reverse("admin:tenants_tenant_add"), {"slug": "nova", "name": "N"})
        assert response.status_code == 302
        with tenant_transaction(Tenant.objects.get(slug="nova")):
            assert AuditEntry.objects.get().actor == "user:root"

    @pytest.mark.parametrize("slug", ["Nova", "acme", "-x"])
    def test_tenant__with_a_wrong_slug__is_refused(self, as_root, slug):
        response = as_root.post(reverse("admin:tenants_tenant_add"), {"slug": slug, "name": "N"})
        assert response.status_code == 200
        assert Tenant.objects.count() == 2

    def test_tenant__renamed__keeps_its_slug(self, world, as_root):
        address = reverse("admin:tenants_tenant_change", args=[world.acme.pk])
        assert as_root.post(address, {"slug": "x", "name": "Acme S/A"}).status_code == 302
        tenant = Tenant.objects.get(pk=world.acme.pk)
        assert (tenant.slug, tenant.name) == ("acme", "Acme S/A")

    @pytest.mark.parametrize("page", ["tenants_tenant", "tenants_user"])
    def test_platform_pages__are_not_the_tenant_admins(self, as_alice, page):
        for view in ("changelist", "add"):
            assert as_alice.get(reverse(f"admin:{page}_{view}")).status_code == 403

    def test_user__page__opens_for_a_platform_admin(self, world, as_root):
        for address in (
            reverse("admin:tenants_user_changelist"),
            reverse("admin:tenants_user_add"),
            reverse("admin:tenants_user_change", args=[world.bob.pk]),
        ):
            assert as_root.get(address).status_code == 200


class TestSwitching:
    def test_header__names_the_tenant_and_offers_the_others(self, world, as_alice):
        with tenant_transaction(world.other):
            membership_grant(user=world.alice, role=Role.AUDITOR, actor="user:charlie")
        page = as_alice.get(reverse("admin:index")).content.decode()
        assert page.count('name="slug"') == 2
        assert as_alice.post("/tenant/", {"slug": "other", "next": "/admin/"}).url == "/admin/"
        listed = as_alice.get(reverse(MEMBERSHIP + "changelist")).content.decode()
        assert "charlie" in listed
        assert "bob" not in listed

    @pytest.mark.parametrize("slug", ["other", "nobody", ""])
    def test_pick__of_a_foreign_tenant__is_absent(self, world, as_alice, slug):
        assert as_alice.post("/tenant/", {"slug": slug}).status_code == 404
        assert "tenant" not in as_alice.session

    def test_pick__by_get_or_signed_out__is_refused(self, as_alice, client, settings):
        settings.LOGIN_URL = "/admin/login/"
        assert as_alice.get("/tenant/").status_code == 405
        assert client.post("/tenant/", {"slug": "acme"}).status_code == 302

    def test_pick__with_a_foreign_next__stays_here(self, as_alice):
        for target in ("https://example.com/", "//example.com", "javascript:alert(1)"):
            response = as_alice.post("/tenant/", {"slug": "acme", "next": target})
            assert response.url == reverse("admin:index")

    def test_platform_admin__may_enter_any(self, world, as_root):
        as_root.post("/tenant/", {"slug": "other"})
        assert "charlie" in as_root.get(reverse(MEMBERSHIP + "changelist")).content.decode()

    def test_person_without_tenant__sees_an_empty_admin(self, world, django_user_model):
        browser = Client()
        browser.force_login(django_user_model.objects.create_user("dora", is_staff=True))
        assert browser.get(reverse("admin:index")).status_code == 200
        assert browser.get(reverse(KEY + "changelist")).status_code == 403
