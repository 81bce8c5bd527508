"""Change requests: an edit becomes a patch, a patch is reviewed, what was reviewed goes live."""

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from django.conf import settings
from django.utils import timezone

from apps.releases.authority import ChangeRequestRequired, setting_up
from apps.releases.change_models import ChangeComment, ChangePatch, ChangeRequest
from apps.releases.changes.chores import changes_due
from apps.releases.changes.core import candidate_whole
from apps.releases.changes.emergency import (
    break_glass_ratify,
    break_glass_revert,
    request_break_glass,
)
from apps.releases.changes.publishing import request_publish, request_schedule, request_unschedule
from apps.releases.changes.selectors import (
    patched_content,
    request_view,
    requests_queue,
)
from apps.releases.changes.services import (
    ApprovalsMissing,
    IncompleteRequest,
    MergeConflict,
    NotAnApprover,
    RiskUnderstated,
    SelfApproval,
    StaleRequest,
    WrongState,
    comment_add,
    comment_resolve,
    patch_archive,
    patch_drop,
    patch_restore,
    patch_save,
    request_decide,
    request_describe,
    request_open,
    request_rebase,
    request_submit,
    request_supersede,
    request_withdraw,
)
from apps.releases.content import InvalidContent
from apps.releases.environments.services import (
    Frozen,
    freeze_add,
    release_deploy,
    release_roll_back,
)
from apps.releases.models import ConfigItem, Deployment, Release, Revision
from apps.releases.services import (
    GateRefused,
    StaleBase,
    item_save,
    release_publish,
)
from apps.runtime.canonical import sha256_text
from apps.tenants.models import AuditEntry, Role, User
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import membership_grant

pytestmark = [pytest.mark.django_db, pytest.mark.governed]

OLGA, ANA, OTTO, ALICE, BOB = "user:olga", "user:ana", "user:otto", "user:alice", "user:bob"


@pytest.fixture
def live(world):
    """Acme with a small configuration that runs everywhere, a business owner, an approver, an operator."""
    with tenant_transaction(world.acme):
        for name, role in (
            ("olga", Role.BUSINESS_OWNER),
            ("ana", Role.APPROVER),
            ("otto", Role.OPERATOR),
        ):
            user = User.objects.create_user(name, f"{name}@example.com", "x")
            membership_grant(user=user, role=role, actor="test")
        with setting_up("a test's world"):
            for kind, slug, content in (
                ("model_profile", "default", {"provider": "scripted"}),
                ("memory_policy", "default", {}),
                ("rail_policy", "default", {}),
                ("judge_policy", "default", {}),
                ("prompt", "billing", {"system": "You explain invoices.\nBe kind."}),
                ("prompt", "orders", {"system": "You explain orders."}),
                ("agent", "billing", {"prompt": "billing", "description": "Invoices"}),
                ("agent", "orders", {"prompt": "orders", "description": "Orders"}),
                ("intent", "invoice", {"agent": "billing", "keywords": ["invoice"]}),
                ("intent", "order", {"agent": "orders", "keywords": ["order"]}),
                ("routing_policy", "default", {"default_agent": "billing"}),
            ):
                item_save(
                    kind=kind,
                    slug=slug,
                    content=content,
                    actor="test",
                    owner="Olga",
                    technical_owner="Otto",
                )
            release = release_publish(actor="test")
            for environment in settings.RELEASE_ENVIRONMENTS:
                release_deploy(release=release, environment=environment, actor="test")
        yield SimpleNamespace(world=world, release=release)


def content_of(kind, slug):
    return json.loads(ConfigItem.objects.get(kind=kind, slug=slug).head.content)


def edited(kind, slug, actor=OLGA, request=None, **changes):
    content = {**content_of(kind, slug), **changes}
    return patch_save(actor=actor, kind=kind, slug=slug, content=content, request=request)


