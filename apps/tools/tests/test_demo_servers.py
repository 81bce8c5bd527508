"""The demo servers' tools over their own small databases."""

import argparse
import json

import httpx2
import pytest
from mcp.server.mcpserver.exceptions import ToolError

from examples.mcp_servers import retail_data, telecom_data
from examples.mcp_servers.retail import Retail
from examples.mcp_servers.serving import Calls, Delays, app_create, server_create
from examples.mcp_servers.store import Store
from examples.mcp_servers.telecom import Telecom


@pytest.fixture
def telecom(tmp_path):
    return Telecom(Store(tmp_path / "t.db", schema=telecom_data.SCHEMA, seed=telecom_data.seed))


@pytest.fixture
def retail(tmp_path):
    store = Store(tmp_path / "r.db", schema=retail_data.SCHEMA, seed=retail_data.seed)
    return Retail(store, Calls(store, Delays()))


async def act(retail, tool, key="", **arguments):
    """Call an action as both doors do."""
    return await retail.calls.run(tool.__name__, arguments, key, lambda: tool(**arguments))


@pytest.mark.parametrize(
    ("customer", "invoice"),
    [
        ("11999999999", "3000131180"),
        ("11999999999", "INV-001"),
        ("11999999999", "INV-123"),
        ("cliente-1", "FAT-001"),
        (None, "FAT-001"),
    ],
)
async def test_invoice__of_the_manuals_calls__exists_and_its_items_add_up(
    telecom, customer, invoice
):
    found = await telecom.consultar_fatura(customer, invoice)

    assert found["invoice_id"] == invoice
    cents = sum(round(item["valor"] * 100) for item in found["itens"])
    assert cents == round(found["valor_total"] * 100)


async def test_invoice__customer_without_invoice_number__is_the_latest(telecom):
    assert (await telecom.consultar_fatura("11999999999"))["invoice_id"] == "3000131180"


async def test_invoice__of_another_customer__is_not_found(telecom):
    with pytest.raises(ToolError, match="não encontrada"):
        await telecom.consultar_fatura("11999999999", "FAT-001")


async def test_payments__of_a_customer__newest_first_and_one_invoice_when_asked(telecom):
    every = await telecom.consultar_pagamentos("11999999999")
    one = await telecom.consultar_pagamentos("11999999999", "INV-001")
    none = await telecom.consultar_pagamentos("11999999999", "3000131180")

    assert [p["invoice_id"] for p in every["pagamentos"]] == ["INV-123", "INV-001"]
    assert [p["valor"] for p in one["pagamentos"]] == [157.7]
    assert none["pagamentos"] == []


async def test_plan_and_services__of_a_customer__are_its_own(telecom):
    assert (await telecom.consultar_plano("11999999999"))["nome"] == "Controle 60 GB"
    services = (await telecom.listar_servicos("11999999999"))["servicos"]
    assert [service["nome"] for service in services] == ["Streaming de vídeo", "Antivírus móvel"]


async def test_finance__customer_and_contract_of_the_manual__title_and_payments(telecom):
    title = await telecom.consultar_titulo_financeiro("12345", "ABC-999")
    payments = await telecom.consultar_pagamentos_financeiro("12345")

    assert (title["status"], title["valor"]) == ("ABERTO", 342.15)
    assert [p["status"] for p in payments["pagamentos"]] == ["EM_PROCESSAMENTO", "COMPENSADO"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("consultar_fatura", ["0"]),
        ("consultar_pagamentos", ["0"]),
        ("consultar_plano", ["0"]),
        ("listar_servicos", ["0"]),
        ("consultar_titulo_financeiro", ["0", "ABC-999"]),
        ("consultar_pagamentos_financeiro", ["0"]),
    ],
)
async def test_telecom__unknown_customer__is_an_error_and_no_row_is_made_up(
    telecom, tool, arguments
):
    with pytest.raises(ToolError):
        await getattr(telecom, tool)(*arguments)


@pytest.mark.parametrize(
    ("order", "customer"), [("PED-1001", "C-001"), ("PED-1001", "11999999999"), ("PED-001", None)]
)
async def test_order__of_the_manuals_calls__is_found_by_id_and_phone(retail, order, customer):
    assert (await retail.consultar_pedido(order, customer))["order_id"] == order
    assert (await retail.consultar_entrega(order))["codigo_rastreio"]


async def test_order__of_another_customer__is_not_found(retail):
    with pytest.raises(ToolError, match="não encontrado"):
        await retail.consultar_pedido("PED-1001", "cliente-1")


