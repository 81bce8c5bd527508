"""Whether the process lives and can work."""

import asyncio
import logging
from typing import Any

import httpx2
import pytest
from django.test import AsyncClient

from agentops.tests.services.deployment import PrivateRedis, deployed
from agentops.tests.services.processes import until

CHECKS = ("database", "migrations", "channel_layer", "broker", "runtime")
ADDRESS = "postgres://agentops:s3cret@10.1.2.3/db"


async def unusable() -> None:
    raise ConnectionError(f"cannot reach {ADDRESS}")


async def never() -> None:
    await asyncio.sleep(60)


async def fine() -> None:
    """Nothing is wrong."""


def test_ready__of_the_running_product__names_every_dependency(live):
    with live.client() as client:
        answer = client.get("/ready")
    assert answer.status_code == 200
    assert answer.json() == {"status": "ready", "checks": dict.fromkeys(CHECKS, "ok")}


@pytest.fixture
def all_fine(settings) -> Any:
    here = "apps.gateway.tests.test_health"
    settings.READY_CHECKS = dict.fromkeys(CHECKS, f"{here}.fine")
    settings.READY_SECONDS = 0.2
    return settings


@pytest.mark.parametrize("broken", CHECKS)
@pytest.mark.parametrize("how", ["unusable", "never"])
async def test_ready__while_one_is_unusable__is_503_with_its_name_only(
    all_fine, caplog, broken, how
):
    all_fine.READY_CHECKS[broken] = f"apps.gateway.tests.test_health.{how}"
    with caplog.at_level(logging.WARNING):
        answer = await AsyncClient().get("/ready")
    assert answer.status_code == 503
    body = answer.json()
    assert body["checks"] == {name: "unusable" if name == broken else "ok" for name in CHECKS}
    assert [error["field"] for error in body["errors"]] == [broken]
    assert answer.headers["retry-after"] == "5"
    for said in (answer.content.decode(), caplog.text):
        assert "s3cret" not in said
        assert "10.1.2.3" not in said
    assert broken in caplog.text


async def test_health__asks_no_dependency(all_fine):
    all_fine.READY_CHECKS = dict.fromkeys(CHECKS, "apps.gateway.tests.test_health.unusable")
    answer = await AsyncClient().get("/health")
    assert (answer.status_code, answer.json()["status"]) == (200, "ok")


async def test_version__names_release_and_contract(settings):
    settings.REVISION = "abc123"
    assert (await AsyncClient().get("/version")).json() == {
        "service": "agentops",
        "version": settings.VERSION,
        "revision": "abc123",
        "contract_version": "gateway-request-v1",
    }


@pytest.mark.parametrize("path", ["/health", "/ready", "/version"])
def test_head__is_answered_like_get_without_a_body(live, path):
    with live.client() as client:
        answer = client.head(path)
    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.once
def test_ready__of_a_process_over_an_empty_database__names_the_migrations(tmp_path):
    place = {"DATABASE_URL": f"sqlite:///{tmp_path}/empty.sqlite3", "REDIS_URL": "", "DEMO": "1"}
    with deployed(tmp_path, **place) as processes:
        answer = httpx2.get(f"{processes.web().url}/ready", trust_env=False, timeout=20)
    assert answer.status_code == 503
    assert answer.json()["checks"] == {**dict.fromkeys(CHECKS, "ok"), "migrations": "unusable"}
    assert str(tmp_path) not in answer.text


@pytest.mark.services
def test_ready__while_redis_is_stopped__names_layer_and_broker_and_recovers(
    tmp_path, transactional_db
):
    redis = PrivateRedis(tmp_path)
    redis.start()
    try:
        with deployed(tmp_path / "processes", REDIS_URL=redis.url) as processes:
            ready = f"{processes.web().url}/ready"
            assert httpx2.get(ready, trust_env=False, timeout=20).status_code == 200
            redis.stop()
            answer = httpx2.get(ready, trust_env=False, timeout=20)
            assert answer.status_code == 503
            down = {"channel_layer": "unusable", "broker": "unusable"}
            assert answer.json()["checks"] == {**dict.fromkeys(CHECKS, "ok"), **down}
            assert str(redis.port) not in answer.text
            redis.start()
            until(
                lambda: httpx2.get(ready, trust_env=False, timeout=20).status_code == 200,
                "the process to be ready again",
            )
    finally:
        redis.stop()
