"""A tenant that runs, its people, and a personal key of each: for tests of every door.

Import ``governed`` into a test module to use it as a fixture. Use it with ``@pytest.mark.governed``:
nothing is then possible that is not possible in production.
"""

import json
from dataclasses import dataclass, field
from typing import Any

import jsonschema
import pytest
from django.conf import settings
from django.test import Client

from apps.gateway.tests.documented import described_for, document
from apps.releases.authority import setting_up
from apps.releases.change_models import ChangeRequest, DeploymentEvent
from apps.releases.environments.services import release_deploy
from apps.releases.models import ConfigItem, Deployment, Release
from apps.releases.services import item_save, release_publish
from apps.tenants.models import AuditEntry, Role, User
from apps.tenants.roles import KEY_SCOPES
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import api_key_issue, membership_grant

OLGA, ANA, OTTO, ALICE, BOB = "user:olga", "user:ana", "user:otto", "user:alice", "user:bob"
ITEMS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("model_profile", "default", {"provider": "scripted"}),
    ("memory_policy", "default", {}),
    ("rail_policy", "default", {}),
    ("judge_policy", "default", {}),
    ("prompt", "billing", {"system": "You explain invoices.\nBe kind."}),
    ("prompt", "orders", {"system": "You explain orders."}),
    ("agent", "billing", {"prompt": "billing", "description": "Invoices"}),
    ("agent", "orders", {"prompt": "orders", "description": "Orders"}),
    ("intent", "invoice", {"agent": "billing", "keywords": ["invoice"]}),
    ("intent", "order", {"agent": "orders", "keywords": ["order"]}),
    ("routing_policy", "default", {"default_agent": "billing"}),
)


@dataclass
class Governed:
    """The tenant acme as people and their programs reach it."""

    world: Any
    release: Release
    keys: dict[str, str] = field(default_factory=dict)

    def call(
        self, method: str, address: str, body: Any = None, *, by: str = "olga", status: int = 0
    ) -> Any:
        """Call ``/v1/…`` with the personal key of ``by`` ("system": a system's key, "charlie":
        another tenant's) and return the JSON answer, whose status must be ``status`` when given."""
        response = Client().generic(
            method.upper(),
            f"/v1/{address}",
            json.dumps(body) if body is not None else "",
            content_type="application/json",
            headers={"authorization": f"Bearer {self.keys[by]}"},
        )
        if status:
            assert response.status_code == status, response.content.decode()[:600]
        said = response.json() if response.content else None
        documented(method, address, response, said)
        return said

    def browser(self, name: str) -> Client:
        """Return a browser in which ``name`` is signed in."""
        client = Client()
        client.force_login(User.objects.get(username=name))
        return client

    def state(self) -> dict[str, Any]:
        """Return everything that runs or was accepted: what a refused act must leave as it was."""
        with tenant_transaction(self.world.acme):
            return {
                "heads": list(
                    ConfigItem.objects.order_by("kind", "slug").values_list(
                        "kind", "slug", "head__digest", "archived_at"
                    )
                ),
                "releases": list(
                    Release.objects.order_by("number").values_list("number", "sha256", "manifest")
                ),
                "deployments": list(
                    Deployment.objects.order_by("environment").values_list(
                        "environment", "release__number", "canary__number", "canary_share"
                    )
                ),
                "events": DeploymentEvent.objects.count(),
            }

    def audited(self, *actions: str) -> int:
        """Return how many entries of ``actions`` are in the trail."""
        with tenant_transaction(self.world.acme):
            return int(AuditEntry.objects.filter(action__in=actions).count())

    def request(self, number: int) -> ChangeRequest:
        with tenant_transaction(self.world.acme):
            found: ChangeRequest = ChangeRequest.objects.get(number=number)
            return found


def documented(method: str, address: str, response: Any, said: Any) -> None:
    """Fail unless status, media type and shape of an answer are those of the OpenAPI document."""
    path = f"/v1/{address.partition('?')[0]}"
    described = described_for(method, path)
    if described is None or response.status_code == 405:
        return
    where = f"{method} {path} → {response.status_code}"
    answer = described["responses"].get(str(response.status_code))
    assert answer is not None, f"{where}: the status is not documented"
    kind = response.headers["Content-Type"]
    assert kind in answer["content"], f"{where}: {kind} is not documented"
    schema = {**answer["content"][kind]["schema"], "components": document()["components"]}
    jsonschema.Draft202012Validator(schema).validate(said)


@pytest.fixture
def governed(world: Any) -> Governed:
    """Acme with a small configuration that runs everywhere, and everybody's personal key."""
    with tenant_transaction(world.acme):
        for name, role in (
            ("olga", Role.BUSINESS_OWNER),
            ("ana", Role.APPROVER),
            ("otto", Role.OPERATOR),
        ):
            user = User.objects.create_user(name, f"{name}@example.com", "x")
            membership_grant(user=user, role=role, actor="test")
        with setting_up("a test's world"):
            for kind, slug, content in ITEMS:
                item_save(
                    kind=kind, slug=slug, content=content, actor="test",
                    owner="Olga", technical_owner="Otto",
                )  # fmt: skip
            release = release_publish(actor="test")
            for environment in settings.RELEASE_ENVIRONMENTS:
                release_deploy(release=release, environment=environment, actor="test")
    keys = {"system": world.acme_key, "charlie": _key(world.other, "charlie")}
    for name in ("olga", "ana", "otto", "alice", "bob"):
        keys[name] = _key(world.acme, name)
    return Governed(world, release, keys)


def _key(tenant: Any, name: str) -> str:
    with tenant_transaction(tenant):
        return api_key_issue(
            name=f"of {name}",
            scopes=KEY_SCOPES,
            environment=settings.DEFAULT_ENVIRONMENT,
            expires_at=None,
            actor=f"user:{name}",
            person=User.objects.get(username=name),
        )[1]
