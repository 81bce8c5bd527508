"""Tokens that expire: one refresh, one repeat, then a sign-in is needed; never a loop."""

import asyncio
from dataclasses import replace

import httpx2
import pytest

from apps.runtime.ports import RemoteTool, ToolUnavailable
from apps.tools.tests.fake_mcp import REMOTE, FakeMcp, text
from apps.tools.transports import http, mcp
from apps.tools.transports.http import HttpTransport
from apps.tools.transports.mcp import McpTransport
from apps.tools.transports.tokens import BoundTokens, needs_sign_in

OAUTH = replace(REMOTE, auth="oauth_client", client_id="agent")


class Tokens:
    """Gives ``current``; a rejected one is replaced by the next of ``fresh``."""

    def __init__(self, *fresh: str) -> None:
        self.current = "t0"
        self.fresh = list(fresh)
        self.rejected: list[str] = []

    async def token(self, remote: RemoteTool, *, rejected: str = "") -> str:
        if rejected:
            self.rejected.append(rejected)
            if not self.fresh:
                raise needs_sign_in()
            self.current = self.fresh.pop(0)
        return self.current


class Door:
    """A server that lets in ``good`` tokens only."""

    def __init__(self, *good: str, plain: bool = False) -> None:
        self.good = set(good)
        self.shown: list[str] = []
        self.mcp = FakeMcp(text("ok"))
        self.plain = plain

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        self.shown.append(token)
        if token not in self.good:
            return httpx2.Response(401, headers={"www-authenticate": "Bearer"})
        if self.plain:
            return httpx2.Response(200, json={"ok": True, "result": "ok"})
        return await self.mcp(request)


@pytest.fixture
def connect(monkeypatch):
    def made(door: Door, tokens):
        def client(allowed, auth) -> httpx2.AsyncClient:
            return httpx2.AsyncClient(transport=httpx2.MockTransport(door), auth=auth)

        monkeypatch.setattr(mcp, "client_create", client)
        monkeypatch.setattr(http, "client_create", client)
        return HttpTransport(tokens=tokens) if door.plain else McpTransport(tokens=tokens)

    return made


async def ask(transport, remote: RemoteTool = OAUTH):
    return await transport.call(remote, {}, idempotency_key="k")


@pytest.mark.parametrize("plain", [False, True])
async def test_call__token_expired__refreshed_once_and_repeated_once(connect, plain):
    door, tokens = Door("t0", plain=plain), Tokens("t1")
    transport = connect(door, tokens)
    await ask(transport)
    door.good = {"t1"}
    door.shown.clear()

    answer = await ask(transport)

    assert answer.ok
    assert door.shown == ["t0", "t1"]
    assert tokens.rejected == ["t0"]
    assert door.mcp.count("server/discover") == (0 if plain else 1)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("fresh", [(), ("t1",)])
async def test_call__no_token_helps__needs_a_sign_in_and_nothing_counts_as_sent(
    connect, plain, fresh
):
    door, tokens = Door(plain=plain), Tokens(*fresh)

    with pytest.raises(ToolUnavailable) as refused:
        await ask(connect(door, tokens))

    assert (refused.value.code, refused.value.sent) == ("needs_sign_in", False)
    assert len(door.shown) == 1 + len(fresh)


async def test_call__session_stays_over_a_refresh__and_the_new_token_is_used_from_then_on(connect):
    door, tokens = Door("t0", "t1"), Tokens("t1")
    transport = connect(door, tokens)
    await ask(transport)
    door.good = {"t1"}
    for _ in range(3):
        await ask(transport)

    assert tokens.rejected == ["t0"]
    assert door.shown[-3:] == ["t1"] * 3
    assert door.mcp.count("tools/call") == 4


@pytest.mark.parametrize("plain", [False, True])
async def test_call__bound_credential_refused__is_not_tried_on_and_on(connect, plain):
    door = Door("good", plain=plain)
    clock = [0.0]
    transport = connect(door, BoundTokens(clock=lambda: clock[0]))

    async def ended(credential: str) -> str:
        try:
            await ask(transport, replace(REMOTE, credential=credential))
        except ToolUnavailable as failure:
            return failure.code
        return "ok"

    assert [await ended("old") for _ in range(5)] == ["needs_sign_in"] * 5
    assert door.shown == ["old"]
    assert await ended("good") == "ok"
    door.good.add("old")
    clock[0] = 61.0
    assert await ended("old") == "ok"


async def test_call__many_at_once_with_an_expired_token__all_answered(connect):
    door, tokens = Door("t0"), Tokens()
    transport = connect(door, tokens)
    await ask(transport)
    door.good = {"t1"}

    async def token(remote: RemoteTool, *, rejected: str = "") -> str:
        if rejected == "t0":
            await asyncio.sleep(0.01)
            tokens.current = "t1"
        return tokens.current

    tokens.token = token  # type: ignore[method-assign]
    answers = await asyncio.gather(*(ask(transport) for _ in range(20)))

    assert all(answer.ok for answer in answers)


async def test_bound_tokens__server_that_wants_a_sign_in__is_refused_without_asking_it():
    with pytest.raises(ToolUnavailable) as refused:
        await BoundTokens().token(OAUTH)

    assert refused.value.code == "needs_sign_in"
