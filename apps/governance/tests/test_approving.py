"""A tenant's rules on real change requests: who is enough, and what a changed rule does to one."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from apps.governance.approval_models import DutyAssignment
from apps.governance.duty_services import duty_delegate, duty_end, duty_grant
from apps.governance.responsibility_services import quorum_set, raci_set
from apps.releases.authority import setting_up
from apps.releases.change_models import ChangeRequest
from apps.releases.changes.emergency import break_glass_ratify, request_break_glass
from apps.releases.changes.publishing import request_publish
from apps.releases.changes.selectors import request_view
from apps.releases.changes.services import (
    ApprovalsMissing,
    NotAnApprover,
    SelfApproval,
    patch_save,
    request_decide,
    request_open,
    request_submit,
)
from apps.releases.environments.services import release_deploy
from apps.releases.models import ConfigItem
from apps.releases.services import item_save, release_publish
from apps.tenants.models import Role, User
from apps.tenants.services import membership_grant

pytestmark = [pytest.mark.django_db, pytest.mark.governed]

OLGA, ANA, OTTO, ALICE, BOB = "user:olga", "user:ana", "user:otto", "user:alice", "user:bob"
STRICT = {"input": [{"code": "INPUT_SIZE"}, {"code": "MSK"}, {"code": "PINJ"}]}


@pytest.fixture
def live(in_acme, settings) -> Any:
    """acme with a small configuration that runs, and a business owner, an approver, an operator."""
    settings.CHANGE_LISTENERS = []
    for name, role in (
        ("olga", Role.BUSINESS_OWNER),
        ("ana", Role.APPROVER),
        ("otto", Role.OPERATOR),
    ):
        membership_grant(user=User.objects.create_user(name), role=role, actor="world")
    with setting_up("a test's world"):
        for kind, slug, content in (
            ("model_profile", "default", {"provider": "scripted"}),
            ("memory_policy", "default", {}),
            ("rail_policy", "default", {}),
            ("judge_policy", "default", {}),
            ("prompt", "billing", {"system": "You explain invoices."}),
            ("agent", "billing", {"prompt": "billing", "description": "Invoices"}),
            ("intent", "invoice", {"agent": "billing", "keywords": ["invoice"]}),
            ("routing_policy", "default", {"default_agent": "billing"}),
        ):
            item_save(
                kind=kind, slug=slug, content=content, actor="world",
                owner="Olga", technical_owner="Otto",
            )  # fmt: skip
        release = release_publish(actor="world")
        for environment in RELEASE_ENVIRONMENTS:
            release_deploy(release=release, environment=environment, actor="world")
    return in_acme


RELEASE_ENVIRONMENTS = tuple(settings.RELEASE_ENVIRONMENTS)


def submitted(actor: str, risk: str, **edits: dict[str, Any]) -> ChangeRequest:
    """A request in review; ``edits``: kind → what changes of its first item."""
    request = request_open(actor=actor, title="Change", reason="Because", declared_risk=risk)
    for kind, changes in edits.items():
        item = ConfigItem.objects.filter(kind=kind).order_by("slug").get()
        content = {**json.loads(item.head.content), **changes}
        patch_save(actor=actor, kind=kind, slug=item.slug, content=content, request=request)
    return request_submit(request=request, actor=actor)


def approve(request: ChangeRequest, actor: str) -> str:
    """Approve as ``actor``; return the status after it."""
    request.refresh_from_db()
    request_decide(request=request, actor=actor, decision="approve", sha256=request.manifest_sha256)
    request.refresh_from_db()
    return request.status


def open_ends(request: ChangeRequest) -> tuple[tuple[str, ...], int]:
    view = request_view(request)
    return view.missing, view.more


PROMPT = {"prompt": {"system": "You explain invoices kindly."}}
MODEL = {"model_profile": {"temperature": 0.3}}


def person(name: str) -> User:
    user: User = User.objects.get(username=name)
    return user


# -- one person, one duty ----------------------------------------------------------------------


def test_request__of_an_accountable_duty__is_approved_by_its_holder_alone(live):
    request = submitted(OLGA, "behaviour", **PROMPT)
    assert open_ends(request) == (("domain",), 1)
    assert approve(request, ANA) == "approved"


def test_request__approved_by_another_duty__still_lacks_the_accountable_one(live):
    request = submitted(OLGA, "behaviour", **PROMPT)
    assert approve(request, OTTO) == "in_review"
    assert open_ends(request) == (("domain",), 0)
    assert approve(request, ANA) == "approved"


def test_request__that_needs_two_duties__is_not_approved_by_one_person_who_holds_both(live):
    request = submitted(OLGA, "weakening", rail_policy=STRICT)
    assert open_ends(request) == (("platform", "security"), 2)
    assert approve(request, ALICE) == "in_review"
    assert len(open_ends(request)[0]) == 1
    # Somebody without one of the two fills no place, however many of them approve.
    assert approve(request, ANA) == "in_review"
    duty_grant(user=person("otto"), duty="security", actor=ALICE)
    assert approve(request, OTTO) == "approved"


def test_request__of_two_people__is_matched_whichever_of_them_comes_first(live):
    """Alice may fill either place and Otto only one: the order must not matter."""
    duty_grant(user=person("otto"), duty="platform", actor=ALICE)
    for first, second in ((ALICE, OTTO), (OTTO, ALICE)):
        request = submitted(OLGA, "weakening", rail_policy=STRICT)
        assert approve(request, first) == "in_review"
        assert approve(request, second) == "approved"


def test_request__without_an_accountable_duty__needs_the_responsible_one_and_one_more(live):
    request = submitted(OLGA, "behaviour", **MODEL)
    assert open_ends(request) == (("platform",), 2)
    assert approve(request, ALICE) == "in_review"
    assert open_ends(request) == ((), 1)
    assert "Model profile change" in request_view(request).requirement.problems[0]
    assert approve(request, OTTO) == "approved"


def test_request__of_whoever_holds_every_duty__is_still_not_theirs_to_approve(live):
    for duty in ("domain", "integration", "sre", "security", "platform"):
        duty_grant(user=person("olga"), duty=duty, actor=ALICE)
    request = submitted(OLGA, "behaviour", **PROMPT)
    with pytest.raises(SelfApproval):
        approve(request, OLGA)


def test_request__decided_by_an_outsider__is_refused(live):
    request = submitted(OLGA, "behaviour", **PROMPT)
    with pytest.raises(NotAnApprover):
        approve(request, "user:charlie")


# -- delegation --------------------------------------------------------------------------------


def delegated(duty: str, actor: str, to: str) -> DutyAssignment:
    until = timezone.now() + timedelta(days=1)
    return duty_delegate(
        user=person(to), duty=duty, actor=actor, expires_at=until, reason="holiday"
    )


def test_delegate__of_the_accountable_person__approves_on_their_behalf(live):
    delegated("domain", ANA, "bob")
    request = submitted(OLGA, "behaviour", **PROMPT)
    assert approve(request, BOB) == "approved"
    (approval,) = request.approvals.all()
    assert (approval.person, approval.on_behalf_of) == (BOB, ANA)


@pytest.mark.parametrize("how", ["ended", "expired"])
def test_delegate__once_it_is_over__approves_nothing(live, how):
    row = delegated("domain", ANA, "bob")
    request = submitted(OLGA, "behaviour", **PROMPT)
    if how == "ended":
        duty_end(assignment=row, actor=ANA)
    else:
        past = timezone.now() - timedelta(seconds=1)
        DutyAssignment.objects.filter(pk=row.pk).update(expires_at=past)
    with pytest.raises(NotAnApprover):
        approve(request, BOB)


def test_delegate__of_an_editor__does_not_approve_what_the_editor_changed(live):
    """Delegating would else be approving one's own change by somebody else's hand."""
    delegated("security", ALICE, "bob")
    delegated("platform", ALICE, "bob")
    request = submitted(ALICE, "behaviour", **MODEL)
    with pytest.raises(NotAnApprover):
        approve(request, BOB)


def test_delegate__of_who_broke_the_glass__does_not_accept_it_for_them(live):
    delegated("sre", OTTO, "bob")
    request = submitted(OLGA, "behaviour", **PROMPT)
    request_break_glass(request=request, actor=OTTO, reason="Customers are misled")
    request.refresh_from_db()
    with pytest.raises(NotAnApprover):
        break_glass_ratify(request=request, actor=BOB)
    break_glass_ratify(request=request, actor=ANA)


# -- a rule that changes meanwhile -------------------------------------------------------------


def test_rule__changed_after_the_approval__holds_when_it_is_published(live):
    request = submitted(OLGA, "behaviour", **PROMPT)
    assert approve(request, ANA) == "approved"
    raci_set(activity="prompt_change", letters={"domain": "R", "security": "A"}, actor=ALICE)
    with pytest.raises(ApprovalsMissing):
        request_publish(request=request, actor=ANA)
    approve(request, ALICE)
    assert request_publish(request=request, actor=ANA).number == 2


def test_quorum__raised_after_the_approval__holds_when_it_is_published(live):
    request = submitted(OLGA, "behaviour", **PROMPT)
    assert approve(request, ANA) == "approved"
    quorum_set(risk="behaviour", approvals=2, extra_duty="", actor=ALICE)
    with pytest.raises(ApprovalsMissing):
        request_publish(request=request, actor=ANA)


def test_rule__of_the_tenant__decides_who_approves(live):
    letters = {"platform": "R", "sre": "A"}
    raci_set(activity="model_profile_change", letters=letters, actor=ALICE)
    request = submitted(OLGA, "behaviour", **MODEL)
    assert open_ends(request) == (("sre",), 1)
    assert approve(request, OTTO) == "approved"
