"""Streams of a session's events, over server-sent events and websocket."""

import http.client
import json
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from agentops.tests.live import Live
from agentops.tests.live_setup import CHATTER
from apps.gateway.tests.sse import Seen, frames

ORDER = [
    "flow.start", "session.upserted", "message.received", "workflow.started",
    "workflow.completed", "message.delta", "message.responded", "flow.end",
]  # fmt: skip


def message(session: str, text: str = "oi", **more: Any) -> dict[str, Any]:
    return {"payload": {"message": text, "session_id": session, **more}}


def names(seen: list[Seen]) -> list[str]:
    """Return the events in order, deltas in a row as one."""
    found = [event.event for event in seen]
    return [name for index, name in enumerate(found) if found[index - 1 : index] != [name]]


def read_until(response: httpx2.Response, last: str = "flow.end") -> list[Seen]:
    """Return the events up to the first called ``last``."""
    seen = []
    for event in frames(response.iter_raw()):
        if event is not None:
            seen.append(event)
            if event.event == last:
                return seen
    raise AssertionError(f"the stream ended after {seen}")


def events(client: httpx2.Client, session: str, **options: Any) -> list[Seen]:
    with client.stream("GET", f"/gateway/events/{session}", **options) as response:
        return read_until(response)


@contextmanager
def posted_soon(client: httpx2.Client, body: dict[str, Any], after: float = 0.3) -> Iterator[None]:
    """Post ``body`` a moment after the block began."""
    posting = threading.Timer(after, client.post, args=["/gateway/message"], kwargs={"json": body})
    posting.start()
    yield
    posting.join()


def ids(seen: list[Seen]) -> list[int]:
    return [event.id for event in seen if event.id is not None]


# -- server-sent events --------------------------------------------------------------------------


def test_events__of_a_session_that_does_not_exist_yet__wait_and_then_come_in_order(client, session):
    with (
        posted_soon(client, message(session)),
        client.stream("GET", f"/gateway/events/{session}") as response,
    ):
        assert response.headers["cache-control"] == "no-cache, no-transform"
        seen = read_until(response)
    assert names(seen) == ["connected", "waiting", *ORDER]
    assert [event.id for event in seen[:2]] == [None, None]
    assert ids(seen) == list(range(1, len(seen) - 1))
    for event in seen:
        assert event.data["event_type"] == event.event
        assert event.data["tenant_id"] == "default"
        assert event.data["session_id"] == f"default:assistente:{session}"
    assert {event.data["trace_id"] for event in seen[2:]} == {seen[2].data["payload"]["turn_id"]}


def test_events__of_a_bare_name__follow_the_session_whichever_agent_was_asked_for(client, session):
    body = {"agent_id": "retail_orders", **message(session)}
    with (
        posted_soon(client, body),
        client.stream("GET", f"/gateway/events/{session}") as response,
    ):
        seen = read_until(response)
    assert seen[-1].data["session_id"] == f"default:retail_orders:{session}"


def test_message_sse__with_accept__streams_its_own_turn_and_ends(client, session):
    client.post("/gateway/message", json=message(session, "antes"))
    headers = {"accept": "text/event-stream"}
    body = message(session, "agora", message_id="m2")
    with client.stream("POST", "/gateway/message/sse", json=body, headers=headers) as response:
        seen = [event for event in frames(response.iter_raw()) if event is not None]
    assert names(seen) == ["connected", *ORDER]
    assert seen[3].data["payload"]["message_id"] == "m2"
    with client.stream("POST", "/gateway/message/sse", json=body, headers=headers) as response:
        again = [event for event in frames(response.iter_raw()) if event is not None]
    assert again == seen


def test_message_sse__without_accept__is_json(client, session):
    answer = client.post("/gateway/message/sse", json=message(session))
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["session_id"] == f"default:assistente:{session}"


def test_deltas__joined__are_the_answer(client_of, session):
    papo = client_of("papo")
    answer = papo.post("/gateway/message", json=message(session)).json()
    seen = events(papo, session)
    deltas = [event for event in seen if event.text]
    assert "".join(event.text for event in deltas) == answer["text"]
    assert [event.data["payload"]["index"] for event in deltas] == list(range(len(deltas)))
    assert len(deltas) > 8
    assert max(len(event.text) for event in deltas) <= 200
    assert len(answer["text"]) > 1500
    assert "🎉" in CHATTER
    assert "🎉" in answer["text"]


