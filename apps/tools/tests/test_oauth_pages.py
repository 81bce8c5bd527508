"""The pages where people sign in at tool servers: Alice connects, Bob has his own, Charlie none."""

from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient
from django.urls import reverse

from apps.releases.environments.services import binding_set, release_deploy
from apps.releases.models import ConfigItem
from apps.releases.services import item_save, release_publish
from apps.tenants.models import AuditEntry
from apps.tenants.scope import tenant_transaction
from apps.tools.contract_models import ServerState
from apps.tools.oauth_models import ToolConnection
from apps.tools.tests.oauth_server import oauth_world

pytestmark = pytest.mark.django_db

LIST = "/admin/tools/toolconnection/"
WHERE = {"environment": "production", "server": "agenda"}


@pytest.fixture(scope="module")
def oauth():
    with oauth_world() as running:
        yield running


@pytest.fixture
def connected(world, oauth, settings):
    """acme and other run the server ``agenda``, where everybody signs in."""
    settings.TOOL_ALLOW_PRIVATE = ["127.0.0.1"]
    for tenant in (world.acme, world.other):
        with tenant_transaction(tenant):
            for kind in ("rail_policy", "judge_policy", "memory_policy"):
                item_save(kind=kind, slug="default", content={}, actor="test")
            server = {"endpoint": "agenda_url", "auth": "oauth_user", "client_id": ""}
            for kind, slug, content in (
                ("model_profile", "default", {"provider": "scripted"}),
                ("prompt", "p", {"system": "Answer."}),
                ("agent", "a", {"prompt": "p"}),
                ("routing_policy", "default", {"default_agent": "a"}),
                ("tool_server", "agenda", server),
                ("tool_server", "plain", {"endpoint": "agenda_url"}),
            ):
                item_save(kind=kind, slug=slug, content=content, actor="test")
            binding_set(
                environment="production", what="address", name="agenda_url",
                value=oauth.server.url, actor="test",
            )  # fmt: skip
            release_deploy(
                release=release_publish(actor="test"), environment="production", actor="test"
            )
    return oauth


def browser(user):
    client = AsyncClient()
    client.force_login(user)
    return client


def post(client, page, **fields):
    return async_to_sync(client.post)(f"{LIST}{page}/", {**WHERE, **fields})


def get(client, address):
    return async_to_sync(client.get)(address)


def away(client):
    """Connect: return where the browser is sent, and what it comes back with."""
    answer = post(client, "connect")
    assert answer.status_code == 302, answer.content
    assert answer.headers["location"].startswith("http://127.0.0.1:"), answer.headers["location"]
    back = httpx2.get(answer.headers["location"], trust_env=False).headers["location"]
    assert urlsplit(back).path == reverse("admin:tools_toolconnection_callback")
    return f"{urlsplit(back).path}?{urlsplit(back).query}"


def rows(tenant):
    with tenant_transaction(tenant):
        return {row.principal: row.state for row in ToolConnection.objects.all()}


def page(client):
    return get(client, LIST + "?environment=production").content.decode()


def test_person__connects_and_ends_it(world, connected):
    alice = browser(world.alice)
    assert "Not connected" in page(alice)
    assert "plain" not in page(alice), "a server with a bound token wants no sign-in"
    answer = get(alice, away(alice))
    assert answer.status_code == 302
    assert rows(world.acme) == {"user:alice": "valid"}
    shown = page(alice)
    assert "Connected to agenda" in shown
    assert "Sign in again" in shown
    assert post(alice, "end", principal="user:alice").status_code == 302
    assert rows(world.acme) == {}
    with tenant_transaction(world.acme):
        trail = AuditEntry.objects.filter(action__startswith="tool_connection.")
        assert sorted(trail.values_list("action", flat=True)) == [
            "tool_connection.ended", "tool_connection.made",
        ]  # fmt: skip


def test_connection__of_alice__is_neither_bobs_nor_charlies(world, connected):
    alice, bob, charlie = (browser(user) for user in (world.alice, world.bob, world.charlie))
    get(alice, away(alice))
    assert "Not connected" in page(bob)
    assert "user:alice" not in page(bob)
    assert "Not connected" in page(charlie)
    assert rows(world.other) == {}
    with tenant_transaction(world.acme):
        row = ToolConnection.objects.get()
    for person, status in ((alice, 200), (bob, 404), (charlie, 404)):
        assert get(person, f"{LIST}{row.pk}/change/").status_code == status
    assert post(bob, "end", principal="user:alice").status_code == 403
    post(charlie, "end", principal="user:alice")
    assert rows(world.acme) == {"user:alice": "valid"}


