"""The console's door: signing in and out, entering a tenant, being refused."""

from typing import Any

import pytest
from django.test import Client

from apps.tenants.models import Role
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import membership_grant

pytestmark = pytest.mark.django_db
LOGIN = "/console/login"


def sign_in(browser: Client, password: str, **more: str) -> Any:
    return browser.post(LOGIN, {"username": "alice", "password": password, **more})


def test_login__with_the_right_password__goes_where_one_came_from(world: Any, client: Client):
    assert 'name="password"' in client.get(LOGIN).content.decode()
    response = sign_in(client, "alice knows", next="/console/sessions/")
    assert response["Location"] == "/console/sessions/"
    assert client.get("/console/sessions/").status_code == 200


def test_login__to_another_site__goes_home_instead(world: Any, client: Client):
    response = sign_in(client, "alice knows", next="https://evil.example/")
    assert response["Location"] == "/console/"


def test_login__with_a_wrong_password__says_so_and_lets_nobody_in(world: Any, client: Client):
    response = sign_in(client, "guess")
    assert response.status_code == 200
    assert 'role="alert"' in response.content.decode()
    assert client.get("/console/").status_code == 302


def test_login__of_who_is_signed_in__goes_home(as_alice: Client):
    assert as_alice.get(LOGIN)["Location"] == "/console/"


def test_logout__ends_the_login(as_alice: Client):
    assert as_alice.post("/console/logout")["Location"] == LOGIN
    assert as_alice.get("/console/")["Location"] == f"{LOGIN}?next=/console/"


def test_menu__of_a_member_of_two_tenants__enters_the_other(world: Any, as_alice: Client):
    with tenant_transaction(world.other):
        membership_grant(user=world.alice, role=Role.AUDITOR, actor="test")
    html = as_alice.get("/console/").content.decode()
    assert '<button name="slug" value="other">Other</button>' in html
    answer = as_alice.post("/tenant/", {"slug": "other", "next": "/console/"})
    assert answer["Location"] == "/console/"
    html = as_alice.get("/console/").content.decode()
    assert '<button name="slug" value="acme">Acme</button>' in html


def test_menu__of_a_member_of_one_tenant__only_names_it(as_charlie: Client):
    html = as_charlie.get("/console/").content.decode()
    assert "Other" in html
    assert "Acme" not in html
    assert 'name="slug"' not in html


def test_console__for_somebody_of_no_tenant__says_so(django_user_model: Any, client: Client):
    client.force_login(django_user_model.objects.create_user("dora"))
    response = client.get("/console/")
    assert response.status_code == 403
    assert "You belong to no tenant yet" in response.content.decode()


def test_console__for_a_role_without_the_permission__says_so(as_bob: Client):
    response = as_bob.get("/console/chat/helper")
    assert response.status_code == 403
    assert "Your role does not cover this" in response.content.decode()


def test_language__chosen__is_that_of_the_next_page(as_alice: Client):
    answer = as_alice.post("/console/language", {"language": "pt-br", "next": "/console/"})
    assert answer["Location"] == "/console/"
    assert '<html lang="pt-br"' in as_alice.get("/console/").content.decode()
