"""The review queue and the page of a request: Olga asks, Ana decides, Bob reads, Charlie sees nothing."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from apps.governance.duty_services import duty_delegate
from apps.releases.authority import setting_up
from apps.releases.change_models import Approval, ChangeComment, ChangePatch, ChangeRequest
from apps.releases.changes.publishing import request_publish
from apps.releases.changes.services import (
    patch_archive,
    patch_save,
    request_decide,
    request_open,
    request_submit,
)
from apps.releases.environments.services import release_deploy
from apps.releases.models import ConfigItem, Deployment, Release
from apps.releases.pages.links import request_link
from apps.releases.services import item_save, release_publish
from apps.releases.tests.browser import send, submission
from apps.tenants.models import Role, User
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import membership_grant
from conftest import World

pytestmark = [pytest.mark.django_db, pytest.mark.governed]

OLGA, ANA, ALICE = "user:olga", "user:ana", "user:alice"
QUEUE = "/admin/releases/changerequest/"
ITEMS: list[tuple[str, str, dict[str, Any]]] = [
    ("model_profile", "default", {"provider": "scripted"}),
    ("memory_policy", "default", {}),
    ("rail_policy", "default", {"input": [{"code": "MSK"}, {"code": "PINJ"}]}),
    ("judge_policy", "default", {}),
    ("prompt", "billing", {"system": "You explain invoices to customers.\nBe kind and brief."}),
    ("agent", "billing", {"prompt": "billing", "description": "Invoices"}),
    ("intent", "invoice", {"agent": "billing", "keywords": ["invoice", "bill"]}),
    ("routing_policy", "default", {"default_agent": "billing"}),
]
PEOPLE = {"olga": Role.BUSINESS_OWNER, "ana": Role.APPROVER, "otto": Role.OPERATOR}


@pytest.fixture
def acme(world: World) -> World:
    """Acme with a small configuration that runs everywhere; its people."""
    with tenant_transaction(world.acme):
        for name, role in PEOPLE.items():
            user = User.objects.create_user(name, f"{name}@example.com", "x")
            membership_grant(user=user, role=role, actor="test")
        with setting_up("a test's world"):
            for kind, slug, content in ITEMS:
                item_save(
                    kind=kind, slug=slug, content=content, actor="test",
                    owner="Olga", technical_owner="Otto",
                )  # fmt: skip
            release = release_publish(actor="test")
            for environment in settings.RELEASE_ENVIRONMENTS:
                release_deploy(release=release, environment=environment, actor="test")
    return world


def browser(name: str) -> Client:
    client = Client()
    client.force_login(User.objects.get(username=name))
    return client


def content_of(kind: str, slug: str) -> dict[str, Any]:
    head = ConfigItem.objects.get(kind=kind, slug=slug).head
    assert head is not None
    found: dict[str, Any] = json.loads(head.content)
    return found


def drafted(
    world: World, actor: str = OLGA, kind: str = "prompt", slug: str = "billing", **changes: Any
) -> ChangeRequest:
    """A draft of ``actor`` that changes one item."""
    with tenant_transaction(world.acme):
        facts = {
            name: changes.pop(name) for name in ("declared_risk", "environment") if name in changes
        }
        facts = {"declared_risk": "behaviour", **facts}
        request = request_open(actor=actor, title="Softer words", reason="Customers ask", **facts)
        patch_save(
            actor=actor,
            kind=kind,
            slug=slug,
            content={**content_of(kind, slug), **(changes or {"response_style": "warm"})},
            request=request,
        )
        return request


def submitted(world: World, actor: str = OLGA, **changes: Any) -> ChangeRequest:
    request = drafted(world, actor, **changes)
    with tenant_transaction(world.acme):
        return request_submit(request=request, actor=actor)


def approved(world: World, **changes: Any) -> ChangeRequest:
    request = submitted(world, **changes)
    with tenant_transaction(world.acme):
        request_decide(
            request=request, actor=ANA, decision="approve", sha256=request.manifest_sha256
        )
        request.refresh_from_db()
    return request


def published(world: World, **changes: Any) -> ChangeRequest:
    request = approved(world, **changes)
    with tenant_transaction(world.acme):
        request_publish(request=request, actor=ANA)
        request.refresh_from_db()
    return request


def now(world: World, request: ChangeRequest) -> ChangeRequest:
    with tenant_transaction(world.acme):
        found: ChangeRequest = ChangeRequest.objects.get(pk=request.pk)
        return found


def page(client: Client, request: ChangeRequest, part: str = "") -> str:
    url = request_link(request)
    response = client.get(url.replace("/change/", f"/{part}/") if part else url)
    assert response.status_code == 200
    return response.content.decode()


def act(client: Client, request: ChangeRequest, name: str, **data: Any) -> Any:
    """Press a button of the request's page."""
    url = reverse("admin:releases_changerequest_act", args=[request.pk, name])
    return client.post(url, data, follow=True)


