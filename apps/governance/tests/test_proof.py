"""Evidence about one manifest, versions that work together, contracts and their life."""

import datetime as dt
import json
from typing import Any

import pytest

from apps.governance.approval_models import CompatibilityRow, Evidence
from apps.governance.compatibility import (
    InvalidCompatibility,
    compatibility_save,
    is_supported,
    version_fits,
)
from apps.governance.contracts import InvalidContract, contract_save, contracts_shown
from apps.governance.evidence import InvalidEvidence, evidence_of, evidence_record
from apps.governance.gate_levels import gate_level_set
from apps.governance.governing import NotAGovernor, PersonRequired
from apps.releases.freezing import manifest_of_heads
from apps.releases.services import GateRefused, item_save, release_publish
from apps.runtime.canonical import sha256_text
from apps.tenants.models import AuditEntry

pytestmark = pytest.mark.django_db
ALICE = "user:alice"
RESULT = "a" * 64


@pytest.fixture
def manifest(in_acme: Any) -> str:
    """The sha256 of what would be published."""
    item_save(kind="prompt", slug="main", content={"system": "x"}, actor="test")
    return sha256_text(manifest_of_heads())


def proved(manifest: str, *, passed: bool = True, **more: Any) -> Evidence:
    given: dict[str, Any] = {"what": "tests", "result_sha256": RESULT, "actor": "key:ci", **more}
    return evidence_record(manifest_sha256=manifest, passed=passed, **given)


# -- evidence ----------------------------------------------------------------------------------
def test_evidence__asked_for_and_not_there__blocks_by_name(manifest: str) -> None:
    gate_level_set(gate="evidence_tests", level="block", actor=ALICE)
    with pytest.raises(GateRefused) as refused:
        release_publish(actor="test")
    (problem,) = refused.value.problems
    assert (problem.gate, problem.path) == ("evidence_tests", "tests")
    assert manifest[:12] in problem.message


def test_evidence__passed_for_exactly_this_manifest__lets_it_through(manifest: str) -> None:
    gate_level_set(gate="evidence_tests", level="block", actor=ALICE)
    proved("b" * 64)
    proved(manifest, what="evaluation")
    with pytest.raises(GateRefused):
        release_publish(actor="test")
    proved(manifest)
    assert release_publish(actor="test").sha256 == manifest


def test_evidence__newest_failed__blocks_until_one_passes_again(manifest: str) -> None:
    gate_level_set(gate="evidence_tests", level="block", actor=ALICE)
    proved(manifest)
    proved(manifest, passed=False, result_sha256="c" * 64)
    with pytest.raises(GateRefused, match="failed"):
        release_publish(actor="test")
    proved(manifest, result_sha256="d" * 64)
    assert release_publish(actor="test").sha256 == manifest


@pytest.mark.parametrize("what", ["evaluation", "certification"])
def test_evidence__of_each_type__has_a_gate_of_its_own(manifest: str, what: str) -> None:
    gate_level_set(gate=f"evidence_{what}", level="block", actor=ALICE)
    with pytest.raises(GateRefused):
        release_publish(actor="test")
    proved(manifest, what=what)
    release_publish(actor="test")


def test_evidence__the_same_result_again__is_one_row_and_one_audit_entry(manifest: str) -> None:
    assert proved(manifest).pk == proved(manifest).pk
    entry = AuditEntry.objects.get(action="evidence.recorded")
    assert entry.entity == f"manifest:{manifest}"
    assert json.loads(entry.detail) == {"passed": True, "result_sha256": RESULT, "what": "tests"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("manifest_sha256", "A" * 64),
        ("manifest_sha256", "a" * 63),
        ("result_sha256", ""),
        ("what", "rumour"),
        ("link", "javascript:alert(1)"),
        ("link", "https://x.example/" + "a" * 600),
        ("summary", "a" * 501),
        ("summary", "a\0b"),
    ],
)
def test_evidence__that_does_not_fit__names_the_field_and_is_not_kept(
    manifest: str, field: str, value: str
) -> None:
    given: dict[str, Any] = {
        "manifest_sha256": manifest, "what": "tests", "passed": True, "result_sha256": RESULT,
        "actor": ALICE,
    }  # fmt: skip
    with pytest.raises(InvalidEvidence) as invalid:
        evidence_record(**{**given, field: value})
    assert list(invalid.value.errors) == [field]
    assert not Evidence.objects.exists()


def test_evidence__of_another_tenant__is_neither_seen_nor_counted(world: Any) -> None:
    from apps.tenants.scope import tenant_transaction

    with tenant_transaction(world.other):
        proved("e" * 64)
    with tenant_transaction(world.acme):
        assert not evidence_of("e" * 64).exists()


