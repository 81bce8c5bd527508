"""Made-up customers of a made-up operator: lines, invoices, payments, finance titles."""

import sqlite3

from examples.mcp_servers.store import insert

SCHEMA = """
CREATE TABLE IF NOT EXISTS clientes (
    msisdn TEXT PRIMARY KEY,
    cliente_id TEXT NOT NULL UNIQUE,
    nome TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS planos (
    msisdn TEXT PRIMARY KEY REFERENCES clientes,
    nome TEXT NOT NULL,
    franquia_gb INTEGER NOT NULL,
    mensalidade REAL NOT NULL,
    fidelidade_ate TEXT
);
CREATE TABLE IF NOT EXISTS servicos (
    id INTEGER PRIMARY KEY,
    msisdn TEXT NOT NULL REFERENCES clientes,
    nome TEXT NOT NULL,
    mensalidade REAL NOT NULL,
    ativo_desde TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS faturas (
    invoice_id TEXT PRIMARY KEY,
    msisdn TEXT NOT NULL REFERENCES clientes,
    competencia TEXT NOT NULL,
    vencimento TEXT NOT NULL,
    valor_total REAL NOT NULL,
    status TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS itens_fatura (
    id INTEGER PRIMARY KEY,
    invoice_id TEXT NOT NULL REFERENCES faturas,
    descricao TEXT NOT NULL,
    valor REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS pagamentos (
    id INTEGER PRIMARY KEY,
    msisdn TEXT NOT NULL REFERENCES clientes,
    invoice_id TEXT NOT NULL REFERENCES faturas,
    data TEXT NOT NULL,
    valor REAL NOT NULL,
    forma TEXT NOT NULL,
    status TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS titulos (
    contract_id TEXT PRIMARY KEY,
    customer_id TEXT NOT NULL,
    descricao TEXT NOT NULL,
    valor REAL NOT NULL,
    vencimento TEXT NOT NULL,
    status TEXT NOT NULL,
    linha_digitavel TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS pagamentos_titulo (
    id INTEGER PRIMARY KEY,
    contract_id TEXT NOT NULL REFERENCES titulos,
    data TEXT NOT NULL,
    valor REAL NOT NULL,
    status TEXT NOT NULL
);
"""

_CLIENTES = [
    ("11999999999", "C-11999", "Marina Duarte"),
    ("11988887777", "cliente-1", "Rafael Nogueira"),
    ("21977776666", "C-21977", "Joana Prates"),
]
_PLANOS = [
    ("11999999999", "Controle 60 GB", 60, 119.90, "2027-03-31"),
    ("11988887777", "Pós Família 200 GB", 200, 229.90, None),
    ("21977776666", "Pré Semanal 8 GB", 8, 19.90, None),
]
_SERVICOS = [
    (1, "11999999999", "Streaming de vídeo", 27.90, "2025-02-11"),
    (2, "11999999999", "Antivírus móvel", 9.90, "2026-06-03"),
    (3, "11988887777", "Roaming Américas", 49.90, "2026-09-20"),
]
_FATURAS = [
    ("INV-001", "11999999999", "2026-09", "2026-10-10", 157.70, "PAGA"),
    ("INV-123", "11999999999", "2026-10", "2026-11-10", 157.70, "PAGA"),
    ("3000131180", "11999999999", "2026-11", "2026-12-10", 214.37, "ABERTA"),
    ("FAT-001", "11988887777", "2026-11", "2026-12-05", 279.80, "ABERTA"),
    ("3000131181", "21977776666", "2026-11", "2026-11-30", 19.90, "VENCIDA"),
]
_ITENS = [
    (1, "INV-001", "Controle 60 GB", 119.90),
    (2, "INV-001", "Streaming de vídeo", 27.90),
    (3, "INV-001", "Antivírus móvel", 9.90),
    (4, "INV-123", "Controle 60 GB", 119.90),
    (5, "INV-123", "Streaming de vídeo", 27.90),
    (6, "INV-123", "Antivírus móvel", 9.90),
    (7, "3000131180", "Controle 60 GB", 119.90),
    (8, "3000131180", "Streaming de vídeo", 27.90),
    (9, "3000131180", "Antivírus móvel", 9.90),
    (10, "3000131180", "Roaming internacional, 2 dias", 56.67),
    (11, "FAT-001", "Pós Família 200 GB", 229.90),
    (12, "FAT-001", "Roaming Américas", 49.90),
    (13, "3000131181", "Pré Semanal 8 GB", 19.90),
]
_PAGAMENTOS = [
    (1, "11999999999", "INV-001", "2026-10-08", 157.70, "PIX", "CONFIRMADO"),
    (2, "11999999999", "INV-123", "2026-11-09", 157.70, "débito em conta", "CONFIRMADO"),
]
_TITULOS = [
    (
        "ABC-999", "12345", "Parcela 07/12 do contrato ABC-999", 342.15, "2026-12-20", "ABERTO",
        "23793.38128 60082.677139 66003.305208 1 92340000034215",
    ),
    (
        "ABC-998", "12345", "Parcela 06/12 do contrato ABC-999", 342.15, "2026-11-20", "PAGO",
        "23793.38128 60082.677139 66003.305109 7 92040000034215",
    ),
]  # fmt: skip
_PAGAMENTOS_TITULO = [
    (1, "ABC-998", "2026-11-18", 342.15, "COMPENSADO"),
    (2, "ABC-999", "2026-11-29", 342.15, "EM_PROCESSAMENTO"),
]


def seed(db: sqlite3.Connection) -> None:
    """Fill an empty database."""
    insert(db, "clientes", _CLIENTES)
    insert(db, "planos", _PLANOS)
    insert(db, "servicos", _SERVICOS)
    insert(db, "faturas", _FATURAS)
    insert(db, "itens_fatura", _ITENS)
    insert(db, "pagamentos", _PAGAMENTOS)
    insert(db, "titulos", _TITULOS)
    insert(db, "pagamentos_titulo", _PAGAMENTOS_TITULO)