def said(response: Any) -> str:
    return str(response.content.decode())


# -- the way live --------------------------------------------------------------------------------
def test_request__drafted_submitted_approved_published__by_its_page_alone(acme: World) -> None:
    olga, ana = browser("olga"), browser("ana")
    request = drafted(acme, system="You explain bills to customers.\nBe kind and brief.")
    assert "Submit for review" in page(olga, request)
    assert "Submitted for review." in said(act(olga, request, "submit"))
    assert now(acme, request).status == "in_review"

    shown = page(ana, request)
    assert '<del><span class="ao-sr">[removed: </span>invoices<' in shown
    assert '<ins><span class="ao-sr">[added: </span>bills<' in shown
    assert "Approval by: Domain." in shown
    sha256 = submission(shown)["sha256"]
    assert sha256 == now(acme, request).manifest_sha256
    act(ana, request, "decide", decision="approve", sha256=sha256, comment="Good")
    shown = page(ana, request)
    assert "Everybody who must has approved." in shown
    assert sha256[:12] in shown
    assert now(acme, request).status == "approved"

    assert "Publish to staging now" in page(ana, request, "publish")
    assert "Published as" in said(act(ana, request, "publish"))
    done = now(acme, request)
    with tenant_transaction(acme.acme):
        assert done.release is not None
        assert done.release.sha256 == sha256
        runs = dict(Deployment.objects.values_list("environment", "release_id"))
    assert runs["staging"] == done.release_id
    assert runs["production"] != done.release_id
    assert "release #2" in page(olga, request)
    assert "Promote it" not in page(olga, request)


def test_published_request__on_its_way_to_production__leads_to_its_promotion(acme: World) -> None:
    request = drafted(acme)
    with tenant_transaction(acme.acme):
        ChangeRequest.objects.filter(pk=request.pk).update(environment="production")
        request.refresh_from_db()
        request_submit(request=request, actor=OLGA)
        request.refresh_from_db()
        sha256 = request.manifest_sha256
        request_decide(request=request, actor=ANA, decision="approve", sha256=sha256)
    ana = browser("ana")
    act(ana, request, "publish")
    done = now(acme, request)
    assert done.status == "published"
    shown = page(ana, request)
    assert "It runs in staging. Its target is production." in shown
    link = reverse("admin:releases_deploy", args=[done.release_id]) + "?environment=production"
    assert link in shown
    assert "Promote to production" in said(ana.get(link))


