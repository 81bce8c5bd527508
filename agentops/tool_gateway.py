"""What the tool gateway needs of the composition root: what runs, and the port that calls tools.

Named by the ``GATEWAY_…`` settings. The same ``ToolCaller`` as in a turn, so the same rules.
"""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agentops import policies, wiring
from agentops.runtime import secret_variable
from apps.conversations import selectors
from apps.conversations.services import NotDeployed
from apps.releases.selectors import bindings_load, release_load
from apps.runtime.ports import ToolPort
from apps.runtime.release import Release
from apps.tenants.auth import Principal
from apps.tools.invoking.ledger import InvocationLedger
from apps.tools.transports.dispatch import Transports

CURRENT = -1
"""No version of bindings: ``bindings_load`` then gives the current ones."""


class Kept:
    """The connections of this process's gateway, kept while the web server runs.

    Without a server (a test's client) each call has connections of its own.
    """

    def __init__(self) -> None:
        self._transports: Transports | None = None

    def start(self) -> None:
        """Keep connections from now on. Call on the server's event loop."""
        self._transports = wiring.tool_transport()

    async def aclose(self) -> None:
        """Close them."""
        transports, self._transports = self._transports, None
        if transports is not None:
            await transports.aclose()

    @asynccontextmanager
    async def using(self) -> AsyncIterator[Transports]:
        """Give the kept connections, or some that are closed afterwards."""
        if self._transports is not None:
            yield self._transports
            return
        own = wiring.tool_transport()
        try:
            yield own
        finally:
            await own.aclose()


kept = Kept()


@asynccontextmanager
async def tool_port(ledger: InvocationLedger) -> AsyncIterator[ToolPort]:
    """Give the tool port over ``ledger``, which also holds the questions; ``GATEWAY_TOOLS``."""
    async with kept.using() as transports:
        yield wiring.tool_caller(transports, ledger, ledger)


def running(
    principal: Principal, release_id: uuid.UUID | None = None
) -> tuple[Release, dict[str, str]]:
    """Return the caller's release (the one named, else the deployed one) and the bindings.

    Credentials are the names of their variables. Raises ``NotDeployed``. ``GATEWAY_RUNNING``.
    """
    release = (
        release_load(principal.tenant_id, release_id)
        if release_id is not None
        else selectors.release_running(
            tenant_id=principal.tenant_id, environment=principal.environment
        )
    )
    if release is None:
        raise NotDeployed(principal.environment)
    bound = bindings_load(principal.tenant_id, principal.environment, CURRENT)
    return release, {
        name: secret_variable(principal.tenant_slug, value)
        if name.startswith("credential:")
        else value
        for name, value in bound.items()
    }


def agent_known(release: Release, agent: str) -> bool:
    """Return whether ``release`` has an agent that may answer; ``GATEWAY_AGENT_KNOWN``."""
    return policies.requested_agent(release, agent) == agent
