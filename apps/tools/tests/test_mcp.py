"""MCP as servers out there speak it: older, sloppy, restarted, replaced."""

import json
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx2
import pytest
from mcp.server import MCPServer

from apps.runtime.ports import ToolRequest, ToolUnavailable
from apps.tools.config import ToolConfig, ToolServerConfig
from apps.tools.tests.fake_mcp import OUTPUT, REMOTE, TOOL, Answer, FakeMcp, rpc_error, stream, text
from apps.tools.tests.world import caller_of, release, turn
from apps.tools.transports import connections, mcp
from apps.tools.transports.mcp import McpTransport

ERAS = ["2026", "2025"]


@pytest.fixture
def connect(monkeypatch):
    """Return a function that puts a transport in front of a server without a socket."""

    def made(server) -> McpTransport:
        def client(allowed, auth) -> httpx2.AsyncClient:
            transport = (
                server
                if isinstance(server, httpx2.AsyncBaseTransport)
                else httpx2.MockTransport(server)
            )
            return httpx2.AsyncClient(transport=transport, auth=auth)

        monkeypatch.setattr(mcp, "client_create", client)
        return McpTransport()

    return made


async def ask(transport: McpTransport, arguments=None, key="key-1", **changed):
    remote = replace(REMOTE, **changed)
    return await transport.call(remote, arguments or {}, idempotency_key=key)


# -- the wire ----------------------------------------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
async def test_call__either_era__negotiates_once_and_sends_key_and_credential(connect, era):
    server = FakeMcp(text('{"saldo": 9007199254740993}'), era=era)
    transport = connect(server)

    answers = [await ask(transport, {"conta": "1"}) for _ in range(3)]

    assert [answer.result for answer in answers] == [{"saldo": 9007199254740993}] * 3
    assert (server.count("server/discover"), server.count("tools/list")) == (1, 1)
    assert server.count("initialize") == (1 if era == "2025" else 0)
    request = server.requests[-1][1]
    assert request.headers["idempotency-key"] == "key-1"
    assert request.headers["authorization"] == "Bearer tok"
    params = json.loads(request.content)["params"]
    assert (params["name"], params["arguments"]) == ("saldo", {"conta": "1"})
    assert params["_meta"]["idempotency_key"] == "key-1"


async def test_call__answer_as_event_stream__notifications_are_skipped_and_a_ping_is_answered(
    connect,
):
    result = {"jsonrpc": "2.0", "id": 9, "result": text("ok")}
    progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}
    ping = {"jsonrpc": "2.0", "id": "p1", "method": "ping"}
    ask_user = {"jsonrpc": "2.0", "id": "e1", "method": "elicitation/create", "params": {}}
    server = FakeMcp(lambda params: stream(progress, ping, ask_user, result), era="2025")

    answer = await ask(connect(server))

    assert answer.result == "ok"
    replies = [json.loads(r.content) for m, r in server.requests if m == "reply"]
    assert replies[0] == {"jsonrpc": "2.0", "id": "p1", "result": {}}
    assert (replies[1]["id"], replies[1]["error"]["code"]) == ("e1", -32601)


async def test_call__stream_ends_without_the_answer__counts_as_sent(connect):
    note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}
    server = FakeMcp(lambda params: stream(note), era="2025")

    with pytest.raises(ToolUnavailable) as broken:
        await ask(connect(server))

    assert broken.value.sent is True


