"""Where and how the tools of a server are called in one environment."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from apps.runtime.ports import RemoteTool
from apps.tools.config import ToolConfig, ToolServerConfig

Secret = Callable[[str], str]
"""The value of the secret that a credential binding names, empty when there is none."""


class Unbound(LookupError):
    """The environment has no address, or no secret, for the tool's server."""


def server_remote(
    slug: str,
    server: ToolServerConfig,
    *,
    tenant: str,
    bindings: Mapping[str, str],
    secret: Secret,
    principal: str = "",
    environment: str = "",
) -> RemoteTool:
    """Return tool server ``slug`` as a transport needs it, without the name of a tool.

    Raises ``Unbound``. For ``oauth_client`` the credential is the client's secret. ``principal``
    counts only where every person signs in.
    """
    stdio = server.transport == "stdio"
    address = server.program if stdio else bindings.get(f"address:{server.endpoint}", "")
    credential = ""
    if server.credential:
        credential = secret(bindings.get(f"credential:{server.credential}", ""))
    if not address or (server.credential and not credential):
        raise Unbound(slug)
    return RemoteTool(
        server=slug,
        transport=server.transport,
        address=address,
        name="",
        credential=credential,
        timeout_seconds=server.timeout_seconds,
        tenant=tenant,
        principal=principal if server.auth == "oauth_user" else "",
        auth=server.auth,
        client_id=server.client_id,
        scopes=tuple(server.scopes),
        repeatable=True,
        circuit_threshold=server.circuit_threshold,
        circuit_recovery_seconds=server.circuit_recovery_seconds,
        environment=environment,
    )


def tool_remote(remote: RemoteTool, slug: str, tool: ToolConfig) -> RemoteTool:
    """Return ``remote`` for a call of tool ``slug``."""
    return replace(
        remote,
        name=tool.remote_name or slug,
        timeout_seconds=tool.timeout_seconds or remote.timeout_seconds,
        repeatable=tool.idempotent or not tool.transactional,
    )
