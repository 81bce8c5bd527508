"""Who edits, approves and publishes one request in the same moment, and who ratifies or reverts one
emergency: whatever comes first, only what was approved runs. On PostgreSQL."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.conf import settings as configuration
from django.db import connection

from apps.releases.authority import setting_up
from apps.releases.change_models import Approval, ChangeRequest
from apps.releases.changes.emergency import (
    break_glass_ratify,
    break_glass_revert,
    request_break_glass,
)
from apps.releases.changes.publishing import request_publish
from apps.releases.changes.refusals import ChangeRefused
from apps.releases.changes.services import (
    patch_save,
    request_decide,
    request_open,
    request_submit,
)
from apps.releases.environments.services import release_deploy
from apps.releases.models import Deployment, Release
from apps.releases.services import item_save, release_publish
from apps.tenants.models import Role, Tenant, User
from apps.tenants.scope import tenant_scope, tenant_transaction
from apps.tenants.services import membership_grant

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True), pytest.mark.governed]

OLGA, ANA, OTTO = "user:olga", "user:ana", "user:otto"
ROUNDS = 20


@pytest.fixture
def tenant(transactional_db: None, settings: Any) -> Tenant:
    settings.CHANGE_LISTENERS = []
    tenant: Tenant = Tenant.objects.create(slug="acme-at-once", name="Acme")
    people = {"olga": Role.BUSINESS_OWNER, "ana": Role.APPROVER, "otto": Role.OPERATOR}
    with tenant_transaction(tenant), setting_up("a test's world"):
        for name, role in people.items():
            membership_grant(user=User.objects.create_user(name), role=role, actor="world")
        for kind, slug, content in (
            ("model_profile", "default", {"provider": "scripted"}),
            ("memory_policy", "default", {}),
            ("rail_policy", "default", {}),
            ("judge_policy", "default", {}),
            ("prompt", "billing", {"system": "You explain invoices."}),
            ("agent", "billing", {"prompt": "billing", "description": "Invoices"}),
            ("intent", "invoice", {"agent": "billing", "keywords": ["invoice"]}),
            ("routing_policy", "default", {"default_agent": "billing"}),
        ):
            item_save(
                kind=kind, slug=slug, content=content, actor="world",
                owner="Olga", technical_owner="Otto",
            )  # fmt: skip
        release = release_publish(actor="world")
        for environment in configuration.RELEASE_ENVIRONMENTS:
            release_deploy(release=release, environment=environment, actor="world")
    return tenant


def at_once(tenant: Tenant, *acts: Callable[[], Any]) -> list[str]:
    """Do all ``acts`` at the same moment; return "" or the name of the refusal of each."""
    barrier = threading.Barrier(len(acts))

    def run(act: Callable[[], Any]) -> str:
        try:
            with tenant_scope(tenant.pk):
                barrier.wait(timeout=30)
                act()
            return ""
        except ChangeRefused as refusal:
            return type(refusal).__name__
        finally:
            connection.close()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, acts))


def edited(request: ChangeRequest | None, system: str, actor: str = OLGA) -> ChangeRequest:
    content = {"system": system}
    saved = patch_save(actor=actor, kind="prompt", slug="billing", content=content, request=request)
    return saved.request


def test_request__edited_approved_and_published_at_once__publishes_what_was_approved_only(
    tenant: Tenant,
) -> None:
    outcomes = set()
    for number in range(ROUNDS):
        with tenant_transaction(tenant):
            request = request_open(actor=OLGA, title=f"Change {number}", reason="Because")
            edited(request, f"Seen {number}.")
            request = request_submit(request=ChangeRequest.objects.get(pk=request.pk), actor=OLGA)
            sha256 = request.manifest_sha256
            if number % 2:
                request_decide(request=request, actor=ANA, decision="approve", sha256=sha256)

        def approve(request: ChangeRequest = request, sha256: str = sha256) -> None:
            request_decide(request=request, actor=ANA, decision="approve", sha256=sha256)

        def edit(request: ChangeRequest = request, number: int = number) -> None:
            edited(request, f"Unseen {number}.")

        def publish(request: ChangeRequest = request) -> None:
            request_publish(request=request, actor=ANA)

        outcomes.add(tuple(at_once(tenant, edit, approve, publish)))
        with tenant_transaction(tenant):
            request.refresh_from_db()
            newest = Release.objects.order_by("-number").first()
            assert newest is not None
            assert "Unseen" not in newest.manifest
            live = request.status in ("published", "deployed")
            assert (f"Seen {number}." in newest.manifest) == live
            if live:
                seen = Approval.objects.filter(request=request, decision="approve")
                assert newest.sha256 in set(seen.values_list("manifest_sha256", flat=True))
            else:
                ChangeRequest.objects.filter(pk=request.pk).update(status="withdrawn")
    assert len(outcomes) > 1


def test_emergency__ratified_and_reverted_at_once__is_one_of_both(tenant: Tenant) -> None:
    for number in range(ROUNDS):
        with tenant_transaction(tenant):
            request = request_open(actor=OTTO, title=f"Stop {number}", reason="Because")
            edited(request, f"Emergency {number}.", actor=OTTO)
            request_break_glass(request=request, actor=OTTO, reason="Fire")
            request.refresh_from_db()

        def ratify(request: ChangeRequest = request) -> None:
            break_glass_ratify(request=request, actor=ANA)

        def revert(request: ChangeRequest = request) -> None:
            break_glass_revert(request=request, actor=ANA, reason="Over")

        told = at_once(tenant, ratify, revert, revert)
        assert sorted(told) == ["", "WrongState", "WrongState"]
        with tenant_transaction(tenant):
            request.refresh_from_db()
            running = Deployment.objects.select_related("release").get(environment="production")
            assert bool(request.ratified_at) != bool(request.reverted_at)
            kept = f"Emergency {number}." in running.release.manifest
            assert kept == bool(request.ratified_at)
