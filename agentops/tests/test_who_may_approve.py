"""A request names, for each missing duty, the people who may still approve it: page and API alike."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from agentops.tests.governed_world import ALICE, ANA, Governed
from apps.governance.duty_services import duty_delegate, duty_grant
from apps.releases.changes.approvals import SHOWN_PEOPLE
from apps.tenants.models import Role, User
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import membership_grant

pytestmark = [pytest.mark.django_db, pytest.mark.governed]
PROMPT = ("prompt", "billing", {"system": "You explain invoices.\nBe brief."})
RAILS = ("rail_policy", "default", {"input": [{"code": "INPUT_SIZE"}]})


def asked(
    governed: Governed, what: tuple[str, str, Any], *, by: str = "olga", risk: str = "behaviour"
) -> int:
    """Return the number of a request in review."""
    kind, slug, content = what
    terms = {"title": "Words", "reason": "Asked for", "declared_risk": risk}
    number = int(governed.call("post", "changes", terms, by=by, status=201)["number"])
    address = f"changes/{number}/items/{kind}/{slug}"
    governed.call("put", address, {"content": content}, by=by, status=200)
    governed.call("post", f"changes/{number}/submit", by=by, status=200)
    return number


def approved(governed: Governed, number: int, by: str) -> None:
    found = governed.call("get", f"changes/{number}", status=200)
    decision = {"decision": "approve", "sha256": found["manifest_sha256"]}
    governed.call("post", f"changes/{number}/decide", decision, by=by, status=200)


def may_approve(governed: Governed, number: int) -> dict[str, list[str]]:
    found = governed.call("get", f"changes/{number}", by="bob", status=200)["may_approve"]
    return {entry["duty"]: entry["people"] for entry in found}


def page(governed: Governed, number: int, name: str = "ana") -> str:
    address = reverse("admin:releases_changerequest_change", args=[governed.request(number).pk])
    return str(governed.browser(name).get(address).content.decode())


def granted(governed: Governed, name: str, duty: str, by: str = ALICE) -> None:
    with tenant_transaction(governed.world.acme):
        duty_grant(user=User.objects.get(username=name), duty=duty, actor=by)


def approvers(governed: Governed, *names: str) -> None:
    with tenant_transaction(governed.world.acme):
        for name in names:
            user = User.objects.create_user(name, f"{name}@example.com", "x")
            membership_grant(user=user, role=Role.APPROVER, actor="test")


def test_missing_duty__names_who_holds_it_and_once_filled_nobody(governed: Governed) -> None:
    number = asked(governed, PROMPT)
    assert may_approve(governed, number) == {"domain": ["user:ana"]}
    assert "<li>Domain: ana</li>" in page(governed, number)
    approved(governed, number, "ana")
    assert may_approve(governed, number) == {}
    assert "Domain: ana" not in page(governed, number)


def test_editor__who_holds_the_duty__is_not_named(governed: Governed) -> None:
    granted(governed, "olga", "domain")
    assert may_approve(governed, asked(governed, PROMPT)) == {"domain": ["user:ana"]}


def test_missing_duty__that_only_an_editor_holds__says_that_nobody_may(governed: Governed) -> None:
    number = asked(governed, RAILS, by="alice", risk="weakening")
    assert may_approve(governed, number) == {"platform": [], "security": []}
    assert "nobody who may still approve" in page(governed, number)


def test_delegate__of_another_is_named_and_of_an_editor_not(governed: Governed) -> None:
    until = timezone.now() + timedelta(days=1)
    with tenant_transaction(governed.world.acme):
        otto, bob = (User.objects.get(username=name) for name in ("otto", "bob"))
        common: dict[str, Any] = {"expires_at": until, "reason": "holiday"}
        duty_delegate(user=otto, duty="domain", actor=ANA, **common)
        duty_delegate(user=bob, duty="security", actor=ALICE, **common)
    assert may_approve(governed, asked(governed, PROMPT)) == {"domain": ["user:ana", "user:otto"]}
    number = asked(governed, RAILS, by="alice", risk="weakening")
    assert may_approve(governed, number)["security"] == []


def test_person__who_has_approved__is_not_asked_for_the_second_duty(governed: Governed) -> None:
    """Alice holds both; once she approved, the other place is for somebody else."""
    number = asked(governed, RAILS, risk="weakening")
    assert may_approve(governed, number) == {"platform": ["user:alice"], "security": ["user:alice"]}
    approved(governed, number, "alice")
    (missing,) = may_approve(governed, number)
    granted(governed, "otto", "platform")
    granted(governed, "ana", "security")
    # Whichever place Alice was counted for, she makes room for the other one.
    assert may_approve(governed, number) == {missing: ["user:ana", "user:otto"]}
    approved(governed, number, "otto")
    assert governed.request(number).status == "approved"


def test_person__who_approved_before_they_held_the_duty__is_named_again(
    governed: Governed,
) -> None:
    number = asked(governed, RAILS, risk="weakening")
    approved(governed, number, "otto")
    assert may_approve(governed, number)["security"] == ["user:alice"]
    granted(governed, "otto", "security")
    assert may_approve(governed, number)["security"] == ["user:alice", "user:otto"]
    approved(governed, number, "otto")
    assert may_approve(governed, number) == {"platform": ["user:alice"]}
    approved(governed, number, "alice")
    assert governed.request(number).status == "approved"


def test_holder__whom_no_role_lets_decide__is_not_named(governed: Governed) -> None:
    granted(governed, "bob", "domain")
    number = asked(governed, PROMPT)
    assert may_approve(governed, number) == {"domain": ["user:ana"]}
    shown = governed.request(number).manifest_sha256
    decision = {"decision": "approve", "sha256": shown}
    governed.call("post", f"changes/{number}/decide", decision, by="bob", status=403)


def test_many_holders__five_are_named_and_the_others_counted(governed: Governed) -> None:
    approvers(governed, *(f"zoe{number}" for number in range(7)))
    number = asked(governed, PROMPT)
    (entry,) = governed.call("get", f"changes/{number}", status=200)["may_approve"]
    assert entry["people"] == ["user:ana", *(f"user:zoe{n}" for n in range(SHOWN_PEOPLE - 1))]
    assert entry["more"] == 3
    assert "<li>Domain: ana, zoe0, zoe1, zoe2, zoe3 and 3 more</li>" in page(governed, number)


def test_people__of_another_tenant_or_inactive__are_not_named(governed: Governed) -> None:
    with tenant_transaction(governed.world.other):
        stranger = User.objects.create_user("aaron")
        membership_grant(user=stranger, role=Role.APPROVER, actor="test")
    approvers(governed, "abel")
    User.objects.filter(username="abel").update(is_active=False)
    number = asked(governed, PROMPT)
    assert may_approve(governed, number) == {"domain": ["user:ana"]}
    governed.call("get", f"changes/{number}", by="charlie", status=404)


def test_request__withdrawn__names_nobody(governed: Governed) -> None:
    number = asked(governed, PROMPT)
    governed.call("post", f"changes/{number}/withdraw", by="olga", status=200)
    assert may_approve(governed, number) == {}


def test_request__with_more_holders__asks_as_many_queries(governed: Governed) -> None:
    number = asked(governed, RAILS, risk="weakening")

    def queries() -> list[int]:
        counts = []
        for look in (
            lambda: page(governed, number),
            lambda: governed.call("get", f"changes/{number}", by="bob", status=200),
        ):
            look()
            with CaptureQueriesContext(connection) as captured:
                look()
            counts.append(len(captured))
        return counts

    few = queries()
    names = [f"zoe{n}" for n in range(12)]
    approvers(governed, *names)
    for name in names:
        granted(governed, name, "security")
    assert queries() == few
