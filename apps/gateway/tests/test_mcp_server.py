"""The tool gateway as an MCP server: real clients against the running product."""

import contextlib
import json
import uuid

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

pytestmark = pytest.mark.asyncio

ORDER = "PED-1001"
SUPPORT = ["consultar_pedido", "solicitar_devolucao", "solicitar_troca"]


@pytest.fixture
def connect(live):
    """Return a function: an MCP client of the key with that name, in either protocol era."""

    @contextlib.asynccontextmanager
    async def connect(key, *, mode="auto", query=""):
        headers = live.bearer(key) if key else {}
        async with httpx2.AsyncClient(headers=headers, timeout=30, trust_env=False) as http:
            transport = streamable_http_client(f"{live.url}/mcp{query}", http_client=http)
            async with Client(transport, mode=mode) as client:
                yield client

    return connect


def names(listed):
    return [tool.name for tool in listed.tools]


@pytest.mark.parametrize("mode", ["auto", "legacy", "2026-07-28"])
async def test_list__of_two_agents__has_each_ones_tools(connect, mode):
    async with connect("support", mode=mode) as support, connect("orders", mode=mode) as orders:
        assert names(await support.list_tools()) == SUPPORT
        assert names(await orders.list_tools()) == ["consultar_entrega", "consultar_pedido"]


