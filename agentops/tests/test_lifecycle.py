"""An agent's life: what it may say of it, and that a retired one never answers."""

import asyncio
import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pydantic import ValidationError

from agentops.policies import agents_of, requested_agent
from apps.agents.config import AgentConfig, Lifecycle, PromptConfig
from apps.releases.services import item_save
from apps.routing.config import IntentConfig, RoutingPolicyConfig, StatePolicyConfig
from apps.routing.step import ChooseAgent
from apps.runtime.config import KindConfig
from apps.runtime.release import Release
from apps.runtime.testing import turn_of
from apps.runtime.turn import Route, SessionState
from apps.tenants.scope import tenant_transaction

DEPRECATED = Lifecycle(status="deprecated", deprecated_on="2026-01-31", replaced_by="bills")
RETIRED = Lifecycle(status="retired", deprecated_on="2025-01-31", retired_on="2026-01-31")


# -- what may be said ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    "life",
    [
        {},
        {"status": "deprecated", "deprecated_on": "2026-02-28"},
        {"status": "retired", "retired_on": "2026-02-28"},
        {"status": "retired", "deprecated_on": "2026-02-28", "retired_on": "2026-02-28"},
        {"deprecated_on": "2028-02-29", "retired_on": "2029-02-28"},
    ],
)
def test_life__in_order__is_accepted(life: dict[str, str]) -> None:
    assert Lifecycle.model_validate(life).model_dump(exclude_unset=True) == life


@pytest.mark.parametrize(
    ("life", "said"),
    [
        ({"status": "deprecated"}, "deprecated_on"),
        ({"status": "retired"}, "retired_on"),
        ({"deprecated_on": "2026-02-02", "retired_on": "2026-02-01"}, "before"),
        ({"deprecated_on": "2026-02-30"}, "no day 2026-02-30"),
        ({"deprecated_on": "31/12/2026"}, "pattern"),
        ({"status": "asleep"}, "active"),
    ],
)
def test_life__out_of_order__is_refused_in_words(life: dict[str, str], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Lifecycle.model_validate(life)


# -- what it does --------------------------------------------------------------------------------
def release(life: Lifecycle) -> Release:
    """Two agents, of which ``old`` has ``life``, behind a door."""
    items: dict[tuple[str, str], KindConfig] = {
        ("prompt", "p"): PromptConfig(system="x"),
        ("agent", "door"): AgentConfig(prompt="p", members=["old", "bills"]),
        ("agent", "old"): AgentConfig(prompt="p", lifecycle=life),
        ("agent", "bills"): AgentConfig(prompt="p"),
        ("intent", "order"): IntentConfig(agent="old", keywords=["order"]),
        ("intent", "bill"): IntentConfig(agent="bills", keywords=["bill"]),
        ("state_policy", "waits"): StatePolicyConfig(state="WAITS", agent="old"),
        ("routing_policy", "default"): RoutingPolicyConfig(default_agent="door"),
    }
    return Release(sha256=life.status, items=items)


def routed(life: Lifecycle, text: str, *, agent: str = "door", state: str = "") -> Route:
    session = SessionState(id="1", key=f"t:{agent}:s", agent=agent, next_state=state)
    turn = turn_of(text, release=release(life), session=session)
    return asyncio.run(ChooseAgent(agents_of).route(turn))


@pytest.mark.parametrize("life", [Lifecycle(), DEPRECATED], ids=["active", "deprecated"])
def test_route__active_or_deprecated_agent__answers(life: Lifecycle) -> None:
    assert routed(life, "my order").agent == "old"
    assert routed(life, "yes", state="WAITS").agent == "old"
    assert requested_agent(release(life), "old") == "old"


def test_route__retired_agent__answers_no_intent_no_state_and_no_request_by_name() -> None:
    assert routed(RETIRED, "my order").agent == "door"
    assert routed(RETIRED, "my order", agent="old").agent != "old"
    assert routed(RETIRED, "yes", state="WAITS").agent == "door"
    assert requested_agent(release(RETIRED), "old") is None
    assert routed(RETIRED, "my bill").agent == "bills"


# -- where it is seen ----------------------------------------------------------------------------
@pytest.mark.django_db
def test_list_of_agents__shows_the_status_of_each(
    world: Any, as_bob: Client, as_charlie: Client
) -> None:
    with tenant_transaction(world.acme):
        item_save(kind="prompt", slug="p", content={"system": "x"}, actor="test")
        content = json.loads(AgentConfig(prompt="p", lifecycle=DEPRECATED).model_dump_json())
        item_save(kind="agent", slug="old", content=content, actor="test")
    page = as_bob.get(reverse("admin:agents_agent_changelist")).content.decode()
    assert "deprecated" in page
    assert (
        "deprecated"
        not in as_charlie.get(reverse("admin:agents_agent_changelist")).content.decode()
    )
