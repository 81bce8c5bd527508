"""Reads of connections for pages. Inside a tenant's scope."""

from dataclasses import dataclass

from apps.tenants.scope import current_tenant_id
from apps.tools.config import ToolServerConfig
from apps.tools.contracts.selectors import servers_list
from apps.tools.oauth.services import Owner
from apps.tools.oauth_models import ToolConnection


@dataclass(frozen=True)
class ServerConnection:
    """A server that wants a sign-in, and the one connection a person has to do with: their own, or
    (client credentials) the tenant's. ``is_own``: they can sign in."""

    server: str
    config: ToolServerConfig
    is_bound: bool
    is_own: bool
    row: ToolConnection | None

    @property
    def state(self) -> str:
        return self.row.state if self.row else ToolConnection.State.EMPTY

    @property
    def state_label(self) -> str:
        return str(ToolConnection.State(self.state).label)


def connections_of(principal: str, environment: str) -> list[ServerConnection]:
    """Return the servers of ``environment`` that are called with OAuth, with what ``principal`` has."""
    rows = {
        (row.server, row.principal): row
        for row in ToolConnection.objects.filter(
            environment=environment, principal__in=("", principal)
        ).defer("token")
    }
    found = []
    for listed in servers_list(environment):
        if listed.config.auth == "bearer":
            continue
        own = listed.config.auth == "oauth_user"
        row = rows.get((listed.server, principal if own else ""))
        found.append(ServerConnection(listed.server, listed.config, listed.is_bound, own, row))
    return found


def connections_of_others(principal: str, environment: str) -> list[ToolConnection]:
    """Return the connections of everybody else, without their tokens."""
    rows = ToolConnection.objects.filter(environment=environment).exclude(
        principal__in=("", principal)
    )
    return list(rows.defer("token").order_by("server", "principal"))


def owner_in(environment: str, server: str, principal: str) -> Owner:
    """Return the owner of a connection in the current tenant."""
    return Owner(current_tenant_id(), environment, server, principal)