def test_last_event_id__in_header_or_query__resumes_after_it(client, session):
    client.post("/gateway/message", json=message(session))
    whole = events(client, session)
    stored = ids(whole)
    for options in (
        {"headers": {"Last-Event-ID": str(stored[2])}},
        {"params": {"last_event_id": str(stored[2])}},
        {"headers": {"Last-Event-ID": str(stored[2])}, "params": {"last_event_id": "1"}},
    ):
        assert ids(events(client, session, **options)) == stored[3:]
    assert ids(events(client, session, headers={"Last-Event-ID": "0"})) == stored


def test_last_event_id__that_the_session_never_reached__is_a_resync(client, session):
    client.post("/gateway/message", json=message(session))
    seen = events(client, session, headers={"Last-Event-ID": "999999"})
    assert names(seen) == ["connected", "resync", *ORDER]
    assert seen[1].id is None
    assert seen[1].data["oldest"] == 1


def test_events__of_a_long_session__replay_the_newest_hundred(client, session):
    for number in range(13):
        client.post("/gateway/message", json=message(session, f"oi {number}"))
    newest = client.get(f"/sessions/{session}/checkpoint").json()["state"]["event_sequence"]
    assert newest > 100
    with client.stream("GET", f"/gateway/events/{session}") as response:
        seen: list[int] = []
        for event in frames(response.iter_raw()):
            if event is not None and event.id is not None:
                seen.append(event.id)
                if event.id == newest:
                    break
    assert seen == list(range(newest - 99, newest + 1))


def test_events__any_number_of_viewers__see_the_same(client_of, live, session):
    papo = client_of("papo")
    address = f"{live.socket_url}/ws/sessions/{session}"
    with ExitStack() as stack:
        streams = [
            stack.enter_context(live.client("papo").stream("GET", f"/gateway/events/{session}"))
            for _ in range(4)
        ]
        sockets = [
            stack.enter_context(
                connect(address, origin=Origin(live.url), additional_headers=live.bearer("papo"))
            )
            for _ in range(2)
        ]
        papo.post("/gateway/message", json=message(session))
        seen = [read_until(stream) for stream in streams]
        said = [socket_until(viewer, "flow.end") for viewer in sockets]
    assert {json.dumps([e.data for e in s if e.id]) for s in seen} == {
        json.dumps([f["data"] for f in s if f["id"]]) for s in said
    }
    assert len({tuple(ids(s)) for s in seen}) == 1


def test_events__quiet__are_kept_alive_by_comments(client, session):
    with client.stream("GET", f"/gateway/events/{session}") as response:
        seen = []
        for event in frames(response.iter_raw()):
            seen.append(event and event.event)
            if seen.count(None) == 2:
                break
    assert seen == ["connected", "waiting", None, None]


def test_events__with_a_token_in_the_query__are_those_of_its_session(client_of, live, session):
    body = {"session_id": session}
    issued = client_of("plain").post("/gateway/sessions/token", json=body).json()
    client_of("plain").post("/gateway/message", json=message(session))
    with live.client() as browser:
        seen = events(browser, session, params={"token": issued["token"]})
    assert names(seen) == ["connected", *ORDER]


def test_streams__of_a_revoked_key__end(live, session):
    path, key = f"/gateway/events/{session}", live.bearer("revoked")
    address = f"{live.socket_url}/ws/sessions/{session}"
    with (
        live.client("revoked").stream("GET", path) as response,
        connect(address, origin=Origin(live.url), additional_headers=key) as viewer,
    ):
        chunks = response.iter_raw()
        assert b"connected" in next(chunks)
        live.change(
            "UPDATE tenants_apikey SET revoked_at = CURRENT_TIMESTAMP WHERE name = ?", "revoked"
        )
        # Ends by itself; a stream that went on would run into the client's timeout.
        assert all(b"flow" not in chunk for chunk in chunks)
        assert close_code(viewer) == 4401
    live.change("UPDATE tenants_apikey SET revoked_at = NULL WHERE name = ?", "revoked")


def test_streams__sixty_open__hold_no_threads_and_no_database_connections(live, session):
    def threads() -> int:
        with open(f"/proc/{live.web.process.pid}/status") as status:
            return int(next(line for line in status if line.startswith("Threads:")).split()[1])

    with live.client() as client:
        client.get("/agents")
    before, files = threads(), live.web.process.descriptors()
    with ExitStack() as stack:
        for _ in range(60):
            client = stack.enter_context(live.client())
            response = stack.enter_context(client.stream("GET", f"/gateway/events/{session}"))
            next(response.iter_raw())
        time.sleep(1.5)
        during = threads()
        if live.database.startswith("postgres"):
            name = live.database.rpartition("/")[2]
            held = "SELECT count(*) FROM pg_stat_activity WHERE datname = ? AND usename = ?"
            assert live.rows(held, name, "agentops_app")[0][0] <= 24
    # The shared database threads come up as they are needed, eight at most.
    assert during - before <= 8
    until = time.monotonic() + 15
    while live.web.process.descriptors() > files + 30:
        assert time.monotonic() < until, "closed streams are still open at the server"
        time.sleep(0.1)