def test_facts__typed_by_the_author__are_kept_and_void_only_what_depends_on_them(
    acme: World,
) -> None:
    olga = browser("olga")
    add = reverse("admin:releases_changerequest_add")
    data = submission(said(olga.get(add)))
    data["title"], data["reason"], data["reviewers"] = "Words", "Because", "ana, otto"
    assert send(olga, add, data).status_code == 302
    with tenant_transaction(acme.acme):
        made = ChangeRequest.objects.get()
        assert (made.title, made.reason, made.author) == ("Words", "Because", OLGA)
        assert json.loads(made.reviewers) == [ANA, "user:otto"]
    request = approved(acme)
    facts = request_link(request).replace("/change/", "/facts/")
    data = submission(said(olga.get(facts)))
    data["title"] = "Better title"
    send(olga, facts, data)
    assert now(acme, request).status == "approved"
    data["environment"] = "dev"
    send(olga, facts, data)
    assert now(acme, request).status == "in_review"
    data["reviewers"] = "ana, charlie"
    assert "Not a member of this tenant: charlie." in said(send(olga, facts, data))


def test_submit__of_an_incomplete_request__says_all_that_is_missing(acme: World) -> None:
    with tenant_transaction(acme.acme):
        request = request_open(actor=OLGA)
    response = act(browser("olga"), request, "submit")
    assert response.status_code == 409
    for sentence in ("Give the request a title.", "Say why the change is made.", "changes nothing"):
        assert sentence in said(response)


# -- who may -------------------------------------------------------------------------------------
def test_approval__of_ones_own_request__is_refused_and_the_page_does_not_offer_it(
    acme: World,
) -> None:
    request = submitted(acme, actor=ALICE)
    alice = browser("alice")
    assert "Your decision" not in page(alice, request)
    assert "You edited this request, so somebody else approves it." in page(alice, request)
    response = act(
        alice, request, "decide", decision="approve", sha256=request.manifest_sha256, comment=""
    )
    assert response.status_code == 403
    assert "somebody else has to approve it" in said(response)
    with tenant_transaction(acme.acme):
        assert not Approval.objects.exists()


def test_approval__of_a_manifest_that_was_edited_since__is_refused(acme: World) -> None:
    request = submitted(acme)
    ana = browser("ana")
    seen = submission(page(ana, request))["sha256"]
    with tenant_transaction(acme.acme):
        content = {**content_of("prompt", "billing"), "response_style": "cold"}
        patch_save(actor=OLGA, kind="prompt", slug="billing", content=content, request=request)
    response = act(ana, request, "decide", decision="approve", sha256=seen, comment="fine by me")
    assert response.status_code == 409
    assert "no longer what was reviewed" in said(response)
    assert "fine by me" in said(response), "what was typed is kept"
    assert now(acme, request).status == "in_review"


def test_rejection__without_a_reason__is_refused_and_with_one_closes(acme: World) -> None:
    request = submitted(acme)
    ana = browser("ana")
    sha256 = request.manifest_sha256
    response = act(ana, request, "decide", decision="reject", sha256=sha256, comment=" ")
    assert response.status_code == 409
    assert "Say what should change, or why not." in said(response)
    act(ana, request, "decide", decision="reject", sha256=sha256, comment="Not now")
    assert now(acme, request).status == "rejected"
    assert "Not now" in page(ana, request)


@pytest.mark.parametrize("name", ["submit", "decide", "comment", "publish", "withdraw", "ratify"])
def test_acts__by_an_auditor__are_forbidden_though_everything_is_shown(
    acme: World, as_bob: Client, name: str
) -> None:
    request = submitted(acme)
    assert "Softer words" in page(as_bob, request)
    before = now(acme, request).updated_at
    data = {"decision": "approve", "sha256": request.manifest_sha256, "text": "x"}
    assert act(as_bob, request, name, **data).status_code == 403
    assert now(acme, request).updated_at == before


@pytest.mark.parametrize("name", ["publish", "schedule", "unschedule"])
def test_going_live__by_the_business_owner__is_forbidden(acme: World, name: str) -> None:
    request = approved(acme)
    assert act(browser("olga"), request, name).status_code == 403
    assert now(acme, request).status == "approved"


def test_publish__before_the_approvals__is_refused(acme: World) -> None:
    request = submitted(acme)
    response = act(browser("ana"), request, "publish")
    assert response.status_code == 409
    assert "Not done." in said(response)
    with tenant_transaction(acme.acme):
        assert Release.objects.count() == 1


