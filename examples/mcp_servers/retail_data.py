"""Made-up orders of a made-up shop."""

import sqlite3

from examples.mcp_servers.store import insert

SCHEMA = """
CREATE TABLE IF NOT EXISTS clientes (
    customer_id TEXT PRIMARY KEY,
    telefone TEXT NOT NULL UNIQUE,
    nome TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS pedidos (
    order_id TEXT PRIMARY KEY,
    customer_id TEXT NOT NULL REFERENCES clientes,
    feito_em TEXT NOT NULL,
    valor_total REAL NOT NULL,
    status TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS itens_pedido (
    id INTEGER PRIMARY KEY,
    order_id TEXT NOT NULL REFERENCES pedidos,
    product_id TEXT NOT NULL,
    nome TEXT NOT NULL,
    quantidade INTEGER NOT NULL,
    valor REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS entregas (
    order_id TEXT PRIMARY KEY REFERENCES pedidos,
    transportadora TEXT NOT NULL,
    codigo_rastreio TEXT NOT NULL,
    situacao TEXT NOT NULL,
    previsao TEXT NOT NULL,
    entregue_em TEXT
);
CREATE TABLE IF NOT EXISTS protocolos (
    protocolo TEXT PRIMARY KEY,
    tipo TEXT NOT NULL,
    order_id TEXT NOT NULL REFERENCES pedidos,
    product_id TEXT,
    reason TEXT NOT NULL,
    aberto_em TEXT NOT NULL
);
"""

_CLIENTES = [
    ("C-001", "11999999999", "Marina Duarte"),
    ("cliente-1", "11988887777", "Rafael Nogueira"),
    ("C-500", "11955554444", "Loja Modelo"),
]
_PEDIDOS = [
    ("PED-1001", "C-001", "2026-11-12", 389.80, "EM_TRANSITO"),
    ("PED-1002", "C-001", "2026-10-28", 249.00, "ENTREGUE"),
    ("PED-1003", "C-001", "2026-11-29", 79.90, "EM_SEPARACAO"),
    ("PED-001", "cliente-1", "2026-11-20", 159.90, "SAIU_PARA_ENTREGA"),
]
_ITENS = [
    ("PED-1001", "SKU-77", "Fone de ouvido sem fio", 1, 299.90),
    ("PED-1001", "SKU-12", "Capa para celular", 1, 89.90),
    ("PED-1002", "SKU-31", "Tênis de corrida 42", 1, 249.00),
    ("PED-1003", "SKU-05", "Garrafa térmica", 1, 79.90),
    ("PED-001", "SKU-90", "Cafeteira italiana", 1, 159.90),
]
_ENTREGAS = [
    ("PED-1001", "TransRápido", "TR123456789BR", "ATRASADO", "2026-11-25", None),
    ("PED-1002", "TransRápido", "TR123450001BR", "ENTREGUE", "2026-11-04", "2026-11-03"),
    ("PED-001", "LogJá", "LJ998877665BR", "SAIU_PARA_ENTREGA", "2026-11-30", None),
]
_BULK = range(5001, 5501)
"""Orders PED-5001 … PED-5500, all delivered: enough for tests that act on many."""


def seed(db: sqlite3.Connection) -> None:
    """Fill an empty database."""
    bulk = [f"PED-{number}" for number in _BULK]
    items = [*_ITENS, *((order, "SKU-31", "Tênis de corrida 42", 1, 249.00) for order in bulk)]
    insert(db, "clientes", _CLIENTES)
    insert(db, "pedidos", _PEDIDOS)
    insert(db, "pedidos", [(order, "C-500", "2026-10-01", 249.00, "ENTREGUE") for order in bulk])
    insert(db, "itens_pedido", [(number, *item) for number, item in enumerate(items, start=1)])
    insert(db, "entregas", _ENTREGAS)
    insert(
        db,
        "entregas",
        [
            (order, "LogJá", f"LJ{order[4:]}BR", "ENTREGUE", "2026-10-08", "2026-10-07")
            for order in bulk
        ],
    )
