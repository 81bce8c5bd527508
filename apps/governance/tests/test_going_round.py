"""Ways round a second person, as an attacker would try them: each is closed."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.governance.duty_services import duty_delegate, duty_end
from apps.governance.evidence import evidence_record
from apps.governance.gate_levels import gate_level_set
from apps.governance.responsibility_services import raci_set
from apps.governance.tests.test_approving import (
    ALICE,
    ANA,
    BOB,
    OLGA,
    OTTO,
    PROMPT,
    approve,
    submitted,
)
from apps.governance.tests.test_approving import live as live
from apps.releases.change_models import ChangeRequest
from apps.releases.changes.chores import changes_due
from apps.releases.changes.emergency import (
    break_glass_ratify,
    break_glass_revert,
    request_break_glass,
)
from apps.releases.changes.publishing import request_publish, request_schedule
from apps.releases.changes.refusals import (
    ApprovalsMissing,
    IncompleteRequest,
    NotAnApprover,
    SelfApproval,
)
from apps.releases.changes.selectors import request_view
from apps.releases.changes.services import (
    patch_save,
    request_describe,
    request_open,
    request_submit,
)
from apps.releases.environments.emergencies import EmergencyNotAccepted
from apps.releases.environments.rules import GatesBlock
from apps.releases.environments.services import (
    NotResponsible,
    binding_decide,
    binding_propose,
    canary_start,
    release_deploy,
    release_promote,
    release_roll_back,
)
from apps.releases.models import ConfigItem, Release
from apps.releases.services import GateRefused
from apps.tenants.models import Membership, Role, User
from apps.tenants.services import api_key_issue, membership_grant, membership_revoke

pytestmark = [pytest.mark.django_db, pytest.mark.governed]


@pytest.fixture
def key(live) -> str:
    """A system's key that alice issued, as the actor it is."""
    issued, _text = api_key_issue(
        name="ci", scopes=["config:write"], environment="production", expires_at=None, actor=ALICE
    )
    return f"key:{issued.prefix}"


def running() -> Release:
    release: Release = Release.objects.get(deployments__environment="production")
    return release


def later(hours: int = 25) -> None:
    """Let that much time pass, as far as emergencies go."""
    changes_due(timezone.now() + timedelta(hours=hours))


# -- a key of the tenant in one's own hand --------------------------------------------------------


def test_request__edited_with_a_systems_key__is_not_approved_by_who_issued_it(key):
    # With this alone a tenant admin had a prompt in production that nobody else had seen.
    raci_set(activity="prompt_change", letters={"platform": "R/A"}, actor=ALICE)
    request = submitted(key, "behaviour", **PROMPT)
    with pytest.raises(SelfApproval):
        approve(request, ALICE)
    request.refresh_from_db()
    assert request.status == "in_review"
    assert request.editors == f'["{ALICE}","{key}"]'


def test_request__opened_with_a_systems_key_and_edited_by_another__is_not_approved_by_its_issuer(
    key,
):
    raci_set(activity="prompt_change", letters={"platform": "R/A"}, actor=ALICE)
    request = request_open(actor=key, title="Change", reason="Because")
    content = {"system": "You explain invoices kindly."}
    patch_save(actor=OLGA, kind="prompt", slug="billing", content=content, request=request)
    request_submit(request=request, actor=OLGA)
    with pytest.raises(SelfApproval):
        approve(request, ALICE)


def test_request__edited_with_a_systems_key__is_approved_by_somebody_else(key):
    request = submitted(key, "behaviour", **PROMPT)
    assert approve(request, ANA) == "approved"


def test_release__edited_with_a_systems_key__is_not_promoted_by_who_issued_it(key):
    raci_set(activity="production_deploy", letters={"platform": "R/A"}, actor=ALICE)
    request = submitted(key, "behaviour", **PROMPT)
    approve(request, ANA)
    release = request_publish(request=request, actor=ANA)
    with pytest.raises(NotResponsible):
        release_promote(release=release, environment="production", actor=ALICE)
    assert running().number == 1


def test_binding__proposed_with_a_systems_key__is_not_let_in_by_who_issued_it(key):
    proposal = binding_propose(
        environment="production", what="address", name="shop", value="https://evil.example/",
        reason="New address", actor=key,
    )  # fmt: skip
    with pytest.raises(NotResponsible):
        binding_decide(proposal=proposal, actor=ALICE, approve=True)
    assert binding_decide(proposal=proposal, actor=OTTO, approve=True).status == "approved"


# -- terms -----------------------------------------------------------------------------------------


def test_request__whose_terms_the_approver_set__is_not_approved_by_them(live):
    request = submitted(OLGA, "behaviour", **PROMPT)
    request_describe(request=request, actor=ANA, in_flight="force")
    with pytest.raises(SelfApproval):
        approve(request, ANA)