def submitted(actor=OLGA, risk="behaviour", **changes):
    """A request of ``actor`` on the billing prompt, in review."""
    request = request_open(actor=actor, title="Kinder", reason="Customers ask", declared_risk=risk)
    edited("prompt", "billing", actor, request, **(changes or {"response_style": "warm"}))
    return request_submit(request=request, actor=actor)


def approve(request, actor=ANA):
    request.refresh_from_db()
    return request_decide(
        request=request, actor=actor, decision="approve", sha256=request.manifest_sha256
    )


def approved(**changes):
    request = submitted(**changes)
    approve(request)
    request.refresh_from_db()
    return request


def actions():
    return list(AuditEntry.objects.order_by("sequence").values_list("action", flat=True))


# -- editing -----------------------------------------------------------------------------------


def test_patch_save__edit__lands_in_a_draft_and_not_in_the_head(live):
    saved = edited("prompt", "billing", response_style="warm")
    assert saved.changed
    assert saved.request.status == "draft"
    assert saved.request.author == OLGA
    assert content_of("prompt", "billing")["response_style"] == ""
    assert json.loads(saved.patch.operations) == [
        {"op": "set", "path": "response_style", "before": "", "after": "warm"}
    ]
    assert Release.objects.count() == 1


def test_patch_save__second_edit__lands_in_the_same_draft(live):
    first = edited("prompt", "billing", response_style="warm")
    second = edited("intent", "invoice", keywords=["invoice", "bill"])
    assert second.request.pk == first.request.pk
    assert first.request.patches.count() == 2


def test_patch_save__another_person__has_a_draft_of_their_own(live):
    first = edited("prompt", "billing", OLGA, response_style="warm")
    second = edited("prompt", "billing", ALICE, response_style="cold")
    assert first.request.pk != second.request.pk


def test_patch_save__content_like_the_head__takes_the_patch_out(live):
    saved = edited("prompt", "billing", response_style="warm")
    again = edited("prompt", "billing", request=saved.request)
    assert (again.patch, again.changed) == (None, True)
    assert saved.request.patches.count() == 0


def test_patch_save__nothing_changed__makes_nothing(live):
    saved = edited("prompt", "billing")
    assert (saved.patch, saved.changed) == (None, False)
    assert ChangeRequest.objects.count() == 0


def test_patch_save__stale_base__is_told_who_was_first(live):
    with setting_up("test"):
        item_save(kind="prompt", slug="billing", content={"system": "New"}, actor=ANA)
    with pytest.raises(StaleBase) as refusal:
        patch_save(actor=OLGA, kind="prompt", slug="billing", content={"system": "Mine"}, base=1)
    assert refusal.value.author == ANA


def test_patch_save__invalid_content__saves_nothing(live):
    with pytest.raises(InvalidContent):
        patch_save(actor=OLGA, kind="prompt", slug="billing", content={"system": 3})
    assert ChangeRequest.objects.count() == 0


def test_item_save__without_a_request__is_refused(live):
    with pytest.raises(ChangeRequestRequired):
        item_save(kind="prompt", slug="billing", content={"system": "New"}, actor=ALICE)
    assert content_of("prompt", "billing")["system"].startswith("You explain")


def test_release_publish__without_a_request__is_refused(live):
    with pytest.raises(ChangeRequestRequired):
        release_publish(actor=ALICE)


# -- submit ------------------------------------------------------------------------------------


def test_request_submit__complete__is_bound_to_the_manifest_it_would_make(live):
    request = submitted()
    assert request.status == "in_review"
    assert request.manifest_sha256 == sha256_text(candidate_whole(request).manifest)
    assert "change.submitted" in actions()


def test_request_submit__without_title_reason_or_changes__names_each(live):
    request = request_open(actor=OLGA)
    with pytest.raises(IncompleteRequest) as refusal:
        request_submit(request=request, actor=OLGA)
    assert set(refusal.value.errors) == {"title", "reason", "patches"}


