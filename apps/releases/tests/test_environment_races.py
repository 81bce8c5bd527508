"""One environment, several people at once: everybody is told, and its history is what happened."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from apps.releases.authority import setting_up
from apps.releases.change_models import BindingProposal, DeploymentEvent
from apps.releases.changes.refusals import ChangeRefused
from apps.releases.environments.canaries import CanaryRefused, canaries_watch
from apps.releases.environments.in_flight import TurnRates
from apps.releases.environments.services import (
    HopSkipped,
    ProposalRefused,
    binding_decide,
    binding_propose,
    binding_withdraw,
    canary_finish,
    canary_start,
    canary_stop,
    release_deploy,
    release_promote,
    release_roll_back,
)
from apps.releases.models import Binding, Deployment, Release
from apps.releases.selectors import deployed_pointer
from apps.releases.services import release_publish
from apps.releases.tests.conftest import save
from apps.releases.tests.environments import ANA, OTTO, stand
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_scope, tenant_transaction

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True), pytest.mark.governed]
ROUNDS = 15
Act = Callable[[], Any]


@pytest.fixture
def tenant(transactional_db: None, settings: Any) -> Tenant:
    """A tenant with three releases, whose rows are committed."""
    settings.CHANGE_POLICY = "apps.releases.tests.policies.POLICY"
    settings.CHANGE_LISTENERS = []
    tenant = Tenant.objects.create(slug="acme-races", name="Acme")
    with tenant_transaction(tenant), setting_up("a test's world"):
        for number in (1, 2, 3):
            save("prompt", "main", system=f"Version {number}.")
            release_publish(actor="test")
    return tenant


def releases(tenant: Tenant) -> list[Release]:
    with tenant_transaction(tenant):
        return list(Release.objects.order_by("number"))


def at_once(tenant: Tenant, *acts: Act) -> list[str]:
    """Run ``acts`` in threads that start together; return "" or the refusal's code for each."""
    barrier = threading.Barrier(len(acts))

    def run(act: Act) -> str:
        try:
            with tenant_scope(tenant.pk):
                barrier.wait(timeout=30)
                act()
                return ""
        except ChangeRefused as refusal:
            return refusal.code
        finally:
            connection.close()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, acts))


def history(tenant: Tenant) -> list[tuple[str, int, int | None]]:
    with tenant_transaction(tenant):
        events = DeploymentEvent.objects.filter(environment="production").order_by("at")
        return list(events.values_list("verb", "release__number", "canary__number"))


def test_environment__promoted_rolled_back_and_canary_stopped_at_once__is_what_its_history_says(
    tenant: Tenant,
) -> None:
    one, two, three = releases(tenant)
    endings = set()
    for _round in range(ROUNDS):
        with tenant_scope(tenant.pk):
            with tenant_transaction():
                stand(one, "production")
                stand(two, "production", in_flight="pin")
                stand(three, "staging")
            canary_start(release=three, environment="production", share=20, actor=OTTO)
        before = len(history(tenant))
        told = at_once(
            tenant,
            lambda: release_promote(release=three, environment="production", actor=OTTO),
            lambda: release_roll_back(
                release=one, environment="production", actor=ANA, reason="worse"
            ),
            lambda: canary_stop(environment="production", actor=ANA, reason="worse"),
            lambda: canary_finish(environment="production", actor=OTTO),
        )
        events = history(tenant)[before:]
        with tenant_scope(tenant.pk), tenant_transaction():
            row = Deployment.objects.select_related("release").get(environment="production")
            pointer = deployed_pointer("production")
        assert pointer is not None
        # Who promotes what has taken over already changes nothing, and that is no refusal.
        assert set(told) <= {"", CanaryRefused.code}
        assert told[:2] == ["", ""]
        assert told.count("") >= len(events) >= 2
        assert events[-1][1:] == (row.release.number, None)
        assert (pointer.release, pointer.canary) == (row.release_id, row.canary_id)
        assert row.canary_id is None
        assert not pointer.runs(two.pk)
        endings.add(row.release.number)
    assert endings <= {1, 3}


def test_canary__stopped_by_two_people_and_by_itself__stops_once(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, _three = releases(tenant)
    bad = TurnRates(turns=100, failed=100)
    monkeypatch.setattr("apps.releases.environments.in_flight.turn_rates", lambda **what: bad)
    with tenant_scope(tenant.pk):
        stand(one, "production")
        stand(two, "staging")
    for _round in range(ROUNDS):
        with tenant_scope(tenant.pk):
            canary_start(release=two, environment="production", share=20, actor=OTTO)
        before = len(history(tenant))
        stop = lambda: canary_stop(environment="production", actor=ANA, reason="worse")  # noqa: E731
        told = at_once(tenant, stop, stop, lambda: canaries_watch(timezone.now()))
        assert [verb for verb, *_rest in history(tenant)[before:]] == ["canary_stop"]
        assert told[:2].count("") <= 1
        assert told[2] == ""


def test_promote__while_staging_moves_on__is_of_what_staging_ran(tenant: Tenant) -> None:
    one, two, three = releases(tenant)
    outcomes = []
    for _round in range(ROUNDS):
        with tenant_scope(tenant.pk):
            stand(one, "production")
            stand(two, "staging")
        told = at_once(
            tenant,
            lambda: release_promote(release=two, environment="production", actor=OTTO),
            lambda: release_deploy(release=three, environment="staging", actor=ANA),
        )
        with tenant_scope(tenant.pk), tenant_transaction():
            runs = Deployment.objects.values_list("release__number", flat=True)
            production, staging = (runs.get(environment=e) for e in ("production", "staging"))
        assert told[1] == ""
        assert staging == 3
        assert production == (2 if told[0] == "" else 1)
        assert told[0] in ("", HopSkipped.code)
        outcomes.append(told[0])
    assert len(outcomes) == ROUNDS


def test_proposal__decided_twice_and_withdrawn_at_once__is_settled_once(tenant: Tenant) -> None:
    for number in range(ROUNDS):
        value = f"http://host-{number}.test/mcp"
        with tenant_scope(tenant.pk):
            proposal = binding_propose(
                environment="production",
                what="address",
                name="crm",
                value=value,
                reason="moved",
                actor=OTTO,
            )
        told = at_once(
            tenant,
            partial(binding_decide, proposal=proposal, actor=ANA, approve=True),
            partial(binding_decide, proposal=proposal, actor=ANA, approve=False, comment="no"),
            partial(binding_withdraw, proposal=proposal, actor=OTTO),
        )
        assert sorted(told) == ["", ProposalRefused.code, ProposalRefused.code]
        with tenant_scope(tenant.pk), tenant_transaction():
            status = BindingProposal.objects.get(pk=proposal.pk).status
            bound = Binding.objects.filter(environment="production", value=value).exists()
        assert bound == (status == "approved") == (told[0] == "")
