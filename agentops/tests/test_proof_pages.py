"""Pages of gates, evidence, versions, contracts and readiness: Alice acts, Bob reads, Charlie sees
nothing of it."""

import datetime as dt
import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.governance.approval_models import (
    CompatibilityRow,
    ContractVersion,
    Evidence,
    GateLevel,
    ReadinessCheck,
)
from apps.releases.authority import setting_up
from apps.releases.services import item_save, release_publish
from apps.tenants.models import Role, User
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import membership_grant

pytestmark = [pytest.mark.django_db, pytest.mark.governed]
MANIFEST, RESULT = "a" * 64, "b" * 64


def url(name: str, *args: Any) -> str:
    return reverse(f"admin:governance_{name}", args=args)


def text(response: Any, status: int = 200) -> str:
    assert response.status_code == status, response.content[:400]
    return str(response.content.decode())


def saved(world: Any, model: Any) -> list[Any]:
    with tenant_transaction(world.acme):
        return list(model.objects.all())


@pytest.fixture
def helper(world: Any) -> str:
    """A published agent of acme."""
    with tenant_transaction(world.acme), setting_up("a test's agent"):
        item_save(kind="prompt", slug="main", content={"system": "x"}, actor="test")
        for kind in ("model_profile", "memory_policy", "rail_policy", "judge_policy"):
            item_save(kind=kind, slug="default", content={}, actor="test")
        item_save(
            kind="agent", slug="helper", content={"prompt": "main"}, actor="test", owner="olga"
        )
        release_publish(actor="test")
    return "helper"


@pytest.fixture
def as_ana(world: Any) -> Client:
    """A browser of a second person who holds a duty."""
    ana = User.objects.create_user("ana")
    with tenant_transaction(world.acme):
        membership_grant(user=ana, role=Role.APPROVER, actor="world")
    client = Client()
    client.force_login(ana)
    return client


# -- gates ---------------------------------------------------------------------------------------
def test_gates_page__lists_every_gate_with_level_and_help(as_bob: Client) -> None:
    page = text(as_bob.get(url("gatelevel_changelist")))
    for said in ("Agents nobody reaches", "unreachable_agents", "Evidence: tests", "Compatibility"):
        assert said in page
    assert "<select" not in page


def test_gates_page__a_governor_sets_a_level(world: Any, as_alice: Client) -> None:
    page = url("gatelevel_changelist")
    answer = as_alice.post(page, {"gate": "unused_items", "level": "block"})
    assert answer.status_code == 302
    assert [(row.gate, row.level, row.updated_by) for row in saved(world, GateLevel)] == [
        ("unused_items", "block", "user:alice")
    ]
    assert "user:alice" in text(as_alice.get(page))


def test_gates_page__locked_or_unknown_gate__is_refused_in_words(
    world: Any, as_alice: Client
) -> None:
    page = url("gatelevel_changelist")
    assert "blocks in every tenant" in text(as_alice.post(page, {"gate": "schema", "level": "off"}))
    assert "There is no gate" in text(as_alice.post(page, {"gate": "x", "level": "off"}))
    assert saved(world, GateLevel) == []


def test_gates_page__auditor_and_approver__may_not_set_one(
    world: Any, as_bob: Client, as_ana: Client
) -> None:
    for browser in (as_bob, as_ana):
        answer = browser.post(url("gatelevel_changelist"), {"gate": "unused_items", "level": "off"})
        assert answer.status_code == 403
    assert saved(world, GateLevel) == []


# -- evidence --------------------------------------------------------------------------------------
def test_evidence_page__records_a_result_about_a_manifest(world: Any, as_ana: Client) -> None:
    form = text(as_ana.get(url("evidence_add") + f"?manifest_sha256={MANIFEST}"))
    assert MANIFEST in form
    typed = {
        "manifest_sha256": MANIFEST, "what": "tests", "passed": "on", "result_sha256": RESULT,
        "summary": "311 passed", "link": "https://ci.example/1",
    }  # fmt: skip
    assert as_ana.post(url("evidence_add"), typed).status_code == 302
    (row,) = saved(world, Evidence)
    assert (row.passed, row.recorded_by, row.summary) == (True, "user:ana", "311 passed")
    listed = text(as_ana.get(url("evidence_changelist") + f"?manifest_sha256={MANIFEST}"))
    assert "311 passed" in listed
    assert "311 passed" in text(as_ana.get(url("evidence_change", row.pk)))