@asynccontextmanager
async def sdk_server_of_2025():
    """The SDK's own server with the handshake, sessions and event streams of 2025."""
    server: MCPServer = MCPServer("old", log_level="ERROR")

    @server.tool()
    async def saldo(conta: str) -> int:
        """Saldo."""
        return 9007199254740993

    app = server.streamable_http_app(host="crm.test")

    async def old(scope, receive, send):
        headers = dict(scope["headers"])
        if headers.get(b"mcp-protocol-version", b"").startswith(b"2026"):
            await send({"type": "http.response.start", "status": 405, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        await app(scope, receive, send)

    async with server.session_manager.run():
        yield httpx2.ASGITransport(app=old)


async def test_call__real_server_of_2025__works_with_its_session_and_streams(connect):
    async with sdk_server_of_2025() as old:
        transport = connect(old)

        answers = [await ask(transport, {"conta": "1"}) for _ in range(2)]
        tools = await transport.list_tools(REMOTE)
        await transport.aclose()

    assert [answer.result for answer in answers] == [9007199254740993] * 2
    assert [tool["name"] for tool in tools] == ["saldo"]


# -- restarted and replaced servers ------------------------------------------------------------


async def test_call__server_forgot_the_session__fails_unsent_and_the_next_call_opens_anew(connect):
    server = FakeMcp(text("ok"), era="2025")
    transport = connect(server)
    await ask(transport)
    server.forget_sessions()

    with pytest.raises(ToolUnavailable) as gone:
        await ask(transport)

    assert gone.value.sent is False
    assert (await ask(transport)).ok
    assert (server.count("initialize"), server.count("tools/list")) == (2, 2)


@pytest.mark.parametrize(
    "response",
    [
        rpc_error(-32600, "Session not found", status=404),
        rpc_error(-32600, "Session terminated", status=404),
        rpc_error(-32000, "Bad Request: No valid session ID provided", status=400),
        rpc_error(-32600, "Session not found"),
        httpx2.Response(404, text="not found"),
    ],
    ids=["404", "terminated", "400", "200", "no-body"],
)
async def test_call__session_lost_and_call_may_be_repeated__one_new_session_and_one_repeat(
    connect, response
):
    answers: list[Answer] = [text("1"), response, text("2")]
    server = FakeMcp(lambda params: answers.pop(0), era="2025")
    transport = connect(server)
    await ask(transport, repeatable=True)

    answer = await ask(transport, repeatable=True)

    assert (answer.ok, answer.result) == (True, "2")
    assert (server.count("initialize"), server.count("tools/call")) == (2, 3)


async def test_call__server_forgets_every_session__ends_after_one_repeat(connect):
    server = FakeMcp(lambda params: httpx2.Response(404), era="2025")
    transport = connect(server)

    with pytest.raises(ToolUnavailable) as gone:
        await ask(transport, repeatable=True)

    assert (gone.value.sent, gone.value.code) == (False, "broken")
    assert server.count("tools/call") == 2


async def test_caller__server_forgot_the_session__action_is_done_once_in_the_same_call(connect):
    done = []

    def act(params):
        done.append(params["arguments"])
        return text("feito")

    server = FakeMcp(act, era="2025")
    transport = connect(server)
    await ask(transport)
    server.forget_sessions()
    done.clear()
    world = release(
        tools={"saldo": ToolConfig(mcp_server="crm", tool_type="action")},
        tool_server={"crm": ToolServerConfig(endpoint="crm_url")},
    )
    bindings = {"address:crm_url": REMOTE.address}

    (call,) = await caller_of(transport).call(
        turn(release=world, bindings=bindings), [ToolRequest("saldo")]
    )

    assert (call.status, call.result, len(done)) == ("ok", "feito", 1)


async def test_call__server_replaced_by_an_older_one__opens_anew(connect):
    server = FakeMcp(text("ok"), era="2026")
    transport = connect(server)
    await ask(transport)
    server.era = "2025"

    with pytest.raises(ToolUnavailable) as refused:
        await ask(transport)

    assert refused.value.sent is False
    assert (await ask(transport)).ok


async def test_call__tool_now_declares_another_output__is_listed_again_and_accepted(connect):
    server = FakeMcp(
        text("{}", structuredContent={"saldo": 1}), output={"type": "object", "required": ["x"]}
    )
    transport = connect(server)
    assert not (await ask(transport)).ok
    server.output = OUTPUT

    answer = await ask(transport)

    assert (answer.ok, answer.result) == (True, {"saldo": 1})


async def test_call__server_wants_mirrored_headers__is_listed_again_and_asked_once_more(connect):
    answers: list[Answer] = [rpc_error(-32020, "header mismatch", status=400), text("ok")]
    server = FakeMcp(lambda params: answers.pop(0))

    answer = await ask(connect(server))

    assert answer.result == "ok"
    assert (server.count("tools/call"), server.count("tools/list")) == (2, 2)


# -- the same name on two servers --------------------------------------------------------------


async def test_caller__two_servers_with_a_tool_of_one_name__each_call_goes_to_its_own(connect):
    servers = {host: FakeMcp(text(f"sent by {host}")) for host in ("crm.test", "marketing.test")}

    async def by_host(request: httpx2.Request) -> httpx2.Response:
        return await servers[request.url.host](request)

    world = release(
        tools={
            "crm__send_email": ToolConfig(mcp_server="crm", remote_name="send_email"),
            "marketing__send_email": ToolConfig(mcp_server="marketing", remote_name="send_email"),
        },
        tool_server={
            "crm": ToolServerConfig(endpoint="crm_url"),
            "marketing": ToolServerConfig(endpoint="marketing_url"),
        },
    )
    bindings = {
        "address:crm_url": "http://crm.test/mcp",
        "address:marketing_url": "http://marketing.test/mcp",
    }
    requests = [ToolRequest("marketing__send_email"), ToolRequest("crm__send_email")]

    done = await caller_of(connect(by_host)).call(turn(release=world, bindings=bindings), requests)

    assert [(call.server, call.result) for call in done] == [
        ("marketing", "sent by marketing.test"),
        ("crm", "sent by crm.test"),
    ]


# -- lists -------------------------------------------------------------------------------------


def pages_of(total: int, size: int):
    names = [f"t{number}" for number in range(total)]

    def page(cursor: str | None):
        start = int(cursor or 0)
        more = {"nextCursor": str(start + size)} if start + size < total else {}
        return {"tools": [{**TOOL, "name": n} for n in names[start : start + size]], **more}

    return page


async def test_list__several_pages__every_tool_is_there(connect):
    server = FakeMcp(text("ok"), pages=pages_of(101, 50))

    assert len(await connect(server).list_tools(REMOTE)) == 101


@pytest.mark.parametrize(
    ("pages", "asked"),
    [
        (lambda cursor: {"tools": [TOOL], "nextCursor": "same"}, 2),
        (lambda cursor: {"tools": [TOOL], "nextCursor": f"{cursor}x"}, mcp.MAX_PAGES),
    ],
    ids=["stuck", "endless"],
)
async def test_list__cursor_that_never_ends__is_an_error_after_a_bound(connect, pages, asked):
    server = FakeMcp(text("ok"), pages=pages)

    with pytest.raises(ToolUnavailable, match="tool list") as failed:
        await connect(server).list_tools(REMOTE)

    assert (failed.value.sent, failed.value.code) == (False, "broken")
    assert server.count("tools/list") == asked


async def test_list__everything_a_model_may_see__is_there_and_absent_fields_are_left_out(connect):
    full = {
        **TOOL, "title": "Saldo", "description": "Diz o saldo.", "outputSchema": OUTPUT,
        "annotations": {"readOnlyHint": True, "title": "Ler saldo"},
    }  # fmt: skip
    bare = {**TOOL, "name": "outro"}
    server = FakeMcp(text("ok"), pages=lambda cursor: {"tools": [full, bare]})

    first, second = await connect(server).list_tools(REMOTE)

    assert first == {
        "name": "saldo", "title": "Saldo", "description": "Diz o saldo.",
        "input_schema": {"type": "object"}, "output_schema": OUTPUT,
        "annotations": {"readOnlyHint": True, "title": "Ler saldo"},
    }  # fmt: skip
    assert second == {"name": "outro", "description": "", "input_schema": {"type": "object"}}


# -- results -----------------------------------------------------------------------------------


async def test_call__error_with_structured_content__the_error_wins(connect):
    server = FakeMcp(text("conexão recusada", isError=True, structuredContent={"saldo": 42}))

    answer = await ask(connect(server))

    assert (answer.ok, answer.result, answer.error) == (False, None, "conexão recusada")


@pytest.mark.parametrize(
    "result",
    [
        text("missing required parameter"),
        text("{}", structuredContent={"saldo": "quarenta"}),
        {"content": "texto"},
        {"isError": False},
        {"content": [{"type": "hologram"}]},
    ],
)
async def test_call__answer_not_as_declared__is_no_success_and_unconfirmed(connect, result):
    answer = await ask(connect(FakeMcp(result, output=OUTPUT)))

    assert not answer.ok
    assert answer.metadata == {"unconfirmed": True}


async def test_call__image_and_text__text_is_kept_and_bytes_are_not(connect):
    image = {"type": "image", "data": "aGVsbG8gd29ybGQ=", "mimeType": "image/png"}
    server = FakeMcp({"content": [image, {"type": "text", "text": "ok"}]})

    answer = await ask(connect(server))

    assert answer.result == "[image image/png, 11 bytes]\nok"
    assert answer.metadata["attachments"][0]["bytes"] == 11
    assert "aGVsbG8" not in repr(answer)


@pytest.mark.parametrize(
    ("result", "value"),
    [
        (text('{"a": 1}'), {"a": 1}),
        (text('[{"a": 1}]'), [{"a": 1}]),
        (text("[1, 2]"), [1, 2]),
        (text("3000131180"), "3000131180"),
        (text("{quebrado"), "{quebrado"),
        (text('{"ok": true, "result": {"a": 1}, "error": null, "metadata": {}}'), {"a": 1}),
        (text("x", structuredContent={"result": [1, 2]}), [1, 2]),
        (text("x", structuredContent={"result": [{"a": 1}]}), [{"a": 1}]),
        (text('[{"ok": true, "data": [1]}]'), [1]),
        ({"content": []}, ""),
    ],
)  # fmt: skip
async def test_call__result_in_any_dress__is_unwrapped(connect, result, value):
    answer = await ask(connect(FakeMcp(result)))

    assert (answer.ok, answer.result) == (True, value)


@pytest.mark.parametrize(
    "body", ['{"ok": false, "error": "sem saldo"}', '{"ok": false, "message": "sem saldo"}']
)
async def test_call__success_flag_over_a_failure__is_a_failure(connect, body):
    answer = await ask(connect(FakeMcp(text(body))))

    assert (answer.ok, answer.error) == (False, "sem saldo")


# -- refusals and noise ------------------------------------------------------------------------


@pytest.mark.parametrize("status", [403, 413, 429])
async def test_call__server_refuses_for_good__is_an_answer_and_not_an_outage(connect, status):
    answer = await ask(connect(FakeMcp(lambda params: httpx2.Response(status))))

    assert not answer.ok
    assert str(status) in answer.error
    assert "tok" not in answer.error.split()


async def test_call__protocol_error_of_the_tool__is_an_answer(connect):
    answer = await ask(connect(FakeMcp(lambda params: rpc_error(-32602, "conta inválida"))))

    assert (answer.ok, answer.error) == (False, "conta inválida")


@pytest.mark.parametrize(
    ("response", "sent"),
    [
        (httpx2.Response(500), True),
        (httpx2.Response(502, text="<html>"), True),
        (httpx2.Response(408), True),
        (httpx2.Response(202), True),
        (httpx2.Response(200, text="<html>", headers={"content-type": "text/html"}), True),
        (httpx2.Response(200, text="{", headers={"content-type": "application/json"}), True),
        (httpx2.Response(200, json=[1]), True),
        (httpx2.Response(200, text='{"result": NaN}', headers={"content-type": "application/json"}), True),
        (httpx2.Response(307, headers={"location": "http://169.254.169.254/"}), False),
        (httpx2.Response(404), False),
        (httpx2.Response(405), False),
    ],
)  # fmt: skip
async def test_call__something_else_than_an_answer__says_whether_the_tool_may_have_run(
    connect, response, sent
):
    server = FakeMcp(lambda params: response)

    with pytest.raises(ToolUnavailable) as failed:
        await ask(connect(server))

    assert failed.value.sent is sent
    assert {request.url.host for _, request in server.requests} == {"crm.test"}


async def test_call__answer_longer_than_the_bound__is_not_read_on(connect, monkeypatch):
    monkeypatch.setattr(connections, "MAX_ANSWER_BYTES", 1000)
    server = FakeMcp(text("x" * 2000))

    answer = await ask(connect(server))

    assert (answer.ok, answer.metadata) == (False, {"unconfirmed": True})


@pytest.mark.parametrize("status", [401, 404, 500])
async def test_call__server_that_never_lets_us_in__nothing_counts_as_sent(connect, status):
    def closed(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status)

    transport = connect(closed)

    with pytest.raises(ToolUnavailable) as failed:
        await ask(transport)

    assert failed.value.sent is False
    assert (failed.value.code == "needs_sign_in") is (status == 401)


async def test_connections__more_than_are_kept__the_idle_oldest_is_closed():
    closed = []

    class Connection:
        def __init__(self, remote) -> None:
            self.address = remote.address

        async def aclose(self) -> None:
            closed.append(self.address)

    def at(address: str):
        return replace(REMOTE, address=address)

    kept = connections.Connections(Connection, max_kept=2)
    with kept.using(at("http://a")) as first:
        for address in ("http://b", "http://c"):
            with kept.using(at(address)):
                pass
        with kept.using(at("http://a/")) as again:
            assert again is first
    await kept.aclose()

    assert closed[0] == "http://b"
    assert sorted(closed) == ["http://a", "http://b", "http://c"]


async def test_connections__strict_and_all_in_use__one_more_is_refused():
    class Connection:
        def __init__(self, remote) -> None:
            pass

        async def aclose(self) -> None:
            pass

    kept = connections.Connections(Connection, max_kept=1, strict=True)
    other = replace(REMOTE, tenant="2")
    with kept.using(REMOTE), pytest.raises(ToolUnavailable) as full, kept.using(other):
        pass
    with kept.using(other):
        pass
    await kept.aclose()

    assert full.value.sent is False


@pytest.mark.parametrize(
    "other",
    [{"tenant": "2"}, {"principal": "user:2"}, {"credential": "else"}, {"server": "b"},
     {"auth": "oauth_client"}, {"address": "http://crm.test/other"}],
)  # fmt: skip
async def test_connections__of_another_caller__are_never_shared(other):
    class Connection:
        def __init__(self, remote) -> None:
            pass

        async def aclose(self) -> None:
            pass

    kept = connections.Connections(Connection)
    with kept.using(REMOTE) as mine, kept.using(replace(REMOTE, **other)) as theirs:
        assert mine is not theirs
    await kept.aclose()
