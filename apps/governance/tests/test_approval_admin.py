"""Pages of who approves what and of duties: Alice changes them, Bob reads, Charlie sees his own."""

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.governance.approval import POLICY, raci_matrix, risk_quorums
from apps.governance.approval_models import DutyAssignment
from apps.governance.duty_services import duty_grant
from apps.governance.quorums import Quorum
from apps.governance.responsibility_services import raci_set
from apps.governance.tests.test_duty_services import told as told
from apps.tenants.models import Role, User
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import membership_grant

pytestmark = [pytest.mark.django_db, pytest.mark.governed, pytest.mark.usefixtures("told")]

MATRIX, DUTIES = "admin:governance_racientry_changelist", "admin:governance_dutyassignment_"
ROW = {"platform": "R", "domain": "A", "integration": "C", "sre": "I", "security": "C"}


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def ana(world) -> User:
    user = User.objects.create_user("ana")
    with tenant_transaction(world.acme):
        membership_grant(user=user, role=Role.APPROVER, actor="world")
    return user


def text(response) -> str:
    assert response.status_code == 200
    return str(response.content.decode())


def in_form(moment) -> str:
    return f"{timezone.localtime(moment):%Y-%m-%dT%H:%M}"


def held(world, user) -> list[tuple[str, str]]:
    with tenant_transaction(world.acme):
        return [(h.duty, h.on_behalf_of) for h in POLICY.duties_of(f"user:{user.username}")]


# -- the matrix --------------------------------------------------------------------------------


def test_matrix_page__shows_every_row_its_problem_and_who_holds_what(world, ana):
    page = text(browser(world.alice).get(reverse(MATRIX)))
    for title in ("Framework or runtime change", "Guardrail change", "Certification"):
        assert title in page
    assert "“Model profile change” has nobody accountable" in page
    assert "1 problem with these rules" in page
    assert "Parameter mapping" in page
    assert reverse("admin:governance_raci_row", args=["prompt_change"]) in page


def test_matrix_page__with_a_duty_nobody_holds__says_so(world):
    page = text(browser(world.alice).get(reverse(MATRIX)))
    assert "“Prompt change” is approved by Domain, and nobody holds that duty" in page


def test_matrix_page__of_an_auditor__shows_and_changes_nothing(world):
    page = text(browser(world.bob).get(reverse(MATRIX)))
    assert "Model profile change" in page
    assert reverse("admin:governance_raci_row", args=["prompt_change"]) not in page
    for name, argument in (("raci_row", "prompt_change"), ("quorum", "weakening")):
        url = reverse(f"admin:governance_{name}", args=[argument])
        assert browser(world.bob).get(url).status_code == 403
        assert browser(world.bob).post(url, {"sre": "R/A"}).status_code == 403


def test_row_page__saved__is_what_is_required_from_then_on(world):
    url = reverse("admin:governance_raci_row", args=["model_profile_change"])
    assert "Exactly one duty has an A" in text(browser(world.alice).get(url))
    response = browser(world.alice).post(url, ROW)
    assert (response.status_code, response.headers["Location"]) == (302, reverse(MATRIX))
    with tenant_transaction(world.acme):
        assert raci_matrix()["model_profile_change"] == ROW
    with tenant_transaction(world.other):
        assert raci_matrix()["model_profile_change"]["domain"] == "C"
    assert "Last changed by user:alice." in text(browser(world.alice).get(url))
    assert "user:alice" not in text(browser(world.charlie).get(url))


def test_row_page__with_two_accountable__says_which_and_keeps_what_was_typed(world):
    url = reverse("admin:governance_raci_row", args=["new_agent"])
    page = text(browser(world.alice).post(url, {**ROW, "sre": "R/A"}))
    assert "Only one duty is accountable (A)" in page
    assert '<option value="R/A" selected>' in page
    with tenant_transaction(world.acme):
        assert raci_matrix()["new_agent"]["sre"] == "I"


