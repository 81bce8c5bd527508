"""The table of routes: every route of the product has a probe here. Adding one is one entry."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from asgiref.sync import async_to_sync
from channels.testing import WebsocketCommunicator
from django.test import AsyncClient, Client

from agentops.tests.matrix import admin_routes
from agentops.tests.matrix.admin_routes import NO_UUID
from agentops.tests.matrix.api_routes import API_ROUTES
from agentops.tests.matrix.probes import (
    Answer,
    Call,
    Custom,
    Listing,
    Probe,
    Shared,
    Thing,
    answer_of,
    leaks,
)
from agentops.tests.matrix.sides import Side

KEY = Call(by_key=True)
# A session nobody has, under a tenant nobody has.
NO_SESSION = "nobody:agent:nothing"


def _post(side: Side, address: str, body: Any) -> Answer:
    headers = {**side.bearer(), "prefer": "wait=0"}
    return answer_of(Client().post(address, body, content_type="application/json", headers=headers))


def _compare(mine: Answer, foreign: Answer, absent: Answer, other: Side, own: int) -> list[str]:
    wrong = []
    if mine.status != own:
        wrong.append(f"the owner got {mine.status}, not {own}: {mine.body[:200]!r}")
    if foreign.status != 404:
        wrong.append(f"a foreign one got {foreign.status}, not 404")
    if foreign != absent:
        wrong.append("foreign and absent are answered differently")
    return wrong + leaks(other, mine, foreign, absent)


def named(address: str, *, own: int, extra: dict[str, Any] | None = None) -> Probe:
    """A route whose body names a tenant, an agent and a session: own, foreign, absent of each."""

    def body(side: Side, session: str = "matrix", **more: str) -> dict[str, Any]:
        payload = {"message": "hello", "message_id": "m2", "session_id": session}
        body = {"channel": "web", "agent_id": side.item("agent"), "payload": payload, **more}
        return {**body, **(extra or {})}

    def probe(me: Side, other: Side, browser: Client) -> list[str]:
        wrong = []
        for bodies in (
            [body(me, tenant_id=slug) for slug in (me.slug, other.slug, "nobody")],
            [body(me, f"{me.session_key}-2"), body(me, other.session_key), body(me, NO_SESSION)],
        ):
            mine, foreign, absent = (_post(me, address, each) for each in bodies)
            wrong += _compare(mine, foreign, absent, other, own)
        agent = _post(me, address, body(other))
        if agent.status != 404:
            wrong.append(f"a foreign agent got {agent.status}, not 404")
        return wrong + leaks(other, agent)

    return Custom(probe)


def token(me: Side, other: Side, browser: Client) -> list[str]:
    """A token is issued for a session of one's own tenant only."""

    def ask(**body: str) -> Answer:
        return _post(me, "/gateway/sessions/token", {"agent_id": me.item("agent"), **body})

    wrong = []
    for name, values in {
        "tenant_id": (me.slug, other.slug, "nobody"),
        "session_id": (f"{me.session_key}-3", other.session_key, NO_SESSION),
    }.items():
        mine, foreign, absent = (ask(**{name: value}) for value in values)
        wrong += _compare(mine, foreign, absent, other, own=201)
    return wrong


def tool_call(me: Side, other: Side, browser: Client) -> list[str]:
    """A tool of one's own release is called (nobody answers here, which is an answer)."""
    mine, foreign, absent = (
        _post(me, f"/debug/mcp/call/{tool}", {"arguments": {}, "agent_id": me.item("agent")})
        for tool in (me.item("tool"), other.item("tool"), "nothing")
    )
    return _compare(mine, foreign, absent, other, own=200)


def tool_invoke(me: Side, other: Side, browser: Client) -> list[str]:
    """A tool of one's own release is called; another's tool, agent or tenant is absent."""

    def ask(tool: str, agent: str, **more: str) -> Answer:
        body = {"tool_name": tool, "agent_id": agent, **more}
        return _post(me, f"/v1/tools/{tool}/invoke", body)

    tools, agents = (me.item("tool"), other.item("tool"), "nothing"), me.item("agent")
    mine, theirs, nobodys = (ask(tool, agents) for tool in tools)
    # Nobody answers at its server, which is an answer.
    wrong = _compare(mine, theirs, nobodys, other, own=200)
    foreign, absent = (ask(tools[0], agents, tenant_id=slug) for slug in (other.slug, "nobody"))
    if foreign.status != 404 or foreign != absent:
        wrong.append("a foreign and an absent tenant are answered differently")
    agent = ask(tools[0], other.item("agent"))
    if agent.status != 404:
        wrong.append(f"a foreign agent got {agent.status}, not 404")
    return wrong + leaks(other, foreign, agent)