def test_evidence_page__what_does_not_fit__is_said_at_its_field(
    world: Any, as_alice: Client
) -> None:
    typed = {"manifest_sha256": "x", "what": "tests", "result_sha256": RESULT, "link": "gopher:x"}
    page = text(as_alice.post(url("evidence_add"), typed))
    assert "64 digits" in page
    assert "https://" in page
    assert saved(world, Evidence) == []


def test_evidence_page__auditor__reads_only_and_an_outsider_finds_nothing(
    world: Any, as_bob: Client, as_charlie: Client
) -> None:
    with tenant_transaction(world.acme):
        row = Evidence.objects.create(
            manifest_sha256=MANIFEST, what="tests", passed=False, result_sha256=RESULT,
            summary="of acme", recorded_by="x",
        )  # fmt: skip
    assert "of acme" in text(as_bob.get(url("evidence_changelist")))
    assert as_bob.get(url("evidence_add")).status_code == 403
    assert as_bob.post(url("evidence_add"), {}).status_code == 403
    assert "of acme" not in text(as_charlie.get(url("evidence_changelist")))
    assert as_charlie.get(url("evidence_change", row.pk)).status_code == 404


# -- versions and contracts ------------------------------------------------------------------------
def test_compatibility_page__adds_and_changes_a_row(world: Any, as_alice: Client) -> None:
    first = text(as_alice.get(url("compatibilityrow_changelist")))
    assert "There are no rows yet" in first
    typed = {"framework": "2.1.x", "runtime": "2.1.x", "agent_gateway": "latest"}
    page = text(as_alice.post(url("compatibilityrow_add"), typed))
    assert "pattern like 2.1.x" in page
    typed["agent_gateway"] = "2.0.x"
    assert as_alice.post(url("compatibilityrow_add"), typed).status_code == 302
    (row,) = saved(world, CompatibilityRow)
    assert row.supported is False
    change = url("compatibilityrow_change", row.pk)
    assert "2.0.x" in text(as_alice.get(change))
    assert as_alice.post(change, {**typed, "supported": "on"}).status_code == 302
    assert saved(world, CompatibilityRow)[0].supported is True
    assert "not supported" in text(as_alice.get(url("compatibilityrow_changelist")))


def test_contracts_page__built_in_one__is_deprecated_and_keeps_its_schema(
    world: Any, as_alice: Client
) -> None:
    page = text(as_alice.get(url("contractversion_changelist")))
    assert "gateway-request-v1" in page
    assert "built in" in page
    add = url("contractversion_add") + "?contract=gateway-request-v1"
    typed = {"status": "deprecated", "owner": "platform"}
    assert "from which it is deprecated" in text(as_alice.post(add, typed))
    assert as_alice.post(add, {**typed, "deprecated_on": "2026-06-01"}).status_code == 302
    (row,) = saved(world, ContractVersion)
    assert (str(row), row.status) == ("gateway-request-v1", "deprecated")
    assert "payload" in row.schema
    change = url("contractversion_change", row.pk)
    assert "deprecated" in text(as_alice.get(change))
    assert "come back to life" in text(as_alice.post(change, {"status": "active"}))


def test_rules_of_versions__who_does_not_govern_or_is_an_outsider__may_not(
    world: Any, as_bob: Client, as_ana: Client, as_charlie: Client
) -> None:
    with tenant_transaction(world.acme):
        row = CompatibilityRow.objects.create(framework="1.x", runtime="1.x", agent_gateway="1.x")
    for browser in (as_bob, as_ana):
        assert browser.get(url("compatibilityrow_changelist")).status_code == 200
        for page in ("compatibilityrow_add", "contractversion_add"):
            assert browser.get(url(page)).status_code == 403
            assert browser.post(url(page), {}).status_code == 403
        assert browser.post(url("compatibilityrow_change", row.pk), {}).status_code == 403
    assert as_charlie.get(url("compatibilityrow_change", row.pk)).status_code == 404


