"""Runs in the database, for tests: a published workflow, and a turn that carries it out."""

import asyncio
import os
import uuid
from pathlib import Path
from typing import Any

from apps.conversations.adapters import DatabaseLedger
from apps.releases.selectors import release_load
from apps.releases.services import item_save, release_publish
from apps.runtime.ports import WorkflowNodeRow
from apps.runtime.testing import FakeLedger, turn_of
from apps.runtime.turn import BusinessContext, SessionState, Turn
from apps.tenants.scope import tenant_transaction
from apps.tools.calling import ToolCaller
from apps.tools.tests.workflow_process import FileServer
from apps.tools.workflows.adapters import DatabaseWorkflows
from apps.tools.workflows.engine import Workflows
from apps.tools.workflows.interface import WorkflowResult

SESSION = "11111111-0000-4000-8000-000000000001"
RUN = "00000000-0000-4000-8000-000000000001"
IDEMPOTENT = ("trocar", "liberar")
ONCE = {"at_most_once": True}
NODES: list[dict[str, Any]] = [
    {"id": "reserva", "tool": "reservar", "next": "pergunta", "compensate_tool": "liberar", **ONCE},
    {"id": "pergunta", "next": "troca", "pause": {"key": "motivo", "question": "Qual o motivo?"}},
    {"id": "troca", "tool": "trocar", "next": "aviso", "params": {"reason": "$.input.motivo"}},
    {"id": "aviso", "tool": "avisar", **ONCE},
]


def published(tenant: Any, nodes: list[dict[str, Any]] | None = None) -> str:
    """Publish the workflow and its tools in ``tenant``; return the release's id."""
    with tenant_transaction(tenant):
        item_save(kind="prompt", slug="main", content={"system": "You help."}, actor="test")
        for kind in ("memory_policy", "rail_policy", "judge_policy", "routing_policy"):
            content = {"default_agent": "a"} if kind == "routing_policy" else {}
            item_save(kind=kind, slug="default", content=content, actor="test")
        provider = {"provider": "scripted"}
        item_save(kind="model_profile", slug="default", content=provider, actor="test")
        server = {"endpoint": "shop_url"}
        item_save(kind="tool_server", slug="shop", content=server, actor="test")
        arguments = {name: {"type": "string"} for name in ("order_id", "reason", "cpf")}
        arguments["cpf"]["restricted"] = True  # type: ignore[assignment]
        for slug in ("reservar", "trocar", "avisar", "liberar"):
            tool = {
                "mcp_server": "shop",
                "tool_type": "action",
                "idempotent": slug in IDEMPOTENT,
                "args_schema": arguments,
            }
            item_save(kind="tool", slug=slug, content=tool, actor="test")
        flow = {"start": "reserva", "nodes": nodes or NODES, "done_text": "Pronto."}
        item_save(kind="workflow", slug="troca", content=flow, actor="test")
        agent = {"prompt": "main", "tools": ["reservar", "trocar", "avisar", "liberar"]}
        item_save(kind="agent", slug="a", content=agent, actor="test")
        return str(release_publish(actor="test").pk)


def turn_in(tenant_id: int, release_id: str, number: int = 1, **changes: Any) -> Turn:
    """Return the ``number``-th turn of the session, as a worker has it."""
    changes.setdefault("session", SessionState(id=SESSION, agent="a", turn_number=number))
    changes.setdefault("business_context", BusinessContext(values={"customer_key": "C-1"}))
    changes.setdefault("id", str(uuid.uuid5(uuid.NAMESPACE_OID, f"turn {number}")))
    return turn_of(
        "oi",
        tenant=str(tenant_id),
        release=release_load(tenant_id, release_id),
        bindings={"address:shop_url": "http://shop.test"},
        **changes,
    )


def workflows(server: Any, ledger: Any = None, store: Any = None) -> Workflows:
    store = store or DatabaseWorkflows()
    tools = ToolCaller(
        server, ledger or FakeLedger(), lambda name: "", tag_key="key", coverage=store
    )
    return Workflows(tools, store, tag_key="key")


class DyingStore(DatabaseWorkflows):
    """Dies right before it would record how a node ended."""

    def __init__(self, node: str) -> None:
        self.node = node

    async def note(self, turn: Turn, run_id: str, row: WorkflowNodeRow) -> None:
        if row.node == self.node and row.status != "begun":
            os._exit(9)
        await super().note(turn, run_id, row)


def go(told: dict[str, Any]) -> WorkflowResult:
    """Start or resume the run as ``told`` says: what another process is told, too."""
    point, _colon, node = told.get("dies", "").partition(":")
    server = FileServer(Path(told["file"]), told.get("dies", ""), IDEMPOTENT)
    store = DyingStore(node) if point == "before_record" else DatabaseWorkflows()
    session = SessionState(id=told["session"], agent="a", turn_number=told["number"])
    now = turn_in(
        told["tenant"],
        told["release"],
        told["number"],
        session=session,
        id=told["turn"],
        fence=told["fence"],
    )
    engine = workflows(server, DatabaseLedger(), store)
    if told["answer"]:
        work = engine.resume(now, RUN, told["answer"])
    else:
        work = engine.start(now, "troca", {"order_id": "PED-1"}, RUN)
    return asyncio.run(work)[1]
