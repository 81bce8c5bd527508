"""Granting, delegating and ending duties: who may, for how long, and what is kept of it."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from apps.governance.approval import POLICY
from apps.governance.approval_models import DutyAssignment
from apps.governance.duty_services import (
    DutyNotHeld,
    InvalidDuty,
    SelfGrant,
    duty_delegate,
    duty_end,
    duty_grant,
)
from apps.governance.governing import NotAGovernor, PersonRequired
from apps.releases.authority import setting_up
from apps.tenants.models import AuditEntry, Membership, Role, User
from apps.tenants.services import membership_grant

pytestmark = [pytest.mark.django_db, pytest.mark.governed]


@pytest.fixture
def told(monkeypatch, settings) -> list:
    """Return the events that listeners are told."""
    events: list = []
    settings.CHANGE_LISTENERS = [f"{__name__}.listen"]
    monkeypatch.setattr(f"{__name__}.EVENTS", events)
    return events


EVENTS: list = []


def listen(event) -> None:
    EVENTS.append(event)


@pytest.fixture
def ana(in_acme) -> User:
    user = User.objects.create_user("ana")
    membership_grant(user=user, role=Role.APPROVER, actor="world")
    return user


def held(user: User) -> list[tuple[str, str]]:
    return [(h.duty, h.on_behalf_of) for h in POLICY.duties_of(f"user:{user.get_username()}")]


def soon(**delta):
    return timezone.now() + timedelta(**delta)


# -- granted -----------------------------------------------------------------------------------


def test_duty_grant__by_a_tenant_admin__is_held_audited_and_told(in_acme, told):
    row = duty_grant(user=in_acme.bob, duty="security", actor="user:alice", reason=" stands in ")
    assert held(in_acme.bob) == [("security", "")]
    assert (row.granted_by, row.reason, row.expires_at) == ("user:alice", "stands in", None)
    entry = AuditEntry.objects.first()
    assert entry is not None
    assert (entry.actor, entry.action) == ("user:alice", "duty.granted")
    assert entry.entity == "duty:bob/security"
    assert json.loads(entry.detail)["user"] == "user:bob"
    assert [(e.event, e.subject, e.detail["duty"]) for e in told] == [
        ("duty.granted", "duty:bob/security", "security")
    ]


def test_duty_grant__twice__is_one_grant_and_one_line(in_acme, told):
    first = duty_grant(user=in_acme.bob, duty="sre", actor="user:alice")
    before = AuditEntry.objects.count()
    assert duty_grant(user=in_acme.bob, duty="sre", actor="user:alice").pk == first.pk
    assert (AuditEntry.objects.count(), len(told)) == (before, 1)


def test_duty_grant__with_another_end__takes_the_place_of_the_earlier_one(in_acme, told):
    duty_grant(user=in_acme.bob, duty="sre", actor="user:alice")
    until = soon(days=1)
    duty_grant(user=in_acme.bob, duty="sre", actor="user:alice", expires_at=until)
    assert [h.expires_at for h in POLICY.duties_of("user:bob")] == [until]
    assert [e.event for e in told] == ["duty.granted", "duty.ended", "duty.granted"]


@pytest.mark.parametrize("duty", ["sre", "security"])
def test_duty_grant__to_oneself__is_refused(in_acme, told, duty):
    with pytest.raises(SelfGrant, match="another tenant admin"):
        duty_grant(user=in_acme.alice, duty=duty, actor="user:alice")
    assert not DutyAssignment.objects.exists()


def test_duty_grant__to_oneself__is_possible_while_nobody_else_is_there(in_acme, told):
    Membership.objects.filter(user=in_acme.bob).delete()
    duty_grant(user=in_acme.alice, duty="domain", actor="user:alice")
    assert held(in_acme.alice) == [("platform", ""), ("domain", ""), ("security", "")]


@pytest.mark.parametrize(
    ("actor", "refusal"),
    [
        ("user:bob", NotAGovernor),
        ("user:charlie", NotAGovernor),
        ("user:ana", NotAGovernor),
        ("user:nobody", NotAGovernor),
        ("key:ab12cd34", PersonRequired),
        ("command:config_apply", PersonRequired),
    ],
)
def test_duty_grant__by_anybody_else__is_refused(in_acme, ana, told, actor, refusal):
    with pytest.raises(refusal):
        duty_grant(user=in_acme.bob, duty="sre", actor=actor)
    assert held(in_acme.bob) == []
    assert told == []


def test_duty_grant__by_an_operators_command__is_for_setting_a_tenant_up(in_acme, told):
    with setting_up("a demo tenant"):
        duty_grant(user=in_acme.bob, duty="sre", actor="command:demo_load")
        # A person still needs to be one who may.
        with pytest.raises(NotAGovernor):
            duty_grant(user=in_acme.bob, duty="domain", actor="user:bob")
    assert held(in_acme.bob) == [("sre", "")]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"duty": "emperor"}, "duty"),
        ({"duty": ""}, "duty"),
        ({"expires_at": "past"}, "expires_at"),
        ({"reason": "x" * 501}, "reason"),
    ],
)
def test_duty_grant__that_does_not_fit__names_the_field(in_acme, told, change, field):
    if change.get("expires_at"):
        change = {"expires_at": soon(seconds=-1)}
    with pytest.raises(InvalidDuty) as refused:
        duty_grant(**{"user": in_acme.bob, "duty": "sre", "actor": "user:alice", **change})
    assert refused.value.field == field
    assert not DutyAssignment.objects.exists()


def test_duty_grant__to_an_outsider__is_refused_as_to_nobody(in_acme, told):
    with pytest.raises(InvalidDuty, match="no active member"):
        duty_grant(user=in_acme.charlie, duty="sre", actor="user:alice")


# -- delegated ---------------------------------------------------------------------------------


def test_duty_delegate__by_its_holder__is_held_on_their_behalf(in_acme, ana, told):
    until = soon(days=30)
    row = duty_delegate(
        user=in_acme.bob, duty="domain", actor="user:ana", expires_at=until, reason="holiday"
    )
    assert held(in_acme.bob) == [("domain", "user:ana")]
    assert ("domain", "") in held(ana)
    assert row.delegated_by == ana
    entry = AuditEntry.objects.first()
    assert entry is not None
    assert json.loads(entry.detail)["on_behalf_of"] == "user:ana"


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"expires_at": "late"}, InvalidDuty),
        ({"expires_at": "past"}, InvalidDuty),
        ({"reason": " "}, InvalidDuty),
        ({"duty": "security"}, DutyNotHeld),
        ({"actor": "user:alice"}, DutyNotHeld),
        ({"actor": "key:ab12cd34"}, PersonRequired),
        ({"actor": "user:bob"}, SelfGrant),
        ({"actor": "user:charlie"}, DutyNotHeld),
    ],
)
def test_duty_delegate__that_must_not_be__is_refused(in_acme, ana, told, change, refusal):
    times = {"late": soon(days=30, minutes=1), "past": soon(seconds=-1)}
    if "expires_at" in change:
        change = {"expires_at": times[change["expires_at"]]}
    asked = {
        "user": in_acme.bob, "duty": "domain", "actor": "user:ana", "expires_at": soon(days=1),
        "reason": "holiday", **change,
    }  # fmt: skip
    with pytest.raises(refusal):
        duty_delegate(**asked)
    assert held(in_acme.bob) == []
    assert told == []


def test_duty_delegate__of_what_was_delegated__is_refused(in_acme, ana, told):
    otto = User.objects.create_user("otto")
    membership_grant(user=otto, role=Role.OPERATOR, actor="world")
    when = {"expires_at": soon(days=1), "reason": "holiday"}
    duty_delegate(user=in_acme.bob, duty="domain", actor="user:ana", **when)
    with pytest.raises(DutyNotHeld):
        duty_delegate(user=otto, duty="domain", actor="user:bob", **when)


def test_duty_delegate__to_an_outsider__is_refused(in_acme, ana, told):
    when = {"expires_at": soon(days=1), "reason": "holiday"}
    with pytest.raises(InvalidDuty, match="no active member"):
        duty_delegate(user=in_acme.charlie, duty="domain", actor="user:ana", **when)


# -- ended -------------------------------------------------------------------------------------


@pytest.mark.parametrize("actor", ["user:alice", "user:ana", "user:bob"])
def test_duty_end__by_a_governor_or_whose_it_is__ends_it_once(in_acme, ana, told, actor):
    row = duty_delegate(
        user=in_acme.bob, duty="sre", actor="user:ana", expires_at=soon(days=1), reason="holiday"
    )
    duty_end(assignment=row, actor=actor)
    duty_end(assignment=row, actor=actor)
    assert held(in_acme.bob) == []
    assert [e.event for e in told] == ["duty.granted", "duty.ended"]
    entry = AuditEntry.objects.first()
    assert entry is not None
    assert (entry.actor, entry.action) == (actor, "duty.ended")


@pytest.mark.parametrize("actor", ["user:charlie", "user:olga", "key:ab12cd34", "command:x"])
def test_duty_end__by_anybody_else__is_refused(in_acme, ana, told, actor):
    olga = User.objects.create_user("olga")
    membership_grant(user=olga, role=Role.BUSINESS_OWNER, actor="world")
    row = duty_grant(user=in_acme.bob, duty="sre", actor="user:alice")
    with pytest.raises(DutyNotHeld):
        duty_end(assignment=row, actor=actor)
    assert held(in_acme.bob) == [("sre", "")]


def test_duty_end__of_another_tenants__is_not_there(world, told):
    from apps.tenants.scope import tenant_transaction

    with tenant_transaction(world.acme):
        row = duty_grant(user=world.bob, duty="sre", actor="user:alice")
    with tenant_transaction(world.other), pytest.raises(DutyAssignment.DoesNotExist):
        duty_end(assignment=row, actor="user:charlie")
