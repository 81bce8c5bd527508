"""The tool gateway over REST, against the real demo shop."""

import json
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.test import Client
from django.utils import timezone

from apps.gateway import mcp_server
from apps.gateway.tests.gateway_world import INVOKE, gateway, shop
from apps.gateway.tools_asking import asked_read
from apps.releases.models import Release
from apps.tenants.auth import principal_of
from apps.tenants.models import AuditEntry
from apps.tenants.scope import tenant_transaction
from apps.tools.invocation_models import ToolInvocation

__all__ = ["gateway", "shop"]

pytestmark = pytest.mark.django_db

ORDER = "PED-1001"


def rows(tenant, **found):
    with tenant_transaction(tenant):
        return list(ToolInvocation.objects.filter(**found).order_by("created_at"))


class TestList:
    def test_tools__of_a_bound_key__are_its_agents(self, gateway):
        answer = gateway.get("/v1/tools").json()
        assert [tool["name"] for tool in answer["results"]] == [
            "consultar_cliente", "consultar_pedido", "so_de_cliente", "solicitar_devolucao",
            "solicitar_troca",
        ]  # fmt: skip
        assert answer["next_offset"] is None

    def test_tool__shows_its_rules_and_not_what_the_platform_fills(self, gateway):
        order = gateway.get("/v1/tools/consultar_pedido").json()
        assert list(order["input_schema"]["properties"]) == ["order_id"]
        assert (order["server"], order["tool_type"], order["idempotent"]) == (
            "shop", "read_only", True,
        )  # fmt: skip
        exchange = gateway.get("/v1/tools/solicitar_troca").json()
        assert exchange["confirmation_required"] is True
        assert gateway.get("/v1/tools/solicitar_devolucao").json()["idempotent"] is False

    def test_tools__in_pages__are_all_there_once(self, gateway):
        first = gateway.get("/v1/tools?limit=3").json()
        rest = gateway.get(f"/v1/tools?limit=3&offset={first['next_offset']}").json()
        names = [tool["name"] for tool in first["results"] + rest["results"]]
        assert len(names) == len(set(names)) == 5
        assert rest["next_offset"] is None

    @pytest.mark.parametrize("query", ["limit=0", "limit=201", "limit=x", "offset=-1"])
    def test_page__that_is_none__is_a_field_error(self, gateway, query):
        assert gateway.get(f"/v1/tools?{query}").status_code == 422

    @pytest.mark.parametrize(
        "name", ["consultar_entrega", "so_do_outro", "desligada", "nothing", "a\u00e7\u00e3o"]
    )
    def test_tool__that_is_not_the_agents__is_absent(self, gateway, name):
        absent = gateway.get("/v1/tools/nothing_at_all")
        answer = gateway.get(f"/v1/tools/{name}")
        assert (answer.status_code, answer.content) == (404, absent.content)

    def test_tools__of_a_key_bound_to_none__are_all_or_the_named_agents(self, gateway):
        key = gateway.key("reader", "tool:read")
        names = [t["name"] for t in gateway.get("/v1/tools", key).json()["results"]]
        assert names == [
            "consultar_cliente", "consultar_entrega", "consultar_pedido", "sem_endereco",
            "so_de_cliente", "solicitar_devolucao", "solicitar_troca",
        ]  # fmt: skip
        named = gateway.get("/v1/tools?agent_id=caixa", key).json()["results"]
        assert [t["name"] for t in named] == ["consultar_entrega"]
        assert named[0]["allowed_agents"] == ["caixa"]

    def test_tools__of_another_tenant__are_its_own(self, gateway):
        key = gateway.key("other", *INVOKE, tenant=gateway.world.other, agent="loja")
        shown = gateway.get("/v1/tools", key).json()["results"]
        assert [t["name"] for t in shown] == ["consultar_pedido", "so_do_outro"]
        assert shown[0]["description"] == "Of the other"

    @pytest.mark.parametrize(
        ("key", "status"), [("", 401), ("ak_00000000_x", 401), ("unscoped", 403)]
    )
    def test_list__without_the_right__is_refused(self, gateway, key, status):
        text = gateway.key("unscoped", "message:write") if key == "unscoped" else key
        headers = {"authorization": f"Bearer {text}"} if text else {}
        answer = Client().get("/v1/tools", headers=headers)
        assert answer.status_code == status
        assert ("WWW-Authenticate" in answer.headers) is (status == 401)


