"""The OpenAI-compatible provider against servers that behave as real ones do."""

import asyncio
import json
import logging
import socket
import threading
import time
import traceback
from dataclasses import replace
from email.utils import formatdate

import httpx2
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route

from apps.agents.config import Prices
from apps.agents.providers.base import ModelProfile, ProviderCall
from apps.agents.providers.openai_compatible import OpenAICompatible
from apps.agents.providers.waiting import retry_after, wait_seconds
from apps.runtime.ports import ModelFailed, ModelMessage, ModelToolCall
from apps.runtime.turn import Usage

KEY = "sk-very-secret-0123456789"


def chunk(delta=None, *, finish=None, **extra):
    choices = [{"index": 0, "delta": delta or {}, "finish_reason": finish}]
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m-1",
            "choices": choices, **extra}  # fmt: skip


def part(arguments, *, id=None, index=0, name=None):
    return {"tool_calls": [{"index": index, "id": id, "type": "function",
                            "function": {"name": name, "arguments": arguments}}]}  # fmt: skip


STOP = chunk(finish="stop")
USAGE = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m-1", "choices": [],
         "usage": {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}}  # fmt: skip


def sse(*events, done=True, ascii_only=False):
    lines = [f"data: {json.dumps(e, ensure_ascii=ascii_only)}\n\n" for e in events]
    return "".join([*lines, "data: [DONE]\n\n" if done else ""]).encode()


class Bytes(httpx2.AsyncByteStream):
    """A body that arrives in the given pieces."""

    def __init__(self, *pieces):
        self.pieces = pieces

    async def __aiter__(self):
        for piece in self.pieces:
            yield piece