PARTS = ["", "facts", "rebase", "publish", "break-glass", "act/submit", "act/decide", "act/publish"]


@pytest.mark.parametrize("part", PARTS)
def test_request_pages__for_another_tenant__are_the_404_of_an_absent_request(
    acme: World, as_charlie: Client, part: str
) -> None:
    request = submitted(acme)
    url = request_link(request)
    url = url.replace("/change/", f"/{part}/") if part else url
    absent = url.replace(f"/{request.pk}/", "/987654321/")
    for method in (as_charlie.get, as_charlie.post):
        foreign, missing = method(url), method(absent)
        assert foreign.status_code == missing.status_code == 404
        assert foreign.content == missing.content
    assert "Softer words" not in said(as_charlie.get(QUEUE, {"queue": "all"}))


def test_comment__with_nothing_in_it__is_refused_by_the_name_of_the_field(acme: World) -> None:
    response = act(browser("ana"), submitted(acme), "comment", text="  ")
    assert response.status_code == 409
    assert "Comment: Write something." in said(response)


def test_act__loaded_again_after_a_refusal__shows_the_request(acme: World) -> None:
    request = submitted(acme)
    url = request_link(request).replace("/change/", "/act/publish/")
    response = browser("ana").get(url)
    assert response.status_code == 302
    assert response.headers["Location"] == request_link(request)
    assert now(acme, request).status == "in_review"


def test_decision__by_a_business_owner_who_was_given_a_duty__is_offered_and_counts(
    acme: World,
) -> None:
    request = submitted(acme, ALICE)
    assert 'name="decision"' not in page(browser("olga"), request)
    with tenant_transaction(acme.acme):
        olga = User.objects.get(username="olga")
        until = timezone.now() + timedelta(days=1)
        duty_delegate(user=olga, duty="domain", actor=ANA, expires_at=until, reason="holiday")
    assert 'name="decision"' in page(browser("olga"), request)
    act(browser("olga"), request, "decide", decision="approve", sha256=request.manifest_sha256)
    assert now(acme, request).status == "approved"
    with tenant_transaction(acme.acme):
        assert Approval.objects.get().on_behalf_of == ANA


# -- what is shown -------------------------------------------------------------------------------
def test_weakening__is_named_in_red_at_its_line_and_needs_a_second_role(acme: World) -> None:
    rails: dict[str, Any] = {"input": [{"code": "MSK"}]}
    request = submitted(
        acme, kind="rail_policy", slug="default", declared_risk="weakening", **rails
    )
    shown = page(browser("ana"), request)
    assert "Weakens safety" in shown
    assert "weakens safety." in shown
    line = shown[shown.index("ao-change-weak") :]
    assert "A rail was taken out of the policy." in line[: line.index("</section>")]
    assert "input[PINJ]" in line


def test_decision__of_who_has_approved_already__is_not_offered_again(acme: World) -> None:
    rails: dict[str, Any] = {"input": [{"code": "MSK"}]}
    request = submitted(
        acme, kind="rail_policy", slug="default", declared_risk="weakening", **rails
    )
    assert 'value="approve"' in page(browser("alice"), request)
    act(browser("alice"), request, "decide", decision="approve", sha256=request.manifest_sha256)
    assert now(acme, request).status == "in_review"
    shown = page(browser("alice"), request)
    assert 'value="approve"' not in shown
    assert 'value="request_changes"' in shown
    assert 'value="approve"' in page(browser("ana"), request)


def test_submit__of_a_weakening_declared_cosmetic__is_refused(acme: World) -> None:
    rails: dict[str, Any] = {"input": [{"code": "MSK"}]}
    request = drafted(acme, kind="rail_policy", slug="default", declared_risk="cosmetic", **rails)
    response = act(browser("olga"), request, "submit")
    assert response.status_code == 409
    assert "declared “Cosmetic”" in said(response)
    assert now(acme, request).status == "draft"