class TestInvoke:
    def test_read__is_answered_with_what_the_server_holds(self, gateway):
        answer = gateway.invoke("consultar_pedido", {"order_id": ORDER})
        body = answer.json()
        assert answer.status_code == 200, body
        assert (body["ok"], body["error"], body["tool_name"]) == (True, None, "consultar_pedido")
        assert body["data"]["order_id"] == ORDER
        assert body["metadata"]["server"] == "shop"
        assert body["metadata"]["agent_id"] == "loja"
        assert body["cache"] == {"hit": False, "key": None, "ttl_seconds": 0}
        assert len(body["version"]) == 64

    def test_read__that_fails_at_the_server__is_an_answer(self, gateway):
        body = gateway.invoke("consultar_pedido", {"order_id": "1"})
        assert body.status_code == 200
        assert (body.json()["ok"], body.json()["data"]) == (False, None)
        assert "não encontrado" in body.json()["error"]

    def test_row__tells_who_asked_what_and_how_it_ended(self, gateway):
        gateway.invoke(
            "consultar_pedido", {"order_id": ORDER}, channel="web",
            metadata={"request_id": "r-1", "trace_id": "t-1"},
        )  # fmt: skip
        (row,) = rows(gateway.world.acme)
        assert row.caller.startswith("key:")
        assert (row.tool, row.agent, row.channel, row.status) == (
            "consultar_pedido", "loja", "web", "ok",
        )  # fmt: skip
        assert (row.request_id, row.trace_id) == ("r-1", "t-1")
        assert row.arguments == f'{{"order_id":"{ORDER}"}}'
        events = [event["event"] for event in json.loads(row.events)]
        assert events == [
            "mcp.tool.requested", "mcp.tool.authorized", "mcp.tool.started", "mcp.tool.completed",
        ]  # fmt: skip
        assert ORDER not in row.answer, "the stored answer is sealed"

    def test_name__in_the_body__must_be_the_paths(self, gateway):
        for name in ("solicitar_troca", "", None):
            answer = gateway.invoke("consultar_pedido", {"order_id": ORDER}, tool_name=name)
            assert answer.status_code == 422
            assert answer.json()["errors"][0]["field"] == "tool_name"

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({"arguments": []}, "arguments"),
            ({"arguments": "x"}, "arguments"),
            ({"channel": "telex"}, "channel"),
            ({"channel": 1}, "channel"),
            ({"business_context": {"customer_key": True}}, "business_context.customer_key"),
            ({"metadata": {"cache_bypass": "yes"}}, "metadata.cache_bypass"),
            ({"metadata": {"request_id": 7}}, "metadata.request_id"),
            ({"confirmation": {"contract": "x"}}, "confirmation.contract"),
            ({"agent_id": ["loja"]}, "agent_id"),
            ({"arguments": {}}, "arguments.order_id"),
            ({"arguments": {"order_id": {"a": 1}}}, "arguments.order_id"),
        ],
    )
    def test_field__that_is_wrong__is_named(self, gateway, body, field):
        answer = gateway.invoke("consultar_pedido", **{"arguments": {"order_id": ORDER}, **body})
        assert answer.status_code == 422, answer.content
        assert answer["content-type"] == "application/problem+json"
        assert answer.json()["errors"][0]["field"] == field
        assert gateway.sent("nothing") == 0

    def test_read__of_another_customer__is_refused(self, gateway):
        """A key without identity:assert cannot name a customer, in arguments or in the context."""
        answer = gateway.invoke("consultar_pedido", {"order_id": ORDER, "customer_id": "C-1"})
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["field"] == "arguments.customer_id"

    def test_context__of_a_key_that_may_name_customers__fills_the_argument(self, gateway):
        key = gateway.key("crm", *INVOKE, "identity:assert", agent="loja")
        (customer,) = gateway.shop.rows(
            "SELECT customer_id FROM pedidos WHERE order_id = ?", ORDER
        )[0]
        for named, ok in ((customer, True), ("nobody", False)):
            body = gateway.invoke(
                "consultar_pedido", {"order_id": ORDER}, key,
                business_context={"customer_key": named},
            ).json()  # fmt: skip
            assert body["ok"] is ok, body

    def test_business_key__that_must_be_known__is_named(self, gateway):
        answer = gateway.invoke("so_de_cliente", {"order_id": ORDER})
        assert (answer.status_code, answer.json()["code"]) == (422, "MISSING_BUSINESS_KEYS")
        assert answer.json()["missing_business_keys"] == ["customer_key"]

    @pytest.mark.parametrize("tool", ["so_do_outro", "desligada", "nothing"])
    def test_tool__that_is_not_there__is_absent(self, gateway, tool):
        absent = gateway.invoke("nothing_at_all", {})
        answer = gateway.invoke(tool, {"order_id": ORDER})
        assert (answer.status_code, answer.content) == (404, absent.content)

    def test_tool__of_another_agent__is_denied_and_noted(self, gateway):
        answer = gateway.invoke("consultar_entrega", {"order_id": ORDER}, channel="voice")
        assert (answer.status_code, answer.json()["code"]) == (403, "AGENT_NOT_ALLOWED")
        (row,) = rows(gateway.world.acme)
        assert (row.status, row.reason) == ("denied", "agent_not_allowed")
        assert '"mcp.tool.denied"' in row.events

    def test_agent__other_than_the_keys__is_refused(self, gateway):
        answer = gateway.invoke("consultar_pedido", {"order_id": ORDER}, agent_id="caixa")
        assert (answer.status_code, answer.json()["code"]) == (403, "AGENT_NOT_ALLOWED")
        assert answer.json()["errors"][0]["field"] == "agent_id"

    def test_agent__of_a_key_bound_to_none__must_be_named_by_who_may(self, gateway):
        call = ("consultar_entrega", {"order_id": ORDER})
        plain = gateway.key("plain", *INVOKE)
        assert gateway.invoke(*call, plain).status_code == 422
        named = gateway.invoke(*call, plain, agent_id="caixa", channel="voice")
        assert (named.status_code, named.json()["code"]) == (403, "MISSING_SCOPE")
        wide = gateway.key("wide", *INVOKE, "agent:assert")
        assert gateway.invoke(*call, wide, agent_id="caixa", channel="voice").status_code == 200
        assert gateway.invoke(*call, wide, agent_id="outra", channel="voice").status_code == 404

    @pytest.mark.parametrize("channel", [None, "", "web"])
    def test_channel__missing_or_another__is_denied(self, gateway, channel):
        key = gateway.key("caixa", *INVOKE, agent="caixa")
        answer = gateway.invoke("consultar_entrega", {"order_id": ORDER}, key, channel=channel)
        assert (answer.status_code, answer.json()["code"]) == (403, "CHANNEL_NOT_ALLOWED")
        answer = gateway.invoke("consultar_entrega", {"order_id": ORDER}, key, channel="voice")
        assert answer.status_code == 200

    def test_server__without_an_address__is_not_available(self, gateway):
        key = gateway.key("solta", *INVOKE, agent="solta")
        answer = gateway.invoke("sem_endereco", {"order_id": ORDER}, key)
        assert (answer.status_code, answer.json()["code"]) == (503, "SERVER_UNAVAILABLE")

    def test_invoke__with_the_scope_to_read_only__is_refused(self, gateway):
        key = gateway.key("readonly", "tool:read", agent="loja")
        assert gateway.invoke("consultar_pedido", {"order_id": ORDER}, key).status_code == 403