def test_request_submit__weakening_declared_cosmetic__is_refused(live):
    request = request_open(actor=OLGA, title="Typo", reason="Typo", declared_risk="cosmetic")
    edited("prompt", "billing", request=request, require_evidence=False)
    with pytest.raises(RiskUnderstated) as refusal:
        request_submit(request=request, actor=OLGA)
    assert [risk.path for risk in refusal.value.risks] == ["require_evidence"]
    request.refresh_from_db()
    assert request.status == "draft"


def test_request_submit__dangling_reference__is_refused_by_the_gate(live):
    request = request_open(actor=OLGA, title="Gone", reason="Not used")
    item = ConfigItem.objects.get(kind="prompt", slug="orders")
    patch_archive(actor=OLGA, item=item, request=request)
    with pytest.raises(GateRefused) as refusal:
        request_submit(request=request, actor=OLGA)
    assert refusal.value.problems[0].missing == "prompt:orders"
    request.refresh_from_db()
    assert request.status == "draft"


# -- decide ------------------------------------------------------------------------------------


def test_request_decide__accountable_person__makes_it_approved(live):
    request = submitted()
    approval = approve(request)
    request.refresh_from_db()
    assert request.status == "approved"
    assert approval.manifest_sha256 == request.manifest_sha256
    assert "domain" in json.loads(approval.duties)


@pytest.mark.parametrize("decision", ["approve", "reject", "request_changes"])
def test_request_decide__by_its_author__is_refused(live, decision):
    request = submitted(actor=ANA)
    with pytest.raises(SelfApproval):
        request_decide(
            request=request,
            actor=ANA,
            decision=decision,
            sha256=request.manifest_sha256,
            comment="x",
        )
    request.refresh_from_db()
    assert request.status == "in_review"


def test_request_decide__by_who_edited_it_once__is_refused(live):
    request = submitted()
    edited("prompt", "orders", ANA, request, response_style="short")
    with pytest.raises(SelfApproval):
        approve(request, ANA)


@pytest.mark.parametrize("actor", [BOB, "key:ab12cd34", "command:config_apply", "user:charlie"])
def test_request_decide__by_who_holds_no_duty__is_refused(live, actor):
    request = submitted()
    with pytest.raises(NotAnApprover):
        approve(request, actor)


def test_request_decide__another_manifest_than_shown__is_stale(live):
    request = submitted()
    with pytest.raises(StaleRequest):
        request_decide(request=request, actor=ANA, decision="approve", sha256="0" * 64)


def test_request_decide__weakening__needs_a_second_role(live):
    request = submitted(risk="weakening", require_evidence=False)
    approve(request, ANA)
    request.refresh_from_db()
    assert request.status == "in_review"
    with pytest.raises(WrongState):
        request_publish(request=request, actor=ANA)
    approve(request, ALICE)
    request.refresh_from_db()
    assert request.status == "approved"


def test_request_decide__twice_by_one_person__counts_once(live):
    request = submitted(risk="weakening", require_evidence=False)
    approve(request, ANA)
    approve(request, ANA)
    request.refresh_from_db()
    assert request.status == "in_review"


def test_request_decide__reject_without_a_reason__is_refused(live):
    request = submitted()
    with pytest.raises(IncompleteRequest):
        request_decide(
            request=request, actor=ANA, decision="reject", sha256=request.manifest_sha256
        )


def test_request_decide__rejected__is_closed(live):
    request = submitted()
    request_decide(
        request=request,
        actor=ANA,
        decision="reject",
        sha256=request.manifest_sha256,
        comment="Not now",
    )
    request.refresh_from_db()
    assert request.status == "rejected"
    with pytest.raises(WrongState):
        edited("prompt", "billing", request=request, response_style="x")


def test_request_decide__changes_requested__is_a_draft_again(live):
    request = submitted()
    request_decide(
        request=request,
        actor=ANA,
        decision="request_changes",
        sha256=request.manifest_sha256,
        comment="Shorter",
    )
    request.refresh_from_db()
    assert request.status == "draft"


# -- an edit after approval --------------------------------------------------------------------