@pytest.mark.parametrize(("name", "argument"), [("raci_row", "coffee"), ("quorum", "harmless")])
def test_rules_page__of_nothing__is_absent(world, name, argument):
    url = reverse(f"admin:governance_{name}", args=[argument])
    assert browser(world.alice).get(url).status_code == 404


def test_quorum_page__saved__holds(world):
    url = reverse("admin:governance_quorum", args=["behaviour"])
    browser(world.alice).post(url, {"approvals": "2", "extra_duty": "security"})
    with tenant_transaction(world.acme):
        assert risk_quorums()["behaviour"] == Quorum(2, "security")


@pytest.mark.parametrize("typed", [{"approvals": "1", "extra_duty": "security"},
                                   {"approvals": "x"}, {}])  # fmt: skip
def test_quorum_page__below_the_floor__is_refused_at_its_field(world, typed):
    url = reverse("admin:governance_quorum", args=["weakening"])
    page = text(browser(world.alice).post(url, typed))
    assert 'href="#id_approvals"' in page
    with tenant_transaction(world.acme):
        assert risk_quorums()["weakening"] == Quorum(2, "security")


# -- duties ------------------------------------------------------------------------------------


def test_duties_page__shows_who_holds_what(world, ana):
    page = text(browser(world.bob).get(reverse(DUTIES + "changelist")))
    assert "Domain, Integration, Operations (SRE)" in page
    assert "You hold no duty of your own." in page
    assert reverse("admin:governance_duty_delegate") not in page
    assert "charlie" not in page


def test_grant_page__saved__is_held_and_shown(world):
    url = reverse(DUTIES + "add")
    page = text(browser(world.alice).get(url))
    assert '<option value="bob">' in page
    assert "charlie" not in page
    response = browser(world.alice).post(url, {"user": "bob", "duty": "sre", "reason": "nights"})
    assert response.status_code == 302
    assert held(world, world.bob) == [("sre", "")]
    assert "nights" in text(browser(world.bob).get(response.headers["Location"]))


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"user": "charlie", "duty": "sre"}, "Select a valid choice"),
        ({"user": "bob", "duty": "emperor"}, "Select a valid choice"),
        ({"user": "bob", "duty": "sre", "expires_at": "2020-01-01T00:00"}, "This is in the past."),
        ({"user": "alice", "duty": "sre"}, "Nobody grants a duty to themselves"),
        ({}, "This field is required."),
    ],
)
def test_grant_page__that_does_not_fit__is_refused(world, typed, said):
    page = text(browser(world.alice).post(reverse(DUTIES + "add"), typed))
    assert said in page
    with tenant_transaction(world.acme):
        assert not DutyAssignment.objects.exists()


def test_grant_page__of_anybody_but_a_tenant_admin__is_closed(world, ana):
    for person in (world.bob, ana):
        response = browser(person).post(reverse(DUTIES + "add"), {"user": "bob", "duty": "sre"})
        assert response.status_code == 403
    assert held(world, world.bob) == []


def test_delegate_page__of_a_holder__lets_somebody_stand_in(world, ana):
    url = reverse("admin:governance_duty_delegate")
    page = text(browser(ana).get(url))
    assert '<option value="domain">' in page
    assert '<option value="security">' not in page
    assert '<option value="ana">' not in page
    assert "bob (holds no role that may decide)" in page, "an auditor is not let in to approve"
    assert '<option value="alice">alice</option>' in page
    until = timezone.now() + timedelta(days=3)
    typed = {"user": "bob", "duty": "domain", "expires_at": in_form(until), "reason": "holiday"}
    assert browser(ana).post(url, typed).status_code == 302
    assert held(world, world.bob) == [("domain", "user:ana")]
    mine = text(browser(world.bob).get(reverse(DUTIES + "changelist") + "?mine"))
    assert "holiday" in mine
    # Alice has nothing to do with it.
    assert "holiday" not in text(browser(world.alice).get(reverse(DUTIES + "changelist") + "?mine"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"expires_at": "late"}, "A duty is delegated for 30 days at most."),
        ({"reason": ""}, "This field is required."),
        ({"expires_at": ""}, "This field is required."),
        ({"duty": "security"}, "Select a valid choice"),
    ],
)
def test_delegate_page__that_does_not_fit__is_refused(world, ana, change, said):
    late = in_form(timezone.now() + timedelta(days=31))
    typed = {
        "user": "bob", "duty": "domain", "reason": "holiday",
        "expires_at": in_form(timezone.now() + timedelta(days=1)), **change,
    }  # fmt: skip
    typed["expires_at"] = late if typed["expires_at"] == "late" else typed["expires_at"]
    assert said in text(browser(ana).post(reverse("admin:governance_duty_delegate"), typed))
    assert held(world, world.bob) == []