# -- websocket -----------------------------------------------------------------------------------


def socket_until(viewer: ClientConnection, last: str) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = []
    while not said or said[-1]["event"] != last:
        said.append(json.loads(viewer.recv(timeout=20)))
    return said


@pytest.fixture
def dial(live: Live, session: str) -> Iterator[Callable[..., ClientConnection]]:
    """Return a function that opens the session's websocket."""
    with ExitStack() as stack:

        def opened(key: str = "full", query: str = "", name: str = session, **options: Any) -> Any:
            headers = live.bearer(key) if key else {}
            address = f"{live.socket_url}/ws/sessions/{name}{query}"
            options = {"origin": live.url, **options}
            return stack.enter_context(connect(address, additional_headers=headers, **options))

        yield opened


def close_code(viewer: ClientConnection) -> int:
    """Return how the server ended it, whatever it said before."""
    with suppress(ConnectionClosed):
        while True:
            viewer.recv(timeout=10)
    return viewer.close_code or 0


def test_websocket__message_in__is_answered_in_frames(dial, session):
    viewer = dial()
    viewer.send(json.dumps({"message": "Quero minha fatura", "message_id": "m1"}))
    said = socket_until(viewer, "flow.end")
    accepted = next(frame for frame in said if frame["event"] == "accepted")
    assert accepted["data"]["message_id"] == "m1"
    assert [frame["event"] for frame in said if frame["id"]][:3] == ORDER[:3]
    viewer.send(json.dumps({"message": "Quero minha fatura", "message_id": "m1"}).encode())
    assert json.loads(viewer.recv(timeout=10))["data"]["duplicate"] is True


@pytest.mark.parametrize(
    ("frame", "code", "field"),
    [
        ("{", "INVALID_JSON", "body"),
        ("[]", "INVALID_GATEWAY_REQUEST", "body"),
        ("{}", "INVALID_GATEWAY_REQUEST", "payload.message"),
        ('{"message": "\\ud800"}', "INVALID_GATEWAY_REQUEST", "message"),
        ('{"message": "oi\\u0000"}', "INVALID_GATEWAY_REQUEST", "message"),
        (b"\xff\xfe", "INVALID_JSON", "body"),
        (json.dumps({"message": "a" * 300_000}), "MESSAGE_TOO_LARGE", "body"),
        (json.dumps({"message": "oi", "session_id": 5}), None, None),
    ],
)
def test_websocket__bad_message__is_a_problem_and_the_socket_stays(dial, quiet, frame, code, field):
    viewer = dial()
    before = quiet.stored()
    viewer.send(frame)
    said = socket_until(viewer, "problem" if code else "accepted")
    if code is None:  # the socket says whose session it is
        return
    assert said[-1]["data"]["code"] == code
    assert [e["field"] for e in said[-1]["data"].get("errors", [])] == ([field] if field else [])
    assert quiet.stored() == before
    viewer.send(json.dumps({"message": "oi"}))
    assert socket_until(viewer, "flow.end")


@pytest.mark.parametrize("after", ["abc", "-1", "", "1.0", "9" * 19, "%D9%A3"])
def test_websocket__bad_after__is_closed_with_4400(dial, after):
    assert close_code(dial(query=f"?after={after}")) == 4400


def test_websocket__refused__is_closed_with_the_status_that_says_why(dial, session):
    assert close_code(dial(key="ak_00000000_nothing")) == 4401
    assert close_code(dial(key="expired")) == 4401
    assert close_code(dial(key="writer")) == 4403
    assert close_code(dial(name="loja:retail_orders:s1")) == 4404
    assert close_code(dial(name="nobody:agent:s1")) == 4404
    assert close_code(dial(name="a%00b")) == 4404
    assert close_code(dial(key="", query="?token=st_nothing")) == 4401


def test_websocket__with_a_key_in_the_query__is_refused(dial, live):
    assert close_code(dial(key="", query=f"?token={live.keys['full']}")) == 4401


@pytest.mark.parametrize("origin", ["https://evil.example", "null", None])
def test_websocket__from_a_foreign_origin_or_none__is_refused(dial, origin):
    with pytest.raises(InvalidStatus) as refused:
        dial(origin=origin)
    assert refused.value.response.status_code == 403