class TestCache:
    def ask(self, gateway, key="", **metadata):
        return gateway.invoke("consultar_cliente", {"order_id": ORDER}, key, metadata=metadata)

    def test_read__that_may_be_kept__is_answered_from_the_cache(self, gateway):
        sent = gateway.sent("consultar_pedido")
        first, second = self.ask(gateway).json(), self.ask(gateway).json()
        assert (first["cache"]["hit"], second["cache"]["hit"]) == (False, True)
        assert first["cache"]["ttl_seconds"] == 300
        assert second["data"] == first["data"]
        assert second["metadata"]["source"] == "cache"
        assert gateway.sent("consultar_pedido") == sent + 1
        noted = [row.events for row in rows(gateway.world.acme)]
        assert "mcp.cache.miss" in noted[0]
        assert "mcp.cache.hit" in noted[1]

    def test_cache__bypassed_or_of_another_key__is_not_read(self, gateway):
        self.ask(gateway)
        sent = gateway.sent("consultar_pedido")
        assert self.ask(gateway, cache_bypass=True).json()["cache"]["hit"] is False
        other = gateway.key("another", *INVOKE, agent="loja")
        assert self.ask(gateway, other).json()["cache"]["hit"] is False
        assert gateway.sent("consultar_pedido") == sent + 2