def test_admin__ends_the_connection_of_another(world, connected):
    bob, alice = browser(world.bob), browser(world.alice)
    get(bob, away(bob))
    assert "user:bob" in page(alice)
    post(alice, "end", principal="user:bob")
    assert rows(world.acme) == {}


@pytest.mark.parametrize("who", ["bob", "charlie"])
def test_way_back__of_another_person__connects_nobody(world, connected, who):
    """Somebody is sent the address that Alice was to come back by."""
    back = away(browser(world.alice))
    other = browser(getattr(world, who))
    assert get(other, back).status_code == 302
    assert "Begin again" in page(other)
    assert rows(world.acme) == rows(world.other) == {}
    # Hers still counts: nobody used it up.
    get(browser(world.alice), back)
    assert rows(world.acme) == {"user:alice": "valid"}


def test_way_back__twice_or_signed_out__connects_once(world, connected):
    alice = browser(world.alice)
    back = away(alice)
    assert "login" in get(AsyncClient(), back).headers["location"]
    get(alice, back)
    get(alice, back)
    assert "Begin again" in page(alice)
    assert rows(world.acme) == {"user:alice": "valid"}


def test_way_back__with_an_error_or_another_issuer__says_why(world, connected):
    alice = browser(world.alice)
    state = parse_qs(urlsplit(away(alice)).query)["state"][0]
    callback = reverse("admin:tools_toolconnection_callback")
    get(alice, f"{callback}?state={state}&error=access_denied&error_description=No+thanks")
    assert "access_denied: No thanks" in page(alice)
    connected.authority.says_issuer = "https://evil.example"
    try:
        get(alice, away(alice))
    finally:
        connected.authority.says_issuer = ""
    assert "another authorisation server" in page(alice)
    assert rows(world.acme) == {}


@pytest.mark.parametrize("state", ["", "x", "1.", "99999999999999999999.x", "-1.x", "1.\x00"])
def test_way_back__with_a_made_up_state__is_an_error_to_read(world, connected, client, state):
    alice = browser(world.alice)
    callback = reverse("admin:tools_toolconnection_callback")
    answer = async_to_sync(alice.get)(callback, {"state": state, "code": "x"})
    assert answer.status_code == 302
    assert "Begin again" in page(alice)


def test_connect__to_what_wants_none__is_refused_in_words(world, connected):
    alice = browser(world.alice)
    for server in ("plain", "nothing", ""):
        answer = post(alice, "connect", server=server)
        assert answer.headers["location"].startswith(LIST)
    assert "nobody signs in there" in page(alice)
    assert post(alice, "connect", environment="moon").status_code == 404
    assert get(alice, LIST + "connect/").status_code == 405


def test_connect__to_a_server_that_is_down__is_refused_in_words(world, connected):
    with tenant_transaction(world.acme):
        binding_set(
            environment="production", what="address", name="agenda_url",
            value="http://127.0.0.1:9/mcp", actor="test",
        )  # fmt: skip
    alice = browser(world.alice)
    assert post(alice, "connect").headers["location"].startswith(LIST)
    assert "cannot be reached" in page(alice)


def test_refresh__of_a_server_where_everybody_signs_in__uses_the_persons_sign_in(world, connected):
    """Who has connected sees its tools; who has not is told that a sign-in is missing."""
    alice, charlie = browser(world.alice), browser(world.charlie)
    get(alice, away(alice))
    found = {}
    for person, tenant in ((alice, world.acme), (charlie, world.other)):
        with tenant_transaction(tenant):
            item = ConfigItem.objects.get(kind="tool_server", slug="agenda")
        address = f"/admin/tools/toolserver/{item.pk}/refresh/"
        async_to_sync(person.post)(address, {"environment": "production"})
        with tenant_transaction(tenant):
            state = ServerState.objects.get(server="agenda")
            found[tenant.slug] = (state.count, state.code)
    assert found == {"acme": (1, ""), "other": (0, "needs_sign_in")}