def test_patch_save__after_approval__voids_it(live):
    request = approved()
    edited("prompt", "billing", request=request, response_style="cold")
    request.refresh_from_db()
    assert request.status == "in_review"
    with pytest.raises(WrongState):
        request_publish(request=request, actor=ANA)
    assert request_view(request).missing == ("domain",)


def test_patch_save__after_approval_without_meaning__keeps_it(live):
    request = approved()
    saved = edited("prompt", "billing", request=request, response_style="warm")
    request.refresh_from_db()
    assert not saved.changed
    assert request.status == "approved"
    assert request_publish(request=request, actor=ANA).number == 2


def test_patch_save__back_to_what_was_approved__counts_it_again(live):
    request = approved()
    edited("prompt", "billing", request=request, response_style="cold")
    edited("prompt", "billing", request=request, response_style="warm")
    request.refresh_from_db()
    assert request.status == "in_review"
    view = request_view(request)
    assert (view.missing, view.more) == ((), 0)


def test_request_decide__approver_edits_and_takes_it_back__no_longer_counts(live):
    request = approved()
    edited("prompt", "billing", ANA, request, response_style="cold")
    edited("prompt", "billing", ANA, request, response_style="warm")
    view = request_view(ChangeRequest.objects.get(pk=request.pk))
    assert view.missing == ("domain",)


def test_request_describe__another_environment__voids_the_approval(live):
    request = approved()
    request_describe(request=request, actor=OLGA, environment="production")
    request.refresh_from_db()
    assert request.status == "in_review"


def test_request_describe__title__keeps_the_approval(live):
    request = approved()
    request_describe(request=request, actor=OLGA, title="Warmer")
    request.refresh_from_db()
    assert request.status == "approved"


def test_request_describe__unknown_values__are_named(live):
    request = request_open(actor=OLGA)
    with pytest.raises(InvalidContent) as refusal:
        request_describe(
            request=request, actor=OLGA, bump="huge", max_pin_hours=0, environment="moon", x=1
        )
    fields = {error["field"] for error in refusal.value.errors}
    assert fields == {"bump", "max_pin_hours", "environment", "x"}


# -- publish -----------------------------------------------------------------------------------


def test_request_publish__approved__freezes_and_runs_in_staging_only(live):
    request = approved()
    release = request_publish(request=request, actor=ANA)
    request.refresh_from_db()
    assert release.sha256 == request.manifest_sha256
    assert request.status == "deployed"
    assert content_of("prompt", "billing")["response_style"] == "warm"
    runs = dict(Deployment.objects.values_list("environment", "release__number"))
    assert runs == {"dev": 1, "staging": 2, "production": 1}
    revision = ConfigItem.objects.get(kind="prompt", slug="billing").head
    assert (revision.version, revision.author) == ("1.1.0", OLGA)


@pytest.mark.parametrize(
    ("bump", "version"), [("patch", "1.0.1"), ("minor", "1.1.0"), ("major", "2.0.0")]
)
def test_request_publish__version_step__is_the_revisions_semver(live, bump, version):
    request = submitted()
    request_describe(request=request, actor=OLGA, bump=bump)
    approve(request)
    request_publish(request=request, actor=ANA)
    assert ConfigItem.objects.get(kind="prompt", slug="billing").head.version == version


def test_request_publish__aimed_at_production__waits_for_promotion(live):
    request = request_open(actor=OLGA, title="t", reason="r", environment="production")
    edited("prompt", "billing", request=request, response_style="warm")
    request_submit(request=request, actor=OLGA)
    approve(request)
    request_publish(request=request, actor=ANA)
    request.refresh_from_db()
    assert request.status == "published"
    runs = dict(Deployment.objects.values_list("environment", "release__number"))
    assert runs == {"dev": 1, "staging": 2, "production": 1}


def test_request_publish__not_approved__is_refused(live):
    request = submitted()
    with pytest.raises(WrongState):
        request_publish(request=request, actor=ANA)
    assert Release.objects.count() == 1


