"""The transports against the demo servers as real processes, both contracts."""

import asyncio
import time

import pytest

from apps.runtime.ports import RemoteTool, ToolRequest, ToolUnavailable
from apps.runtime.testing import FakeLedger
from apps.tools.config import Argument, ToolConfig, ToolServerConfig
from apps.tools.tests.servers import LOCAL, running
from apps.tools.tests.world import caller_of, release, turn
from apps.tools.transports.dispatch import Transports

INVOICE = {"msisdn": "11999999999", "invoice_id": "3000131180"}
CONTRACTS = ["streamable_http", "http"]


@pytest.fixture(scope="module")
def telecom(tmp_path_factory):
    with running("telecom", tmp_path_factory.mktemp("telecom") / "t.sqlite3") as server:
        yield server


@pytest.fixture(scope="module")
def retail(tmp_path_factory):
    with running("retail", tmp_path_factory.mktemp("retail") / "r.sqlite3") as server:
        yield server


@pytest.fixture
async def transports():
    made = Transports(allowed=LOCAL)
    yield made
    await made.aclose()


@pytest.mark.parametrize("contract", CONTRACTS)
async def test_call__read_tool__structured_result(telecom, transports, contract):
    tool = telecom.tool("consultar_fatura", contract)

    answer = await transports.call(tool, INVOICE, idempotency_key="k")

    assert (answer.ok, answer.error) == (True, "")
    assert (answer.result["invoice_id"], answer.result["valor_total"]) == ("3000131180", 214.37)
    assert sum(round(item["valor"] * 100) for item in answer.result["itens"]) == 21437


@pytest.mark.parametrize("contract", CONTRACTS)
async def test_call__row_changed_in_the_servers_database__answer_changes(
    telecom, transports, contract
):
    tool = telecom.tool("consultar_fatura", contract)
    arguments = {"msisdn": "11999999999", "invoice_id": "INV-001"}
    amount = 300.5 if contract == "http" else 301.5

    telecom.change("UPDATE faturas SET valor_total = ? WHERE invoice_id = 'INV-001'", amount)
    answer = await transports.call(tool, arguments, idempotency_key="")

    assert answer.result["valor_total"] == amount


@pytest.mark.parametrize("contract", CONTRACTS)
@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("consultar_fatura", {"msisdn": "0"}, "Cliente 0 não encontrado."),
        ("consultar_fatura", {}, "Informe msisdn ou invoice_id."),
        ("nenhuma", {}, "Unknown tool: nenhuma"),
    ],
)
async def test_call__tool_says_no__its_own_words_and_not_ok(
    telecom, transports, contract, name, arguments, error
):
    answer = await transports.call(telecom.tool(name, contract), arguments, idempotency_key="k")

    assert (answer.ok, answer.result, answer.error) == (False, None, error)


@pytest.mark.parametrize("contract", CONTRACTS)
async def test_call__arguments_the_server_refuses__field_is_named(telecom, transports, contract):
    tool = telecom.tool("consultar_plano", contract)

    answer = await transports.call(tool, {"msisdn": 7}, idempotency_key="k")

    assert not answer.ok
    assert "msisdn" in answer.error


@pytest.mark.parametrize("contract", CONTRACTS)
async def test_list__of_a_server__every_tool_with_its_schema(telecom, transports, contract):
    tools = await transports.list_tools(telecom.tool("", contract))

    assert len(tools) == 6
    listed = {tool["name"]: tool for tool in tools}["consultar_plano"]
    assert listed["input_schema"]["required"] == ["msisdn"]
    assert "plano ativo" in listed["description"]


