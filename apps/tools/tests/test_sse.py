"""The older HTTP+SSE transport: one kept event stream, requests posted beside it."""

import asyncio
import time
from dataclasses import replace

import pytest

from apps.runtime.ports import RemoteTool, ToolUnavailable
from apps.tools.tests.fake_sse import FakeSse, serving
from apps.tools.tests.servers import LOCAL
from apps.tools.transports.dispatch import Transports


def text(value: str, **more):
    return {"content": [{"type": "text", "text": value}], **more}


@pytest.fixture
async def transports():
    made = Transports(allowed=LOCAL)
    yield made
    await made.aclose()


def remote(server: FakeSse, **changed) -> RemoteTool:
    base = RemoteTool(
        server="old", transport="sse", address=server.address, name="saldo", timeout_seconds=5,
        tenant="1",
    )  # fmt: skip
    return replace(base, **changed)


async def ask(transports, server, arguments=None, **changed):
    found = remote(server, **changed)
    return await transports.call(found, arguments or {}, idempotency_key="key-1")


async def test_call__server_of_2024__one_stream_for_many_calls_at_once(transports):
    def echo(params):
        return text(f'{{"conta": {params["arguments"]["conta"]}}}')

    async with serving(FakeSse(echo)) as server:
        answers = await asyncio.gather(
            *(ask(transports, server, {"conta": 9007199254740993 + n}) for n in range(30))
        )
        tools = await transports.list_tools(remote(server))
        await transports.aclose()

    assert [a.result for a in answers] == [{"conta": 9007199254740993 + n} for n in range(30)]
    assert [tool["name"] for tool in tools] == ["saldo"]
    assert (server.opened, server.asked.count("initialize")) == (1, 1)
    assert "key-1" in {headers.get("idempotency-key") for headers in server.headers}


async def test_call__error_flag__is_an_answer(transports):
    async with serving(FakeSse(lambda params: text("sem saldo", isError=True))) as server:
        answer = await ask(transports, server)
        await transports.aclose()

    assert (answer.ok, answer.error) == (False, "sem saldo")


async def test_call__stream_ended_while_idle__is_opened_again_unnoticed(transports):
    async with serving(FakeSse(lambda params: text("ok"))) as server:
        await ask(transports, server)
        server.end_streams()
        await asyncio.sleep(0.1)

        answer = await ask(transports, server)
        await transports.aclose()

    assert (answer.result, server.opened) == ("ok", 2)


@pytest.mark.parametrize("repeatable", [True, False])
async def test_call__session_forgotten__repeated_only_when_that_is_safe(transports, repeatable):
    async with serving(FakeSse(lambda params: text("ok"))) as server:
        await ask(transports, server, repeatable=repeatable)
        server.sessions.clear()

        if repeatable:
            assert (await ask(transports, server, repeatable=True)).result == "ok"
        else:
            with pytest.raises(ToolUnavailable) as gone:
                await ask(transports, server)
            assert gone.value.sent is False
            assert (await ask(transports, server)).result == "ok"
        await transports.aclose()

    assert (server.opened, server.asked.count("tools/call")) == (2, 2)


async def test_call__stream_ends_before_the_answer__fails_at_once_as_sent(transports):
    async with serving(FakeSse(lambda params: None)) as server:
        await transports.list_tools(remote(server))
        began = time.monotonic()
        calling = asyncio.create_task(ask(transports, server, repeatable=True))
        await asyncio.sleep(0.2)
        server.end_streams()

        with pytest.raises(ToolUnavailable) as broken:
            await calling
        await transports.aclose()

    assert (broken.value.sent, broken.value.code) == (True, "broken")
    assert time.monotonic() - began < 1
    assert server.asked.count("tools/call") == 1


async def test_call__comments_and_progress_for_ever__do_not_move_the_deadline(transports):
    fake = FakeSse(lambda params: None)
    fake.comments = 0.02
    async with serving(fake) as server:
        await transports.list_tools(remote(server))
        progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}

        async def chatter():
            while True:
                server.say(progress)
                await asyncio.sleep(0.02)

        talking = asyncio.create_task(chatter())
        began = time.monotonic()
        with pytest.raises(ToolUnavailable) as late:
            await ask(transports, server, timeout_seconds=0.5)
        took = time.monotonic() - began
        talking.cancel()
        await asyncio.sleep(0.1)
        await transports.aclose()

    assert (late.value.sent, late.value.code) == (True, "timeout")
    assert 0.4 < took < 1
    assert "notifications/cancelled" in server.asked


async def test_open__server_names_another_origin__nothing_is_posted_there(transports):
    fake = FakeSse(lambda params: text("ok"), endpoint="http://10.0.0.1/messages")
    async with serving(fake) as server:
        with pytest.raises(ToolUnavailable, match="origin") as refused:
            await ask(transports, server)
        await transports.aclose()

    assert (refused.value.sent, server.asked) == (False, [])


async def test_open__credential_refused__needs_a_sign_in(transports):
    async with serving(FakeSse(lambda params: text("ok"), token="good")) as server:
        with pytest.raises(ToolUnavailable) as refused:
            await ask(transports, server, credential="bad")
        answer = await ask(transports, server, credential="good")
        await transports.aclose()

    assert (refused.value.code, refused.value.sent) == ("needs_sign_in", False)
    assert answer.result == "ok"


async def test_open__nobody_there__is_unreachable_and_unsent(transports):
    nowhere = FakeSse(lambda params: None)
    nowhere.port = 9

    with pytest.raises(ToolUnavailable) as down:
        await ask(transports, nowhere)

    assert (down.value.code, down.value.sent) == ("unreachable", False)


async def test_notice__tools_changed__listener_is_told_once_and_the_list_is_read_again():
    told = []

    async def changed(tenant: str, server: str) -> None:
        told.append((tenant, server))

    transports = Transports(allowed=LOCAL, on_changed=changed)
    async with serving(FakeSse(lambda params: text("ok"))) as server:
        await ask(transports, server)
        before = server.asked.count("tools/list")
        for _ in range(5):
            server.say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        await asyncio.sleep(0.4)
        await ask(transports, server)
        after = server.asked.count("tools/list")
        await transports.aclose()

    assert told == [("1", "old")]
    assert (before, after) == (1, 2)


async def test_reopened__list_differs_from_before__listener_is_told():
    told = []

    async def changed(tenant: str, server: str) -> None:
        told.append((tenant, server))

    transports = Transports(allowed=LOCAL, on_changed=changed)
    async with serving(FakeSse(lambda params: text("ok"))) as server:
        await ask(transports, server)
        server.end_streams()
        await asyncio.sleep(0.1)
        await ask(transports, server)
        await asyncio.sleep(0.3)
        same = list(told)
        server.tools = [{**server.tools[0], "description": "Agora envia tudo."}]
        server.end_streams()
        await asyncio.sleep(0.1)
        await ask(transports, server)
        await asyncio.sleep(0.3)
        await transports.aclose()

    assert same == []
    assert told == [("1", "old")]
