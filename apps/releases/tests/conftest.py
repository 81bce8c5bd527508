"""A tenant with a small configuration, in scope."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from apps.releases.models import ConfigItem, Revision
from apps.releases.services import item_save
from apps.tenants.models import AuditEntry, Tenant
from apps.tenants.scope import tenant_transaction

ALICE = "user:alice"
Save = Callable[..., Revision]


@pytest.fixture
def acme(db: None) -> Iterator[Tenant]:
    """The tenant acme, current while the test runs."""
    tenant = Tenant.objects.create(slug="acme-releases", name="Acme")
    with tenant_transaction(tenant):
        yield tenant


def save(kind: str, slug: str, *, actor: str = ALICE, **content: Any) -> Revision:
    """Save an item with ``content`` given as keywords."""
    return item_save(kind=kind, slug=slug, content=content, actor=actor)


def audited() -> list[tuple[str, str, str]]:
    """Return (actor, action, entity) of the trail, oldest first."""
    return list(AuditEntry.objects.order_by("sequence").values_list("actor", "action", "entity"))


def item(kind: str, slug: str) -> ConfigItem:
    found: ConfigItem = ConfigItem.objects.get(kind=kind, slug=slug)
    return found


@pytest.fixture
def billing(acme: Tenant) -> Tenant:
    """acme with an agent, its prompt and policies, an intent, a tool and its server."""
    small_world()
    return acme


def small_world() -> None:
    save("prompt", "billing", system="You explain bills.")
    save("model_profile", "default", provider="scripted")
    save("memory_policy", "default")
    save("rail_policy", "default")
    save("judge_policy", "default")
    save("agent", "billing_agent", prompt="billing", tools=["get_bill"])
    save("tool_server", "telecom", endpoint="telecom_mcp")
    save("tool", "get_bill", description="Reads a bill.", mcp_server="telecom")
    save(
        "intent",
        "bill_explain",
        agent="billing_agent",
        keywords=["bill", "invoice"],
        mcp_tools=["get_bill"],
    )