def test_comments__on_a_field_and_on_the_request__are_shown_there_and_resolved(
    acme: World,
) -> None:
    request = submitted(acme)
    ana, olga = browser("ana"), browser("olga")
    act(ana, request, "comment", text="Why <b>warm</b>?", kind="prompt", slug="billing",
        path="response_style")  # fmt: skip
    act(olga, request, "comment", text="As asked.", kind="", slug="", path="")
    shown = page(olga, request)
    field = shown[shown.index('id="patch-') : shown.index('id="discussion"')]
    assert "Why &lt;b&gt;warm&lt;/b&gt;?" in field
    assert "As asked." in shown[shown.index('id="discussion"') :]
    assert "2 open comments in all" in shown
    with tenant_transaction(acme.acme):
        first = ChangeComment.objects.earliest("pk")
    act(olga, request, "resolve", key=first.pk)
    assert "resolved by olga" in page(olga, request)
    response = act(ana, request, "comment", text=" ")
    assert response.status_code == 409
    assert "Write something." in said(response)


def test_rows_of_other_requests__cannot_be_named_in_an_act(acme: World) -> None:
    mine, other = drafted(acme), drafted(acme)
    with tenant_transaction(acme.acme):
        patch = ChangePatch.objects.get(request=other)
    olga = browser("olga")
    for key in (str(patch.pk), "", "x", "9" * 30, "²"):
        assert act(olga, mine, "drop", key=key).status_code == 404
    assert act(olga, other, "drop", key=patch.pk).status_code == 200
    assert act(olga, mine, "sing").status_code == 404
    again = olga.get(reverse("admin:releases_changerequest_act", args=[mine.pk, "submit"]))
    assert again.status_code == 302, "an act is posted; loaded again it is the request"


def test_archived_item__names_the_open_conversations_that_use_it(acme: World) -> None:
    with tenant_transaction(acme.acme):
        request = request_open(actor=OLGA, title="No invoices", reason="Moved")
        item = ConfigItem.objects.get(kind="intent", slug="invoice")
        patch_archive(actor=OLGA, item=item, request=request)
        request_submit(request=request, actor=OLGA)
    assert "The item leaves the next release" in page(browser("ana"), request)
    assert "Using something removed" in page(browser("ana"), request, "publish")


def brought(manifest_sha256: str) -> list[dict[str, Any]]:
    """What somebody brought as evidence about a manifest."""
    return [
        {
            "what": "tests",
            "passed": True,
            "result_sha256": "b" * 64,
            "summary": f"412 of 412 of {manifest_sha256[:8]}",
            "recorded_by": "key:ci",
            "link": "",
        }
    ]


def test_gates_and_evidence__are_shown_with_their_titles(acme: World, settings: Any) -> None:
    settings.RELEASE_EVIDENCE = f"{__name__}.brought"
    request = submitted(acme)
    shown = page(browser("ana"), request)
    assert "Form of the content" in shown
    assert "gates passed" in shown
    assert f"412 of 412 of {request.manifest_sha256[:8]}" in shown


# -- stale, rebase -------------------------------------------------------------------------------
def test_conflict__is_shown_with_its_three_sides_and_resolved_by_an_own_value(
    acme: World,
) -> None:
    request = submitted(acme, response_style="mine & warm")
    published(acme, response_style="theirs, cold")
    olga = browser("olga")
    assert "Somebody changed the same places since." in page(olga, request)
    shown = page(olga, request, "rebase")
    assert "mine &amp; warm" in shown
    assert "theirs, cold" in shown
    url = request_link(request).replace("/change/", "/rebase/")
    data = submission(shown)
    response = send(olga, url, data)
    assert response.status_code == 409
    assert "choose for each" in said(response)
    data["prompt:billing|response_style"] = "value"
    data["prompt:billing|response_style|value"] = "between"
    assert send(olga, url, data).status_code == 302
    with tenant_transaction(acme.acme):
        patch = ChangePatch.objects.get(request=request)
        assert json.loads(patch.operations) == [
            {"op": "set", "path": "response_style", "before": "theirs, cold", "after": "between"}
        ]
    assert "changes of others" in page(olga, request) or "change of others" in page(olga, request)


