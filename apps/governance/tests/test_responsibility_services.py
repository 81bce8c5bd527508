"""Changing who must approve what: rows of the matrix and quorums."""

import json

import pytest

from apps.governance.approval import POLICY, raci_matrix, risk_quorums
from apps.governance.approval_models import RaciEntry, RiskQuorum
from apps.governance.governing import NotAGovernor, PersonRequired
from apps.governance.quorums import Quorum
from apps.governance.responsibility_services import (
    InvalidQuorum,
    InvalidResponsibility,
    quorum_set,
    raci_set,
)
from apps.governance.tests.test_duty_services import told as told
from apps.releases.changes.policy import ItemEdit
from apps.tenants.models import AuditEntry
from apps.tenants.scope import tenant_transaction

pytestmark = [pytest.mark.django_db, pytest.mark.governed]

MODEL_ROW = {"platform": "R", "domain": "A", "integration": "C", "sre": "I", "security": "C"}


def required(kind: str) -> tuple[str, ...]:
    edit = ItemEdit(kind=kind, slug="x", before={}, after={})
    return POLICY.requirement(edits=[edit], risk="behaviour").duties


def test_raci_set__a_row__is_what_is_required_from_then_on(in_acme, told):
    assert required("model_profile") == ("platform",)
    assert raci_set(activity="model_profile_change", letters=MODEL_ROW, actor="user:alice") == []
    assert required("model_profile") == ("domain",)
    assert raci_matrix()["model_profile_change"] == MODEL_ROW
    entry = AuditEntry.objects.first()
    assert entry is not None
    assert (entry.actor, entry.action, entry.entity) == (
        "user:alice", "responsibility.changed", "responsibility:model_profile_change",
    )  # fmt: skip
    detail = json.loads(entry.detail)
    assert (detail["before"].get("domain"), detail["after"]["domain"]) == ("C", "A")
    assert [event.event for event in told] == ["responsibility.changed"]


def test_raci_set__as_it_is__writes_nothing(in_acme, told):
    raci_set(
        activity="new_agent", actor="user:alice",
        letters={"platform": "C", "domain": "R/A", "integration": "C", "sre": "I", "security": "I"},
    )  # fmt: skip
    assert not RaciEntry.objects.exists()
    assert told == []


def test_raci_set__a_shorter_row__leaves_the_rest_blank(in_acme, told):
    raci_set(activity="new_agent", letters=MODEL_ROW, actor="user:alice")
    raci_set(activity="new_agent", letters={"sre": "R/A"}, actor="user:alice")
    assert raci_matrix()["new_agent"] == {
        "platform": "", "domain": "", "integration": "", "sre": "R/A", "security": "",
    }  # fmt: skip
    assert required("agent") == ("sre",)


def test_raci_set__without_anybody_accountable__is_kept_and_reported(in_acme, told):
    found = raci_set(activity="prompt_change", letters={"domain": "R"}, actor="user:alice")
    assert [problem.code for problem in found] == ["nobody_accountable"]
    requirement = POLICY.requirement(
        edits=[ItemEdit(kind="prompt", slug="x", before={}, after={})], risk="behaviour"
    )
    # Less accountability never means less approval.
    assert (requirement.duties, requirement.approvals) == (("domain",), 2)
    assert len(requirement.problems) == 1


@pytest.mark.parametrize(
    ("activity", "letters", "field"),
    [
        ("new_agent", {"domain": "R/A", "sre": "A"}, "activity"),
        ("new_agent", {"domain": "X"}, "domain"),
        ("new_agent", {"domain": "A/R"}, "domain"),
        ("new_agent", {"emperor": "A"}, "emperor"),
        ("coffee", {"domain": "A"}, "activity"),
    ],
)
def test_raci_set__a_row_that_does_not_fit__is_refused(in_acme, told, activity, letters, field):
    with pytest.raises(InvalidResponsibility) as refused:
        raci_set(activity=activity, letters=letters, actor="user:alice")
    assert refused.value.field == field
    assert not RaciEntry.objects.exists()


@pytest.mark.parametrize(
    ("risk", "approvals", "extra"),
    [("cosmetic", 2, ""), ("behaviour", 3, "sre"), ("weakening", 2, "platform")],
)
def test_quorum_set__a_quorum__holds_from_then_on(in_acme, told, risk, approvals, extra):
    quorum_set(risk=risk, approvals=approvals, extra_duty=extra, actor="user:alice")
    assert risk_quorums()[risk] == Quorum(approvals, extra)
    quorum_set(risk=risk, approvals=approvals, extra_duty=extra, actor="user:alice")
    assert [event.event for event in told] == ["quorum.changed"]
    entry = AuditEntry.objects.first()
    assert entry is not None
    assert entry.entity == f"quorum:{risk}"


def test_quorum_set__to_fewer_people__says_so_in_the_trail(in_acme, told):
    quorum_set(risk="behaviour", approvals=3, extra_duty="", actor="user:alice")
    quorum_set(risk="behaviour", approvals=1, extra_duty="", actor="user:alice")
    shown = [json.loads(e.detail)["fewer"] for e in AuditEntry.objects.order_by("-sequence")[:2]]
    assert shown == [True, False]


@pytest.mark.parametrize(
    ("risk", "approvals", "extra", "field"),
    [
        ("weakening", 1, "security", "approvals"),
        ("weakening", 2, "", "extra_duty"),
        ("cosmetic", 0, "", "approvals"),
        ("behaviour", 6, "", "approvals"),
        ("behaviour", 1, "emperor", "extra_duty"),
        ("harmless", 1, "", "risk"),
    ],
)
def test_quorum_set__below_the_floor_or_unknown__is_refused(
    in_acme, told, risk, approvals, extra, field
):
    with pytest.raises(InvalidQuorum) as refused:
        quorum_set(risk=risk, approvals=approvals, extra_duty=extra, actor="user:alice")
    assert refused.value.field == field
    assert not RiskQuorum.objects.exists()


REFUSED = [
    ("user:bob", NotAGovernor),
    ("user:charlie", NotAGovernor),
    ("key:ab12cd34", PersonRequired),
    ("command:config_apply", PersonRequired),
]


@pytest.mark.parametrize(("actor", "refusal"), REFUSED)
def test_rules__changed_by_anybody_else__are_as_they_were(in_acme, told, actor, refusal):
    with pytest.raises(refusal):
        raci_set(activity="prompt_change", letters={"sre": "R/A"}, actor=actor)
    with pytest.raises(refusal):
        quorum_set(risk="behaviour", approvals=2, extra_duty="", actor=actor)
    assert required("prompt") == ("domain",)
    assert told == []


def test_rules__of_two_tenants__are_their_own(world, told):
    with tenant_transaction(world.other):
        raci_set(activity="prompt_change", letters={"sre": "R/A"}, actor="user:charlie")
        assert required("prompt") == ("sre",)
    with tenant_transaction(world.acme):
        assert required("prompt") == ("domain",)
