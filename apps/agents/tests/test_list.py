"""The list of agents says what is being changed, in the same queries however many there are."""

from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.releases.change_models import ChangePatch, ChangeRequest
from apps.releases.services import item_save
from apps.tenants.scope import tenant_transaction

LIST = "admin:agents_agent_changelist"


def agent(slug: str, *statuses: str) -> None:
    """Make an agent, and a request in each of ``statuses`` that changes it."""
    item_save(kind="agent", slug=slug, content={"prompt": "p"}, actor="a")
    for status in statuses:
        number = ChangeRequest.objects.count() + 1
        request = ChangeRequest.objects.create(number=number, author="user:olga", status=status)
        ChangePatch.objects.create(
            request=request, kind="agent", slug=slug, action="change", edited_by="user:olga"
        )


def states(browser) -> dict[str, str]:
    rows = browser.get(reverse(LIST)).context["cl"].result_list
    return {row.slug: row.open_status or "" for row in rows}


def test_agents__being_changed__show_the_state_of_the_newest_open_request(
    world, as_alice, as_charlie
):
    with tenant_transaction(world.acme):
        agent("quiet")
        agent("drafted", "draft")
        agent("reviewed", "draft", "in_review")
        agent("done", "published", "rejected")
    assert states(as_alice) == {
        "quiet": "",
        "drafted": "draft",
        "reviewed": "in_review",
        "done": "",
    }
    assert "In review" in as_alice.get(reverse(LIST)).content.decode()
    assert states(as_charlie) == {}


def test_agents__many_of_them__cost_no_more_queries(world, as_alice):
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert as_alice.get(reverse(LIST)).status_code == 200
        return len(queries)

    with tenant_transaction(world.acme):
        agent("a-1", "draft")
    cost()
    few = cost()
    with tenant_transaction(world.acme):
        for number in range(2, 20):
            agent(f"a-{number}", "in_review")
    assert cost() == few