def discovery_sync(me: Side, other: Side, browser: Client) -> list[str]:
    """One's own server is asked (nobody answers, which is an answer); another's is absent."""
    mine, foreign, absent = (
        _post(me, "/v1/discovery/sync", {"server": server})
        for server in (me.item("tool_server"), other.item("tool_server"), "nothing")
    )
    return _compare(mine, foreign, absent, other, own=200)


def event_stream(address: Callable[[str], str]) -> Probe:
    """The owner's stream shows the canary; a foreign and an absent session get no stream."""

    async def read(side: Side, session: str) -> Answer:
        client: Any = AsyncClient()
        response = await client.get(address(session), headers=side.bearer())
        if not response.streaming:
            return answer_of(response)
        seen = b""
        content = aiter(response.streaming_content)
        async with asyncio.timeout(10):
            while side.canary.encode() not in seen.split(b"event: connected")[-1]:
                seen += await anext(content)
        await content.aclose()
        return Answer(response.status_code, seen, ())

    def probe(me: Side, other: Side, browser: Client) -> list[str]:
        mine, foreign, absent = (
            async_to_sync(read)(me, session)
            for session in (me.session_key, other.session_key, NO_SESSION)
        )
        wrong = _compare(mine, foreign, absent, other, own=200)
        if me.canary.encode() not in mine.body:
            wrong.append("the owner's canary is missing")
        return wrong

    return Custom(probe)


def tenant_pick(me: Side, other: Side, browser: Client) -> list[str]:
    # Redirects home; a tenant one may not enter is absent.
    mine, foreign, absent = (
        answer_of(browser.post("/tenant/", {"slug": slug}))
        for slug in (me.slug, other.slug, "nobody")
    )
    return _compare(mine, foreign, absent, other, own=302)


ROUTES: dict[str, Probe] = {
    "gateway/message": named("/gateway/message", own=202),
    "gateway/message/sse": named("/gateway/message/sse", own=202),
    "gateway/sessions/token": Custom(token),
    "gateway/turns/<uuid:turn_id>": Thing(
        lambda side: f"/gateway/turns/{side.rows['conversations.turnrecord'].pk}",
        f"/gateway/turns/{NO_UUID}",
        call=KEY,
    ),
    "gateway/events/<str:session_id>": event_stream(lambda s: f"/gateway/events/{s}"),
    "sessions/<str:session_id>/messages": Thing(
        lambda side: f"/sessions/{side.session_key}/messages",
        f"/sessions/{NO_SESSION}/messages",
        call=KEY,
    ),
    "sessions/<str:session_id>/checkpoint": Thing(
        lambda side: f"/sessions/{side.session_key}/checkpoint",
        f"/sessions/{NO_SESSION}/checkpoint",
        call=KEY,
    ),
    "agents": Listing("/agents", call=KEY),
    "tenant/": Custom(tenant_pick),
    "health": Shared("/health", "the process"),
    "ready": Shared("/ready", "what the process needs", status=None),
    "api/schema": Shared("/api/schema", "the product"),
    "api/schema/docs/": Shared("/api/schema/docs/", "the product"),
    "version": Shared("/version", "the process"),
    "debug/route": named("/debug/route", own=200),
    "debug/identity": named("/debug/identity", own=200),
    "debug/mcp/tools": Listing("/debug/mcp/tools", call=KEY),
    "debug/mcp/call/<str:tool>": Custom(tool_call),
    "v1/tools": Listing("/v1/tools", call=KEY),
    "v1/tools/<str:name>": Thing(
        lambda side: f"/v1/tools/{side.item('tool')}", "/v1/tools/nothing", call=KEY
    ),
    "v1/tools/<str:name>/invoke": Custom(tool_invoke),
    "v1/discovery/servers": Listing("/v1/discovery/servers", call=KEY),
    "v1/discovery/sync": Custom(discovery_sync),
    "debug/usage": Thing(
        lambda side: f"/debug/usage?session_id={side.session_key}",
        f"/debug/usage?session_id={NO_SESSION}",
        call=KEY,
    ),
    "debug/env": Listing("/debug/env", call=KEY, shows=None),
}


