"""The first page and the menu say what waits for whom, and what is not live yet."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.governance.approval_models import DutyAssignment, Notification
from apps.releases.change_models import BindingProposal, ChangeRequest, FreezeWindow
from apps.releases.environments.services import release_deploy
from apps.releases.models import Deployment
from apps.releases.pages.waiting import requests_waiting
from apps.releases.services import item_save, release_publish
from apps.tenants.models import Role, User
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import membership_grant
from conftest import World

INDEX = "admin:index"


@pytest.fixture
def people(world: World) -> dict[str, Client]:
    """Browsers of Ana (approver), Olga (business owner) and Otto (operator) of acme."""
    browsers = {}
    with tenant_transaction(world.acme):
        for name, role in (
            ("ana", Role.APPROVER),
            ("olga", Role.BUSINESS_OWNER),
            ("otto", Role.OPERATOR),
        ):
            user = User.objects.create_user(name)
            membership_grant(user=user, role=role, actor="world")
            browsers[name] = Client()
            browsers[name].force_login(user)
    return browsers


def request_make(world: World, **more: Any) -> ChangeRequest:
    with tenant_transaction(world.acme):
        number = ChangeRequest.objects.count() + 1
        fields = {"title": f"Warmer {number}", "author": "user:olga", "status": "in_review"}
        request: ChangeRequest = ChangeRequest.objects.create(number=number, **{**fields, **more})
    return request


def index(browser: Client) -> Any:
    response = browser.get(reverse(INDEX))
    assert response.status_code == 200
    return response


def badges(response: Any) -> dict[str, Any]:
    """Return title → number of the entries in the menu that have one."""
    return {
        str(item["title"]): item["badge"]
        for group in response.context["sidebar_navigation"]
        for item in group["items"]
        if "badge" in item
    }


def titles(response: Any) -> set[str]:
    return {
        str(item["title"])
        for group in response.context["sidebar_navigation"]
        for item in group["items"]
        if item.get("has_permission", True)
    }


def test_request__in_review__waits_for_who_holds_a_duty_and_edits_nothing_of_it(
    world: World, people: dict[str, Client]
) -> None:
    request_make(world)
    request_make(world, editors=json.dumps(["user:olga", "user:ana"]))
    request_make(world, status="draft")
    for name, count in (("ana", 1), ("otto", 2)):
        response = index(people[name])
        assert response.context["waiting"]["count"] == count
        assert badges(response) == {"Review queue": count}
    response = index(people["olga"])
    assert response.context["waiting"] is None
    assert response.context["mine"]["count"] == 3
    assert badges(response) == {}


def test_request__in_review__waits_for_a_business_owner_who_was_given_a_duty(
    world: World, people: dict[str, Client]
) -> None:
    request_make(world, author="user:alice", editors=json.dumps(["user:alice"]))
    with tenant_transaction(world.acme):
        DutyAssignment.objects.create(
            user=User.objects.get(username="olga"), duty="domain", granted_by="user:alice"
        )
    assert index(people["olga"]).context["waiting"]["count"] == 1


def test_request__somebody_decided_on__waits_for_them_no_longer(
    world: World, people: dict[str, Client]
) -> None:
    request = request_make(world, manifest_sha256="ab" * 32)
    with tenant_transaction(world.acme):
        request.approvals.create(
            person="user:ana", decision="approve", manifest_sha256="ab" * 32, terms=""
        )
        assert list(requests_waiting("user:ana")) == []
        assert list(requests_waiting("user:otto")) == [request]
        assert list(requests_waiting("key:ab12cd34")) == []


def test_emergency__nobody_accepted__is_on_everybodys_first_page(
    world: World, people: dict[str, Client], as_bob: Client
) -> None:
    request = request_make(
        world, status="deployed", broken_glass_until=timezone.now() + timedelta(hours=3)
    )
    for browser in (*people.values(), as_bob):
        text = index(browser).content.decode()
        assert "runs without approval" in text
        assert reverse("admin:releases_changerequest_change", args=[request.pk]) in text


def test_emergency__accepted_long_ago__is_still_counted(
    world: World, people: dict[str, Client]
) -> None:
    now = timezone.now()
    request_make(
        world, status="deployed", broken_glass_until=now - timedelta(days=400), ratified_at=now
    )
    response = index(people["otto"])
    assert response.context["emergencies"] == []
    assert "1 so far" in response.content.decode()


def test_environments__with_canary_and_frozen_time__say_so(
    world: World, people: dict[str, Client]
) -> None:
    with tenant_transaction(world.acme):
        item_save(kind="prompt", slug="p", content={"system": "One."}, actor="a")
        first = release_publish(actor="a")
        release_deploy(release=first, environment="staging", actor="a")
        item_save(kind="prompt", slug="p", content={"system": "Two."}, actor="a")
        Deployment.objects.update(canary=release_publish(actor="a"), canary_share=20)
        FreezeWindow.objects.create(
            environment="production",
            starts_at=timezone.now() - timedelta(hours=1),
            ends_at=timezone.now() + timedelta(hours=1),
            reason="Black Friday",
            created_by="a",
        )
    text = " ".join(index(people["ana"]).content.decode().split())
    assert "canary #2: 20 %" in text
    assert text.count("frozen until") == 1
    assert "nothing yet" in text


def test_published__but_not_in_production__is_listed(
    world: World, people: dict[str, Client]
) -> None:
    request_make(world, status="published", environment="production")
    request_make(world, status="deployed")
    response = index(people["ana"])
    assert [row.title for row in response.context["behind"]["rows"]] == ["Warmer 1"]


def test_bindings_and_notifications__that_wait__are_counted(
    world: World, people: dict[str, Client]
) -> None:
    with tenant_transaction(world.acme):
        BindingProposal.objects.create(
            environment="production", what="address", name="crm", proposed_by="user:otto"
        )
        ana = User.objects.get(username="ana")
        Notification.objects.create(user=ana, event="change.submitted", subject="#1")
    response = index(people["ana"])
    assert response.context["bindings_open"] == 1
    # Where it is decided on; not for who proposed it, nor for who decides on none.
    page = response.content.decode()
    link = reverse("admin:releases_environment", args=["production"])
    assert link in page[page.index("Bindings to approve") :][:300]
    for other in ("otto", "olga"):
        assert index(people[other]).context["bindings_open"] == 0
    assert badges(response) == {"Notifications": 1}
    assert badges(index(people["otto"])) == {}


def test_menu__by_role__shows_what_may_be_opened(
    world: World, people: dict[str, Client], as_bob: Client
) -> None:
    governance = {"Review queue", "Environments", "Who approves what", "Duties", "Gates"}
    for browser in (people["ana"], people["otto"], as_bob):
        assert governance <= titles(index(browser))
    assert "Webhooks" in titles(index(people["otto"]))
    assert "Webhooks" not in titles(index(people["olga"]))


def test_first_page__of_another_tenant__shows_nothing_of_ours(
    world: World, people: dict[str, Client], as_charlie: Client
) -> None:
    request_make(world, broken_glass_until=timezone.now() + timedelta(hours=3))
    response = index(as_charlie)
    assert "Warmer" not in response.content.decode()
    assert response.context["waiting"]["count"] == 0
    assert badges(response) == {}
