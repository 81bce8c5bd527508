"""Who is calling."""

from datetime import timedelta

import pytest
from django.test import RequestFactory
from django.utils import timezone
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory
from rest_framework.views import APIView

from apps.tenants.auth import (
    CallerAuthentication,
    CallerRefused,
    TenantAbsent,
    principal_of,
    request_of_scope,
)
from apps.tenants.models import ApiKey
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import api_key_revoke, membership_grant, tenant_create
from apps.tenants.tokens import session_token_issue

pytestmark = pytest.mark.django_db


def request(**meta):
    return RequestFactory().post("/gateway/message", **meta)


def refused(call, tenant=""):
    with pytest.raises(CallerRefused) as raised:
        principal_of(call, tenant=tenant)
    assert raised.value.status_code == 401
    return raised.value.get_codes()


@pytest.mark.parametrize("header", ["HTTP_AUTHORIZATION", "HTTP_X_API_KEY"])
def test_key__in_either_header__names_its_tenant(world, header, django_assert_num_queries):
    text = world.acme_key if header == "HTTP_X_API_KEY" else f"bearer {world.acme_key}"
    principal_of(request(**{header: text}))
    with django_assert_num_queries(1):
        principal = principal_of(request(**{header: text}), tenant="acme")
    assert (principal.tenant_slug, principal.name) == ("acme", f"key:{world.acme_key[3:11]}")
    assert "identity:assert" in principal.scopes
    assert not principal.demo


def test_key__first_use__is_noted_once_a_minute(world):
    def last_used():
        with tenant_transaction(world.acme):
            return ApiKey.objects.get().last_used_at

    assert last_used() is None
    principal_of(request(**world.bearer()))
    first = last_used()
    assert first is not None
    principal_of(request(**world.bearer()))
    assert last_used() == first


def test_key__wrong_secret__is_unknown_and_not_noted(world):
    assert refused(request(HTTP_X_API_KEY=world.acme_key[:-1] + "!")) == "unknown_key"
    with tenant_transaction(world.acme):
        assert ApiKey.objects.get().last_used_at is None


@pytest.mark.parametrize("text", ["x", "ak_", "ak__", "ak_00000000_x", "ak_\x00_x", "ak_\ud800_x"])
def test_key__malformed__is_unknown(world, text):
    assert refused(request(HTTP_X_API_KEY=text)) == "unknown_key"


def test_key__expired__says_so(world, issue_key):
    text = issue_key("debug", expires_at=timezone.now() - timedelta(seconds=1))
    assert refused(request(HTTP_X_API_KEY=text)) == "expired_key"


def test_key__revoked__says_so_at_once(world):
    assert principal_of(request(**world.bearer())).has("debug")
    with tenant_transaction(world.acme):
        api_key_revoke(key=ApiKey.objects.get(), actor="user:alice")
    assert refused(request(**world.bearer())) == "revoked_key"


def test_key__another_tenant_named__is_answered_as_an_absent_one(world):
    answers = []
    for named in ("other", "nobody"):
        with pytest.raises(TenantAbsent) as raised:
            principal_of(request(**world.bearer()), tenant=named)
        answers.append((raised.value.status_code, raised.value.get_full_details()))
    assert answers[0] == answers[1]
    assert answers[0][0] == 404


def test_credential__basic_scheme__is_refused(world):
    assert refused(request(HTTP_AUTHORIZATION="Basic YTpi")) == "bad_credential"


def test_credential__none__is_missing(world):
    assert refused(request()) == "missing_credential"


def token_for(world, **fields):
    return session_token_issue(
        tenant_id=world.acme.pk,
        tenant_slug="acme",
        session="acme:telecom_contas:s1",
        principal="visitor:7",
        environment="production",
        **fields,
    )


def test_token__by_its_customer__is_limited_to_one_session(world, django_assert_num_queries):
    token = token_for(
        world,
        customer={"customer_key": "42"},
        scopes=["message:write", "identity:assert", "debug", "trace:read"],
    )
    with django_assert_num_queries(0):
        principal = principal_of(request(HTTP_AUTHORIZATION=f"Bearer {token}"))
    assert principal.session == "acme:telecom_contas:s1"
    assert principal.customer == {"customer_key": "42"}
    assert principal.scopes == {"message:write"}


def test_token__expired__says_so(world):
    token = token_for(world, lifetime=timedelta(seconds=-1))
    assert refused(request(HTTP_AUTHORIZATION=f"Bearer {token}")) == "expired_token"


@pytest.mark.parametrize("change", [lambda t: t[:-2] + "xx", lambda t: "st_" + t, lambda t: "st_"])
def test_token__changed__is_invalid(world, change):
    token = change(token_for(world))
    assert refused(request(HTTP_AUTHORIZATION=f"Bearer {token}")) == "invalid_token"