def test_stale_request__with_a_conflict__says_so_and_nothing_else(acme: World) -> None:
    request = approved(acme, response_style="mine & warm")
    published(acme, response_style="theirs, cold")
    shown = page(browser("ana"), request)
    assert "Conflict at Response style" in shown
    assert "Rebase the request first." in shown
    for untrue in ("No field differs", "Everybody who must has approved", "exactly what is shown"):
        assert untrue not in shown
    assert "Publish or schedule" not in shown


def test_choice__about_what_a_third_publication_changed_again__is_asked_anew(
    acme: World,
) -> None:
    request = submitted(acme, response_style="mine")
    published(acme, response_style="second")
    olga = browser("olga")
    url = request_link(request).replace("/change/", "/rebase/")
    data = submission(page(olga, request, "rebase"))
    data["prompt:billing|response_style"] = "mine"
    published(acme, response_style="third")
    response = send(olga, url, data)
    assert response.status_code == 409
    assert "Look at both sides again" in said(response)
    assert "third" in said(response)
    with tenant_transaction(acme.acme):
        assert content_of("prompt", "billing")["response_style"] == "third"


def test_stale_request__without_a_conflict__is_rebased_with_one_button(acme: World) -> None:
    request = submitted(acme, kind="intent", slug="invoice", description="Invoices")
    published(acme)
    olga = browser("olga")
    assert "Rebase it: nothing conflicts." in page(olga, request)
    url = request_link(request).replace("/change/", "/rebase/")
    send(olga, url, submission(page(olga, request, "rebase")))
    assert "Something was published since" not in page(olga, request)
    assert now(acme, request).status == "in_review"


# -- later, in an emergency, never ------------------------------------------------------------------
def test_publish_page__says_where_it_runs_and_nothing_in_the_frame(acme: World) -> None:
    shown = page(browser("ana"), approved(acme, environment="production"), "publish")
    assert "Publish to staging now" in shown
    assert "production is reached by promotion afterwards" in shown
    assert not re.search(r">\s*s\s*<", shown), "no label of one letter"


def test_schedule__with_a_time_zone__holds_that_moment(acme: World) -> None:
    request = approved(acme)
    ana = browser("ana")
    day = (timezone.now() + timedelta(days=3)).date()
    act(ana, request, "schedule", date=str(day), time="09:30", zone="America/Manaus")
    held = now(acme, request)
    assert held.status == "scheduled"
    assert held.scheduled_for is not None
    assert held.scheduled_for.isoformat() == f"{day}T13:30:00+00:00"
    text = re.sub(r"<[^>]+>", "", page(ana, request))
    assert re.search(rf"{day:%m/%d/%Y} 9:30 a\.m\. +\(America/Manaus\)", text), "its own clock"
    act(ana, request, "unschedule")
    assert now(acme, request).status == "approved"


@pytest.mark.parametrize(
    ("moment", "sentence"),
    [
        ({"date": "2099-01-01", "time": "9:00", "zone": "Mars/Olympus"}, "There is no time zone"),
        ({"date": "2020-01-01", "time": "9:00", "zone": "UTC"}, "has passed"),
        (
            {"date": "2027-03-14", "time": "2:30", "zone": "America/New_York"},
            "leaves this time out",
        ),
        ({"date": "soon", "time": "9:00", "zone": "UTC"}, "Enter a valid date"),
    ],
)
def test_schedule__at_a_time_that_is_none__says_why(
    acme: World, moment: dict[str, str], sentence: str
) -> None:
    request = approved(acme)
    response = act(browser("ana"), request, "schedule", **moment)
    assert response.status_code == 409
    assert sentence in said(response)
    assert f'value="{moment["zone"]}"' in said(response), "what was typed is kept"
    assert now(acme, request).status == "approved"