class TestOnce:
    def test_request_id__again__gets_the_stored_answer_and_sends_nothing(self, gateway):
        order = gateway.shop.rows("SELECT order_id FROM pedidos WHERE status = 'ENTREGUE'")[0][0]
        call = ("solicitar_devolucao", {"order_id": order, "reason": "defeito"})
        before = gateway.opened(order)
        first = gateway.invoke(*call, metadata={"request_id": "once"}).json()
        sent = gateway.sent("solicitar_devolucao")
        again = gateway.invoke(*call, metadata={"request_id": "once"}).json()
        assert first["ok"] is True
        assert again["data"] == first["data"]
        assert again["metadata"]["replayed"] is True
        assert gateway.opened(order) == before + 1
        assert gateway.sent("solicitar_devolucao") == sent

    def test_request_id__with_another_body__is_a_conflict(self, gateway):
        gateway.invoke("consultar_pedido", {"order_id": ORDER}, metadata={"request_id": "r"})
        answer = gateway.invoke("consultar_pedido", {"order_id": "2"}, metadata={"request_id": "r"})
        assert (answer.status_code, answer.json()["code"]) == (409, "REQUEST_ID_REUSED")

    def test_request_id__of_two_keys__are_two_requests(self, gateway):
        second = gateway.key("second", *INVOKE, agent="loja")
        for key in (gateway.loja, second):
            body = gateway.invoke(
                "consultar_pedido", {"order_id": ORDER}, key, metadata={"request_id": "same"}
            ).json()
            assert "replayed" not in body["metadata"]
        assert len(rows(gateway.world.acme, request_id="same")) == 2

    def test_request__that_was_refused__may_be_corrected_under_its_id(self, gateway):
        metadata = {"request_id": "fix"}
        assert gateway.invoke("consultar_pedido", {}, metadata=metadata).status_code == 422
        answer = gateway.invoke("consultar_pedido", {"order_id": ORDER}, metadata=metadata)
        assert answer.status_code == 200
        assert [row.status for row in rows(gateway.world.acme)] == ["denied", "ok"]

    def test_request__that_is_running__is_not_sent_a_second_time(self, gateway):
        self._left_behind(gateway, started=True, seconds=60)
        answer = gateway.invoke(
            "solicitar_devolucao", {"order_id": ORDER, "reason": "defeito"},
            metadata={"request_id": "left"},
        )  # fmt: skip
        assert (answer.status_code, answer.json()["code"]) == (409, "REQUEST_RUNNING")
        assert answer.headers["Retry-After"] == "1"

    def test_action__that_was_sent_by_a_lost_process__is_unknown_for_good(self, gateway):
        self._left_behind(gateway, started=True, seconds=-1)
        call = ("solicitar_devolucao", {"order_id": ORDER, "reason": "defeito"})
        sent = gateway.sent("solicitar_devolucao")
        for replayed in (None, True):
            body = gateway.invoke(*call, metadata={"request_id": "left"}).json()
            assert (body["ok"], body["metadata"]["status"]) == (False, "unknown")
            assert body["metadata"].get("replayed") is replayed
        assert gateway.sent("solicitar_devolucao") == sent
        assert rows(gateway.world.acme)[0].status == "unknown"

    def test_action__that_a_lost_process_had_not_sent__is_carried_out(self, gateway):
        order = gateway.shop.rows("SELECT order_id FROM pedidos WHERE status = 'ENTREGUE'")[0][0]
        self._left_behind(gateway, started=False, seconds=-1, order=order)
        body = gateway.invoke(
            "solicitar_devolucao", {"order_id": order, "reason": "defeito"},
            metadata={"request_id": "left"},
        ).json()  # fmt: skip
        assert body["ok"] is True, body

    def _left_behind(self, gateway, *, started, seconds, order=ORDER):
        """A row as a process leaves it that died after (before) sending."""
        body = {
            "tool_name": "solicitar_devolucao",
            "arguments": {"order_id": order, "reason": "defeito"},
            "metadata": {"request_id": "left"},
        }
        asked = asked_read(body, tool="solicitar_devolucao", trace_id="")
        with tenant_transaction(gateway.world.acme):
            ToolInvocation.objects.create(
                caller=f"key:{gateway.loja[3:11]}", agent="loja", tool=asked.tool, server="shop",
                door="rest", request_id="left", body_digest=asked.digest, environment="production",
                release=Release.objects.get(), lease_until=timezone.now() + timedelta(seconds=seconds),
                started_at=timezone.now() if started else None, call_key="k" if started else "",
            )  # fmt: skip