def test_request_publish__twice__is_refused_the_second_time(live):
    request = approved()
    request_publish(request=request, actor=ANA)
    with pytest.raises(WrongState):
        request_publish(request=request, actor=ANA)
    assert Release.objects.count() == 2


def test_request_publish__approvals_taken_away_underneath__checks_again(live):
    request = approved()
    ChangeRequest.objects.filter(pk=request.pk).update(bump="major")
    with pytest.raises(ApprovalsMissing) as refusal:
        request_publish(request=request, actor=ANA)
    assert refusal.value.missing == ("domain",)


def test_request_publish__frozen_environment__is_refused(live):
    request = approved()
    now = timezone.now()
    freeze_add(
        environment="staging",
        starts_at=now - timedelta(hours=1),
        ends_at=now + timedelta(hours=1),
        reason="Black Friday",
        actor=OTTO,
    )
    with pytest.raises(Frozen, match="Black Friday"):
        request_publish(request=request, actor=ANA)
    assert content_of("prompt", "billing")["response_style"] == ""


def test_request_publish__new_and_archived_items__are_both_in_it(live):
    request = request_open(actor=OLGA, title="t", reason="r")
    patch_save(
        actor=OLGA, kind="prompt", slug="returns", content={"system": "Returns"}, request=request
    )
    edited("agent", "orders", request=request, prompt="returns")
    item = ConfigItem.objects.get(kind="prompt", slug="orders")
    patch_archive(actor=OLGA, item=item, request=request)
    request_submit(request=request, actor=OLGA)
    approve(request)
    release = request_publish(request=request, actor=ANA)
    manifest = json.loads(Release.objects.get(pk=release.pk).manifest)["items"]
    assert set(manifest["prompt"]) == {"billing", "returns"}
    item.refresh_from_db()
    assert item.archived_at is not None


def test_patch_restore__older_revision__is_a_new_one_with_its_content(live):
    request_publish(request=approved(), actor=ANA)
    item = ConfigItem.objects.get(kind="prompt", slug="billing")
    first = Revision.objects.get(item=item, number=1)
    saved = patch_restore(actor=OLGA, item=item, revision=first)
    request_describe(request=saved.request, actor=OLGA, title="Back", reason="It was better")
    request_submit(request=saved.request, actor=OLGA)
    approve(saved.request)
    release = request_publish(request=saved.request, actor=ANA)
    assert release.pk == live.release.pk
    item.refresh_from_db()
    assert (item.head.number, item.head.content) == (3, first.content)


# -- merging -----------------------------------------------------------------------------------


def test_request_rebase__other_field_of_one_item__merges_without_a_person(live):
    first, second = submitted(response_style="warm"), submitted(language="en")
    approve(first)
    approve(second)
    request_publish(request=first, actor=ANA)
    second.refresh_from_db()
    with pytest.raises(StaleRequest):
        request_publish(request=second, actor=ANA)
    rebased = request_rebase(request=second, actor=OLGA)
    assert rebased.status == "in_review"
    with pytest.raises(WrongState):
        request_publish(request=rebased, actor=ANA)
    approve(rebased)
    request_publish(request=rebased, actor=ANA)
    content = content_of("prompt", "billing")
    assert (content["response_style"], content["language"]) == ("warm", "en")


def test_request_decide__published_meanwhile__is_stale(live):
    first, second = submitted(response_style="warm"), submitted(language="en")
    approve(first)
    request_publish(request=first, actor=ANA)
    with pytest.raises(StaleRequest):
        approve(second)