def test_break_glass__needs_a_reason_and_a_confirmation_and_is_ratified_by_another(
    acme: World,
) -> None:
    request = drafted(acme)
    ana, otto = browser("ana"), browser("otto")
    url = request_link(request).replace("/change/", "/break-glass/")
    assert "without approval" in said(ana.get(url))
    data = submission(said(ana.get(url)))
    data["reason"] = "Customers get wrong amounts"
    assert "Confirm that you know what this does." in said(send(ana, url, data))
    assert now(acme, request).status == "draft"
    data["sure"] = "on"
    send(ana, url, data)
    done = now(acme, request)
    assert (done.status, done.broken_glass_by) == ("deployed", ANA)
    shown = page(otto, request)
    assert "Emergency: this went live without approval." in shown
    assert "Customers get wrong amounts" in shown
    assert act(ana, request, "ratify").status_code == 403
    assert "Ratified" in said(act(otto, request, "ratify", comment="Right"))
    assert "Ratified by otto" in page(ana, request)
    assert "Softer words" in said(ana.get(QUEUE, {"queue": "break_glass"}))


def test_break_glass__while_others_wait_for_promotion__says_that_they_go_along(
    acme: World,
) -> None:
    waiting = published(acme, response_style="warm", environment="production")
    assert waiting.status == "published"
    request = drafted(acme)
    url = request_link(request).replace("/change/", "/break-glass/")
    shown = said(browser("ana").get(url))
    assert "they go live with it" in shown
    assert request_link(waiting) in shown[shown.index("they go live with it") :]
    other = request_link(waiting).replace("/change/", "/break-glass/")
    assert "they go live with it" not in said(browser("ana").get(other)), "not of itself"


def test_emergency__reverted_by_its_page__runs_what_ran_before(acme: World) -> None:
    request = drafted(acme)
    ana = browser("ana")
    url = request_link(request).replace("/change/", "/break-glass/")
    data = submission(said(ana.get(url)))
    data["reason"], data["sure"] = "Wrong amounts", "on"
    send(ana, url, data)
    assert act(ana, request, "revert", reason="").status_code == 409
    assert "Reverted" in said(act(ana, request, "revert", reason="It was worse"))
    with tenant_transaction(acme.acme):
        assert content_of("prompt", "billing")["response_style"] == ""
    assert "Reverted at" in page(ana, request)


def test_withdraw_and_supersede__close_a_request_for_its_author_only(acme: World) -> None:
    first, second, third = drafted(acme), drafted(acme), drafted(acme)
    assert act(browser("alice"), first, "withdraw").status_code == 403
    olga = browser("olga")
    act(olga, first, "withdraw")
    assert now(acme, first).status == "withdrawn"
    assert act(olga, second, "supersede", by="99").status_code == 409
    assert act(olga, second, "supersede", by="x").status_code == 409
    act(olga, second, "supersede", by=third.number)
    closed = now(acme, second)
    assert (closed.status, closed.superseded_by_id) == ("superseded", third.pk)
    assert f"#{third.number}" in page(olga, second)


# -- the queue -----------------------------------------------------------------------------------
def test_queue__of_each_reader__holds_what_waits_for_them(acme: World) -> None:
    draft = drafted(acme)
    waiting = submitted(acme)
    done = published(acme, kind="intent", slug="invoice", description="Invoices")
    olga, ana = browser("olga"), browser("ana")

    def numbers(client: Client, queue: str) -> list[int]:
        response = client.get(QUEUE, {"queue": queue})
        return [row.request.number for row in response.context["rows"]]

    assert numbers(olga, "mine") == [waiting.number, draft.number]
    assert numbers(ana, "mine") == [waiting.number]
    assert numbers(ana, "team") == [waiting.number, draft.number]
    assert numbers(ana, "stale") == [waiting.number]
    assert numbers(ana, "all") == [done.number, waiting.number, draft.number]
    assert numbers(ana, "scheduled") == numbers(ana, "break_glass") == []
    assert [tab["count"] for tab in ana.get(QUEUE).context["queues"]] == [1, 2, 0, 1, 0, 3]
    assert ana.get(QUEUE, {"queue": "other"}).status_code == 404
    found = ana.get(QUEUE, {"queue": "all", "q": f"#{done.number}"}).context["rows"]
    assert [row.request.number for row in found] == [done.number]
    assert "No request here has that number" in said(ana.get(QUEUE, {"queue": "all", "q": "zz"}))