@pytest.mark.parametrize("contract", CONTRACTS)
async def test_call__action_with_the_same_key_twice__one_effect_and_the_same_answer(
    retail, transports, contract
):
    order = {"http": "PED-5001", "streamable_http": "PED-5002"}[contract]
    tool = retail.tool("solicitar_troca", contract)
    arguments = {"order_id": order, "reason": "defeito"}

    first = await transports.call(tool, arguments, idempotency_key=f"key-{order}")
    second = await transports.call(tool, arguments, idempotency_key=f"key-{order}")
    third = await transports.call(tool, arguments, idempotency_key=f"other-{order}")

    assert first.ok
    assert first.result == second.result
    assert not third.ok
    assert retail.rows("SELECT count(*) FROM protocolos WHERE order_id = ?", order) == [(1,)]
    outcomes = retail.rows(
        "SELECT outcome FROM calls WHERE idempotency_key LIKE ? ORDER BY id", f"%{order}"
    )
    assert outcomes == [("effect",), ("replayed",), ("received",)]
    read = retail.tool("consultar_pedido", contract)
    after = await transports.call(read, {"order_id": order}, idempotency_key="")
    assert after.result["status"] == "TROCA_SOLICITADA"
    assert after.result["protocolos"] == [first.result["protocolo"]]


async def test_call__hundred_at_once__all_answered_and_none_mixed_up(telecom, transports):
    tool = telecom.tool("consultar_pagamentos_financeiro")
    good, bad = {"customer_id": "12345"}, {"customer_id": "nobody"}

    answers = await asyncio.gather(
        *(
            transports.call(tool, bad if i % 5 == 0 else good, idempotency_key=str(i))
            for i in range(100)
        )
    )

    assert [answer.ok for answer in answers] == [i % 5 != 0 for i in range(100)]


# -- a server that is gone ---------------------------------------------------------------------


async def test_call__server_killed_and_back__fails_clearly_meanwhile_and_works_again(
    tmp_path, transports
):
    with running("telecom", tmp_path / "t.sqlite3") as server:
        tools = [server.tool("consultar_fatura", contract) for contract in CONTRACTS]

        async def works(tool):
            return (await transports.call(tool, INVOICE, idempotency_key="1")).ok

        assert [await works(tool) for tool in tools] == [True, True]

        server.kill()
        for tool in tools * 3:
            with pytest.raises(ToolUnavailable) as down:
                await works(tool)
            assert down.value.sent is False
        server.start()

        assert [await works(tool) for tool in tools * 3] == [True] * 6


async def test_call__server_killed_while_it_works__fails_at_once_as_sent(tmp_path, transports):
    with running("retail", tmp_path / "r.sqlite3", "--delay-ms", "5000-5000") as server:
        calls = [
            asyncio.create_task(
                transports.call(
                    server.tool("consultar_pedido", contract, timeout=20),
                    {"order_id": "PED-1001"},
                    idempotency_key="k",
                )
            )
            for contract in CONTRACTS
        ]
        await server.until("SELECT count(*) FROM calls WHERE tool = 'consultar_pedido'", 2)
        started = time.monotonic()

        server.kill()
        failures = await asyncio.gather(*calls, return_exceptions=True)

        assert [getattr(failure, "sent", None) for failure in failures] == [True, True]
        assert time.monotonic() - started < 3


async def test_call__server_slower_than_the_deadline__ends_in_time_and_the_next_call_works(
    tmp_path, transports
):
    with running("telecom", tmp_path / "t.sqlite3", "--delay-ms", "600-600") as server:
        for contract in CONTRACTS:
            quick = server.tool("consultar_fatura", contract, timeout=0.2)
            patient = server.tool("consultar_fatura", contract)
            assert (await transports.call(patient, INVOICE, idempotency_key="1")).ok
            started = time.monotonic()

            with pytest.raises(ToolUnavailable) as late:
                await transports.call(quick, INVOICE, idempotency_key="2")

            assert late.value.sent is True
            assert 0.15 < time.monotonic() - started < 0.55
            assert (await transports.call(patient, INVOICE, idempotency_key="3")).ok


