"""Two tenants with agents and tools of the real demo shop, for tests of the tool gateway.

acme: agent ``loja`` may see orders and exchange them, ``caixa`` only sees deliveries. other: agent
``loja`` of its own, which knows one tool that acme has not.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.test import Client

from apps.releases.environments.services import binding_set, release_deploy
from apps.releases.services import item_save, release_publish
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import api_key_issue
from apps.tools.tests.servers import DemoServer, running

INVOKE = ("tool:read", "tool:invoke")

ORDER = {
    "description": "Mostra um pedido.",
    "mcp_server": "shop",
    "args_schema": {"order_id": {"type": "string"}, "customer_id": {"type": "string"}},
    "requires": ["order_id"],
}
EXCHANGE = {
    "description": "Abre a troca de um pedido.",
    "mcp_server": "shop",
    "tool_type": "action",
    "idempotent": True,
    "confirmation_required": True,
    "args_schema": {
        "order_id": {"type": "string"},
        "reason": {"type": "string", "enum": ["defeito", "arrependimento"]},
    },
    "requires": ["order_id", "reason"],
}
RETURN = {
    **EXCHANGE,
    "description": "Abre a devolução de um pedido.",
    "idempotent": False,
    "confirmation_required": False,
}
DELIVERY = {
    "description": "Mostra a entrega.",
    "mcp_server": "shop",
    "args_schema": {"order_id": {"type": "string"}},
    "requires": ["order_id"],
    "allowed_channels": ["voice"],
}
OFF = {**ORDER, "enabled": False}
TOOLS = {
    "consultar_cliente": {
        **ORDER,
        "remote_name": "consultar_pedido",
        "cache": {"enabled": True},
    },
    "so_de_cliente": {
        **ORDER,
        "remote_name": "consultar_pedido",
        "required_business_keys": ["customer_key"],
    },
    "consultar_pedido": ORDER,
    "solicitar_troca": EXCHANGE,
    "solicitar_devolucao": RETURN,
    "consultar_entrega": DELIVERY,
    "desligada": OFF,
    "sem_endereco": {**ORDER, "mcp_server": "nowhere"},
}
AGENTS = {
    "loja": [
        "consultar_pedido",
        "consultar_cliente",
        "so_de_cliente",
        "solicitar_troca",
        "solicitar_devolucao",
        "desligada",
    ],
    "caixa": ["consultar_entrega"],
    "solta": ["sem_endereco"],
}


@dataclass
class GatewayWorld:
    """The tenants, their shop, and who calls. ``keys``: name → text."""

    world: Any
    shop: DemoServer
    keys: dict[str, str] = field(default_factory=dict)

    def key(self, name: str, *scopes: str, tenant: Any = None, **fields: Any) -> str:
        """Issue a key once per name."""
        if name not in self.keys:
            with tenant_transaction(tenant or self.world.acme):
                self.keys[name] = api_key_issue(
                    name=name, scopes=scopes, environment="production", expires_at=None,
                    actor="test", **fields,
                )[1]  # fmt: skip
        return self.keys[name]

    @property
    def loja(self) -> str:
        """A key bound to acme's agent ``loja``."""
        return self.key("loja", *INVOKE, agent="loja")

    @property
    def confirmer(self) -> str:
        """The same, of a system that asks people itself."""
        return self.key("confirmer", *INVOKE, "tool:confirm", agent="loja")

    def get(self, path: str, key: str = "") -> Any:
        return Client().get(path, headers={"authorization": f"Bearer {key or self.loja}"})

    def invoke(self, tool: str, arguments: dict[str, Any], key: str = "", **body: Any) -> Any:
        """POST the invocation of ``tool``."""
        return Client().post(
            f"/v1/tools/{tool}/invoke",
            {"tool_name": tool, "arguments": arguments, **body},
            content_type="application/json",
            headers={"authorization": f"Bearer {key or self.loja}"},
        )

    def opened(self, order: str) -> int:
        """Return how many exchanges and returns of ``order`` the shop has opened."""
        return int(
            self.shop.rows("SELECT count(*) FROM protocolos WHERE order_id = ?", order)[0][0]
        )

    def sent(self, tool: str) -> int:
        """Return how many calls of ``tool`` reached the shop."""
        return int(self.shop.rows("SELECT count(*) FROM calls WHERE tool = ?", tool)[0][0])


def fill(tenant: Any, address: str, tools: dict[str, Any], agents: dict[str, list[str]]) -> None:
    """Publish and deploy a release of ``tools`` and ``agents`` for ``tenant``."""
    with tenant_transaction(tenant):
        for kind in ("rail_policy", "judge_policy", "memory_policy"):
            item_save(kind=kind, slug="default", content={}, actor="test")
        key = {"sources": ["business_context.customer_key"], "identifies_customer": True}
        items: list[tuple[str, str, dict[str, Any]]] = [
            ("model_profile", "default", {"provider": "scripted"}),
            ("prompt", "p", {"system": "Answer."}),
            ("identity_key", "customer_key", key),
            ("tool_server", "shop", {"endpoint": "shop_url", "description": "The shop"}),
            # Its secret is in no variable.
            ("tool_server", "nowhere", {"endpoint": "shop_url", "credential": "nowhere"}),
            *(("tool", slug, content) for slug, content in tools.items()),
            (
                "parameter_mapping",
                "consultar_pedido",
                {"tool": "consultar_pedido", "map": {"customer_key": "customer_id"}},
            ),
            *(("agent", slug, {"prompt": "p", "tools": names}) for slug, names in agents.items()),
            ("routing_policy", "default", {"default_agent": "loja"}),
        ]
        for kind, slug, content in items:
            item_save(kind=kind, slug=slug, content=content, actor="test")
        binding_set(
            environment="production", what="address", name="shop_url", value=address, actor="test"
        )
        binding_set(
            environment="production", what="credential", name="nowhere", value="NO", actor="test"
        )
        release_deploy(
            release=release_publish(actor="test"), environment="production", actor="test"
        )


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoServer]:
    """The demo shop, a process of its own."""
    with running("retail", tmp_path_factory.mktemp("shop") / "shop.sqlite3") as server:
        yield server


@pytest.fixture
def gateway(world: Any, shop: DemoServer, settings: Any) -> GatewayWorld:
    """acme and other, each with their tools of the shop."""
    settings.TOOL_ALLOW_PRIVATE = ["127.0.0.1"]
    address = f"http://127.0.0.1:{shop.port}/mcp"
    fill(world.acme, address, TOOLS, AGENTS)
    theirs = {"consultar_pedido": {**ORDER, "description": "Of the other"}, "so_do_outro": ORDER}
    fill(world.other, address, theirs, {"loja": list(theirs), "outra": []})
    return GatewayWorld(world, shop)