def test_token__after_the_signing_key_was_rotated__still_counts(world, settings):
    token = token_for(world)
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "a new one"
    assert principal_of(request(HTTP_AUTHORIZATION=f"Bearer {token}")).name == "visitor:7"
    settings.SECRET_KEY_FALLBACKS = []
    assert refused(request(HTTP_AUTHORIZATION=f"Bearer {token}")) == "invalid_token"


def test_query__token_counts_only_where_asked_and_a_key_never(world):
    token = token_for(world)
    call = RequestFactory().get("/gateway/events/s1", {"token": token})
    assert refused(call) == "missing_credential"
    assert principal_of(call, query_token=True).name == "visitor:7"
    with pytest.raises(CallerRefused) as raised:
        principal_of(RequestFactory().get("/", {"token": world.acme_key}), query_token=True)
    assert raised.value.get_codes() == "bad_credential"


class TestLogin:
    def call(self, client, method="get", **extra):
        made = getattr(RequestFactory(), method)("/agents", **extra)
        made.COOKIES = {name: morsel.value for name, morsel in client.cookies.items()}
        made.session = client.session
        from django.contrib.auth import get_user

        made.user = get_user(made)
        return made

    def test_login__of_a_member__has_the_scopes_of_its_roles(self, world, as_alice, as_bob):
        alice = principal_of(self.call(as_alice))
        assert (alice.name, alice.tenant_slug) == ("user:alice", "acme")
        assert alice.has("config:write")
        bob = principal_of(self.call(as_bob))
        assert bob.scopes == {
            "session:read", "trace:read", "config:read", "webhook:read", "tool:read",
        }  # fmt: skip

    def test_login__foreign_tenant_named__is_absent(self, world, as_charlie):
        with pytest.raises(TenantAbsent):
            principal_of(self.call(as_charlie), tenant="acme")

    def test_login__without_membership__is_refused(self, world, client, django_user_model):
        client.force_login(django_user_model.objects.create_user("dora"))
        assert refused(self.call(client)) == "no_membership"

    def test_login__with_several_tenants__takes_the_picked_one(self, world, as_alice):
        with tenant_transaction(world.other):
            membership_grant(user=world.alice, role="auditor", actor="user:charlie")
        assert principal_of(self.call(as_alice)).tenant_slug == "acme"
        session = as_alice.session
        session["tenant"] = "other"
        session.save()
        picked = principal_of(self.call(as_alice))
        assert picked.tenant_slug == "other"
        assert not picked.has("config:write")

    def test_login__post_without_csrf_token__is_refused(self, world, as_alice):
        from rest_framework.exceptions import PermissionDenied

        call = self.call(as_alice, "post")
        call._dont_enforce_csrf_checks = False
        with pytest.raises(PermissionDenied) as raised:
            principal_of(call)
        assert raised.value.get_codes() == "csrf_failed"


LOCAL = {"HTTP_HOST": "127.0.0.1:8000", "REMOTE_ADDR": "127.0.0.1"}


class TestKeyless:
    @pytest.fixture(autouse=True)
    def demo(self, settings, world):
        settings.DEMO = True
        settings.DEBUG = False
        tenant_create(slug="default", name="Default", demo_keyless=True)

    @pytest.mark.parametrize(
        "change",
        [
            {},
            {"HTTP_HOST": "localhost"},
            {"HTTP_HOST": "[::1]:8000", "REMOTE_ADDR": "::1"},
            {"REMOTE_ADDR": "::ffff:127.0.0.1"},
            {"HTTP_ORIGIN": "http://127.0.0.1:8000", "HTTP_SEC_FETCH_SITE": "same-origin"},
        ],
    )
    def test_keyless__from_this_machine__is_the_demo_caller(self, change):
        principal = principal_of(request(**LOCAL | change))
        assert (principal.tenant_slug, principal.name, principal.demo) == ("default", "demo", True)
        assert not principal.has("config:write")

    @pytest.mark.parametrize(
        "change",
        [
            {"REMOTE_ADDR": "10.0.0.7"},
            {"REMOTE_ADDR": ""},
            {"HTTP_HOST": "agentops.example.com"},
            {"HTTP_HOST": "localhost.example.com:8000"},
            {"HTTP_X_FORWARDED_FOR": "127.0.0.1"},
            {"HTTP_X_FORWARDED_PROTO": "http"},
            {"HTTP_FORWARDED": "for=127.0.0.1"},
            {"HTTP_X_REAL_IP": "127.0.0.1"},
            {"HTTP_VIA": "1.1 proxy"},
            {"HTTP_CF_CONNECTING_IP": "127.0.0.1"},
            {"HTTP_ORIGIN": "https://example.com"},
            {"HTTP_ORIGIN": "http://127.0.0.1:5173"},
            {"HTTP_ORIGIN": "null"},
            {"HTTP_SEC_FETCH_SITE": "cross-site"},
            {"HTTP_SEC_FETCH_SITE": "same-site"},
        ],
    )
    def test_keyless__from_anywhere_else__needs_a_credential(self, change):
        assert refused(request(**LOCAL | change)) == "missing_credential"

    @pytest.mark.parametrize("switch", [{"DEMO": False}, {"DEBUG": True}])
    def test_keyless__outside_the_demo__needs_a_credential(self, settings, switch):
        for name, value in switch.items():
            setattr(settings, name, value)
        assert refused(request(**LOCAL)) == "missing_credential"

    def test_keyless__tenant_that_is_no_demo__is_absent(self):
        answers = []
        for named in ("acme", "nobody"):
            with pytest.raises(TenantAbsent) as raised:
                principal_of(request(**LOCAL), tenant=named)
            answers.append(raised.value.get_full_details())
        assert answers[0] == answers[1]

    def test_keyless__wrong_key__is_never_the_demo_caller(self):
        assert refused(request(**LOCAL, HTTP_X_API_KEY="ak_x_y")) == "unknown_key"


