"""Who must approve what, and who holds the duties: a tenant's matrix, quorums and people."""

from datetime import timedelta

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from apps.governance.approval import POLICY, raci_matrix, requirement_by, risk_quorums
from apps.governance.approval_models import DutyAssignment, RaciEntry, RiskQuorum
from apps.governance.duties import OF_ROLE, duty_holders, holders_of
from apps.governance.quorums import Quorum
from apps.governance.raci import ACTIVITIES, DUTIES, LETTERS, accountable
from apps.releases.changes.policy import HeldDuty, ItemEdit, change_policy
from apps.tenants.models import Membership, Role, User
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import membership_grant

pytestmark = pytest.mark.django_db


def edits(*kinds: str) -> list[ItemEdit]:
    return [ItemEdit(kind=kind, slug="x", before={}, after={}) for kind in kinds]


def required(*kinds: str, risk: str = "behaviour"):
    found = POLICY.requirement(edits=edits(*kinds), risk=risk)
    return found.duties, found.approvals


def person(name: str, *roles: str) -> User:
    user = User.objects.create_user(name)
    for role in roles:
        membership_grant(user=user, role=role, actor="world")
    return user


def held(actor: str) -> list[tuple[str, str]]:
    return [(duty.duty, duty.on_behalf_of) for duty in POLICY.duties_of(actor)]


def test_policy__of_the_settings__is_this_one():
    assert change_policy() is POLICY


# -- what a request needs ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "duties", "approvals"),
    [
        ("agent", ("domain",), 1),
        ("intent", ("domain",), 1),
        ("routing_policy", ("domain",), 1),
        ("prompt", ("domain",), 1),
        ("tool", ("integration",), 1),
        ("tool_server", ("integration",), 1),
        ("parameter_mapping", ("integration",), 1),
        ("rail_policy", ("security",), 1),
        ("judge_policy", ("platform",), 1),
        ("model_profile", ("platform",), 2),
        ("spaceship", ("platform",), 1),
    ],
)
def test_requirement__of_one_kind__is_its_accountable_duty(in_acme, kind, duties, approvals):
    assert required(kind) == (duties, approvals)


def test_requirement__of_many_kinds__is_each_accountable_duty_once(in_acme):
    assert required("agent", "prompt", "tool", "tool") == (("domain", "integration"), 2)
    assert required("prompt", "rail_policy", "model_profile") == (
        ("platform", "domain", "security"), 4,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kinds", "duties"),
    [
        (["prompt"], ("domain", "security")),
        (["tool"], ("integration", "security")),
        (["judge_policy"], ("platform", "security")),
        # Security is accountable itself: a second role looks all the same.
        (["rail_policy"], ("platform", "security")),
        (["rail_policy", "prompt"], ("platform", "domain", "security")),
        (["rail_policy", "judge_policy"], ("platform", "security")),
    ],
)
def test_requirement__of_a_weakening__has_a_second_role(in_acme, kinds, duties):
    assert required(*kinds, risk="weakening") == (duties, len(duties))


def test_requirement__of_a_cosmetic_change__is_one_person(in_acme):
    assert required("prompt", risk="cosmetic") == (("domain",), 1)


def test_requirement__without_an_accountable_duty__says_so(in_acme):
    found = POLICY.requirement(edits=edits("model_profile", "prompt"), risk="behaviour")
    assert found.activities == ("prompt_change", "model_profile_change")
    assert ["Model profile change" in problem for problem in found.problems] == [True]


def test_requirement__with_the_tenants_own_row__follows_it(in_acme):
    for duty, letters in (("platform", "R"), ("sre", "A"), ("security", "C")):
        RaciEntry.objects.create(activity="model_profile_change", duty=duty, letters=letters)
    assert required("model_profile") == (("sre",), 1)
    # A row is the tenant's own as a whole: what it leaves out is not filled from the defaults.
    assert raci_matrix()["model_profile_change"]["domain"] == ""
    assert required("prompt") == (("domain",), 1)
    assert POLICY.requirement(edits=edits("model_profile"), risk="behaviour").problems == ()


def test_requirement__with_two_accountable_duties__needs_both(in_acme):
    for duty in ("domain", "security"):
        RaciEntry.objects.create(activity="prompt_change", duty=duty, letters="R/A")
    assert required("prompt") == (("domain", "security"), 2)


