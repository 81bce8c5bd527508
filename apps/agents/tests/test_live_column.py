"""The list of agents says which environments run each: as its head is now, or an older content."""

from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.releases import selectors
from apps.releases.authority import setting_up
from apps.releases.environments.services import release_deploy
from apps.releases.freezing import CorruptRelease
from apps.releases.models import ConfigItem, Deployment, Release
from apps.releases.services import item_archive, item_save, release_publish
from apps.tenants.scope import tenant_transaction
from conftest import World

LIST = "admin:agents_agent_changelist"
NEEDED: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("model_profile", "default", {"provider": "scripted"}),
    ("memory_policy", "default", {}),
    ("rail_policy", "default", {}),
    ("judge_policy", "default", {}),
    ("prompt", "p", {"system": "x"}),
)


def saved(**agents: str) -> None:
    """Save agents by slug, each with its description, and what they need."""
    for kind, slug, content in NEEDED:
        item_save(kind=kind, slug=slug, content=content, actor="a")
    for slug, description in agents.items():
        agent = {"prompt": "p", "description": description}
        item_save(kind="agent", slug=slug, content=agent, actor="a")


def published(*environments: str) -> Release:
    release = release_publish(actor="a")
    for environment in environments:
        release_deploy(release=release, environment=environment, actor="a")
    return release


def live(browser: Client, **query: str) -> dict[str, str]:
    """Return what the list shows, by slug."""
    response = browser.get(reverse(LIST), query)
    changelist = response.context["cl"]
    shown = {row.slug: changelist.model_admin.live(row) for row in changelist.result_list}
    text = response.content.decode()
    assert all(said in text for said in shown.values())
    return shown


@pytest.fixture
def two(world: World) -> World:
    """Acme with two agents, published and running in staging and production."""
    with tenant_transaction(world.acme):
        saved(billing="Invoices", orders="Orders")
        published("staging", "production")
    return world


def test_agents__deployed__say_where_and_one_that_is_new_says_nowhere(
    two: World, as_alice: Client, as_charlie: Client
) -> None:
    with tenant_transaction(two.acme):
        saved(fresh="Not published yet")
    assert live(as_alice) == {
        "billing": "production, staging", "orders": "production, staging", "fresh": "–",
    }  # fmt: skip
    assert live(as_charlie) == {}


def test_agent__changed_since__is_older_until_the_change_arrives(
    two: World, as_alice: Client
) -> None:
    with tenant_transaction(two.acme):
        saved(billing="Invoices and bills")
        assert live(as_alice)["billing"] == "production: older, staging: older"
        published("staging")
    assert live(as_alice) == {
        "billing": "production: older, staging", "orders": "production, staging",
    }  # fmt: skip


def test_agent__of_a_canary__says_so(two: World, as_alice: Client) -> None:
    with tenant_transaction(two.acme):
        saved(billing="Invoices and bills")
        release = published()
        Deployment.objects.filter(environment="production").update(canary=release, canary_share=5)
    assert live(as_alice)["billing"] == "production: older, production (canary), staging: older"


def test_agent__archived__says_where_it_still_runs(two: World, as_alice: Client) -> None:
    with tenant_transaction(two.acme):
        saved(routed="x")
        published("staging")
        assert live(as_alice)["routed"] == "staging"
        item_archive(item=ConfigItem.objects.get(slug="routed"), actor="a")
    assert live(as_alice, state="archived") == {"routed": "staging"}


def test_agents__of_a_release_that_was_tampered_with__are_listed_all_the_same(
    two: World, as_alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(row: Release) -> None:
        raise CorruptRelease

    monkeypatch.setattr(selectors, "_parsed", changed)
    selectors.caches_clear()
    assert live(as_alice)["billing"] == "production: not readable, staging: not readable"


def test_agents__many_of_them_and_more_releases__cost_no_more_queries_and_read_no_manifest(
    two: World, as_alice: Client
) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert as_alice.get(reverse(LIST)).status_code == 200
        assert not [q for q in captured.captured_queries if '"manifest"' in q["sql"]]
        return len(captured)

    as_alice.get(reverse(LIST))
    few = cost()
    with tenant_transaction(two.acme), setting_up("a test's world"):
        for number in range(3):
            saved(**{f"agent_{number}_{n}": str(n) for n in range(8)})
            published(*settings.RELEASE_ENVIRONMENTS)
    as_alice.get(reverse(LIST))
    assert cost() == few