class TestWebsocket:
    def scope(self, *, cookies="", query="", **headers):
        named = [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()]
        return {
            "type": "websocket",
            "path": "/ws/sessions/s1",
            "query_string": query.encode(),
            "headers": [*named, (b"cookie", cookies.encode())],
            "client": ("127.0.0.1", 5000),
        }

    def test_socket__with_a_key_or_a_token__is_its_principal(self, world):
        keyed = request_of_scope(self.scope(authorization=f"Bearer {world.acme_key}"))
        assert principal_of(keyed).tenant_slug == "acme"
        tokened = request_of_scope(self.scope(query=f"token={token_for(world)}"))
        assert principal_of(tokened, query_token=True).name == "visitor:7"

    def test_socket__with_a_login__is_that_person(self, world, as_bob):
        cookies = f"sessionid={as_bob.cookies['sessionid'].value}"
        assert principal_of(request_of_scope(self.scope(cookies=cookies))).name == "user:bob"

    @pytest.mark.parametrize("cookies", ["", "sessionid=unknown", "a=b; =;", "\x00"])
    def test_socket__without_a_credential__is_refused(self, world, cookies):
        assert refused(request_of_scope(self.scope(cookies=cookies))) == "missing_credential"


class TestDrf:
    @pytest.fixture
    def view(self):
        class Echo(APIView):
            authentication_classes = [CallerAuthentication]
            permission_classes = [IsAuthenticated]

            def post(self, request):
                return Response([request.auth.name, request.user.tenant_slug])

        return Echo.as_view()

    def post(self, view, body=None, **headers):
        call = APIRequestFactory().post("/", body or {}, format="json", **headers)
        return view(call)

    def test_view__with_a_key__knows_the_caller(self, world, view):
        answer = self.post(view, **world.bearer())
        assert answer.data == [f"key:{world.acme_key[3:11]}", "acme"]

    def test_view__without_a_credential__answers_401(self, world, view):
        answer = self.post(view)
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="agentops"'

    def test_view__with_an_unknown_key__answers_401(self, world, view):
        assert self.post(view, HTTP_X_API_KEY="ak_x").status_code == 401

    def test_view__naming_another_tenant__answers_404(self, world, view):
        answers = [
            self.post(view, {"tenant_id": named}, **world.bearer()) for named in ("other", "nobody")
        ]
        assert [answer.status_code for answer in answers] == [404, 404]
        assert self.post(view, {"tenant_id": "acme"}, **world.bearer()).status_code == 200


def test_key__bound_to_an_agent__is_known_with_it(world, issue_key, django_assert_num_queries):
    text = issue_key("message:write", agent="telecom_contas")
    principal_of(request(**world.bearer(text)))
    with django_assert_num_queries(1):
        principal = principal_of(request(**world.bearer(text)))
    assert (principal.agent, principal.tenant_slug) == ("telecom_contas", "acme")
    assert principal_of(request(**world.bearer())).agent == ""


def test_personal_key__bound_to_an_agent__is_the_person_and_bound(world, issue_key):
    text = issue_key("tool:read", agent="caixa", actor="user:bob", person=world.bob)
    principal = principal_of(request(**world.bearer(text)))
    assert (principal.name, principal.agent) == ("user:bob", "caixa")
    assert principal.scopes == {"tool:read"}