def test_requirement__with_the_tenants_own_quorum__follows_it(in_acme):
    RiskQuorum.objects.create(risk="behaviour", approvals=3, extra_duty="sre")
    assert required("prompt") == (("domain", "sre"), 3)
    assert risk_quorums()["weakening"].approvals == 2


def test_requirement__of_another_tenant__is_not_ours(world):
    with tenant_transaction(world.other):
        RaciEntry.objects.create(activity="prompt_change", duty="sre", letters="R/A")
        RiskQuorum.objects.create(risk="behaviour", approvals=5)
        assert required("prompt") == (("sre",), 5)
    with tenant_transaction(world.acme):
        assert required("prompt") == (("domain",), 1)


def test_requirement__costs_two_queries(in_acme, django_assert_num_queries):
    with django_assert_num_queries(2):
        required("prompt", "tool", "agent", risk="weakening")


def test_production__is_deployed_to_by_operations_only(in_acme):
    assert POLICY.deployment_requirement("production").duties == ("sre",)
    assert POLICY.binding_requirement("production").duties == ("sre", "security")


@pytest.mark.parametrize("environment", ["dev", "staging"])
def test_other_environment__is_deployed_to_by_any_duty(in_acme, environment):
    found = POLICY.deployment_requirement(environment).duties
    assert found == ("platform", "domain", "integration", "sre", "security")
    assert POLICY.binding_requirement(environment).duties == found


def test_production__with_the_tenants_own_row__follows_it(in_acme):
    RaciEntry.objects.create(activity="production_deploy", duty="platform", letters="R/A")
    assert POLICY.deployment_requirement("production").duties == ("platform",)


ROW = st.dictionaries(st.sampled_from(DUTIES), st.sampled_from(LETTERS))
MATRIX = st.fixed_dictionaries(dict.fromkeys(ACTIVITIES, ROW))
QUORUM = st.builds(Quorum, st.integers(1, 5), st.sampled_from(["", *DUTIES]))


@given(MATRIX, QUORUM, st.lists(st.sampled_from(list(ACTIVITIES)), min_size=1, unique=True))
def test_requirement__by_any_rules__is_never_nobody(matrix, quorum, activities):
    found = requirement_by(matrix, quorum, activities)
    assert found.duties
    assert found.approvals >= max(1, quorum.approvals, len(found.duties))
    for activity in activities:
        assert set(accountable(matrix[activity])) <= set(found.duties)
        if len(accountable(matrix[activity])) != 1:
            assert found.problems


@given(MATRIX, st.integers(2, 5), st.sampled_from(DUTIES), st.sampled_from(list(ACTIVITIES)))
def test_requirement__of_a_weakening_by_any_rules__is_two_roles_and_two_people(
    matrix, approvals, extra, activity
):
    found = requirement_by(matrix, Quorum(approvals, extra), [activity])
    assert len(found.duties) >= 2
    assert found.approvals >= 2
    assert extra in found.duties


# -- who holds what ----------------------------------------------------------------------------

ROLES = [
    (Role.TENANT_ADMIN, ["platform", "security"]),
    (Role.BUSINESS_OWNER, []),
    (Role.APPROVER, ["domain", "integration", "sre"]),
    (Role.OPERATOR, ["sre"]),
    (Role.AUDITOR, []),
]


@pytest.mark.parametrize(("role", "duties"), ROLES)
def test_duties__of_a_role__are_these(in_acme, role, duties):
    person("maria", role)
    assert held("user:maria") == [(duty, "") for duty in duties]


def test_roles__all__are_listed():
    assert set(OF_ROLE) == set(Role.values)


@pytest.mark.parametrize("actor", ["key:ab12cd34", "command:config_apply", "alice", "user:", ""])
def test_duties__of_no_person__are_none(in_acme, actor):
    assert POLICY.duties_of(actor) == []


def test_duties__of_an_outsider__are_none(in_acme, world):
    assert held("user:charlie") == []
    # What somebody wrote for a stranger gives them nothing either.
    DutyAssignment.objects.create(user=world.charlie, duty="domain", granted_by="user:alice")
    assert held("user:charlie") == []
    assert "charlie" not in holders_of(["domain", "security"])


