"""Sums of tokens and cost."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.conversations import usage
from apps.conversations.models import TurnRecord
from apps.conversations.usage import usage_totals
from apps.tenants.scope import tenant_transaction


def call(cost: float | None, tokens: int = 10, **more: Any) -> dict[str, Any]:
    spent = {
        "input_tokens": tokens, "output_tokens": 1, "cached_tokens": 2, "estimated": False,
        "cost": cost,
    }  # fmt: skip
    return {"provider": "p", "model": "m", "usage": {**spent, **more}}


def settle(turn_id: Any, *calls: dict[str, Any], days_ago: int = 0) -> None:
    with tenant_transaction():
        TurnRecord.objects.filter(pk=turn_id).update(
            status="settled",
            record=json.dumps({"model_calls": list(calls)}),
            settled_at=timezone.now() - timedelta(days=days_ago),
        )


def totals(tenant: Any, key: str = "", days: int = 30) -> dict[str, Any]:
    found = usage_totals(tenant_id=tenant.pk, key=key, days=days)
    assert found is not None
    return found


@pytest.mark.django_db
def test_usage_totals__known_prices__are_summed(deployed, say):
    settle(say("a", message_id="1").turn_id, call(0.25), call(0.5, tokens=5, estimated=True))
    settle(say("b", message_id="2", session="s2").turn_id, call(1.0))
    found = totals(deployed)
    assert found["totals"] == {
        "turns": 2, "model_calls": 3, "input_tokens": 25, "output_tokens": 3, "cached_tokens": 6,
        "total_tokens": 28, "estimated_calls": 1, "cost_usd": 1.75, "cost_complete": True,
        "known_cost_usd": 1.75, "unknown_cost_calls": 0, "models": ["p/m"],
    }  # fmt: skip
    # Who used most comes first.
    assert [line["session_id"] for line in found["sessions"]] == [
        "acme:helper:s1",
        "acme:helper:s2",
    ]


@pytest.mark.django_db
def test_usage_totals__one_unknown_price__leaves_the_cost_unknown(deployed, say):
    settle(say("a", message_id="1").turn_id, call(0.25), call(None))
    found = totals(deployed)["totals"]
    assert found["cost_usd"] is None
    assert found["cost_complete"] is False
    assert (found["known_cost_usd"], found["unknown_cost_calls"]) == (0.25, 1)


@pytest.mark.django_db
def test_usage_totals__of_one_session__leaves_the_others_out(deployed, say):
    settle(say("a", message_id="1").turn_id, call(0.25))
    settle(say("b", message_id="2", session="s2").turn_id, call(1.0))
    found = totals(deployed, key="acme:helper:s2")
    assert found["totals"]["cost_usd"] == 1.0
    assert found["sessions_total"] == 1
    assert usage_totals(tenant_id=deployed.pk, key="acme:helper:nothing", days=30) is None


@pytest.mark.django_db
def test_usage_totals__older_than_the_days__are_left_out(deployed, say):
    settle(say("a", message_id="1").turn_id, call(0.25), days_ago=5)
    settle(say("b", message_id="2").turn_id, call(1.0), days_ago=1)
    assert totals(deployed, days=3)["totals"]["cost_usd"] == 1.0
    assert totals(deployed, days=9)["totals"]["cost_usd"] == 1.25


@pytest.mark.django_db
def test_usage_totals__more_turns_than_are_read__says_so(deployed, say, monkeypatch):
    for number in range(3):
        settle(say("a", message_id=str(number)).turn_id, call(1.0), days_ago=number)
    assert totals(deployed)["truncated"] is False
    monkeypatch.setattr(usage, "MAX_TURNS", 2)
    found = totals(deployed)
    assert (found["totals"]["turns"], found["truncated"]) == (2, True)
    monkeypatch.setattr(usage, "MAX_TURNS", 3)
    assert totals(deployed)["truncated"] is False