def test_queue_row__tells_approvals_gates_staleness_and_conflicts(acme: World) -> None:
    request = approved(acme, response_style="mine")
    ana = browser("ana")

    def row() -> Any:
        rows = ana.get(QUEUE, {"queue": "all", "q": f"#{request.number}"}).context["rows"]
        return rows[0]

    found = row()
    assert (found.approvals, found.needed, found.conflicts, found.is_stale) == (1, 1, 0, False)
    assert found.gates in ("passed", "warn")
    assert found.items == ["Prompt billing"]
    published(acme, response_style="theirs")
    found = row()
    assert (found.conflicts, found.is_stale) == (1, True)
    with tenant_transaction(acme.acme):
        ChangeRequest.objects.filter(pk=request.pk).update(environment="dev")
    assert row().approvals == 0, "an approval is about the environment too"


def test_queue__without_a_request__says_what_to_do(acme: World) -> None:
    assert "Edit an item, and its change request appears here." in said(browser("olga").get(QUEUE))
    assert "There is no request in this queue." in said(
        browser("olga").get(QUEUE, {"queue": "team"})
    )


def queries_of(client: Client, url: str) -> int:
    client.get(url)
    with CaptureQueriesContext(connection) as captured:
        assert client.get(url).status_code == 200
    return len(captured)


def test_queue__of_10000_requests__asks_as_many_queries_as_of_two(acme: World) -> None:
    first = submitted(acme)
    with tenant_transaction(acme.acme):
        ChangeRequest.objects.filter(pk=first.pk).update(environment="dev")
    submitted(acme, kind="intent", slug="invoice", description="x")
    ana = browser("ana")
    urls = [f"{QUEUE}?queue={name}" for name in ("mine", "team", "all", "stale")]
    few = [queries_of(ana, url) for url in urls]
    with tenant_transaction(acme.acme):
        head = ConfigItem.objects.get(kind="prompt", slug="billing").head
        made = ChangeRequest.objects.bulk_create(
            ChangeRequest(
                number=number,
                title=f"Request {number}",
                author=f"user:person{number % 7}",
                status=("draft", "in_review", "published")[number % 3],
                risk=("cosmetic", "behaviour", "weakening")[number % 3],
            )
            for number in range(10, 10_010)
        )
        ChangePatch.objects.bulk_create(
            ChangePatch(
                request=request,
                kind="prompt",
                slug="billing",
                action="change",
                base=head,
                operations='[{"after":"y","before":"","op":"set","path":"response_style"}]',
                edited_by="user:x",
            )
            for request in made[-200:]
        )
    assert [queries_of(ana, url) for url in urls] == few
    response = ana.get(QUEUE, {"queue": "all", "p": "401"})
    assert len(response.context["rows"]) == 2


def test_request_page__with_many_items_and_comments__asks_as_many_queries_as_with_one(
    acme: World,
) -> None:
    request = submitted(acme)
    ana = browser("ana")
    few = queries_of(ana, request_link(request))
    with tenant_transaction(acme.acme):
        for number in range(60):
            patch_save(
                actor=OLGA,
                kind="prompt",
                slug=f"new_{number}",
                content={"system": "x"},
                request=request,
            )
        ChangeComment.objects.bulk_create(
            ChangeComment(request=request, author=ANA, text="?", kind="prompt", slug=f"new_{n}")
            for n in range(60)
        )
    assert queries_of(ana, request_link(request)) == few