async def test_list__says_what_a_tool_does(connect):
    async with connect("support") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    read, act = tools["consultar_pedido"], tools["solicitar_troca"]
    assert read.annotations.read_only_hint is True
    assert (act.annotations.read_only_hint, act.annotations.destructive_hint) == (False, True)
    assert act.meta["confirmation_required"] is True
    assert "customer_id" not in read.input_schema["properties"]
    assert "product_id" in act.input_schema["properties"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_call__returns_what_the_server_holds(connect, mode):
    async with connect("support", mode=mode) as client:
        done = await client.call_tool(
            "consultar_pedido", {"order_id": ORDER},
            meta={"business_context": {"customer_key": "C-001"}, "channel": "web"},
        )  # fmt: skip
    assert done.is_error is False, done.content
    assert done.structured_content["order_id"] == ORDER
    assert json.loads(done.content[0].text) == done.structured_content
    assert done.meta["agent_id"] == "support_agent"


async def test_call__of_another_agents_or_tenants_tool__is_refused_and_sends_nothing(connect, live):
    sent = len(live.retail.calls())
    async with connect("support") as client:
        with pytest.raises(MCPError):
            await client.call_tool("nothing", {})
        refused = await client.call_tool("consultar_entrega", {"order_id": ORDER})
        assert (refused.is_error, refused.meta["code"]) == (True, "AGENT_NOT_ALLOWED")
    async with connect("loja_support") as client:
        assert "consultar_plano" not in names(await client.list_tools())
        with pytest.raises(MCPError):
            await client.call_tool("consultar_plano", {})
    assert len(live.retail.calls()) == sent


async def test_call__with_a_wrong_argument__is_an_error_that_names_the_field(connect):
    async with connect("support") as client:
        refused = await client.call_tool("consultar_pedido", {"order_id": ["x"]})
    assert refused.is_error is True
    assert refused.structured_content["errors"][0]["field"] == "arguments.order_id"


async def test_call__again_under_its_key__is_answered_from_the_first(connect, live):
    key = uuid.uuid4().hex
    async with connect("support") as client:
        results = [
            await client.call_tool("consultar_pedido", {"order_id": ORDER},
                                   meta={"idempotency_key": key})
            for _ in range(2)
        ]  # fmt: skip
    assert results[0].structured_content == results[1].structured_content
    assert "replayed" not in results[0].meta
    assert results[1].meta["replayed"] is True


async def test_action__is_confirmed_for_exactly_one_call(connect, live):
    call = ("solicitar_troca", {"order_id": "PED-1002", "reason": "defeito"})
    async with connect("support") as client:
        asked = await client.call_tool(*call)
        assert asked.meta["code"] == "CONFIRMATION_REQUIRED"
        said = asked.structured_content["confirmation"]
        assert said["arguments"]["order_id"] == "PED-1002"
        yes = {name: said[name] for name in ("id", "contract", "arguments_sha256")}
        done = await client.call_tool(*call, meta={"confirmation": yes})
        again = await client.call_tool(*call, meta={"confirmation": yes})
    assert done.is_error is False, done.content
    assert done.structured_content["order_id"] == "PED-1002"
    assert again.structured_content["answer"] == "used"
    opened = live.retail.rows("SELECT count(*) FROM protocolos WHERE order_id = 'PED-1002'")
    assert opened == [(1,)]


async def test_list__in_pages__ends(connect, live):
    """Fewer tools than a page holds; a cursor that is none of ours is refused."""
    async with connect("support") as client:
        assert (await client.list_tools()).next_cursor is None
        with pytest.raises(MCPError):
            await client.list_tools(cursor="!")


async def test_key__bound_to_no_agent__names_one_in_the_address(connect):
    async with connect("full", query="?agent_id=orders_agent") as client:
        assert names(await client.list_tools()) == ["consultar_entrega", "consultar_pedido"]
    async with connect("full") as client:
        with pytest.raises(MCPError, match="agent_id"):
            await client.list_tools()


class TestDoor:
    """What comes before the protocol: credential, host, origin, method."""

    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accept = {"accept": "application/json, text/event-stream"}

    def post(self, live, key="support", **headers):
        with live.client(key, headers={**self.accept, **headers}) as client:
            return client.post("/mcp", json=self.body)

    @pytest.mark.parametrize("key", ["", "ak_00000000_nothing", "expired", "revoked_now"])
    async def test_request__without_a_key_that_counts__is_401(self, live, key):
        answer = self.post(live, key)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.headers["content-type"] == "application/problem+json"

    async def test_request__of_a_key_without_the_scope__is_403(self, live):
        assert self.post(live, "writer").status_code == 403

    async def test_request__of_a_foreign_page_or_host__is_refused(self, live):
        assert self.post(live, origin="https://evil.example").status_code == 403
        assert self.post(live, origin=live.url).status_code == 200
        assert self.post(live, host="evil.example").status_code == 400

    @pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
    async def test_method__other_than_post__is_405(self, live, method):
        with live.client("support") as client:
            answer = client.request(method, "/mcp")
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")

    async def test_body__that_is_too_large_or_no_json__is_refused(self, live):
        with live.client("support", headers=self.accept) as client:
            json_type = {"content-type": "application/json"}
            assert client.post("/mcp", content=b"x" * 300_000, headers=json_type).status_code == 413
            assert client.post("/mcp", content=b"{", headers=json_type).status_code == 400

    @pytest.mark.parametrize("name", ["request_id", "idempotency_key", "trace_id"])
    @pytest.mark.parametrize("value", ["a\x00b", "x" * 201, {"a": 1}, 7])
    async def test_id__that_could_be_another_ones__is_an_error_of_its_field(
        self, live, name, value
    ):
        call = {
            "name": "consultar_pedido",
            "arguments": {"order_id": ORDER},
            "_meta": {name: value},
        }
        with live.client("support", headers=self.accept) as client:
            answer = client.post("/mcp", json={**self.body, "method": "tools/call", "params": call})
        result = answer.json()["result"]
        assert result["isError"] is True
        assert result["structuredContent"]["errors"][0]["field"] == name

    async def test_text__that_no_store_can_keep__is_an_error_of_its_field(self, live):
        call = {"name": "consultar_pedido", "arguments": {"order_id": "a\x00b"}}
        with live.client("support", headers=self.accept) as client:
            answer = client.post("/mcp", json={**self.body, "method": "tools/call", "params": call})
        result = answer.json()["result"]
        assert result["isError"] is True
        assert result["structuredContent"]["errors"][0]["field"] == "arguments.order_id"
