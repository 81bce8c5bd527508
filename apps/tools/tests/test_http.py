"""The plain contract with servers that answer oddly."""

import httpx2
import pytest

from apps.runtime.ports import RemoteTool, ToolUnavailable
from apps.tools.transports import http
from apps.tools.transports.http import HttpTransport

REMOTE = RemoteTool(
    server="crm", transport="http", address="http://crm.test/mcp/", name="saldo", credential="tok"
)


@pytest.fixture
def requests() -> list[httpx2.Request]:
    """What the server was sent."""
    return []


@pytest.fixture
def connect(monkeypatch, requests):
    """Return a function that puts a transport in front of ``handler``, a response or a function."""

    def made(handler) -> HttpTransport:
        def answer(request: httpx2.Request):
            requests.append(request)
            return handler(request) if callable(handler) else handler

        def client(allowed, auth) -> httpx2.AsyncClient:
            return httpx2.AsyncClient(transport=httpx2.MockTransport(answer), auth=auth)

        monkeypatch.setattr(http, "client_create", client)
        return HttpTransport()

    return made


async def ask(transport):
    return await transport.call(REMOTE, {"protocolo": 9007199254740993}, idempotency_key="key-1")


async def test_call__plain_contract__posts_name_arguments_and_key(connect, requests):
    answer = await ask(connect(httpx2.Response(200, json={"ok": True, "result": {"a": 1}})))

    assert (answer.ok, answer.result) == (True, {"a": 1})
    (request,) = requests
    assert (request.method, str(request.url)) == ("POST", "http://crm.test/mcp/tools/call")
    assert request.content == b'{"tool_name":"saldo","arguments":{"protocolo":9007199254740993}}'
    assert request.headers["idempotency-key"] == "key-1"
    assert request.headers["authorization"] == "Bearer tok"


@pytest.mark.parametrize(
    ("response", "ok", "result", "error"),
    [
        (httpx2.Response(200, json={"saldo": 1}), True, {"saldo": 1}, ""),
        (httpx2.Response(200, json={"ok": False, "error": {"message": "sem saldo"}}), False, None, "sem saldo"),
        (httpx2.Response(200, json={"ok": False, "codigo": 7}), False, {"ok": False, "codigo": 7},
         "The tool reported a failure without a message."),
        (httpx2.Response(404, json={"detail": "no tool"}), False, None, "The server answered with HTTP 404. no tool"),
        (httpx2.Response(422, text="<html>"), False, None, "The server answered with HTTP 422."),
        (httpx2.Response(302, headers={"location": "http://169.254.169.254/"}), False, None,
         "The server redirects; bind the address it redirects to."),
    ],
)  # fmt: skip
async def test_call__answers_of_all_shapes__are_one_shape(
    connect, requests, response, ok, result, error
):
    answer = await ask(connect(response))

    assert (answer.ok, answer.result, answer.error) == (ok, result, error)
    assert {request.url.host for request in requests} == {"crm.test"}


@pytest.mark.parametrize("body", ["<html>", "", '{"saldo": NaN}', "[" * 100_000])
async def test_call__success_that_cannot_be_read__is_no_success_and_unconfirmed(connect, body):
    answer = await ask(connect(httpx2.Response(200, text=body)))

    assert (answer.ok, answer.metadata) == (False, {"unconfirmed": True})


@pytest.mark.parametrize("status", [202, 204, 408, 500, 503])
async def test_call__status_that_leaves_it_open__counts_as_sent(connect, status):
    with pytest.raises(ToolUnavailable) as failed:
        await ask(connect(httpx2.Response(status)))

    assert failed.value.sent is True


@pytest.mark.parametrize(
    ("raised", "sent"),
    [
        (httpx2.ConnectError("x"), False),
        (httpx2.ConnectTimeout("x"), False),
        (httpx2.PoolTimeout("x"), False),
        (httpx2.ReadError("x"), True),
        (httpx2.WriteError("x"), True),
        (httpx2.RemoteProtocolError("x"), True),
    ],
)
async def test_call__connection_breaks__says_whether_the_request_was_on_its_way(
    connect, raised, sent
):
    def broken(request: httpx2.Request) -> httpx2.Response:
        raise raised

    with pytest.raises(ToolUnavailable) as failed:
        await ask(connect(broken))

    assert failed.value.sent is sent


@pytest.mark.parametrize(
    "body",
    [
        [{"name": "saldo", "description": "d", "input_schema": {"type": "object"}}],
        {"tools": [{"name": "saldo", "description": "d", "inputSchema": {"type": "object"}}]},
        {"tools": {"saldo": {"description": "d", "input_schema": {"type": "object"}}}},
        {"saldo": {"description": "d", "input_schema": {"type": "object"}}, "noise": 1},
    ],
)
async def test_list__shapes_of_servers__are_one_shape(connect, body):
    tools = await connect(httpx2.Response(200, json=body)).list_tools(REMOTE)

    assert tools == [{"name": "saldo", "description": "d", "input_schema": {"type": "object"}}]


@pytest.mark.parametrize(
    "response",
    [httpx2.Response(404), httpx2.Response(200, text="<html>"), httpx2.Response(200, json="x")],
)
async def test_list__that_cannot_be_read__is_unavailable(connect, response):
    with pytest.raises(ToolUnavailable) as failed:
        await connect(response).list_tools(REMOTE)

    assert failed.value.sent is False