def test_request_rebase__same_field__lists_the_conflict_and_changes_nothing(live):
    first, second = submitted(response_style="warm"), submitted(response_style="cold")
    third = submitted(language="en")
    for request in (first, third):
        if request is third:
            request = request_rebase(request=third, actor=OLGA)
        approve(request)
        request_publish(request=request, actor=ANA)
    with pytest.raises(MergeConflict) as refusal:
        request_rebase(request=second, actor=OLGA)
    [conflict] = refusal.value.conflicts["prompt:billing"]
    assert (conflict.path, conflict.base, conflict.theirs, conflict.mine) == (
        "response_style", "", "warm", "cold",
    )  # fmt: skip
    rebased = request_rebase(
        request=second, actor=OLGA, choices={"prompt:billing": {"response_style": "mine"}}
    )
    approve(rebased)
    request_publish(request=rebased, actor=ANA)
    content = content_of("prompt", "billing")
    # Nothing of the third, newer publication is reverted.
    assert (content["response_style"], content["language"]) == ("cold", "en")


def test_request_rebase__theirs_chosen_for_all__leaves_nothing_and_supersedes(live):
    first, second = submitted(response_style="warm"), submitted(response_style="cold")
    approve(first)
    request_publish(request=first, actor=ANA)
    done = request_rebase(
        request=second, actor=OLGA, choices={"prompt:billing": {"response_style": "theirs"}}
    )
    assert done.status == "superseded"


def test_request_rebase__own_value__is_taken(live):
    first, second = submitted(response_style="warm"), submitted(response_style="cold")
    approve(first)
    request_publish(request=first, actor=ANA)
    rebased = request_rebase(
        request=second,
        actor=OLGA,
        choices={"prompt:billing": {"response_style": {"value": "mild"}}},
    )
    content = patched_content(rebased, "prompt", "billing") or {}
    assert content["response_style"] == "mild"


def test_request_rebase__who_chooses__may_not_approve(live):
    first, second = submitted(response_style="warm"), submitted(response_style="cold")
    approve(first)
    request_publish(request=first, actor=ANA)
    rebased = request_rebase(
        request=second, actor=ANA, choices={"prompt:billing": {"response_style": "mine"}}
    )
    with pytest.raises(SelfApproval):
        approve(rebased, ANA)


def test_request_rebase__archived_meanwhile__asks_for_the_whole_item(live):
    second = request_open(actor=OLGA, title="t", reason="r")
    edited("intent", "order", request=second, keywords=["order", "parcel"])
    request_submit(request=second, actor=OLGA)
    first = request_open(actor=OLGA, title="t", reason="r")
    patch_archive(
        actor=OLGA, item=ConfigItem.objects.get(kind="intent", slug="order"), request=first
    )
    request_submit(request=first, actor=OLGA)
    approve(first)
    request_publish(request=first, actor=ANA)
    with pytest.raises(MergeConflict) as refusal:
        request_rebase(request=second, actor=OLGA)
    [conflict] = refusal.value.conflicts["intent:order"]
    assert (conflict.path, conflict.theirs) == ("", None)
    rebased = request_rebase(request=second, actor=OLGA, choices={"intent:order": {"": "mine"}})
    approve(rebased)
    request_publish(request=rebased, actor=ANA)
    item = ConfigItem.objects.get(kind="intent", slug="order")
    assert item.archived_at is None
    assert content_of("intent", "order")["keywords"] == ["order", "parcel"]


def test_request_rebase__nothing_moved__keeps_the_approval(live):
    request = approved()
    rebased = request_rebase(request=request, actor=OLGA)
    assert rebased.status == "approved"


# -- schedule ----------------------------------------------------------------------------------


def test_changes_due__scheduled_time_come__publishes_once(live):
    request = approved()
    at = timezone.now() + timedelta(minutes=5)
    request_schedule(request=request, actor=ANA, at=at, zone="America/Sao_Paulo")
    changes_due(at - timedelta(seconds=1))
    assert Release.objects.count() == 1
    changes_due(at + timedelta(seconds=1))
    changes_due(at + timedelta(seconds=2))
    request.refresh_from_db()
    assert request.status == "deployed"
    assert Release.objects.count() == 2


