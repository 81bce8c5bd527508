"""The tenant of these tests: agents that read, act once, act repeatably, and let a model ask."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings

from apps.conversations.models import OutboundMessage
from apps.releases.authority import setting_up
from apps.releases.environments.services import binding_set, release_deploy
from apps.releases.services import item_save, release_publish
from apps.tenants.models import Tenant
from apps.tenants.roles import KEY_SCOPES
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import api_key_issue, tenant_create

ACTOR = "test"
READS, ONCE, REPEATABLE, MODEL = "reads", "once", "repeatable", "model"
# The same two actions, for a customer who has to say yes first.
ASKED_ONCE, ASKED = "asked_once", "asked"
ACTIONS = {
    ONCE: "trocar_uma_vez",
    REPEATABLE: "trocar",
    ASKED_ONCE: "trocar_confirmado_uma_vez",
    ASKED: "trocar_confirmado",
}


@dataclass(frozen=True)
class Shop:
    """The tenant and a key of it with every scope."""

    tenant: Tenant
    key: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    def sent(self) -> int:
        """Return how many replies have left."""
        with tenant_transaction(self.tenant):
            return int(OutboundMessage.objects.exclude(sent_at=None).count())


def shop_make(*, telecom: str, retail: str, model_ms: int = 0, slug: str = "oficina") -> Shop:
    """Create, configure, publish and deploy the tenant by the ordinary services.

    ``telecom`` and ``retail``: the tool servers' addresses. ``model_ms``: how long a model takes.
    """
    tenant = tenant_create(slug=slug, name="Oficina", actor=ACTOR)
    with tenant_transaction(tenant), setting_up("a test's world"):
        for kind, slug_, content in _items(model_ms):
            item_save(kind=kind, slug=slug_, content=content, actor=ACTOR)
        for name, value in (("telecom_mcp", telecom), ("retail_mcp", retail)):
            binding_set(
                environment=settings.DEFAULT_ENVIRONMENT,
                what="address",
                name=name,
                value=value,
                actor=ACTOR,
            )
        release = release_publish(actor=ACTOR)
        release_deploy(release=release, environment=settings.DEFAULT_ENVIRONMENT, actor=ACTOR)
        _key, text = api_key_issue(
            name="channel",
            scopes=KEY_SCOPES,
            environment=settings.DEFAULT_ENVIRONMENT,
            expires_at=None,
            actor=ACTOR,
        )
    return Shop(tenant, text)


def message(
    agent: str, *, session: str, message_id: str, order: int = 5001, note: str = ""
) -> dict[str, Any]:
    """Return the body of a message to ``agent`` of the shop; ``order``: PED-5001 … PED-5500.

    ``note`` makes the text differ from an earlier one of the session.
    """
    text = {
        READS: "Quero entender minha fatura",
        **dict.fromkeys(ACTIONS, "Quero trocar o produto do pedido"),
        MODEL: "Consulte a fatura do cliente",
    }[agent]
    about = "3000131180" if agent in (READS, MODEL) else f"PED-{order}"
    return {
        "agent_id": agent,
        "channel": "web",
        "payload": {
            "message": f"{text} {note}".strip(),
            "session_id": session,
            "message_id": message_id,
            "customer_key": "11999999999" if agent in (READS, MODEL) else "C-500",
            "contract_key": about,
            "tool_arguments": {} if agent in (READS, MODEL) else {"reason": "defeito"},
        },
    }


def _items(model_ms: int) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        *_agents(),
        *_tools(),
        ("prompt", "prompt", {"system": "Atenda com as evidências recebidas."}),
        ("model_profile", "default", {"provider": "scripted", "delay_ms": model_ms}),
        ("memory_policy", "default", {"recent_messages": 4}),
        ("rail_policy", "default", {}),
        ("judge_policy", "default", {}),
        ("routing_policy", "default", {"default_agent": READS}),
        (
            "identity_key",
            "customer_key",
            {"sources": ["customer_key"], "identifies_customer": True},
        ),
        ("identity_key", "contract_key", {"sources": ["contract_key"]}),
    ]


def _agents() -> list[tuple[str, str, dict[str, Any]]]:
    tools = {
        READS: ["consultar_fatura", "consultar_pagamentos"],
        ONCE: ["consultar_pedido", ACTIONS[ONCE]],
        REPEATABLE: ["consultar_pedido", ACTIONS[REPEATABLE]],
        ASKED_ONCE: [ACTIONS[ASKED_ONCE]],
        ASKED: [ACTIONS[ASKED]],
        MODEL: ["consultar_fatura"],
    }
    items: list[tuple[str, str, dict[str, Any]]] = []
    for slug, allowed in tools.items():
        use = "model" if slug == MODEL else "collect"
        items += [
            ("agent", slug, {"prompt": "prompt", "tools": allowed, "tool_use": use}),
            (
                "intent",
                slug,
                {"agent": slug, "mcp_tools": allowed, "keywords": ["fatura", "trocar", slug]},
            ),
        ]
    return items


def _tools() -> list[tuple[str, str, dict[str, Any]]]:
    line = {"msisdn": {"type": "string"}}
    order = {"order_id": {"type": "string"}}
    reads = {
        "consultar_fatura": ("telecom", {**line, "invoice_id": {"type": "string"}}, ["msisdn"]),
        "consultar_pagamentos": ("telecom", line, ["msisdn"]),
        "consultar_pedido": ("retail", order, ["order_id"]),
    }
    items: list[tuple[str, str, dict[str, Any]]] = [
        (
            "tool_server",
            name,
            # Not paused after failures: each of these tests makes them on purpose.
            {"endpoint": f"{name}_mcp", "timeout_seconds": 20, "circuit_threshold": 0},
        )
        for name in ("telecom", "retail")
    ]
    for slug, (server, arguments, required) in reads.items():
        content: dict[str, Any] = {
            "description": "Consulta a fatura do cliente." if slug == "consultar_fatura" else slug,
            "mcp_server": server,
            "args_schema": arguments,
            "requires": required,
        }
        items.append(("tool", slug, content))
    for agent, slug in ACTIONS.items():
        content = {
            "mcp_server": "retail",
            "remote_name": "solicitar_troca",
            "tool_type": "action",
            "idempotent": agent in (REPEATABLE, ASKED),
            "confirmation_required": agent in (ASKED_ONCE, ASKED),
            # What was never sent waits for a server that restarts.
            "retry": {"max_attempts": 5, "backoff_ms": 1000},
            "args_schema": {**order, "reason": {"type": "string"}},
            "requires": ["order_id", "reason"],
            "selection_keywords": ["trocar"],
        }
        items.append(("tool", slug, content))
    maps = {
        "consultar_fatura": {"customer_key": "msisdn", "contract_key": "invoice_id"},
        "consultar_pagamentos": {"customer_key": "msisdn"},
        "consultar_pedido": {"contract_key": "order_id"},
        **{slug: {"contract_key": "order_id"} for slug in ACTIONS.values()},
    }
    return [
        *items,
        *(("parameter_mapping", slug, {"tool": slug, "map": m}) for slug, m in maps.items()),
    ]
