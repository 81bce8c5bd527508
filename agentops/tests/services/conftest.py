"""Processes that several tests share. They live longer than a test's rows."""

from collections.abc import Callable, Iterator

import pytest
from pytest_django import DjangoDbBlocker

from agentops.tests.services.deployment import Deployment, ToolServer, Web, deployed
from agentops.tests.services.processes import Process
from agentops.tests.services.tenant import Shop, shop_make

# Turns of a dead worker come back within seconds.
QUICK = {
    "TURN_LEASE_SECONDS": "3",
    "TURN_HEARTBEAT_SECONDS": "1",
    "TURN_SWEEP_SECONDS": "1",
    "TURN_MAX_ATTEMPTS": "20",
}


@pytest.fixture(scope="package")
def fleet(
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Deployment]:
    """A deployment for the package; each test starts the workers it is about."""
    with deployed(tmp_path_factory.mktemp("fleet"), **QUICK) as deployment:
        yield deployment


@pytest.fixture(scope="package")
def web(fleet: Deployment) -> Web:
    """A web process."""
    return fleet.web()


@pytest.fixture(scope="package")
def tool_servers(fleet: Deployment) -> tuple[ToolServer, ToolServer]:
    """Telecom and retail, answering at once."""
    return fleet.tool_server("telecom"), fleet.tool_server("retail")


@pytest.fixture
def shop(transactional_db: None, tool_servers: tuple[ToolServer, ToolServer]) -> Shop:
    """The tenant, over the quick tool servers."""
    telecom, retail = tool_servers
    return shop_make(telecom=telecom.address, retail=retail.address)


@pytest.fixture
def start_workers(shop: Shop, fleet: Deployment) -> Iterator[Callable[..., list[Process]]]:
    """Start workers of this test: ``start_workers(2, concurrency=8)``; all take tasks already."""
    started: list[Process] = []

    def start(count: int, *, concurrency: int = 8) -> list[Process]:
        workers = [fleet.worker(concurrency=concurrency, wait=False) for _ in range(count)]
        started.extend(workers)
        for worker in workers:
            fleet.takes_tasks(worker)
        return workers

    yield start
    for worker in started:
        worker.stop()
