"""Answers of models in the cache: sealed, apart by tenant, and no trouble when the cache is."""

from typing import Any

import pytest
from django.core.cache import cache

from apps.agents.code.stores import KeptAnswers, answer_name
from apps.agents.tests.builders import routed_turn

KEY = "a" * 64


def turn(tenant: str = "1") -> Any:
    return routed_turn("oi", tenant=tenant)


@pytest.fixture(autouse=True)
def _empty() -> None:
    cache.clear()


async def test_answer__kept__is_found_by_its_tenant_alone():
    await KeptAnswers().put(turn(), KEY, "Pago em 10/05.", 60)
    assert await KeptAnswers().get(turn(), KEY) == "Pago em 10/05."
    assert await KeptAnswers().get(turn("2"), KEY) is None
    assert await KeptAnswers().get(turn(), "b" * 64) is None


async def test_answer__in_the_cache__is_sealed():
    await KeptAnswers().put(turn(), KEY, "Pago em 10/05.", 60)
    assert "Pago" not in str(cache.get(answer_name(1, KEY)))


async def test_answer__that_cannot_be_read__is_none():
    cache.set(answer_name(1, KEY), "not sealed by us")
    assert await KeptAnswers().get(turn(), KEY) is None


async def test_cache__out_of_reach__finds_and_keeps_nothing(monkeypatch):
    def broken(*args: Any) -> Any:
        raise ConnectionError("no cache")

    monkeypatch.setattr("apps.agents.code.stores.cache.get", broken)
    monkeypatch.setattr("apps.agents.code.stores.cache.set", broken)
    await KeptAnswers().put(turn(), KEY, "x", 60)
    assert await KeptAnswers().get(turn(), KEY) is None


async def test_answer__after_its_time__is_gone():
    await KeptAnswers().put(turn(), KEY, "x", 0)
    assert await KeptAnswers().get(turn(), KEY) is None