class TestConfirmed:
    def question(self, gateway, order, key=""):
        answer = gateway.invoke("solicitar_troca", {"order_id": order, "reason": "defeito"}, key)
        assert (answer.status_code, answer.json()["code"]) == (409, "CONFIRMATION_REQUIRED")
        return answer.json()["confirmation"]

    def yes(self, gateway, order, said, key="", reason="defeito", **body):
        said = {name: said[name] for name in ("id", "contract", "arguments_sha256") if name in said}
        return gateway.invoke(
            "solicitar_troca", {"order_id": order, "reason": reason}, key or gateway.confirmer,
            confirmation=said, **body,
        )  # fmt: skip

    @pytest.fixture
    def order(self, gateway):
        sql = "SELECT order_id FROM pedidos WHERE status IN ('ENTREGUE', 'EM_TRANSITO')"
        return gateway.shop.rows(sql)[0][0]

    def test_action__without_a_yes__says_what_would_run_and_sends_nothing(self, gateway, order):
        before = gateway.opened(order)
        said = self.question(gateway, order, gateway.confirmer)
        assert said["tool"] == "solicitar_troca"
        assert said["arguments"] == {"order_id": order, "reason": "defeito"}
        assert len(said["contract"]) == len(said["arguments_sha256"]) == 64
        assert gateway.opened(order) == before

    def test_action__with_the_yes_to_exactly_it__runs_once(self, gateway, order):
        before = gateway.opened(order)
        said = self.question(gateway, order, gateway.confirmer)
        done = self.yes(gateway, order, said, metadata={"request_id": "y"})
        assert done.json()["ok"] is True, done.json()
        replay = self.yes(gateway, order, said, metadata={"request_id": "y"})
        assert replay.json()["data"] == done.json()["data"]
        used = self.yes(gateway, order, said, metadata={"request_id": "y2"})
        assert (used.status_code, used.json()["answer"]) == (409, "used")
        assert gateway.opened(order) == before + 1

    def test_yes__without_the_questions_id__is_for_the_newest(self, gateway, order):
        said = self.question(gateway, order, gateway.confirmer)
        del said["id"]
        assert self.yes(gateway, order, said).json()["ok"] is True

    def test_yes__to_another_call__is_none(self, gateway, order):
        before = gateway.opened(order)
        said = self.question(gateway, order, gateway.confirmer)
        answer = self.yes(gateway, order, said, reason="arrependimento")
        assert (answer.status_code, answer.json()["answer"]) == (409, "mismatch")
        assert answer.json()["confirmation"]["arguments"]["reason"] == "arrependimento"
        assert gateway.opened(order) == before

    @pytest.mark.parametrize("named", [True, False])
    def test_yes__that_nobody_was_asked_for__is_none(self, gateway, order, named):
        """The hashes can be computed by anybody: without a recorded question they are worth nothing."""
        before = gateway.opened(order)
        said = self.question(gateway, order, gateway.key("asker", *INVOKE, agent="loja"))
        if not named:
            del said["id"]
        answer = self.yes(gateway, order, said)
        assert (answer.status_code, answer.json()["code"]) == (409, "CONFIRMATION_REQUIRED")
        assert gateway.opened(order) == before

    def test_yes__of_a_key_that_may_not__is_refused(self, gateway, order):
        said = self.question(gateway, order)
        answer = self.yes(gateway, order, said, key=gateway.loja)
        assert (answer.status_code, answer.json()["code"]) == (403, "MISSING_SCOPE")

    def test_yes__that_came_too_late__is_none(self, gateway, order):
        said = self.question(gateway, order, gateway.confirmer)
        with tenant_transaction(gateway.world.acme):
            ToolInvocation.objects.filter(pk=said["id"]).update(expires_at=timezone.now())
        answer = self.yes(gateway, order, said)
        assert (answer.status_code, answer.json()["answer"]) == (409, "expired")

    def test_argument__called_confirmed__confirms_nothing(self, gateway, order):
        for value in (True, "true"):
            answer = gateway.invoke(
                "solicitar_troca", {"order_id": order, "reason": "defeito", "confirmed": value},
                gateway.confirmer,
            )  # fmt: skip
            assert answer.json()["code"] == "CONFIRMATION_REQUIRED"