def _chat(suffix: str = "") -> Probe:
    """A conversation's page: by agent and name, both of which are the other tenant's or nobody's."""
    return Thing(
        lambda side: f"/console/chat/{side.item('agent')}/{side.canary}{suffix}",
        f"/console/chat/nothing/nothing{suffix}",
    )


def _row(base: str, label: str, suffix: str = "") -> Probe:
    return Thing(lambda side: f"{base}{side.rows[label].pk}{suffix}", f"{base}{NO_UUID}{suffix}")


ROUTES |= {
    "": Shared("/", "sends on to the console", status=302),
    "console/": Listing("/console/"),
    "console/login": Shared("/console/login", "sends a signed-in person on", status=302),
    "console/logout": Shared("/console/logout", "POST only", status=405),
    "console/language": Shared("/console/language", "one's own choice", status=302),
    # Sends on to a new conversation with an agent of one's own.
    "console/chat/<str:agent>": Thing(
        lambda side: f"/console/chat/{side.item('agent')}",
        "/console/chat/nothing",
        status=302,
        shows=None,
    ),
    "console/chat/<str:agent>/<str:name>": _chat(),
    "console/chat/<str:agent>/<str:name>/transcript": _chat("/transcript"),
    "console/chat-turns/<uuid:turn_id>": _row("/console/chat-turns/", "conversations.turnrecord"),
    "console/sessions/": Listing("/console/sessions/"),
    "console/sessions/<uuid:session_id>/": _row("/console/sessions/", "conversations.session", "/"),
    "console/turns/<uuid:turn_id>/": _row("/console/turns/", "conversations.turnrecord", "/"),
}


ROUTES |= API_ROUTES


def probe_for(route: str) -> Probe | None:
    """Return the probe of ``route``, or None when the table does not list it."""
    if route.startswith("admin/"):
        return admin_routes.probe_for(route.removeprefix("admin/"))
    return ROUTES.get(route)


# -- websockets --------------------------------------------------------------------------------


def session_socket(me: Side, other: Side, browser: Client) -> list[str]:
    """The owner gets frames with the canary; a foreign and an absent session are closed alike."""
    from agentops.asgi import application

    async def talk(session: str) -> list[Any]:
        headers = [
            (b"host", b"testserver"),
            (b"origin", b"http://testserver"),
            (b"authorization", f"Bearer {me.key}".encode()),
        ]
        socket = WebsocketCommunicator(application, f"/ws/sessions/{session}?after=0", headers)
        await socket.connect(timeout=10)
        frames: list[Any] = []
        while not frames or frames[-1]["type"] != "websocket.close":
            frames.append(await socket.receive_output(timeout=10))
            said = json.loads(frames[-1].get("text") or "{}")
            if said.get("id") is not None:
                break
        await socket.disconnect()
        return frames

    mine, foreign, absent = (
        async_to_sync(talk)(session) for session in (me.session_key, other.session_key, NO_SESSION)
    )
    wrong = []
    if me.canary not in json.dumps(mine):
        wrong.append("the owner's canary is missing")
    if foreign != absent:
        wrong.append("foreign and absent are closed differently")
    if foreign[-1] != {"type": "websocket.close", "code": 4404, "reason": None} and (
        foreign[-1].get("code") != 4404
    ):
        wrong.append(f"a foreign session was closed with {foreign[-1]}")
    if other.canary in json.dumps([mine, foreign, absent]):
        wrong.append("the other tenant's canary is shown")
    return wrong


def no_socket(me: Side, other: Side, browser: Client) -> list[str]:
    """Every other path is closed as absent, whoever asks, and says nothing."""
    from agentops.asgi import application

    async def talk() -> Any:
        headers = [(b"host", b"testserver"), (b"origin", b"http://testserver")]
        socket = WebsocketCommunicator(application, f"/ws/{other.session_key}", headers)
        await socket.connect(timeout=10)
        frame = await socket.receive_output(timeout=10)
        await socket.disconnect()
        return frame

    frame = async_to_sync(talk)()
    closed = frame["type"] == "websocket.close" and frame["code"] == 4404
    return [] if closed else [f"a path without a socket answered {frame}"]


SOCKETS: dict[str, Probe] = {
    "": Custom(no_socket),
    r"^ws/sessions/(?P<session_id>[^/]{1,400})/?$": Custom(session_socket),
}
