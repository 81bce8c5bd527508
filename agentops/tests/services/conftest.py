"""Processes that several tests share. They live longer than a test's rows."""

from collections.abc import Iterator

import pytest
from pytest_django import DjangoDbBlocker

from agentops.tests.services.deployment import Deployment, ToolServer, Web, deployed
from agentops.tests.services.tenant import Shop, shop_make

# Turns of a dead worker come back within seconds.
QUICK = {
    "TURN_LEASE_SECONDS": "3",
    "TURN_HEARTBEAT_SECONDS": "1",
    "TURN_SWEEP_SECONDS": "1",
    "TURN_MAX_ATTEMPTS": "20",
}


@pytest.fixture(scope="package")
def shared(
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Deployment]:
    """A deployment for the package: what takes long to start is started once."""
    with deployed(tmp_path_factory.mktemp("fleet"), **QUICK) as deployment:
        yield deployment


@pytest.fixture(scope="package")
def web(shared: Deployment) -> Web:
    """A web process."""
    return shared.web()


@pytest.fixture(scope="package")
def tool_servers(shared: Deployment) -> tuple[ToolServer, ToolServer]:
    """Telecom and retail, answering at once."""
    return shared.tool_server("telecom"), shared.tool_server("retail")


@pytest.fixture
def fleet(
    shared: Deployment,
    web: Web,
    tool_servers: tuple[ToolServer, ToolServer],
    transactional_db: None,
) -> Iterator[Deployment]:
    """The shared deployment; what a test starts in it ends with the test, before its rows go."""
    before = list(shared.processes)
    yield shared
    for process in reversed(shared.processes):
        if process not in before:
            process.stop()


@pytest.fixture
def shop(fleet: Deployment, tool_servers: tuple[ToolServer, ToolServer]) -> Shop:
    """The tenant, over the quick tool servers."""
    telecom, retail = tool_servers
    return shop_make(telecom=telecom.address, retail=retail.address)
