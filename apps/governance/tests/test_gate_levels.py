"""A tenant sets what a gate's findings do; publishing obeys."""

import json
from typing import Any

import pytest

from apps.governance.approval_models import GateLevel
from apps.governance.gate_levels import InvalidGateLevel, gate_level_set, gates_shown
from apps.governance.governing import NotAGovernor, PersonRequired
from apps.releases.gates import GateContext, Problem, gate_results_read
from apps.releases.models import Release
from apps.releases.services import GateRefused, item_save, release_publish
from apps.tenants.models import AuditEntry

pytestmark = pytest.mark.django_db


@pytest.fixture
def unowned(in_acme: Any) -> None:
    """Something to publish that has no owner."""
    item_save(kind="prompt", slug="main", content={"system": "x"}, actor="test")


def results(release: Release, gate: str) -> list[dict[str, str]]:
    return [found for found in gate_results_read(release.gates) if found["gate"] == gate]


def test_publish__finding_that_warns__passes_and_is_kept_with_the_release(unowned: None) -> None:
    found = results(release_publish(actor="test"), "missing_owners")
    assert [(f["level"], f["kind"], f["slug"], f["path"]) for f in found] == [
        ("warn", "prompt", "main", "owner")
    ]


def test_publish__gate_set_to_block__refuses_with_the_finding(unowned: None) -> None:
    assert gate_level_set(gate="missing_owners", level="block", actor="user:alice") == "block"
    with pytest.raises(GateRefused) as refused:
        release_publish(actor="test")
    assert [(p.gate, p.level) for p in refused.value.problems] == [("missing_owners", "block")]


def test_publish__gate_set_to_off__is_skipped_and_the_release_says_so(unowned: None) -> None:
    gate_level_set(gate="missing_owners", level="off", actor="user:alice")
    (found,) = results(release_publish(actor="test"), "missing_owners")
    assert found["level"] == "off"


def test_publish__evidence_gate__is_off_until_it_is_set(unowned: None) -> None:
    (found,) = results(release_publish(actor="test"), "evidence_tests")
    assert found["level"] == "off"


def test_level_set__back_to_its_own__leaves_no_row(unowned: None) -> None:
    gate_level_set(gate="missing_owners", level="block", actor="user:alice")
    assert gate_level_set(gate="missing_owners", level="", actor="user:alice") == "warn"
    assert not GateLevel.objects.exists()


def test_level_set__is_in_the_audit_trail_and_a_weaker_one_is_marked(unowned: None) -> None:
    gate_level_set(gate="prompt_variables", level="warn", actor="user:alice")
    entry = AuditEntry.objects.filter(action="gate_level.changed").get()
    assert entry.entity == "gate:prompt_variables"
    assert json.loads(entry.detail) == {"after": "warn", "before": "block", "weaker": True}
    gate_level_set(gate="prompt_variables", level="warn", actor="user:alice")
    assert AuditEntry.objects.filter(action="gate_level.changed").count() == 1


@pytest.mark.parametrize("gate", ["schema", "references_resolve"])
def test_level_set__of_a_locked_gate__is_refused(unowned: None, gate: str) -> None:
    with pytest.raises(InvalidGateLevel) as refused:
        gate_level_set(gate=gate, level="warn", actor="user:alice")
    assert refused.value.field == "level"
    # Nor does a row that got there in another way count.
    GateLevel.objects.create(gate=gate, level="off", updated_by="x")
    shown = {found.info.code: found.level for found in gates_shown()}
    assert shown[gate] == "block"


@pytest.mark.parametrize(("gate", "level", "field"), [("nothing", "warn", "gate"), ("unused_items", "loud", "level")])  # fmt: skip
def test_level_set__of_what_there_is_not__names_the_field(
    unowned: None, gate: str, level: str, field: str
) -> None:
    with pytest.raises(InvalidGateLevel) as refused:
        gate_level_set(gate=gate, level=level, actor="user:alice")
    assert refused.value.field == field


@pytest.mark.governed
@pytest.mark.parametrize(
    ("actor", "error"),
    [("user:bob", NotAGovernor), ("user:charlie", NotAGovernor), ("key:ab12cd34", PersonRequired)],
)
def test_level_set__by_who_does_not_govern_here__is_refused(
    in_acme: Any, actor: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        gate_level_set(gate="unused_items", level="off", actor=actor)


def test_level__of_one_tenant__is_not_that_of_another(world: Any) -> None:
    from apps.tenants.scope import tenant_transaction

    with tenant_transaction(world.acme):
        gate_level_set(gate="unused_items", level="off", actor="user:alice")
    with tenant_transaction(world.other):
        assert {g.info.code: g.level for g in gates_shown()}["unused_items"] == "warn"


def breaks(context: GateContext) -> list[Problem]:
    raise ZeroDivisionError("secret of a gate")


def asks_in_vain(context: GateContext) -> list[Problem]:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM there_is_no_such_table")
    return []


@pytest.mark.parametrize("gate", ["breaks", "asks_in_vain"])
def test_publish__gate_that_breaks__refuses_by_its_name_and_spoils_nothing(
    unowned: None, settings: Any, gate: str
) -> None:
    settings.RELEASE_GATES = [*settings.RELEASE_GATES, f"{__name__}.{gate}"]
    with pytest.raises(GateRefused) as refused:
        release_publish(actor="test")
    (problem,) = refused.value.problems
    assert (problem.gate, problem.level) == (gate, "block")
    assert "secret" not in problem.message
    assert not Release.objects.exists()


def finds_much(context: GateContext) -> list[Problem]:
    return [Problem(message=str(n), level="warn") for n in range(500)] + [Problem(message="bad")]


def test_publish__very_many_findings__keeps_those_that_block_and_counts_the_rest(
    unowned: None, settings: Any
) -> None:
    settings.RELEASE_GATES = [f"{__name__}.finds_much"]
    with pytest.raises(GateRefused, match="bad"):
        release_publish(actor="test")


def test_results__of_a_release_from_before_levels__are_names_of_gates_it_passed() -> None:
    stored = '["apps.releases.gates.references_resolve", "agentops.gates.next_states_exist"]'
    read = gate_results_read(stored)
    assert [(found["gate"], found["level"]) for found in read] == [
        ("references_resolve", "passed"),
        ("next_states_exist", "passed"),
    ]
