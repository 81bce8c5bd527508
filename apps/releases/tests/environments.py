"""What the tests of environments share: a tenant whose three releases stand in no environment."""

import json
from typing import Any

import pytest

from apps.releases.authority import setting_up
from apps.releases.change_models import ChangeRequest, DeploymentEvent
from apps.releases.environments.pointers import Pointer
from apps.releases.environments.services import release_deploy
from apps.releases.models import Deployment, Release
from apps.releases.selectors import deployed_pointer
from apps.releases.services import release_publish
from apps.releases.tests.conftest import save
from apps.tenants.models import AuditEntry, Tenant

OTTO, ANA, ALICE, BOB = "user:otto", "user:ana", "user:alice", "user:bob"
ENVIRONMENTS = ("dev", "staging", "production")


@pytest.fixture
def releases(acme: Tenant, settings: Any) -> list[Release]:
    """Three releases of one prompt; duties by name (``policies``)."""
    settings.CHANGE_POLICY = "apps.releases.tests.policies.POLICY"
    settings.CHANGE_LISTENERS = []
    made = []
    with setting_up("a test's world"):
        for number in (1, 2, 3):
            save("prompt", "main", system=f"Version {number}.")
            made.append(release_publish(actor="test"))
    return made


def stand(release: Release, *environments: str, **terms: Any) -> None:
    """Let environments run ``release``, as an operator sets a tenant up."""
    with setting_up("a test's world"):
        for environment in environments:
            release_deploy(release=release, environment=environment, actor="test", **terms)


def runs(environment: str) -> Pointer:
    """Return what turns read of ``environment``."""
    found = deployed_pointer(environment)
    assert found is not None
    return found


def running(environment: str) -> int:
    """Return the number of the release that ``environment`` runs, 0 for none."""
    found = Deployment.objects.filter(environment=environment)
    return int(found.values_list("release__number", flat=True).first() or 0)


def verbs(environment: str) -> list[str]:
    """Return what ``environment`` did, oldest first."""
    found = DeploymentEvent.objects.filter(environment=environment).order_by("at", "pk")
    return list(found.values_list("verb", flat=True))


def requested(release: Release, *, editors: tuple[str, ...], environment: str) -> ChangeRequest:
    """Return a request that was published into ``release``."""
    made: ChangeRequest = ChangeRequest.objects.create(
        number=release.number,
        title=f"Change {release.number}",
        status="published",
        author=editors[0],
        editors=json.dumps(list(editors)),
        environment=environment,
        release=release,
    )
    return made


def last_audited() -> tuple[str, str, dict[str, Any]]:
    """Return actor, action and detail of the newest line of the trail."""
    entry = AuditEntry.objects.latest("sequence")
    return entry.actor, entry.action, json.loads(entry.detail)
