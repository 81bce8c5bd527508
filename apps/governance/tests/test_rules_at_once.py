"""Several people change the rules of approval at the same moment."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest
from django.db import connection

from apps.governance.approval import raci_matrix
from apps.governance.approval_models import DutyAssignment, RaciEntry
from apps.governance.duty_services import duty_end, duty_grant
from apps.governance.raci import DUTIES, accountable
from apps.governance.responsibility_services import raci_set
from apps.tenants.audit import trail_verify
from apps.tenants.models import AuditEntry, Tenant
from apps.tenants.scope import tenant_scope, tenant_transaction
from conftest import World

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.governed]

T = TypeVar("T")
AT_ONCE = 5


@pytest.fixture(autouse=True)
def _nobody_listens(settings) -> None:
    settings.CHANGE_LISTENERS = []


def together(tenant: Tenant, work: Callable[[int], T]) -> list[T]:
    """Run ``work(0)``, ``work(1)``, … in threads that start at the same moment."""
    barrier = threading.Barrier(AT_ONCE)

    def run(number: int) -> T:
        try:
            with tenant_scope(tenant.pk):
                barrier.wait(timeout=30)
                return work(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(run, range(AT_ONCE)))


def told(action: str) -> int:
    return int(AuditEntry.objects.filter(action=action).count())


def test_duty_grant__of_one_duty_at_once__is_one_grant_and_one_line(world: World) -> None:
    found = together(
        world.acme, lambda _n: duty_grant(user=world.bob, duty="sre", actor="user:alice").pk
    )
    assert len(set(found)) == 1
    with tenant_transaction(world.acme):
        assert DutyAssignment.objects.count() == 1
        assert told("duty.granted") == 1


def test_duty_end__at_once__is_one_line(world: World) -> None:
    with tenant_transaction(world.acme):
        row = duty_grant(user=world.bob, duty="sre", actor="user:alice")
    together(world.acme, lambda _n: duty_end(assignment=row, actor="user:alice"))
    with tenant_transaction(world.acme):
        assert told("duty.ended") == 1


def test_raci_set__at_once__leaves_the_row_of_one_of_them(world: World) -> None:
    """Cell by cell, two rows could else become one with two accountable duties, or none."""
    together(
        world.acme,
        lambda n: raci_set(
            activity="prompt_change", letters={DUTIES[n]: "R/A"}, actor="user:alice"
        ),
    )
    with tenant_transaction(world.acme):
        row = raci_matrix()["prompt_change"]
        assert len(accountable(row)) == 1
        assert sorted(row.values()) == ["", "", "", "", "R/A"]
        assert RaciEntry.objects.count() == len(DUTIES)
        assert told("responsibility.changed") == AT_ONCE
    assert trail_verify(world.acme).broken_at == 0
