"""Demo MCP server of a shop: orders, deliveries, exchanges and returns.

``python -m examples.mcp_servers.retail --port 8200 --db retail.sqlite3``

Exchange and return are actions: they open a protocol and change the order's status, once per
idempotency key.
"""

import sqlite3
from typing import Any, cast

from mcp.server.mcpserver.exceptions import ToolError
from typing_extensions import TypedDict

from examples.mcp_servers.retail_data import SCHEMA, seed
from examples.mcp_servers.serving import Calls, Delays, arguments_parse, serve, server_create
from examples.mcp_servers.store import Store, now

_REVERSIBLE = {"EM_TRANSITO", "SAIU_PARA_ENTREGA", "ENTREGUE"}


class ItemPedido(TypedDict):
    product_id: str
    nome: str
    quantidade: int
    valor: float


class Pedido(TypedDict):
    order_id: str
    customer_id: str
    feito_em: str
    valor_total: float
    status: str
    itens: list[ItemPedido]
    protocolos: list[str]


class Entrega(TypedDict):
    order_id: str
    transportadora: str
    codigo_rastreio: str
    situacao: str
    previsao: str
    entregue_em: str | None


class Protocolo(TypedDict):
    protocolo: str
    tipo: str
    order_id: str
    product_id: str | None
    reason: str
    status: str
    aberto_em: str


class Retail:
    """The tools."""

    def __init__(self, store: Store, calls: Calls) -> None:
        self.store = store
        self.calls = calls

    async def consultar_pedido(self, order_id: str, customer_id: str | None = None) -> Pedido:
        """Consulta um pedido, seus itens e protocolos abertos."""
        order = self._order(order_id, customer_id)
        items = self.store.all(
            "SELECT * FROM itens_pedido WHERE order_id = ? ORDER BY id", order_id
        )
        protocols = self.store.all(
            "SELECT protocolo FROM protocolos WHERE order_id = ? ORDER BY aberto_em", order_id
        )
        return Pedido(
            order_id=order["order_id"],
            customer_id=order["customer_id"],
            feito_em=order["feito_em"],
            valor_total=order["valor_total"],
            status=order["status"],
            itens=[
                ItemPedido(
                    product_id=item["product_id"],
                    nome=item["nome"],
                    quantidade=item["quantidade"],
                    valor=item["valor"],
                )
                for item in items
            ],
            protocolos=[row["protocolo"] for row in protocols],
        )

    async def consultar_entrega(self, order_id: str) -> Entrega:
        """Consulta a entrega de um pedido: transportadora, rastreio, previsão."""
        order = self._order(order_id)
        row = self.store.one("SELECT * FROM entregas WHERE order_id = ?", order_id)
        if row is None:
            raise ToolError(f"O pedido {order_id} ainda não saiu ({order['status']}).")
        return Entrega(
            order_id=row["order_id"],
            transportadora=row["transportadora"],
            codigo_rastreio=row["codigo_rastreio"],
            situacao=row["situacao"],
            previsao=row["previsao"],
            entregue_em=row["entregue_em"],
        )

    async def solicitar_troca(
        self, order_id: str, reason: str, product_id: str | None = None
    ) -> Protocolo:
        """Abre a troca de um pedido, ou de um item dele, e devolve o protocolo."""
        return self._open("TROCA", order_id, reason, product_id)

    async def solicitar_devolucao(self, order_id: str, reason: str) -> Protocolo:
        """Abre a devolução de um pedido e devolve o protocolo."""
        return self._open("DEVOLUCAO", order_id, reason, None)

    def _open(self, kind: str, order_id: str, reason: str, product_id: str | None) -> Protocolo:
        def effect() -> dict[str, Any]:
            return self._protocol(kind, order_id, reason, product_id)

        return cast("Protocolo", self.calls.once(effect))

    def _protocol(
        self, kind: str, order_id: str, reason: str, product_id: str | None
    ) -> dict[str, Any]:
        order = self._order(order_id)
        if not reason.strip():
            raise ToolError("Informe o motivo.")
        if order["status"] not in _REVERSIBLE:
            raise ToolError(f"O pedido {order_id} está {order['status']} e não aceita este pedido.")
        if product_id and not self._has(order_id, product_id):
            raise ToolError(f"O pedido {order_id} não tem o produto {product_id}.")
        (count,) = self.store.all("SELECT count(*) FROM protocolos")[0]
        protocol = {
            "protocolo": f"{kind[:3]}-{2026000001 + count}",
            "tipo": kind,
            "order_id": order_id,
            "product_id": product_id,
            "reason": reason,
            "aberto_em": now(),
        }
        status = f"{kind}_SOLICITADA"
        self.store.write(
            "INSERT INTO protocolos VALUES"
            " (:protocolo, :tipo, :order_id, :product_id, :reason, :aberto_em)",
            protocol,
        )
        self.store.write("UPDATE pedidos SET status = ? WHERE order_id = ?", (status, order_id))
        return {**protocol, "status": status}

    def _order(self, order_id: str, customer: str | None = None) -> sqlite3.Row:
        row = self.store.one(
            "SELECT p.* FROM pedidos p JOIN clientes c USING (customer_id) WHERE order_id = ?"
            " AND (? = '' OR customer_id = ? OR c.telefone = ?)",
            order_id, customer or "", customer or "", customer or "",
        )  # fmt: skip
        if row is None:
            raise ToolError(f"Pedido {order_id} não encontrado para este cliente.")
        return row

    def _has(self, order_id: str, product_id: str) -> bool:
        sql = "SELECT 1 FROM itens_pedido WHERE order_id = ? AND product_id = ?"
        return self.store.one(sql, order_id, product_id) is not None


def main() -> None:
    options = arguments_parse("retail", 8200)
    store = Store(options.db, schema=SCHEMA, seed=seed)
    calls = Calls(store, Delays(options.delay_ms, options.delay_after_ms))
    tools = Retail(store, calls)
    server = server_create(
        "retail",
        calls,
        [
            tools.consultar_pedido,
            tools.consultar_entrega,
            tools.solicitar_troca,
            tools.solicitar_devolucao,
        ],
    )
    serve(server, options)


if __name__ == "__main__":
    main()