class TestDiscovery:
    def test_servers__are_told_without_their_addresses(self, gateway):
        answer = gateway.get("/v1/discovery/servers")
        nowhere, shop_ = answer.json()["results"]
        assert (nowhere["name"], nowhere["bound"]) == ("nowhere", True)
        assert (shop_["name"], shop_["bound"], shop_["transport"]) == (
            "shop",
            True,
            "streamable_http",
        )
        assert "127.0.0.1" not in answer.content.decode()

    def sync(self, key, **body):
        return Client().post(
            "/v1/discovery/sync", body, content_type="application/json",
            headers={"authorization": f"Bearer {key}"},
        )  # fmt: skip

    def test_sync__finds_what_the_server_lists_and_switches_nothing_on(self, gateway):
        key = gateway.key("builder", "discovery:sync")
        before = gateway.get("/v1/tools").json()
        failed, result = self.sync(key).json()["results"]
        assert (failed["server"], failed["event"]) == ("nowhere", "mcp.discovery.failed")
        assert (result["server"], result["state"], result["tools"]) == ("shop", "listed", 4)
        assert result["event"] == "mcp.discovery.completed"
        assert gateway.get("/v1/tools").json() == before
        shown = gateway.get("/v1/discovery/servers").json()["results"][1]
        assert (shown["tools"], shown["error"]) == (4, None)

    def test_sync__is_in_the_trail(self, gateway):
        self.sync(gateway.key("builder", "discovery:sync"), server="shop")
        with tenant_transaction(gateway.world.acme):
            entry = AuditEntry.objects.get(action="mcp.discovery.completed")
        assert entry.entity == "tool_server:shop"

    def test_sync__of_an_unknown_server_or_without_the_scope__is_refused(self, gateway):
        key = gateway.key("builder", "discovery:sync")
        assert self.sync(key, server="nothing").status_code == 404
        assert self.sync(gateway.loja).status_code == 403


class TestMcpPages:
    def test_pages__hold_every_tool_once_and_end(self, gateway, rf, monkeypatch):
        monkeypatch.setattr(mcp_server, "PAGE", 2)
        request = rf.post("/mcp", HTTP_AUTHORIZATION=f"Bearer {gateway.loja}")
        caller = mcp_server.McpCaller(principal_of(request))
        found, cursor, pages = [], "", 0
        while pages == 0 or cursor:
            page = async_to_sync(mcp_server.tools_page)(caller, cursor)
            found += [tool.name for tool in page.tools]
            cursor, pages = page.next_cursor or "", pages + 1
        assert found == sorted(found)
        assert len(found) == len(set(found)) == 5
        assert pages == 3