# -- who approved and has left -----------------------------------------------------------------------


@pytest.mark.parametrize("how", ["left", "inactive", "another role"])
def test_request__whose_approver_lost_the_duty__is_not_published_at_its_time(live, how):
    request = submitted(OLGA, "behaviour", **PROMPT)
    approve(request, ANA)
    at = timezone.now() + timedelta(hours=1)
    request_schedule(request=request, actor=ALICE, at=at, zone="UTC")
    if how == "inactive":
        User.objects.filter(username="ana").update(is_active=False)
    else:
        membership_revoke(membership=Membership.objects.get(user__username="ana"), actor=ALICE)
    if how == "another role":
        membership_grant(user=User.objects.get(username="ana"), role=Role.AUDITOR, actor=ALICE)
    changes_due(at + timedelta(seconds=1))
    request.refresh_from_db()
    assert (request.status, Release.objects.count()) == ("in_review", 1)
    assert request_view(request).missing == ("domain",)


def test_request__approved_for_somebody_whose_delegation_ended__lacks_the_duty(live):
    until = timezone.now() + timedelta(days=1)
    bob = User.objects.get(username="bob")
    row = duty_delegate(user=bob, duty="domain", actor=ANA, expires_at=until, reason="holiday")
    request = submitted(OLGA, "behaviour", **PROMPT)
    assert approve(request, BOB) == "approved"
    duty_end(assignment=row, actor=ANA)
    with pytest.raises(ApprovalsMissing):
        request_publish(request=request, actor=ALICE)
    approve(request, ANA)
    assert request_publish(request=request, actor=ALICE).number == 2


# -- proof of one's own ------------------------------------------------------------------------------


def test_request__certified_by_its_author__is_not_approved_before_another_one_certifies(live):
    gate_level_set(gate="evidence_certification", level="block", actor=ALICE)
    request = submitted(OLGA, "behaviour", **PROMPT)
    proof: dict[str, Any] = {
        "manifest_sha256": request.manifest_sha256, "what": "certification", "passed": True,
    }  # fmt: skip
    evidence_record(**proof, result_sha256="a" * 64, actor=OLGA)
    with pytest.raises(GateRefused, match="somebody else"):
        approve(request, ANA)
    evidence_record(**proof, result_sha256="b" * 64, actor=OTTO)
    assert approve(request, ANA) == "approved"


# -- emergencies -----------------------------------------------------------------------------------


def emergency(system: str = "EMERGENCY", slug: str = "billing") -> tuple[ChangeRequest, Release]:
    request = request_open(actor=OTTO, title="Stop it", reason="It says nonsense")
    content = {"system": system}
    patch_save(actor=OTTO, kind="prompt", slug=slug, content=content, request=request)
    release = request_break_glass(request=request, actor=OTTO, reason="Customers are misled")
    request.refresh_from_db()
    return request, release


def published(**edits: Any) -> Release:
    request = submitted(OLGA, "behaviour", **edits)
    approve(request, ANA)
    return request_publish(request=request, actor=ANA)


def test_emergency__taken_back__is_not_rolled_back_to(live):
    _request, release = emergency()
    later()
    with pytest.raises(EmergencyNotAccepted):
        release_roll_back(release=release, environment="production", actor=OTTO, reason="Again")
    assert running().number == 1


def test_emergency__taken_back__does_not_come_again_by_way_of_staging(live):
    _request, release = emergency()
    later()
    release_deploy(release=release, environment="staging", actor=OTTO)
    with pytest.raises(EmergencyNotAccepted):
        release_promote(release=release, environment="production", actor=ANA)
    with pytest.raises(EmergencyNotAccepted):
        canary_start(release=release, environment="production", share=99, actor=ANA)
    assert running().number == 1


def test_emergency__that_nobody_ratified__does_not_stay_inside_a_later_release(live):
    _request, _release = emergency()
    newer = published(intent={"keywords": ["invoice", "bill"]})
    with pytest.raises(EmergencyNotAccepted):
        release_promote(release=newer, environment="production", actor=ANA)
    later()
    assert running().number == 1
    clean = published(prompt={"system": "You explain invoices well."})
    release_promote(release=clean, environment="production", actor=ANA)
    assert "bill" in running().manifest
    assert "EMERGENCY" not in running().manifest