# -- compatibility -----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("pattern", "fits"),
    [("2.1.x", True), ("2.x", True), ("2.1.7", True), ("2.1", True), ("2.2.x", False), ("2.1.70", False), ("3.x", False)],
)  # fmt: skip
def test_version__by_pattern(pattern: str, fits: bool) -> None:
    assert version_fits("2.1.7", pattern) is fits


def row(pattern: str, **more: Any) -> CompatibilityRow:
    given: dict[str, Any] = {"supported": True, "actor": ALICE, **more}
    return compatibility_save(framework=pattern, runtime=pattern, agent_gateway=pattern, **given)


def test_compatibility__without_rows__is_that_of_the_product(in_acme: Any, settings: Any) -> None:
    assert is_supported(settings.VERSION)
    assert not is_supported("9.9.9")


def test_compatibility__running_version_in_no_supported_row__is_a_warning(
    manifest: str, settings: Any
) -> None:
    row("7.x")
    warned = json.loads(release_publish(actor="test").gates)
    assert [(f["level"], settings.VERSION in f["message"]) for f in warned if f["gate"] == "compatibility"] == [("warn", True)]  # fmt: skip
    row("0.1.x")
    assert is_supported(settings.VERSION)
    row(settings.VERSION, supported=False)
    assert not is_supported(settings.VERSION)


@pytest.mark.parametrize("pattern", ["latest", "x", "1", "1.2.3.4", "v1.2.3", "01.2.3", ""])
def test_compatibility__what_is_no_version__is_refused_by_field(in_acme: Any, pattern: str) -> None:
    with pytest.raises(InvalidCompatibility) as invalid:
        row(pattern)
    assert set(invalid.value.errors) == {"framework", "runtime", "agent_gateway"}


def test_compatibility__same_versions_twice__is_refused_and_a_change_is_audited(
    in_acme: Any,
) -> None:
    first = row("2.1.x")
    with pytest.raises(InvalidCompatibility):
        row("2.1.x")
    assert row("2.1.x", row=first, supported=False).supported is False
    assert AuditEntry.objects.filter(action="compatibility.changed").count() == 2


# -- contracts ---------------------------------------------------------------------------------
def test_contracts__of_a_new_tenant__hold_what_the_product_speaks(in_acme: Any) -> None:
    (built_in,) = contracts_shown()
    assert (str(built_in), built_in.status, built_in.pk) == ("gateway-request-v1", "active", None)
    assert "payload" in json.loads(built_in.schema)["properties"]


def test_contract__deprecated__keeps_the_schema_and_never_comes_back(in_acme: Any) -> None:
    day = dt.date(2026, 6, 1)
    contract_save(
        name="gateway-request", version=1, status="deprecated", deprecated_on=day, actor=ALICE
    )
    (shown,) = contracts_shown()
    assert (shown.status, shown.deprecated_on) == ("deprecated", day)
    assert "payload" in shown.schema
    with pytest.raises(InvalidContract) as invalid:
        contract_save(name="gateway-request", version=1, status="active", actor=ALICE)
    assert list(invalid.value.errors) == ["status"]


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("name", {"name": "Gateway Request"}),
        ("version", {"version": 0}),
        ("status", {"status": "asleep"}),
        ("schema", {"schema": "[1]"}),
        ("schema", {"schema": "{"}),
        ("deprecated_on", {"status": "deprecated"}),
        ("retired_on", {"status": "retired"}),
        ("retired_on", {"deprecated_on": dt.date(2026, 2, 1), "retired_on": dt.date(2026, 1, 1)}),
        ("schema", {"name": "gateway-request", "schema": '{"type": "object"}'}),
        ("owner", {"owner": "x" * 201}),
    ],
)
def test_contract__that_does_not_fit__names_the_field(
    in_acme: Any, field: str, fields: dict[str, Any]
) -> None:
    given: dict[str, Any] = {"name": "orders", "version": 1, "status": "active", "actor": ALICE}
    with pytest.raises(InvalidContract) as invalid:
        contract_save(**{**given, **fields})
    assert list(invalid.value.errors) == [field]


@pytest.mark.governed
@pytest.mark.parametrize(
    ("actor", "error"),
    [("user:bob", NotAGovernor), ("user:charlie", NotAGovernor), ("key:ab12cd34", PersonRequired)],
)
def test_rules_of_versions__by_who_does_not_govern_here__are_refused(
    in_acme: Any, actor: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        row("2.1.x", actor=actor)
    with pytest.raises(error):
        contract_save(name="orders", version=1, status="active", actor=actor)