def test_changes_due__stale_meanwhile__goes_back_to_review_and_says_why(live):
    request, other = approved(response_style="warm"), submitted(language="en")
    at = timezone.now() + timedelta(minutes=5)
    request_schedule(request=request, actor=ANA, at=at, zone="UTC")
    approve(other)
    request_publish(request=other, actor=ANA)
    changes_due(at + timedelta(seconds=1))
    request.refresh_from_db()
    assert request.status == "in_review"
    assert content_of("prompt", "billing")["response_style"] == ""
    assert "change.schedule_failed" in actions()


def test_changes_due__in_a_frozen_time__stays_approved_and_says_why(live):
    request = approved()
    at = timezone.now() + timedelta(minutes=5)
    request_schedule(request=request, actor=ANA, at=at, zone="UTC")
    with setting_up("a frozen time"):
        freeze_add(
            environment=request.environment,
            starts_at=timezone.now() - timedelta(minutes=1),
            ends_at=at + timedelta(hours=1),
            reason="Black Friday",
            actor=OTTO,
        )
    changes_due(at + timedelta(seconds=1))
    request.refresh_from_db()
    assert (request.status, request.scheduled_for) == ("approved", None)
    said = ChangeComment.objects.get(request=request)
    assert said.text.startswith("Not published at its time. ")
    assert "Black Friday" in said.text
    assert "change.voided" not in actions()
    entry = AuditEntry.objects.get(action="change.schedule_failed")
    assert json.loads(entry.detail)["scheduled_by"] == ANA, "who scheduled it is told"


def test_request__rolled_back_in_its_environment__waits_for_its_way_there_again(live):
    request = approved()
    release = request_publish(request=request, actor=ANA)
    request.refresh_from_db()
    assert request.status == "deployed"
    release_roll_back(release=live.release, environment="staging", actor=OTTO, reason="bad")
    request.refresh_from_db()
    assert request.status == "published"
    assert actions().count("change.left") == 1
    release_roll_back(release=release, environment="staging", actor=OTTO, reason="it was good")
    request.refresh_from_db()
    assert request.status == "deployed"


def test_request__carried_by_an_emergency_that_is_taken_back__no_longer_runs(live):
    request, _release = emergency()
    assert request.status == "deployed"
    break_glass_revert(request=request, actor=ANA, reason="It was wrong")
    request.refresh_from_db()
    assert request.status == "published"
    assert request.reverted_at is not None


def test_request_schedule__past_time_or_unknown_zone__is_named(live):
    request = approved()
    for days, zone, wrong in ((-1, "UTC", "at"), (1, "Mars/Base", "zone")):
        at = timezone.now() + timedelta(days)
        with pytest.raises(IncompleteRequest) as refusal:
            request_schedule(request=request, actor=ANA, at=at, zone=zone)
        assert set(refusal.value.errors) == {wrong}


def test_request_schedule__naive_time__is_of_the_zone(live):
    request = approved()
    naive = datetime(2031, 3, 1, 9, 0)
    scheduled = request_schedule(request=request, actor=ANA, at=naive, zone="America/Sao_Paulo")
    assert scheduled.scheduled_for == datetime(2031, 3, 1, 12, 0, tzinfo=UTC)
    assert request_unschedule(request=scheduled, actor=ANA).status == "approved"


# -- break glass -------------------------------------------------------------------------------


def emergency(**changes):
    request = request_open(actor=OTTO, title="Stop it", reason="It says nonsense")
    edited("prompt", "billing", OTTO, request, **(changes or {"response_style": "calm"}))
    release = request_break_glass(request=request, actor=OTTO, reason="Customers are misled")
    request.refresh_from_db()
    return request, release


def test_request_break_glass__with_a_reason__runs_in_production_at_once(live):
    request, release = emergency()
    assert request.status == "deployed"
    assert Deployment.objects.get(environment="production").release_id == release.pk
    assert request.broken_glass_until > timezone.now() + timedelta(hours=23)
    assert list(requests_queue("break_glass", ANA)) == [request]