def test_emergency__that_weakens_safety__is_ratified_by_a_duty_that_answers_for_it_only(live):
    request = request_open(actor=ALICE, title="Less", reason="Too strict")
    strict = {"input": [{"code": "INPUT_SIZE"}, {"code": "MSK"}, {"code": "PINJ"}]}
    patch_save(actor=ALICE, kind="rail_policy", slug="default", content=strict, request=request)
    request_break_glass(request=request, actor=ALICE, reason="Customers cannot write")
    request.refresh_from_db()
    assert request.risk == "weakening"
    with pytest.raises(NotAnApprover):
        break_glass_ratify(request=request, actor=OTTO)
    later()
    assert running().number == 1


def test_emergency__with_another_owner_of_what_is_there__is_refused(live):
    """Labels are in no manifest: a revert would leave them as nobody approved them."""
    request = request_open(actor=OTTO, title="Stop it", reason="It says nonsense")
    content = {"system": "EMERGENCY"}
    patch_save(
        actor=OTTO, kind="prompt", slug="billing", content=content, request=request, owner="Otto"
    )
    with pytest.raises(IncompleteRequest, match="prompt:billing"):
        request_break_glass(request=request, actor=OTTO, reason="Customers are misled")
    assert running().number == 1


def test_emergency__ratified__is_promoted_with_what_was_built_on_it(live):
    request, _release = emergency()
    newer = published(intent={"keywords": ["invoice", "bill"]})
    break_glass_ratify(request=request, actor=ANA)
    release_promote(release=newer, environment="production", actor=ANA)
    assert running().pk == newer.pk


def test_emergency__brought_again_and_approved__runs(live):
    """The same content is the same release: what was approved by its hash may run."""
    _request, release = emergency()
    later()
    again = published(prompt={"system": "EMERGENCY"})
    assert again.pk == release.pk
    release_promote(release=again, environment="production", actor=ANA)
    assert running().pk == release.pk


def test_emergency__under_another_one__is_taken_back_in_time_all_the_same(live):
    first, _release = emergency("FIRST")
    second, _newer = emergency("SECOND", slug="other")
    ChangeRequest.objects.filter(pk=second.pk).update(
        broken_glass_until=timezone.now() + timedelta(days=9)
    )
    later()
    first.refresh_from_db()
    assert first.reverted_at is not None
    assert "FIRST" not in running().manifest
    second.refresh_from_db()
    break_glass_revert(request=second, actor=ANA, reason="Over")
    assert running().number == 1


def test_emergency__taken_back__leaves_what_others_name_by_now(live):
    request, _release = emergency(slug="fresh")
    published(agent={"prompt": "fresh"})
    later()
    request.refresh_from_db()
    assert request.reverted_at is not None
    assert ConfigItem.objects.get(kind="prompt", slug="fresh").archived_at is None
    # The heads still make a release.
    assert published(intent={"keywords": ["bill"]}).number == 4


def test_emergency__taken_back__leaves_a_release_that_says_what_gates_found(live):
    """Its record said that all gates had passed, evidence too, though none had run."""
    request, _release = emergency()
    published(intent={"keywords": ["invoice", "bill"]})
    gate_level_set(gate="evidence_tests", level="block", actor=ALICE)
    break_glass_revert(request=request, actor=ANA, reason="Over")
    left = Release.objects.get(number=4)
    levels = {found["gate"]: found["level"] for found in json.loads(left.gates)}
    assert (levels["evidence_tests"], levels["schema"]) == ("block", "passed")
    release_deploy(release=left, environment="staging", actor=ANA)
    with pytest.raises(GatesBlock, match="Test report"):
        release_promote(release=left, environment="production", actor=ANA)
    assert running().number == 1


def test_emergency__taken_back__leaves_a_release_that_is_promoted_when_its_gates_pass(live):
    request, _release = emergency()
    published(intent={"keywords": ["invoice", "bill"]})
    break_glass_revert(request=request, actor=ANA, reason="Over")
    left = Release.objects.get(number=4)
    release_deploy(release=left, environment="staging", actor=ANA)
    release_promote(release=left, environment="production", actor=ANA)
    assert "bill" in running().manifest
    assert "EMERGENCY" not in running().manifest


def test_emergency__of_items_that_name_each_other__leaves_nothing_behind(live):
    request = request_open(actor=OTTO, title="Stop it", reason="It says nonsense")
    for kind, slug, content in (
        ("prompt", "fresh", {"system": "EMERGENCY"}),
        ("agent", "fresh", {"prompt": "fresh", "description": "Fresh"}),
        ("intent", "fresh", {"agent": "fresh", "keywords": ["fresh"]}),
    ):
        patch_save(
            actor=OTTO, kind=kind, slug=slug, content=content, request=request,
            owner="Olga", technical_owner="Otto",
        )  # fmt: skip
    request_break_glass(request=request, actor=OTTO, reason="Customers are misled")
    later()
    assert not ConfigItem.objects.filter(slug="fresh", archived_at=None).exists()
    assert running().number == 1
