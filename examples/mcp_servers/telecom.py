"""Demo MCP server of a telephone operator: invoices, payments, plan, services, finance titles.

``python -m examples.mcp_servers.telecom --port 8100 --db telecom.sqlite3``
"""

import sqlite3

from mcp.server.mcpserver.exceptions import ToolError
from typing_extensions import TypedDict

from examples.mcp_servers.serving import Calls, Delays, arguments_parse, serve, server_create
from examples.mcp_servers.store import Store
from examples.mcp_servers.telecom_data import SCHEMA, seed


class Item(TypedDict):
    descricao: str
    valor: float


class Fatura(TypedDict):
    invoice_id: str
    msisdn: str
    competencia: str
    vencimento: str
    valor_total: float
    status: str
    itens: list[Item]


class Pagamento(TypedDict):
    invoice_id: str
    data: str
    valor: float
    forma: str
    status: str


class Pagamentos(TypedDict):
    msisdn: str
    pagamentos: list[Pagamento]


class Plano(TypedDict):
    msisdn: str
    nome: str
    franquia_gb: int
    mensalidade: float
    fidelidade_ate: str | None


class Servico(TypedDict):
    nome: str
    mensalidade: float
    ativo_desde: str


class Servicos(TypedDict):
    msisdn: str
    servicos: list[Servico]


class Titulo(TypedDict):
    customer_id: str
    contract_id: str
    descricao: str
    valor: float
    vencimento: str
    status: str
    linha_digitavel: str


class PagamentoTitulo(TypedDict):
    contract_id: str
    data: str
    valor: float
    status: str


class PagamentosTitulo(TypedDict):
    customer_id: str
    pagamentos: list[PagamentoTitulo]


