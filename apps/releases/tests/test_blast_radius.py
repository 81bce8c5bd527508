"""How far a change of one item reaches."""

from uuid import uuid4

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext, override_settings
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from apps.releases.change_models import ChangePatch, ChangeRequest
from apps.releases.environments.in_flight import OpenConversation
from apps.releases.environments.services import binding_set, release_deploy
from apps.releases.evidence.blast_radius import blast_radius, reaching, releases_containing
from apps.releases.services import item_archive, release_publish
from apps.releases.tests.conftest import item, save
from apps.tenants.scope import tenant_transaction

TALKING = "apps.releases.tests.test_blast_radius.talking"
asked: list[tuple[str, tuple[tuple[str, str], ...]]] = []


def talking(*, environment, using=(), limit=200):
    """Three conversations of production stand on whatever is asked for."""
    asked.append((environment, tuple(using)))
    found = [
        OpenConversation(uuid4(), f"s{n}", None, pending=n == 0, updated_at=timezone.now())
        for n in range(3)
    ]
    return (3, found[:limit]) if environment == "production" else (0, [])


@pytest.fixture
def live(billing):
    """The small world runs in dev; the release after it, which changed a prompt, nowhere."""
    first = release_publish(actor="a")
    for environment in ("dev", "production"):
        binding_set(
            environment=environment,
            what="address",
            name="telecom_mcp",
            value="http://x/",
            actor="a",
        )
        release_deploy(release=first, environment=environment, actor="a")
    save("prompt", "billing", system="Shorter.")
    release_publish(actor="a")
    asked.clear()
    return billing


@override_settings(OPEN_CONVERSATIONS=TALKING)
def test_radius__of_a_tools_server__reaches_agents_through_the_tool(live):
    reach = blast_radius("tool_server", "telecom")
    assert reach.agents == ("billing_agent",)
    assert set(reach.users) >= {("tool", "get_bill"), ("agent", "billing_agent")}
    assert [(e.environment, e.release.number, e.agents) for e in reach.environments] == [
        ("dev", 1, ("billing_agent",)),
        ("production", 1, ("billing_agent",)),
    ]
    assert {e.environment: e.open_conversations for e in reach.environments} == {
        "dev": 0,
        "production": 3,
    }
    assert ("production", (("tool_server", "telecom"),)) in asked
    assert [release.number for release in reach.releases] == [2, 1]
    assert reach.channels == tuple(settings.GATEWAY_CHANNELS)


def test_radius__of_an_agent__is_itself_and_what_names_it(live):
    reach = blast_radius("agent", "billing_agent")
    assert reach.agents == ("billing_agent",)
    assert ("intent", "bill_explain") in reach.users
    assert ("tool", "get_bill") not in reach.users


def test_radius__of_an_item_nobody_names__is_small(live):
    save("prompt", "alone", system="x")
    reach = blast_radius("prompt", "alone")
    assert (reach.agents, reach.users, reach.environments, reach.release_count) == ((), (), (), 0)
    assert reach.channels == ()
    assert blast_radius("prompt", "never_was").release_count == 0


def test_radius__names_open_requests_and_not_closed_ones(live):
    for number, status in ((1, "in_review"), (2, "withdrawn")):
        request = ChangeRequest.objects.create(number=number, status=status, author="user:olga")
        ChangePatch.objects.create(
            request=request, kind="prompt", slug="billing", action="change", edited_by="user:olga"
        )
    reach = blast_radius("prompt", "billing")
    assert [patch.request.number for patch in reach.requests] == [1]
    assert blast_radius("tool", "get_bill").requests == ()


def test_releases__from_before_after_and_without_the_item__are_told_apart(live):
    save("prompt", "late", system="x")
    release_publish(actor="a")
    item_archive(item=item("prompt", "late"), actor="a")
    save("prompt", "billing", system="Shorter still.")
    release_publish(actor="a")
    save("prompt", "late", system="y")
    release_publish(actor="a")
    numbers = [release.number for release in releases_containing("prompt", "late")[0]]
    assert numbers == [5, 3]
    assert releases_containing("prompt", "billing")[1] == 5


def test_radius__with_more_releases_and_items__asks_as_many_queries(live):
    blast_radius("tool", "get_bill")

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            blast_radius("tool", "get_bill")
        assert not [q for q in captured.captured_queries if '"manifest"' in q["sql"]]
        return len(captured)

    few = queries()
    for number in range(12):
        save("prompt", f"more_{number}", system="x")
        release_publish(actor="a")
    assert queries() == few


def test_radius__in_another_tenant__is_empty(live, world):
    with tenant_transaction(world.other):
        reach = blast_radius("tool", "get_bill")
        assert (reach.users, reach.environments, reach.release_count) == ((), (), 0)


KEYS = st.tuples(st.sampled_from(["agent", "tool"]), st.sampled_from("abcd"))


@given(st.dictionaries(KEYS, st.sets(KEYS, max_size=4), max_size=8), KEYS)
def test_reaching__in_any_graph_even_with_circles__is_closed_and_without_itself(users, key):
    found = reaching(key, users)
    assert key not in found
    for member in {key, *found}:
        assert users.get(member, set()) <= found | {key}
