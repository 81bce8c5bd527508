"""A tenant that answers with tools of a server the test may change. Inside its scope."""

from typing import Any

from apps.releases.environments.services import binding_set, release_deploy
from apps.releases.models import Release
from apps.releases.services import item_save, release_publish
from apps.tools.contracts.hashing import Contract, contracts_listed
from apps.tools.contracts.proposing import tool_added
from apps.tools.contracts.refreshing import server_refresh
from apps.tools.contracts.services import Refreshed
from apps.tools.tests.changing_server import BALANCE, BLOCK, ChangingServer

ENVIRONMENT = "production"


def declared(tool: dict[str, Any], **changes: Any) -> Contract:
    """Return ``tool`` as an MCP listing shows it, some of it changed, as a contract."""
    names = {"inputSchema": "input_schema", "outputSchema": "output_schema"}
    shown = {names.get(key, key): value for key, value in {**tool, **changes}.items()}
    [found] = contracts_listed([shown])
    return found


def tenant_make(server: ChangingServer, *, pinned: bool = True, **saldo: Any) -> Release:
    """Configure, publish and deploy: two tools of the server, pinned as it declares them now."""

    def save(kind: str, slug: str, **content: Any) -> None:
        item_save(
            kind=kind, slug=slug, content=content, actor="test", owner="O", technical_owner="T"
        )

    for kind in ("memory_policy", "rail_policy", "judge_policy"):
        save(kind, "default")
    save("model_profile", "default", provider="scripted", script=["Seu saldo é R$ 12,50."])
    save("tool_server", "crm", endpoint="crm_url", description="CRM", timeout_seconds=5)
    for tool, own in ((BALANCE, saldo), (BLOCK, {})):
        content = tool_added("crm", tool["name"], declared(tool))
        if not pinned:
            del content["contract"]
        save("tool", tool["name"], **{**content, **own})
    save("parameter_mapping", "saldo", tool="consultar_saldo", map={"customer_key": "msisdn"})
    save(
        "identity_key",
        "customer_key",
        sources=["business_context.customer_key"],
        identifies_customer=True,
    )
    save("prompt", "saldo", system="Diga o saldo.", require_evidence=False)
    save("agent", "saldo", prompt="saldo", tools=["consultar_saldo"])
    save("intent", "saldo", agent="saldo", keywords=["saldo"], mcp_tools=["consultar_saldo"])
    save("routing_policy", "default", default_agent="saldo")
    binding_set(environment=ENVIRONMENT, what="address", name="crm_url", value=server.address, actor="test")  # fmt: skip
    release = release_publish(actor="test")
    release_deploy(release=release, environment=ENVIRONMENT, actor="test")
    return release


def refresh(actor: str = "user:alice", environment: str = ENVIRONMENT) -> Refreshed:
    """Ask the server as the button does."""
    return server_refresh(server="crm", environment=environment, actor=actor)