class Telecom:
    """The tools. A customer is known by phone number or by customer id."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def consultar_fatura(
        self, msisdn: str | None = None, invoice_id: str | None = None
    ) -> Fatura:
        """Consulta uma fatura do cliente; sem invoice_id, a mais recente."""
        if not msisdn and not invoice_id:
            raise ToolError("Informe msisdn ou invoice_id.")
        line = self._line(msisdn) if msisdn else ""
        row = self.store.one(
            "SELECT * FROM faturas WHERE (? = '' OR msisdn = ?) AND (? = '' OR invoice_id = ?)"
            " ORDER BY competencia DESC LIMIT 1",
            line, line, invoice_id or "", invoice_id or "",
        )  # fmt: skip
        if row is None:
            raise ToolError(f"Fatura {invoice_id or ''} não encontrada para este cliente.")
        items = self.store.all(
            "SELECT descricao, valor FROM itens_fatura WHERE invoice_id = ? ORDER BY id",
            row["invoice_id"],
        )
        return Fatura(
            invoice_id=row["invoice_id"],
            msisdn=row["msisdn"],
            competencia=row["competencia"],
            vencimento=row["vencimento"],
            valor_total=row["valor_total"],
            status=row["status"],
            itens=[Item(descricao=i["descricao"], valor=i["valor"]) for i in items],
        )

    async def consultar_pagamentos(self, msisdn: str, invoice_id: str | None = None) -> Pagamentos:
        """Consulta os pagamentos do cliente; com invoice_id, só os dessa fatura."""
        line = self._line(msisdn)
        rows = self.store.all(
            "SELECT invoice_id, data, valor, forma, status FROM pagamentos"
            " WHERE msisdn = ? AND (? = '' OR invoice_id = ?) ORDER BY data DESC",
            line, invoice_id or "", invoice_id or "",
        )  # fmt: skip
        return Pagamentos(
            msisdn=line,
            pagamentos=[
                Pagamento(
                    invoice_id=row["invoice_id"],
                    data=row["data"],
                    valor=row["valor"],
                    forma=row["forma"],
                    status=row["status"],
                )
                for row in rows
            ],
        )

    async def consultar_plano(self, msisdn: str) -> Plano:
        """Consulta o plano ativo do cliente."""
        row = self.store.one("SELECT * FROM planos WHERE msisdn = ?", self._line(msisdn))
        if row is None:
            raise ToolError("Este cliente não tem plano ativo.")
        return Plano(
            msisdn=row["msisdn"],
            nome=row["nome"],
            franquia_gb=row["franquia_gb"],
            mensalidade=row["mensalidade"],
            fidelidade_ate=row["fidelidade_ate"],
        )

    async def listar_servicos(self, msisdn: str) -> Servicos:
        """Lista os serviços adicionais ativos do cliente."""
        line = self._line(msisdn)
        rows = self.store.all("SELECT * FROM servicos WHERE msisdn = ? ORDER BY id", line)
        return Servicos(msisdn=line, servicos=[_servico(row) for row in rows])

    async def consultar_titulo_financeiro(
        self, customer_id: str | None = None, contract_id: str | None = None
    ) -> Titulo:
        """Consulta um título financeiro por cliente e contrato; sem contrato, o último a vencer."""
        if not customer_id and not contract_id:
            raise ToolError("Informe customer_id ou contract_id.")
        row = self.store.one(
            "SELECT * FROM titulos WHERE (? = '' OR customer_id = ?)"
            " AND (? = '' OR contract_id = ?) ORDER BY vencimento DESC LIMIT 1",
            customer_id or "", customer_id or "", contract_id or "", contract_id or "",
        )  # fmt: skip
        if row is None:
            raise ToolError("Título não encontrado para este cliente e contrato.")
        return Titulo(
            customer_id=row["customer_id"],
            contract_id=row["contract_id"],
            descricao=row["descricao"],
            valor=row["valor"],
            vencimento=row["vencimento"],
            status=row["status"],
            linha_digitavel=row["linha_digitavel"],
        )

    async def consultar_pagamentos_financeiro(
        self, customer_id: str, contract_id: str | None = None
    ) -> PagamentosTitulo:
        """Consulta os pagamentos dos títulos de um cliente; com contract_id, só os desse."""
        if self.store.one("SELECT 1 FROM titulos WHERE customer_id = ?", customer_id) is None:
            raise ToolError(f"Cliente {customer_id} não encontrado.")
        rows = self.store.all(
            "SELECT p.* FROM pagamentos_titulo p JOIN titulos t USING (contract_id)"
            " WHERE t.customer_id = ? AND (? = '' OR contract_id = ?) ORDER BY data DESC",
            customer_id, contract_id or "", contract_id or "",
        )  # fmt: skip
        return PagamentosTitulo(
            customer_id=customer_id,
            pagamentos=[
                PagamentoTitulo(
                    contract_id=row["contract_id"],
                    data=row["data"],
                    valor=row["valor"],
                    status=row["status"],
                )
                for row in rows
            ],
        )

    def _line(self, customer: str) -> str:
        row = self.store.one(
            "SELECT msisdn FROM clientes WHERE msisdn = ? OR cliente_id = ?", customer, customer
        )
        if row is None:
            raise ToolError(f"Cliente {customer} não encontrado.")
        return str(row["msisdn"])


def _servico(row: sqlite3.Row) -> Servico:
    return Servico(nome=row["nome"], mensalidade=row["mensalidade"], ativo_desde=row["ativo_desde"])


def main() -> None:
    options = arguments_parse("telecom", 8100)
    store = Store(options.db, schema=SCHEMA, seed=seed)
    tools = Telecom(store)
    calls = Calls(store, Delays(options.delay_ms, options.delay_after_ms))
    server = server_create(
        "telecom",
        calls,
        [
            tools.consultar_fatura,
            tools.consultar_pagamentos,
            tools.consultar_plano,
            tools.listar_servicos,
            tools.consultar_titulo_financeiro,
            tools.consultar_pagamentos_financeiro,
        ],
    )
    serve(server, options)


if __name__ == "__main__":
    main()