def _world(server, *, idempotent: bool):
    tool = ToolConfig(
        mcp_server="retail",
        tool_type="action",
        idempotent=idempotent,
        args_schema={"order_id": Argument(), "reason": Argument()},
        requires=["order_id", "reason"],
        timeout_seconds=0.4,
    )
    return {
        "release": release(
            tools={"solicitar_troca": tool},
            tool_server={"retail": ToolServerConfig(endpoint="retail_url")},
        ),
        "bindings": {"address:retail_url": f"http://127.0.0.1:{server.port}/mcp"},
    }


async def test_caller__effect_done_and_answer_too_late__never_two_effects(tmp_path, transports):
    with running("retail", tmp_path / "r.sqlite3", "--delay-after-ms", "1000") as server:
        for order, idempotent, outcomes in (
            ("PED-5001", True, ["effect", "replayed"]),
            ("PED-5002", False, ["effect"]),
        ):
            request = ToolRequest("solicitar_troca", {"order_id": order, "reason": "defeito"})
            caller = caller_of(transports, FakeLedger())
            server.change("DELETE FROM calls")

            (done,) = await caller.call(turn(**_world(server, idempotent=idempotent)), [request])

            assert done.status == "unknown"
            await server.until("SELECT count(*) FROM calls", len(outcomes))
            assert [row[0] for row in server.rows("SELECT outcome FROM calls")] == outcomes
            protocols = "SELECT count(*) FROM protocolos WHERE order_id = ?"
            assert server.rows(protocols, order) == [(1,)]


async def test_caller__idempotent_action_and_server_killed_after_the_effect__retry_has_the_answer(
    tmp_path, transports
):
    with running("retail", tmp_path / "r.sqlite3", "--delay-after-ms", "3000") as server:
        world = _world(server, idempotent=True)
        tool = world["release"].items[("tool", "solicitar_troca")]
        patient = tool.model_copy(update={"timeout_seconds": 20.0})
        world["release"].items[("tool", "solicitar_troca")] = patient
        request = ToolRequest("solicitar_troca", {"order_id": "PED-1002", "reason": "defeito"})
        caller = caller_of(_RestartOnce(transports, server), FakeLedger())

        (done,) = await caller.call(turn(**world), [request])

        assert done.status == "ok"
        assert server.rows("SELECT protocolo FROM protocolos") == [(done.result["protocolo"],)]
        assert [row[0] for row in server.rows("SELECT outcome FROM calls")] == [
            "effect", "replayed",
        ]  # fmt: skip


class _RestartOnce:
    """Kills the server when the first call has had its effect, and brings it back."""

    def __init__(self, inner, server) -> None:
        self.inner = inner
        self.server = server
        self.killed = False

    async def call(self, tool, arguments, *, idempotency_key):
        sending = asyncio.create_task(
            self.inner.call(tool, arguments, idempotency_key=idempotency_key)
        )
        if not self.killed:
            self.killed = True
            await self.server.until("SELECT count(*) FROM effects", 1)
            self.server.options = ()
            self.server.restart()
        return await sending


# -- addresses ---------------------------------------------------------------------------------


@pytest.mark.parametrize("contract", CONTRACTS)
@pytest.mark.parametrize(
    "address",
    ["ftp://a/mcp", "file:///etc/passwd", "telecom", "", "http://", "http://u:p@127.0.0.1/mcp", "http://[::1"],
)  # fmt: skip
async def test_call__address_that_is_no_http_url__is_refused_before_anything_is_sent(
    transports, contract, address
):
    tool = RemoteTool(server="x", transport=contract, address=address, name="t")

    with pytest.raises(ToolUnavailable) as refused:
        await transports.call(tool, {}, idempotency_key="")

    assert refused.value.sent is False


def test_transports__used_on_a_second_loop__say_so(telecom):
    made = Transports(allowed=LOCAL)
    tool = telecom.tool("consultar_fatura", "http")

    async def once(close: bool) -> None:
        await made.call(tool, INVOICE, idempotency_key="")
        if close:
            await made.aclose()

    with asyncio.Runner() as first:
        first.run(once(close=False))
        with asyncio.Runner() as second, pytest.raises(RuntimeError, match="event loop"):
            second.run(once(close=False))
        first.run(once(close=True))
