"""Several people answer, prove and set the same thing at the same moment."""

import datetime as dt

import pytest
from django.utils import timezone

from apps.governance.approval_models import (
    CompatibilityRow,
    ContractVersion,
    Evidence,
    GateLevel,
    ReadinessCheck,
)
from apps.governance.compatibility import InvalidCompatibility, compatibility_save
from apps.governance.contracts import contract_save
from apps.governance.evidence import evidence_record
from apps.governance.gate_levels import gate_level_set
from apps.governance.readiness import (
    ReadinessRefused,
    exemption_approve,
    exemption_ask,
    readiness_set,
)
from apps.governance.tests.test_rules_at_once import AT_ONCE, together
from apps.releases.authority import setting_up
from apps.releases.services import item_save
from apps.tenants.models import AuditEntry, Role, User
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import membership_grant
from conftest import World

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.governed]
ALICE = "user:alice"


@pytest.fixture
def agent(world: World) -> str:
    with tenant_transaction(world.acme), setting_up("a test's agent"):
        item_save(kind="prompt", slug="main", content={"system": "x"}, actor="test")
        item_save(kind="agent", slug="helper", content={"prompt": "main"}, actor="test")
    return "helper"


def told(action: str) -> int:
    return int(AuditEntry.objects.filter(action=action).count())


def test_evidence__the_same_result_at_once__is_one_row_and_one_line(world: World) -> None:
    found = together(
        world.acme,
        lambda _n: evidence_record(
            manifest_sha256="a" * 64, what="tests", passed=True, result_sha256="b" * 64, actor="key:ci"
        ).pk,
    )  # fmt: skip
    assert len(set(found)) == 1
    with tenant_transaction(world.acme):
        assert Evidence.objects.count() == told("evidence.recorded") == 1


def test_readiness__one_point_answered_at_once__is_one_row(world: World, agent: str) -> None:
    together(
        world.acme,
        lambda n: readiness_set(
            agent=agent, check="dataset", state="done", note=f"set {n}", actor=ALICE
        ),
    )
    with tenant_transaction(world.acme):
        assert ReadinessCheck.objects.count() == 1
        assert told("readiness.answered") == AT_ONCE


def test_exemption__approved_at_once__is_approved_once(world: World, agent: str) -> None:
    ana = User.objects.create_user("ana")
    with tenant_transaction(world.acme):
        membership_grant(user=ana, role=Role.APPROVER, actor="test")
        until = timezone.now() + dt.timedelta(days=9)
        exemption_ask(agent=agent, check="rag", reason="None.", expires_at=until, actor=ALICE)

    def approve(_number: int) -> bool:
        try:
            exemption_approve(agent=agent, check="rag", actor="user:ana")
        except ReadinessRefused:
            return False
        return True

    assert together(world.acme, approve).count(True) == 1
    with tenant_transaction(world.acme):
        assert told("readiness.exempted") == 1


def test_rules_of_versions__set_at_once__are_one_row_each(world: World) -> None:
    def add(_number: int) -> bool:
        gate_level_set(gate="unused_items", level="block", actor=ALICE)
        contract_save(name="orders", version=1, status="active", actor=ALICE)
        try:
            compatibility_save(
                framework="1.x", runtime="1.x", agent_gateway="1.x", supported=True, actor=ALICE
            )
        except InvalidCompatibility:
            return False
        return True

    assert together(world.acme, add).count(True) == 1
    with tenant_transaction(world.acme):
        for model in (CompatibilityRow, ContractVersion, GateLevel):
            assert model.objects.count() == 1
        assert told("gate_level.changed") == 1