def test_delegate_page__of_whoever_holds_none__is_closed(world):
    assert browser(world.bob).get(reverse("admin:governance_duty_delegate")).status_code == 403


def test_duty_page__ended_by_whom_it_belongs_to__is_over(world):
    with tenant_transaction(world.acme):
        row = duty_grant(user=world.bob, duty="sre", actor="user:alice", reason="nights")
    url = reverse(DUTIES + "change", args=[row.pk])
    assert "End it now" in text(browser(world.bob).get(url))
    assert browser(world.bob).post(url).status_code == 302
    assert held(world, world.bob) == []
    page = text(browser(world.alice).get(url))
    assert "End it now" not in page
    assert "Ended" in page


def test_duty_page__of_somebody_else__is_shown_and_not_ended(world, ana):
    with tenant_transaction(world.acme):
        row = duty_grant(user=world.bob, duty="sre", actor="user:alice")
    url = reverse(DUTIES + "change", args=[row.pk])
    assert "End it now" not in text(browser(ana).get(url))
    assert browser(ana).post(url).status_code == 403
    assert held(world, world.bob) == [("sre", "")]
    # An outsider's answer is that of a row that is not there.
    assert browser(world.charlie).get(url).status_code == 404
    assert browser(world.charlie).post(url).status_code == 404


def test_pages__cost_the_same_queries_with_many_people(world, django_assert_max_num_queries):
    with tenant_transaction(world.acme):
        for number in range(15):
            person = User.objects.create_user(f"person{number}")
            membership_grant(user=person, role=Role.OPERATOR, actor="world")
            duty_grant(user=person, duty="domain", actor="user:alice")
    client = browser(world.alice)
    with django_assert_max_num_queries(25):
        text(client.get(reverse(MATRIX)))
    with django_assert_max_num_queries(30):
        text(client.get(reverse(DUTIES + "changelist")))


# -- roles -------------------------------------------------------------------------------------


def test_members_page__a_role_for_oneself__is_refused_with_a_sentence(world):
    url = reverse("admin:tenants_membership_add")
    page = text(browser(world.alice).post(url, {"username": "alice", "role": "approver"}))
    assert "Nobody gives a role to themselves: ask another tenant admin." in page
    assert held(world, world.alice) == [("platform", ""), ("security", "")]
    assert (
        browser(world.alice).post(url, {"username": "bob", "role": "approver"}).status_code == 302
    )


# -- the command -------------------------------------------------------------------------------


def test_governance_check__with_findings__lists_them_and_exits_with_1(world, ana, capsys):
    with pytest.raises(CommandError) as failed:
        call_command("governance_check", tenant="acme")
    assert failed.value.returncode == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("acme: nobody_accountable: “Model profile change”")


def test_governance_check__of_sound_rules__exits_with_0(world, ana, capsys):
    with tenant_transaction(world.acme):
        raci_set(activity="model_profile_change", letters=ROW, actor="user:alice")
    call_command("governance_check", tenant="acme")
    assert capsys.readouterr().out == "acme: nothing is wrong\n"


def test_governance_check__of_an_unknown_tenant__says_so(world):
    with pytest.raises(CommandError, match="There is no tenant nowhere"):
        call_command("governance_check", tenant="nowhere")