def test_websocket__of_a_viewers_token__reads_and_does_not_write(dial, client_of, session):
    body = {"session_id": session, "scopes": ["session:read"]}
    token = client_of("plain").post("/gateway/sessions/token", json=body).json()["token"]
    viewer = dial(key="", query=f"?token={token}")
    viewer.send(json.dumps({"message": "oi"}))
    assert socket_until(viewer, "problem")[-1]["data"]["code"] == "MISSING_SCOPE"
    assert close_code(dial(key="", name="other", query=f"?token={token}")) == 4404


def test_websocket__after__resumes(dial, client, session):
    client.post("/gateway/message", json=message(session))
    stored = [f["id"] for f in socket_until(dial(query="?after=0"), "flow.end") if f["id"]]
    resumed = socket_until(dial(query=f"?after={stored[3]}"), "flow.end")
    assert [f["id"] for f in resumed if f["id"]] == stored[4:]
    assert socket_until(dial(query="?after=5000"), "resync")[-1]["id"] is None


# -- cut and resumed -----------------------------------------------------------------------------

TIMES = 50


def cut_read(live: Live, path: str, cursor: int, limit: int) -> bytes:
    """Read up to ``limit`` bytes of a stream and break the connection, wherever that is."""
    wire = http.client.HTTPConnection(urlsplit(live.url).netloc, timeout=20)
    wire.request("GET", path, headers={**live.bearer("papo"), "Last-Event-ID": str(cursor)})
    response = wire.getresponse()
    body = b""
    while len(body) < limit and b"event: flow.end" not in body.rpartition(b"\n\n")[0]:
        chunk = response.read1(limit - len(body))
        assert chunk, "the server ended the stream"
        body += chunk
    assert wire.sock is not None
    wire.sock.shutdown(socket.SHUT_RDWR)
    wire.close()
    return body


def resumed(read: Callable[[int], list[Seen]]) -> tuple[list[Seen], int]:
    """Return every stored event that came over broken connections, and how many those were."""
    seen: list[Seen] = []
    for connection in range(1, 500):
        cursor = seen[-1].id if seen else 0
        assert cursor is not None
        seen += [event for event in read(cursor) if event.id is not None]
        if seen and seen[-1].event == "flow.end":
            return seen, connection
    raise AssertionError("flow.end never came")


def check_whole(live: Live, client: httpx2.Client, seen: list[Seen]) -> None:
    """The events are all there, once, and their text is the answer's."""
    assert ids(seen) == list(range(1, len(seen) + 1))
    turn = seen[0].data["payload"]["turn_id"]
    text = client.get(f"/gateway/turns/{turn}").json()["text"]
    assert "".join(event.text for event in seen) == text
    assert len(text) > 1500


def test_sse__cut_at_random_bytes_fifty_times__gives_the_same_text(live, client_of, session):
    dice = random.Random(6)
    client, cuts = client_of("papo"), 0
    for number in range(TIMES):
        name = f"{session}-{number}"
        path = f"/gateway/events/papo:falador:{name}"
        with posted_soon(client, message(name, message_id="m"), after=dice.uniform(0, 0.05)):
            seen, connections = resumed(
                lambda cursor, path=path: [  # type: ignore[misc]
                    event
                    for event in frames(
                        [cut_read(live, path, cursor, dice.randint(1, dice.choice((1500, 9000))))]
                    )
                    if event is not None
                ]
            )
        check_whole(live, client, seen)
        cuts += connections - 1
    print(f"\nSSE: {TIMES} of {TIMES} texts identical over {cuts} cuts at random bytes")
    assert cuts >= TIMES


def test_websocket__cut_at_random_frames_fifty_times__gives_the_same_text(live, client_of, session):
    dice = random.Random(7)
    client, cuts = client_of("papo"), 0

    def read(name: str, cursor: int) -> list[Seen]:
        address = f"{live.socket_url}/ws/sessions/papo:falador:{name}?after={cursor}"
        seen = []
        headers = live.bearer("papo")
        with connect(address, origin=Origin(live.url), additional_headers=headers) as viewer:
            for _ in range(dice.randint(1, 6)):
                frame = json.loads(viewer.recv(timeout=20))
                seen.append(Seen(frame["event"], frame["data"], frame["id"]))
                if frame["event"] == "flow.end":
                    break
            viewer.socket.shutdown(socket.SHUT_RDWR)  # no goodbye
        return seen

    for number in range(TIMES):
        name = f"{session}-{number}"
        with posted_soon(client, message(name, message_id="m"), after=dice.uniform(0, 0.05)):
            seen, connections = resumed(lambda cursor, name=name: read(name, cursor))  # type: ignore[misc]
        check_whole(live, client, seen)
        cuts += connections - 1
    print(f"\nwebsocket: {TIMES} of {TIMES} texts identical over {cuts} cuts at random frames")
    assert cuts >= TIMES