class Server:
    """Answers requests in turn: (status, headers, json), or the bytes pieces of a stream."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []
        self.waits = []

    def __call__(self, request):
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, bytes):
            answer = (answer,)
        if isinstance(answer[0], bytes):
            headers = {"content-type": "text/event-stream"}
            return httpx2.Response(200, headers=headers, stream=Bytes(*answer))
        status, headers, body = answer
        return httpx2.Response(status, headers=headers, json=body)

    async def sleep(self, seconds):
        self.waits.append(seconds)

    @property
    def provider(self):
        return OpenAICompatible(transport=httpx2.MockTransport(self), sleep=self.sleep)

    @property
    def bodies(self):
        return [json.loads(request.content) for request in self.requests]


def call(*, retries=2, timeout=5.0, base_url="http://llm.test/v1", key=KEY, tools=(), messages=()):
    profile = ModelProfile(
        name="p", provider="openai_compatible", model="m-1", address="llm", credential="k",
        temperature=0.2, max_tokens=100, timeout_seconds=timeout, max_retries=retries,
        prices=Prices(),
    )  # fmt: skip
    messages = messages or (ModelMessage("system", "s"), ModelMessage("user", "olá"))
    return ProviderCall(
        profile=profile, messages=tuple(messages), tools=tuple(tools), base_url=base_url, key=key
    )


async def complete(*answers, **options):
    return await Server(*answers).provider.complete(call(**options))


async def failure(server, **options):
    with pytest.raises(ModelFailed) as raised:
        await server.provider.complete(call(**options))
    return raised.value


def refusal(status, code=None, *, param=None, message="no", headers=None):
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return status, headers or {}, {"error": error}


# -- the request -------------------------------------------------------------------------------


async def test_request__profile_messages_and_tools__are_sent_and_nothing_else():
    tool = {"type": "function", "function": {"name": "t", "description": "", "parameters": {}}}
    server = Server(sse(chunk({"content": "oi"}), STOP))
    messages = (
        ModelMessage("user", "olá"),
        ModelMessage("assistant", "", tool_calls=(ModelToolCall("c1", "t", "{}"),)),
        ModelMessage("tool", '{"ok":true}', tool_call_id="c1", name="t"),
    )
    await server.provider.complete(call(tools=[tool], messages=messages))
    assert server.bodies == [
        {
            "model": "m-1", "temperature": 0.2, "max_tokens": 100, "stream": True,
            "stream_options": {"include_usage": True}, "tools": [tool],
            "messages": [
                {"role": "user", "content": "olá"},
                {"role": "assistant", "content": None, "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "t", "arguments": "{}"}}]},
                {"role": "tool", "content": '{"ok":true}', "tool_call_id": "c1"},
            ],
        }
    ]  # fmt: skip
    [request] = server.requests
    assert str(request.url) == "http://llm.test/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"


async def test_request__environment_of_the_process__is_not_sent_along(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-env")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-env")
    server = Server(sse(STOP))
    await server.provider.complete(call(key=""))
    headers = dict(server.requests[0].headers)
    assert headers["authorization"] == "Bearer none"
    assert not [value for value in headers.values() if "env" in value]


@pytest.mark.parametrize("base_url", ["", "llm", "file:///etc"])
async def test_request__without_a_bound_address__goes_nowhere(base_url):
    server = Server(sse(STOP))
    error = await failure(server, base_url=base_url)
    assert error.code == "wrong_model"
    assert server.requests == []


async def test_request__two_keys_at_one_address__share_a_client_and_keep_their_own_key():
    server = Server(sse(STOP))
    provider = server.provider
    await provider.complete(call(key="key-one"))
    await provider.complete(call(key="key-two"))
    [clients] = provider._clients.values()
    assert len(clients) == 1
    sent = [request.headers["authorization"] for request in server.requests]
    assert sent == ["Bearer key-one", "Bearer key-two"]


async def test_request__redirect__is_not_followed():
    server = Server((307, {"location": "http://evil.test/v1"}, {}))
    error = await failure(server)
    assert error.code == "broken"
    assert {request.url.host for request in server.requests} == {"llm.test"}


# -- the stream --------------------------------------------------------------------------------


async def test_stream__text_and_usage_chunk__add_up():
    reply = await complete(sse(chunk({"role": "assistant", "content": ""}),
                               chunk({"content": "Olá"}), chunk({"content": " Ana"}), STOP, USAGE))  # fmt: skip
    assert (reply.text, reply.finish_reason) == ("Olá Ana", "stop")
    assert reply.usage == Usage(input_tokens=5, output_tokens=3)
    assert (reply.provider, reply.model, reply.metadata) == ("openai_compatible", "m-1", {})


@pytest.mark.parametrize("ascii_only", [False, True])
async def test_stream__cut_at_every_byte__is_the_same_text(ascii_only):
    body = sse(chunk({"content": "ação 😀"}), STOP, ascii_only=ascii_only)
    for cut in range(1, len(body)):
        reply = await complete((body[:cut], body[cut:]))
        assert reply.text == "ação 😀"


async def test_stream__surrogate_halves_in_two_chunks__are_one_character():
    body = sse(STOP).replace(b"data: ", b'data: {"choices":[{"index":0,"delta":{"content":"\\ud83d"}}]}'
                             b'\n\ndata: {"choices":[{"index":0,"delta":{"content":"\\ude00"}}]}'
                             b"\n\ndata: ", 1)  # fmt: skip
    assert (await complete(body)).text == "😀"


async def test_stream__nul_and_lone_half__are_no_text():
    reply = await complete(sse(chunk({"content": "a\0b\ud83d"}), STOP, ascii_only=True))
    assert reply.text == "ab\ufffd"


@pytest.mark.parametrize(
    ("deltas", "text"), [(["\n", "\n", "Resposta"], "\n\nResposta"), (["R$ 150", "0"], "R$ 1500")]
)
async def test_stream__repeated_fragments__are_all_kept(deltas, text):
    reply = await complete(sse(*[chunk({"content": d}) for d in deltas], STOP))
    assert reply.text == text


async def test_stream__reasoning__is_kept_out_of_the_text():
    reply = await complete(sse(chunk({"reasoning_content": "hm "}),
                               chunk({"content": "oi", "reasoning_content": "ok"}), STOP))  # fmt: skip
    assert reply.text == "oi"
    assert reply.metadata["reasoning_content"] == "hm ok"


@pytest.mark.parametrize(
    ("parts", "calls"),
    [
        pytest.param(
            [part('{"a"', id="t1", name="add"), part(":1}")], [("t1", "add", '{"a":1}')],
            id="one call in pieces",
        ),
        pytest.param(
            [part('{"q":"a"}', id="c1", name="f"), part('{"q":"b"}', id="c2", name="f")],
            [("c1", "f", '{"q":"a"}'), ("c2", "f", '{"q":"b"}')],
            id="index 0 for every call",
        ),
        pytest.param(
            [part("", id="c1", name="f"), part("", id="c2", name="g", index=1),
             part('{"x":1}', index=0), part('{"y":2}', index=1)],
            [("c1", "f", '{"x":1}'), ("c2", "g", '{"y":2}')],
            id="interleaved",
        ),
        pytest.param(
            [part('{"a"', id="t1", name="add"), part(":1}", id="t1", name="add")],
            [("t1", "add", '{"a":1}')],
            id="id and name in every piece",
        ),
        pytest.param(
            [part('{"a":1}', name="f"), part('{"a":2}', name="f")],
            [("", "f", '{"a":1}'), ("", "f", '{"a":2}')],
            id="no ids, whole calls",
        ),
        pytest.param([part(None, id="c1", name="f")], [("c1", "f", "")], id="no arguments"),
        pytest.param(
            [part('{"a"', id="c1", name="f", index=None), part(":1}", index=None)],
            [("c1", "f", '{"a":1}')],
            id="no index",
        ),
    ],
)  # fmt: skip
async def test_stream__tool_call_pieces__become_the_calls_that_were_meant(parts, calls):
    reply = await complete(sse(*map(chunk, parts), chunk(finish="tool_calls"), USAGE))
    assert [(c.id, c.name, c.arguments) for c in reply.tool_calls] == calls
    assert reply.finish_reason == "tool_calls"


async def test_stream__empty_and_null_chunks__then_filter__is_a_filtered_reply():
    reply = await complete(sse({**USAGE, "usage": None}, chunk({"content": ""}),
                               chunk({"content": None}, finish="content_filter")))  # fmt: skip
    assert (reply.text, reply.finish_reason) == ("", "content_filter")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("length", "length"),
        ("MAX_TOKENS", "length"),
        ("end_turn", "stop"),
        ("safety", "content_filter"),
    ],
)
async def test_stream__vendors_endings__mean_the_four_known_ones(written, meant):
    reply = await complete(sse(chunk({"content": "x"}, finish=written)))
    assert reply.finish_reason == meant


async def test_stream__second_choice__is_not_mixed_in():
    other = chunk({"content": "B"})
    other["choices"][0]["index"] = 1
    assert (await complete(sse(chunk({"content": "A"}), other, STOP))).text == "A"


async def test_stream__another_model_answers__is_told():
    reply = await complete(sse(chunk({"content": "x"}, finish="stop", model="m-9")))
    assert (reply.model, reply.metadata["served_model"]) == ("m-1", "m-9")


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"total_tokens": 15}, Usage(14, 1, estimated=True)),
        ({"prompt_tokens": 100, "completion_tokens": 500, "total_tokens": 600,
          "completion_tokens_details": {"reasoning_tokens": 300}}, Usage(100, 500)),
        ({"prompt_tokens": 100, "completion_tokens": 200, "total_tokens": 600}, Usage(100, 500)),
        ({"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10,
          "prompt_tokens_details": {"cached_tokens": 4}}, Usage(9, 1, cached_tokens=4)),
        ({"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": None}, Usage(9, 1)),
        ({"prompt_tokens": None, "completion_tokens": -3}, Usage(1, 1, estimated=True)),
        (None, Usage(1, 1, estimated=True)),
    ],
)  # fmt: skip
async def test_usage__as_vendors_count__is_counted_once_and_never_zero(usage, counted):
    reply = await complete(sse(chunk({"content": "oi"}), STOP, {**USAGE, "usage": usage}))
    assert reply.usage == counted


# -- failures ----------------------------------------------------------------------------------


async def test_stream__that_ends_without_a_finish__is_an_error_and_is_tried_again():
    cut = sse(chunk({"content": "meia respos"}), done=False)
    server = Server(cut, sse(chunk({"content": "inteira"}), STOP))
    reply = await server.provider.complete(call())
    assert reply.text == "inteira"
    assert reply.metadata["attempts"] == 2
    error = await failure(Server(cut), retries=1)
    assert (error.code, str(error)) == ("broken", "the answer broke off before its end")


async def test_stream__error_event_in_the_middle__is_an_error():
    event = {"error": {"message": f"bad key {KEY}", "type": "server_error"}}
    server = Server(sse(chunk({"content": "x"}), event))
    error = await failure(server, retries=1)
    assert error.code == "broken"
    assert len(server.requests) == 2
    filtered = {"error": {"message": "m", "code": "content_filter"}}
    server = Server(sse(filtered))
    assert (await failure(server)).code == "content_filter"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "body", [b"data: {broken\n\n", b"data: \xff\xfe\n\n", b"<html></html>", b""]
)
async def test_stream__that_is_no_stream__is_broken_not_a_crash(body):
    assert (await failure(Server(body), retries=0)).code == "broken"


@pytest.mark.parametrize(
    ("answer", "code", "requests"),
    [
        (refusal(401, "invalid_api_key", message=f"Incorrect key {KEY}"), "auth", 1),
        (refusal(403), "auth", 1),
        (refusal(404, "model_not_found"), "wrong_model", 1),
        (refusal(404), "wrong_model", 1),
        (refusal(400, "model_not_found"), "wrong_model", 1),
        (refusal(400, param="model"), "wrong_model", 1),
        (refusal(400, "content_filter"), "content_filter", 1),
        (refusal(400, "context_length_exceeded"), "broken", 1),
        (refusal(422), "broken", 1),
        (refusal(429), "rate_limited", 3),
        (refusal(429, "insufficient_quota"), "rate_limited", 1),
        (refusal(500), "broken", 3),
        (refusal(503), "broken", 3),
        ((502, {}, "no json object"), "broken", 3),
        (httpx2.ConnectError("refused"), "broken", 3),
        (httpx2.ReadError("reset"), "broken", 3),
        (httpx2.ReadTimeout("slow"), "timeout", 1),
    ],
)
async def test_failure__of_the_server__has_its_code_and_is_repeated_only_when_that_helps(
    answer, code, requests
):
    server = Server(answer)
    error = await failure(server)
    assert error.code == code
    assert len(server.requests) == requests


async def test_failure__azure_filter__is_found_in_the_inner_error():
    body = {"error": {"code": "bad", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}
    assert (await failure(Server((400, {}, body)))).code == "content_filter"


async def test_failure__whatever_the_server_says__never_shows_the_key(caplog):
    caplog.set_level(logging.DEBUG)
    for answer in (
        refusal(401, KEY, message=f"key {KEY} is wrong"),
        refusal(500, f"e-{KEY}"),
        sse({"error": {"message": KEY, "code": KEY}}),
        httpx2.ConnectError(KEY),
    ):
        error = await failure(Server(answer), retries=0)
        shown = "".join(traceback.format_exception(error))
        assert KEY not in shown
        assert error.__context__ is None
        assert error.__cause__ is None
    assert KEY not in caplog.text


async def test_failure__parameter_with_another_spelling__is_sent_that_way_from_then_on():
    message = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    server = Server(
        refusal(400, "unsupported_parameter", param="max_tokens", message=message),
        refusal(400, message="Unknown field: stream_options"),
        sse(STOP),
    )
    provider = server.provider
    await provider.complete(call(retries=0))
    await provider.complete(call(retries=0))
    assert len(server.requests) == 4
    for body in server.bodies[2:]:
        assert body["max_completion_tokens"] == 100
        assert not {"max_tokens", "stream_options"} & set(body)


async def test_failure__same_complaint_again__is_not_tried_for_ever():
    server = Server(refusal(400, message="use max_completion_tokens"))
    assert (await failure(server)).code == "broken"
    assert len(server.requests) == 2


# -- waiting -----------------------------------------------------------------------------------


async def test_wait__retry_after_in_seconds__is_kept_and_reported():
    server = Server(refusal(429, headers={"retry-after": "6"}), sse(STOP))
    reply = await server.provider.complete(call())
    [waited] = server.waits
    assert 6 <= waited <= 7
    assert reply.metadata["attempts"] == 2
    assert reply.metadata["waited_ms"] == round(waited * 1000)


async def test_wait__retry_after_as_a_date__is_kept():
    date = formatdate(time.time() + 30, usegmt=True)
    server = Server(refusal(503, headers={"retry-after": date}), sse(STOP))
    await server.provider.complete(call())
    assert 28 <= server.waits[0] <= 32


async def test_wait__longer_than_a_minute__fails_at_once():
    server = Server(refusal(429, headers={"retry-after": "3600"}))
    assert (await failure(server)).code == "rate_limited"
    assert (len(server.requests), server.waits) == (1, [])


async def test_wait__no_retries__fails_at_once():
    server = Server(refusal(429, headers={"retry-after": "1"}))
    await failure(server, retries=0)
    assert server.waits == []


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "6"}, 6.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Thu, 01 Jan 1970 00:16:50 GMT"}, 10.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_retry_after__both_forms__are_read(headers, seconds):
    assert retry_after(headers, now=lambda: 1000.0) == seconds


@pytest.mark.parametrize(
    ("asked", "attempt", "chance", "wait"),
    [
        (6.0, 0, 0.0, 6.0),
        (6.0, 0, 1.0, 6.65),
        (60.0, 0, 1.0, 61.0),
        (60.1, 0, 0.0, None),
        (float("inf"), 0, 0.0, None),
        (0.0, 0, 1.0, 0.05),
        (None, 0, 0.0, 0.25),
        (None, 0, 1.0, 0.5),
        (None, 2, 1.0, 2.0),
        (None, 9, 1.0, 8.0),
    ],
)
def test_wait__asked_or_not__is_at_least_what_was_asked_and_bounded(asked, attempt, chance, wait):
    assert wait_seconds(asked, attempt, chance=lambda: chance) == pytest.approx(wait)


# -- a real server -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server_url():
    async def chat(request):
        body = await request.json()

        async def events():
            if body["model"] == "silent":
                await asyncio.sleep(30)
            for _ in range(3000 if body["model"] == "dripping" else 3):
                yield sse(chunk({"content": "é"}), done=False)
                await asyncio.sleep(0.01)
            if body["model"] == "dying":
                raise RuntimeError("the server dies here")
            yield sse(STOP, USAGE)

        return StreamingResponse(events(), media_type="text/event-stream")

    app = Starlette(routes=[Route("/v1/chat/completions", chat, methods=["POST"])])
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
    server = uvicorn.Server(
        uvicorn.Config(
            app, host="127.0.0.1", port=port, log_level="critical", timeout_graceful_shutdown=0
        )
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{port}/v1"
    server.should_exit = True
    thread.join(5)


def real(url, model, **options):
    asked = call(base_url=url, **options)
    profile = ModelProfile(**{**vars(asked.profile), "model": model})
    return ProviderCall(profile=profile, messages=asked.messages, tools=(), base_url=url, key=KEY)


async def test_real_server__stream__is_the_answer(server_url):
    provider = OpenAICompatible()
    reply = await provider.complete(real(server_url, "m-1"))
    assert (reply.text, reply.usage) == ("ééé", Usage(5, 3))
    await provider.aclose()


@pytest.mark.parametrize("model", ["silent", "dripping"])
async def test_real_server__that_does_not_end__is_left_after_the_profiles_timeout(
    server_url, model
):
    provider = OpenAICompatible()
    started = time.perf_counter()
    with pytest.raises(ModelFailed) as raised:
        await provider.complete(real(server_url, model, timeout=0.4))
    assert raised.value.code == "timeout"
    assert time.perf_counter() - started < 3
    # the kept client still works
    assert (await provider.complete(real(server_url, "m-1"))).text == "ééé"
    await provider.aclose()


async def test_real_server__that_dies_in_the_middle__is_broken(server_url):
    provider = OpenAICompatible()
    with pytest.raises(ModelFailed) as raised:
        await provider.complete(real(server_url, "dying", retries=0))
    assert raised.value.code == "broken"
    await provider.aclose()


async def test_real_server__nobody_there__is_broken(unused_tcp_port):
    provider = OpenAICompatible()
    url = f"http://127.0.0.1:{unused_tcp_port}/v1"
    with pytest.raises(ModelFailed) as raised:
        await provider.complete(real(url, "m-1", retries=0))
    assert raised.value.code == "broken"


def test_clients__of_a_closed_loop__are_not_used_again_and_do_not_pile_up(server_url):
    provider = OpenAICompatible()

    async def ask():
        reply = await provider.complete(real(server_url, "m-1"))
        await provider.aclose()
        return reply.text

    assert [asyncio.run(ask()) for _ in range(3)] == ["ééé"] * 3
    assert len(provider._clients) == 0


@pytest.mark.parametrize("shape", ["tools", "plain"])
async def test_shape__of_the_profile__is_what_the_server_gets(shape):
    server = Server(sse(chunk({"content": "R$ 10"}), STOP, USAGE))
    asked = ModelToolCall("e0", "consultar", "{}")
    messages = (
        ModelMessage("system", "s"), ModelMessage("user", "oi"),
        ModelMessage("assistant", "", tool_calls=(asked,)),
        ModelMessage("tool", '{"ok":true}', tool_call_id="e0", name="consultar"),
    )  # fmt: skip
    tool = {"type": "function", "function": {"name": "consultar", "parameters": {}}}
    whole = call(messages=messages, tools=(tool,))
    profile = replace(whole.profile, message_shape=shape)
    await server.provider.complete(replace(whole, profile=profile))
    [body] = server.bodies
    roles = [message["role"] for message in body["messages"]]
    if shape == "tools":
        assert roles == ["system", "user", "assistant", "tool"]
        assert body["messages"][2]["tool_calls"][0]["id"] == body["messages"][3]["tool_call_id"]
        assert body["tools"] == [tool]
    else:
        assert roles == ["system", "user"]
        assert body["messages"][1]["content"].endswith('consultar: {"ok":true}')
        assert "tools" not in body