def test_request_break_glass__no_reason_or_no_duty__is_refused(live):
    request = request_open(actor=OTTO, title="t", reason="r")
    edited("prompt", "billing", OTTO, request, response_style="calm")
    with pytest.raises(IncompleteRequest):
        request_break_glass(request=request, actor=OTTO, reason=" ")
    for actor in (BOB, "key:ab12cd34", OLGA):
        with pytest.raises(NotAnApprover):
            request_break_glass(request=request, actor=actor, reason="x")


def test_break_glass_ratify__by_a_second_person__keeps_it_for_good(live):
    request, release = emergency()
    with pytest.raises(SelfApproval):
        break_glass_ratify(request=request, actor=OTTO)
    break_glass_ratify(request=request, actor=ANA)
    changes_due(timezone.now() + timedelta(days=2))
    assert Deployment.objects.get(environment="production").release_id == release.pk
    assert list(requests_queue("break_glass", ANA)) == [request]


def test_changes_due__emergency_not_ratified__is_taken_back_and_stays_on_show(live):
    request, _release = emergency()
    changes_due(timezone.now() + timedelta(hours=25))
    request.refresh_from_db()
    assert request.reverted_at is not None
    assert Deployment.objects.get(environment="production").release_id == live.release.pk
    assert content_of("prompt", "billing")["response_style"] == ""
    assert list(requests_queue("break_glass", ANA)) == [request]
    with pytest.raises(WrongState):
        break_glass_ratify(request=request, actor=ANA)


def test_break_glass_revert__published_since__keeps_what_others_changed(live):
    request, _release = emergency()
    other = submitted(language="en")
    approve(other)
    newer = request_publish(request=other, actor=ANA)
    break_glass_revert(request=request, actor=ANA, reason="It was wrong")
    content = content_of("prompt", "billing")
    assert (content["response_style"], content["language"]) == ("", "en")
    assert newer.number == 3


# -- closing, discussion -----------------------------------------------------------------------


def test_request_withdraw__by_somebody_else__is_refused(live):
    request = submitted()
    with pytest.raises(NotAnApprover):
        request_withdraw(request=request, actor=ANA)
    assert request_withdraw(request=request, actor=OLGA).status == "withdrawn"


def test_request_supersede__by_another__names_it(live):
    first, second = submitted(response_style="warm"), submitted(response_style="cold")
    done = request_supersede(request=first, by=second, actor=OLGA)
    assert (done.status, done.superseded_by) == ("superseded", second)
    with pytest.raises(IncompleteRequest):
        request_supersede(request=second, by=second, actor=OLGA)


def test_patch_drop__one_item__voids_and_leaves_the_rest(live):
    request = submitted()
    edited("intent", "invoice", request=request, keywords=["invoice", "bill"])
    approve(request)
    patch = ChangePatch.objects.get(request=request, kind="intent")
    patch_drop(actor=OLGA, patch=patch)
    request.refresh_from_db()
    assert request.status == "in_review"
    assert request.patches.count() == 1


def test_comment_add__on_a_field__is_kept_and_settled(live):
    request = submitted()
    comment = comment_add(
        request=request, actor=ANA, text="Why?", kind="prompt", slug="billing", path="system"
    )
    assert comment_resolve(comment=comment, actor=OLGA).resolved_by == OLGA
    with pytest.raises(InvalidContent):
        comment_add(request=request, actor=ANA, text="  ")


def test_queues__each__hold_what_they_say(live):
    request, other = submitted(response_style="warm"), submitted(language="en")
    assert set(requests_queue("mine", OLGA)) == {request, other}
    assert set(requests_queue("mine", ANA)) == {request, other}
    assert list(requests_queue("mine", BOB)) == []
    approve(request)
    assert set(requests_queue("mine", ANA)) == {other}
    request_publish(request=request, actor=ANA)
    assert list(requests_queue("stale", ANA)) == [other]
    assert list(requests_queue("team", ANA)) == [other]


def test_change_requests__of_another_tenant__are_not_there(live):
    submitted()
    with tenant_transaction(live.world.other):
        assert ChangeRequest.objects.count() == 0
        assert list(requests_queue("all", "user:charlie")) == []
