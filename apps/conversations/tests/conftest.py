"""A tenant with a deployed release, and messages for it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from apps.conversations.services import Accepted, turn_accept
from apps.releases.environments.services import binding_set, release_deploy
from apps.releases.services import item_save, release_publish
from apps.runtime.turn import Caller, Inbound
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_scope

ENVIRONMENT = "production"
Say = Callable[..., Accepted]


def save(kind: str, slug: str, **content: Any) -> None:
    item_save(kind=kind, slug=slug, content=content, actor="test")


def deploy() -> Any:
    release = release_publish(actor="test")
    release_deploy(release=release, environment=ENVIRONMENT, actor="test")
    return release


@pytest.fixture
def deployed(world: Any) -> Iterator[Tenant]:
    """acme with two agents, deployed; its scope is open while the test runs."""
    with tenant_scope(world.acme):
        save("prompt", "main", system="You help.")
        save("model_profile", "default", provider="scripted")
        for kind in ("memory_policy", "rail_policy", "judge_policy"):
            save(kind, "default")
        save("agent", "helper", prompt="main")
        save("agent", "other", prompt="main")
        save("routing_policy", "default", default_agent="helper", failure_text="Broken.")
        binding_set(
            environment=ENVIRONMENT, what="address", name="x", value="http://x.test", actor="test"
        )
        deploy()
        yield world.acme


@pytest.fixture
def rings(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, Any]]:
    """The doorbells that were rung instead of running anything."""
    heard: list[tuple[int, Any]] = []
    monkeypatch.setattr(
        "agentops.wiring.ring", lambda tenant_id, turn_id: heard.append((tenant_id, turn_id))
    )
    return heard


@pytest.fixture
def say(deployed: Tenant, rings: list[Any]) -> Say:
    """Accept a message: ``say("oi", session="s1", message_id="m1")``."""

    def accept(
        text: str = "oi",
        *,
        session: str = "s1",
        message_id: str = "m1",
        agent: str | None = None,
        user_id: str = "",
        channel: str = "web",
        only_session: str = "",
        **payload: Any,
    ) -> Accepted:
        inbound = Inbound(
            channel=channel,
            text=text,
            agent=agent,
            message_id=message_id,
            session=session,
            user_id=user_id,
            payload={"message": text, **payload},
            caller=Caller(principal="key:test"),
        )
        return turn_accept(
            inbound=inbound,
            tenant_slug=deployed.slug,
            environment=ENVIRONMENT,
            only_session=only_session,
        )

    return accept