def test_duties__of_somebody_who_left_or_is_inactive__are_none(in_acme, world):
    assert held("user:alice") == [("platform", ""), ("security", "")]
    world.alice.is_active = False
    world.alice.save()
    assert held("user:alice") == []
    ana = person("ana", Role.APPROVER)
    DutyAssignment.objects.create(user=ana, duty="security", granted_by="user:alice")
    assert held("user:ana")[-1] == ("security", "")
    Membership.objects.filter(user=ana).delete()
    assert held("user:ana") == []


def assign(user: User, duty: str, **more) -> DutyAssignment:
    row: DutyAssignment = DutyAssignment.objects.create(
        user=user, duty=duty, granted_by="user:alice", **more
    )
    return row


def test_duty__granted__is_held_until_it_ends(in_acme, world):
    now = timezone.now()
    assign(world.bob, "domain")
    assign(world.bob, "sre", expires_at=now + timedelta(hours=1))
    assign(world.bob, "security", expires_at=now - timedelta(seconds=1))
    assign(world.bob, "platform", ended_at=now)
    assert held("user:bob") == [("domain", ""), ("sre", "")]


def test_delegation__in_force__names_on_whose_behalf(in_acme, world):
    until = timezone.now() + timedelta(days=2)
    assign(world.bob, "security", delegated_by=world.alice, expires_at=until)
    assert POLICY.duties_of("user:bob") == [HeldDuty("security", "user:alice", until)]
    # The delegator keeps it.
    assert ("security", "") in held("user:alice")


def test_delegation__expired_or_ended__gives_nothing(in_acme, world):
    now = timezone.now()
    past, future = now - timedelta(seconds=1), now + timedelta(days=1)
    assign(world.bob, "security", delegated_by=world.alice, expires_at=past)
    assign(world.bob, "platform", delegated_by=world.alice, expires_at=future, ended_at=now)
    assert held("user:bob") == []


def test_delegation__of_a_duty_the_delegator_lost__gives_nothing(in_acme, world):
    until = timezone.now() + timedelta(days=1)
    ana = person("ana", Role.APPROVER)
    assign(world.bob, "domain", delegated_by=ana, expires_at=until)
    assert held("user:bob") == [("domain", "user:ana")]
    Membership.objects.filter(user=ana).delete()
    assert held("user:bob") == []


def test_delegation__by_somebody_inactive__gives_nothing(in_acme, world):
    until = timezone.now() + timedelta(days=1)
    assign(world.bob, "security", delegated_by=world.alice, expires_at=until)
    User.objects.filter(pk=world.alice.pk).update(is_active=False)
    assert held("user:bob") == []


def test_delegation__passed_on__gives_nothing(in_acme, world):
    until = timezone.now() + timedelta(days=1)
    otto = person("otto", Role.OPERATOR)
    assign(world.bob, "security", delegated_by=world.alice, expires_at=until)
    assign(otto, "security", delegated_by=world.bob, expires_at=until)
    assert held("user:otto") == [("sre", "")]


def test_delegation__of_a_granted_duty__ends_with_the_grant(in_acme, world):
    until = timezone.now() + timedelta(days=1)
    otto = person("otto", Role.OPERATOR)
    granted = assign(otto, "domain")
    assign(world.bob, "domain", delegated_by=otto, expires_at=until)
    assert held("user:bob") == [("domain", "user:otto")]
    DutyAssignment.objects.filter(pk=granted.pk).update(ended_at=timezone.now())
    assert held("user:bob") == []


def test_holders__of_a_duty__are_all_who_hold_it(in_acme, world):
    person("ana", Role.APPROVER)
    person("otto", Role.OPERATOR)
    person("olga", Role.BUSINESS_OWNER)
    until = timezone.now() + timedelta(days=1)
    assign(world.bob, "security", delegated_by=world.alice, expires_at=until)
    assert holders_of(["sre"]) == {"ana", "otto"}
    assert holders_of(["security"]) == {"alice", "bob"}
    assert [(h.username, sorted(h.own)) for h in duty_holders()] == [
        ("alice", ["platform", "security"]),
        ("ana", ["domain", "integration", "sre"]),
        ("bob", []),
        ("otto", ["sre"]),
    ]


def test_duties__cost_the_same_queries_however_many_there_are(
    in_acme, world, django_assert_max_num_queries
):
    for number in range(20):
        assign(person(f"person{number}", Role.OPERATOR), "domain")
    with django_assert_max_num_queries(3):
        POLICY.duties_of("user:person7")
    with django_assert_max_num_queries(2):
        assert len(duty_holders()) == 21
