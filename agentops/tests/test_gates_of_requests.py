"""Gates through change requests: what stops one, when, and what is kept with the release."""

import json
from typing import Any

import pytest

from agentops.tests.governed_world import ALICE, ANA, OLGA, Governed
from apps.governance.evidence import evidence_record
from apps.governance.gate_levels import gate_level_set
from apps.releases.authority import setting_up
from apps.releases.change_models import ChangeRequest
from apps.releases.changes.publishing import request_publish
from apps.releases.changes.services import patch_save, request_decide, request_open, request_submit
from apps.releases.gates import gate_results_read
from apps.releases.models import ConfigItem
from apps.releases.services import GateRefused, item_save, release_publish
from apps.tenants.scope import tenant_transaction

pytestmark = [pytest.mark.django_db, pytest.mark.governed]


@pytest.fixture
def acme(governed: Governed) -> Any:
    with tenant_transaction(governed.world.acme):
        yield governed


def edited(
    kind: str, slug: str, request: ChangeRequest | None = None, **changes: Any
) -> ChangeRequest:
    """Let Olga change an item in ``request`` or a new one."""
    request = request or request_open(actor=OLGA, title="A change", reason="A test")
    head = ConfigItem.objects.get(kind=kind, slug=slug).head
    labels = {name: changes.pop(name) for name in ("owner", "technical_owner") if name in changes}
    content = {**json.loads(head.content), **changes}
    patch_save(actor=OLGA, kind=kind, slug=slug, content=content, request=request, **labels)
    request.refresh_from_db()
    return request


def approve(request: ChangeRequest) -> ChangeRequest:
    request.refresh_from_db()
    request_decide(request=request, actor=ANA, decision="approve", sha256=request.manifest_sha256)
    request.refresh_from_db()
    return request


def found(stored: str, gate: str) -> list[tuple[str, str]]:
    return [(r["level"], r["path"]) for r in gate_results_read(stored) if r["gate"] == gate]


def test_submit__shadowed_intent__is_refused_with_gate_item_and_winner(acme: Governed) -> None:
    request = edited("intent", "order", keywords=["invoices"])
    with pytest.raises(GateRefused) as refused:
        request_submit(request=request, actor=OLGA)
    (problem,) = refused.value.problems
    assert (problem.gate, problem.kind, problem.slug) == ("intents_shadowed", "intent", "order")
    assert "invoice" in problem.message
    request.refresh_from_db()
    assert request.status == "draft"


def test_submit__retired_agent_that_is_led_to__is_refused_until_its_intent_leads_elsewhere(
    acme: Governed,
) -> None:
    life = {"status": "retired", "deprecated_on": "2025-01-01", "retired_on": "2026-01-01"}
    request = edited("agent", "orders", lifecycle=life)
    with pytest.raises(GateRefused, match="retired agent orders"):
        request_submit(request=request, actor=OLGA)
    request = edited("intent", "order", request=request, agent="billing")
    assert request_submit(request=request, actor=OLGA).status == "in_review"


@pytest.mark.parametrize(("owner", "lacking"), [(None, 1), ("olga", 0)])
def test_gates__owner_that_the_request_itself_gives_a_new_item__counts(
    acme: Governed, owner: str | None, lacking: int
) -> None:
    request = request_open(actor=OLGA, title="A prompt", reason="A test")
    patch_save(
        actor=OLGA, kind="prompt", slug="new", content={"system": "x"}, request=request, owner=owner
    )
    request.refresh_from_db()
    request_submit(request=request, actor=OLGA)
    request.refresh_from_db()
    about = [r for r in gate_results_read(request.gate_results) if r["slug"] == "new"]
    assert [r["gate"] for r in about].count("missing_owners") == lacking
    assert [r["gate"] for r in about].count("unused_items") == 1


def test_publish__warnings__are_kept_with_request_and_release(acme: Governed) -> None:
    request = edited("routing_policy", "default", fallback_agent="orders")
    request = edited("intent", "order", request=request, enabled=False)
    request = edited("routing_policy", "default", request=request, fallback_agent="")
    request_submit(request=request, actor=OLGA)
    request = approve(request)
    assert found(request.gate_results, "unreachable_agents") == [("warn", "")]
    release = request_publish(request=request, actor=ANA)
    assert found(release.gates, "unreachable_agents") == [("warn", "")]
    assert found(release.gates, "references_resolve") == [("passed", "")]


def test_evidence__asked_for__lets_a_request_be_submitted_and_not_approved_without(
    acme: Governed,
) -> None:
    gate_level_set(gate="evidence_tests", level="block", actor=ALICE)
    request = edited("prompt", "orders", system="You explain orders. Briefly.")
    request_submit(request=request, actor=OLGA)
    request.refresh_from_db()
    assert found(request.gate_results, "evidence_tests") == [("warn", "tests")]
    with pytest.raises(GateRefused, match="there is none about the manifest"):
        approve(request)
    proof: dict[str, Any] = {
        "manifest_sha256": request.manifest_sha256, "what": "tests", "actor": "key:ci",
    }  # fmt: skip
    evidence_record(passed=True, result_sha256="a" * 64, **proof)
    request = approve(request)
    evidence_record(passed=False, result_sha256="b" * 64, **proof)
    with pytest.raises(GateRefused, match="failed"):
        request_publish(request=request, actor=ANA)
    evidence_record(passed=True, result_sha256="c" * 64, **proof)
    release = request_publish(request=request, actor=ANA)
    assert found(release.gates, "evidence_tests") == [("passed", "")]


def test_contract__changed_by_a_request__warns_with_who_uses_the_tool(acme: Governed) -> None:
    tool = {"mcp_server": "crm", "description": "Reads a bill."}
    with setting_up("a test's tool"):
        item_save(kind="tool_server", slug="crm", content={"endpoint": "crm"}, actor="test")
        item_save(kind="tool", slug="read", content=tool, actor="test")
        billing = {"prompt": "billing", "tools": ["read"]}
        item_save(kind="agent", slug="billing", content=billing, actor="test")
        release = release_publish(actor="test")
    assert found(release.gates, "contract_pins") == [("passed", "")]
    request = edited("tool", "read", description="Reads any bill.")
    request_submit(request=request, actor=OLGA)
    request.refresh_from_db()
    assert found(request.gate_results, "contract_pins") == [("warn", "description")]
    assert "agent:billing" in request.gate_results