# -- readiness -------------------------------------------------------------------------------------
def test_readiness_page__shows_what_the_product_sees_and_takes_an_answer(
    world: Any, helper: str, as_alice: Client
) -> None:
    page = url("readiness", helper)
    shown = text(as_alice.get(page))
    assert "olga" in shown
    assert "seen by the product" in shown
    assert shown.count('id="topic-dataset"') == 1
    answer = {"check": "dataset", "act": "done", "note": "", "link": ""}
    assert "Say what shows" in text(as_alice.post(page, answer))
    assert as_alice.post(page, {**answer, "note": "120 cases"}).status_code == 302
    assert [(r.agent, r.check_code, r.state) for r in saved(world, ReadinessCheck)] == [
        ("helper", "dataset", "done")
    ]
    assert "120 cases" in text(as_alice.get(page))
    assert as_alice.post(page, {"check": "dataset", "act": "open"}).status_code == 302
    assert saved(world, ReadinessCheck)[0].state == "open"


def test_readiness_page__exemption__is_approved_by_another_person(
    world: Any, helper: str, as_alice: Client, as_ana: Client
) -> None:
    page = url("readiness", helper)
    until = (timezone.localdate() + dt.timedelta(days=30)).isoformat()
    ask = {"check": "rag", "act": "ask", "reason": "No documents."}
    assert "Give the day" in text(as_alice.post(page, ask))
    assert as_alice.post(page, {**ask, "until": until}).status_code == 302
    approve = {"check": "rag", "act": "approve"}
    assert "Another person" in text(as_alice.post(page, approve))
    shown = text(as_ana.get(page))
    assert "Approve the exemption" in shown
    (seen,) = re.findall('name="seen" value="([^"]+)"', shown)
    for stale in ("", "2026-01-01T00:00:00+00:00", "2026-01-01"):
        assert "look again" in text(as_ana.post(page, {**approve, "seen": stale}))
    assert as_ana.post(page, {**approve, "seen": seen}).status_code == 302
    (row,) = saved(world, ReadinessCheck)
    assert (row.state, row.approved_by) == ("exempt", "user:ana")
    listed = text(as_ana.get(url("readinesscheck_changelist")))
    assert "helper" in listed


def test_readiness_page__auditor__reads_only_and_an_outsider_finds_nothing(
    world: Any, helper: str, as_bob: Client, as_charlie: Client
) -> None:
    page = url("readiness", helper)
    assert "It is done" not in text(as_bob.get(page))
    assert as_bob.post(page, {"check": "dataset", "act": "done", "note": "x"}).status_code == 403
    assert as_charlie.get(page).status_code == 404
    assert as_charlie.post(page, {"check": "dataset", "act": "done"}).status_code == 404
    assert "helper" not in text(as_charlie.get(url("readinesscheck_changelist")))
    assert saved(world, ReadinessCheck) == []


@pytest.mark.parametrize("typed", [{"act": "x", "check": "dataset"}, {"act": "done", "check": "x"}])
def test_readiness_page__act_or_point_there_is_not__is_absent(
    helper: str, as_alice: Client, typed: dict[str, str]
) -> None:
    assert as_alice.post(url("readiness", helper), typed).status_code == 404


def test_agent_page__leads_to_its_readiness(world: Any, helper: str, as_bob: Client) -> None:
    page = as_bob.get(reverse("admin:agents_agent_by_slug", args=[helper]), follow=True)
    assert url("readiness", helper) in text(page)


def test_release_page__leads_to_recording_a_result_about_it(
    world: Any, helper: str, as_alice: Client, as_bob: Client
) -> None:
    from apps.releases.models import Release

    with tenant_transaction(world.acme):
        release = Release.objects.get()
    page = reverse("admin:releases_release_change", args=[release.pk])
    link = url("evidence_add") + f"?manifest_sha256={release.sha256}"
    assert link in text(as_alice.get(page))
    assert link not in text(as_bob.get(page))