async def test_return__of_an_order__changes_what_the_next_query_shows(retail):
    done = await act(
        retail, retail.solicitar_devolucao, order_id="PED-1002", reason="arrependimento"
    )

    after = await retail.consultar_pedido("PED-1002")
    assert (after["status"], after["protocolos"]) == ("DEVOLUCAO_SOLICITADA", [done["protocolo"]])
    with pytest.raises(ToolError, match="DEVOLUCAO_SOLICITADA"):
        await act(retail, retail.solicitar_troca, order_id="PED-1002", reason="defeito")


async def test_action__same_key_with_other_arguments__is_refused(retail):
    await act(retail, retail.solicitar_troca, key="k", order_id="PED-5001", reason="defeito")

    with pytest.raises(ToolError, match="idempotência"):
        await act(retail, retail.solicitar_troca, key="k", order_id="PED-5002", reason="defeito")

    assert (await retail.consultar_pedido("PED-5002"))["status"] == "ENTREGUE"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"order_id": "PED-1003", "reason": "x"}, "EM_SEPARACAO"),
        ({"order_id": "PED-0", "reason": "x"}, "não encontrado"),
        ({"order_id": "PED-1001", "reason": "x", "product_id": "SKU-0"}, "não tem o produto"),
        ({"order_id": "PED-1001", "reason": "  "}, "motivo"),
    ],
)
async def test_action__that_cannot_be_done__changes_nothing_and_keeps_no_result(
    retail, arguments, error
):
    with pytest.raises(ToolError, match=error):
        await act(retail, retail.solicitar_troca, key="k", **arguments)

    counts = "SELECT (SELECT count(*) FROM effects), (SELECT count(*) FROM protocolos)"
    assert tuple(retail.store.one(counts)) == (0, 0)
    assert retail.store.one("SELECT outcome FROM calls")["outcome"] == "received"


async def test_store__opened_again__keeps_what_was_changed(tmp_path):
    path = tmp_path / "again.db"
    first = Store(path, schema=telecom_data.SCHEMA, seed=telecom_data.seed)
    first.write("UPDATE planos SET nome = ? WHERE msisdn = ?", ("Outro", "11999999999"))

    again = Store(path, schema=telecom_data.SCHEMA, seed=telecom_data.seed)

    assert (await Telecom(again).consultar_plano("11999999999"))["nome"] == "Outro"
    assert tuple(again.all("SELECT count(*) FROM clientes")[0]) == (3,)


async def test_result__stored_for_a_key__is_json_text(retail):
    done = await act(retail, retail.solicitar_troca, key="k", order_id="PED-5001", reason="defeito")

    stored = retail.store.one("SELECT result FROM effects WHERE idempotency_key = 'k'")
    assert json.loads(stored["result"]) == done


@pytest.mark.parametrize(
    ("host", "listening", "refused"),
    [
        ("telecom-mcp:8100", "0.0.0.0", False),
        ("127.0.0.1:8100", "0.0.0.0", False),
        ("evil.test", "0.0.0.0", True),
        ("evil.test", "127.0.0.1", True),
    ],
)
async def test_server__asked_under_another_host_name__is_refused(telecom, host, listening, refused):
    server = server_create("telecom", Calls(telecom.store, Delays()), [telecom.consultar_plano])
    options = argparse.Namespace(host=listening, allowed_host=["telecom-mcp:8100"])
    app = app_create(server, options)
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    headers = {"host": host, "accept": "application/json, text/event-stream"}

    async with (
        server.session_manager.run(),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app)) as client,
    ):
        answer = await client.post("http://server.test/mcp", json=body, headers=headers)

    assert (answer.status_code == httpx2.codes.MISDIRECTED_REQUEST) is refused


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b'{"tool_name": "consultar_plano", "arguments": {"msisdn": "11999999999"}}', {}, 200),
        (b'{"tool_name": "consultar_plano"}', {"origin": "http://evil.test"}, 403),
        (b"{", {}, 422),
        (b"[]", {}, 422),
        (b'{"tool_name": 7}', {}, 422),
        (b'{"tool_name": "consultar_plano", "arguments": []}', {}, 200),
        (b'{"tool_name": "consultar_plano", "arguments": [1]}', {}, 422),
    ],
)
async def test_plain_contract__body_of_any_kind__never_breaks(telecom, body, headers, status):
    server = server_create("telecom", Calls(telecom.store, Delays()), [telecom.consultar_plano])
    app = app_create(server, argparse.Namespace(host="127.0.0.1", allowed_host=[]))

    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app)) as client:
        answer = await client.post("http://127.0.0.1/tools/call", content=body, headers=headers)

    assert answer.status_code == status
    assert isinstance(answer.json()["ok"], bool)
