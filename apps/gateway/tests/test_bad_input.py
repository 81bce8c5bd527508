"""What is refused: with which status and code, naming which field, and with nothing stored."""

import json
from typing import Any

import pytest

GOOD: dict[str, Any] = {"channel": "web", "payload": {"message": "oi", "session_id": "bad-input"}}
DEEP: Any = "x"
for _ in range(60):
    DEEP = {"a": DEEP}


def body(**changes: Any) -> bytes:
    """Return a good message with ``changes`` at the top, as JSON."""
    return json.dumps({**GOOD, **changes}).encode()


def payload(**changes: Any) -> bytes:
    """Return a good message with ``changes`` in its payload, as JSON."""
    return body(payload={**GOOD["payload"], **changes})


# what -> (the body, status, code, the field that the problem names)
BODIES: dict[str, tuple[bytes, int, str, str]] = {
    "nothing": (b"", 400, "INVALID_JSON", "body"),
    "invalid JSON": (b'{"payload": {', 400, "INVALID_JSON", "body"),
    "invalid UTF-8": (b'{"payload": {"message": "\xff\xfe"}}', 400, "INVALID_JSON", "body"),
    "UTF-16": (json.dumps(GOOD).encode("utf-16"), 400, "INVALID_JSON", "body"),
    "NaN": (b'{"payload": {"message": "oi", "x": NaN}}', 400, "INVALID_JSON", "body"),
    "a number of 5,000 digits": (
        b'{"payload": {"message": "oi", "x": ' + b"9" * 5000 + b"}}", 400, "INVALID_JSON", "body",
    ),
    "100,000 brackets": (b"[" * 100_000, 400, "INVALID_JSON", "body"),
    "an infinite number": (
        b'{"payload": {"message": "oi", "x": 1e999}}', 422, "INVALID_GATEWAY_REQUEST", "payload.x",
    ),
    "60 levels": (body(deep=DEEP), 422, "INVALID_GATEWAY_REQUEST", "deep" + ".a" * 32),
    "a list": (b"[]", 422, "INVALID_GATEWAY_REQUEST", "body"),
    "a text": (b'"oi"', 422, "INVALID_GATEWAY_REQUEST", "body"),
    "null": (b"null", 422, "INVALID_GATEWAY_REQUEST", "body"),
    "an empty object": (b"{}", 422, "INVALID_GATEWAY_REQUEST", "payload"),
    "the raw message without a payload": (
        b'{"message": "oi", "session_id": "s"}', 422, "INVALID_GATEWAY_REQUEST", "payload",
    ),
    "nulls everywhere": (
        b'{"channel": null, "tenant_id": null, "agent_id": null, "payload": null}', 422,
        "INVALID_GATEWAY_REQUEST", "payload",
    ),
    "nulls in the payload": (
        b'{"payload": {"message": null, "text": null, "session_id": null, "user_id": null,'
        b' "message_id": null, "business_context": null, "metadata": null}}', 422,
        "INVALID_GATEWAY_REQUEST", "payload.message",
    ),
    "a payload that is a list": (body(payload=[]), 422, "INVALID_GATEWAY_REQUEST", "payload"),
    "no message": (body(payload={}), 422, "INVALID_GATEWAY_REQUEST", "payload.message"),
    "an empty message": (payload(message=""), 422, "INVALID_GATEWAY_REQUEST", "payload.message"),
    "a blank message": (
        payload(message=" \n\t\u00a0\u2003"), 422, "INVALID_GATEWAY_REQUEST", "payload.message",
    ),
    "a message that is a number": (
        payload(message=7), 422, "INVALID_GATEWAY_REQUEST", "payload.message",
    ),
    "a text that is a list": (
        payload(message=None, text=["oi"]), 422, "INVALID_GATEWAY_REQUEST", "payload.text",
    ),
    "a message of 1 MB": (payload(message="a" * 1_048_576), 413, "MESSAGE_TOO_LARGE", "body"),
    "a body of 9 MB": (payload(message="a" * 9_437_184), 413, "MESSAGE_TOO_LARGE", "body"),
    "NUL in the message": (
        payload(message="oi\x00"), 422, "INVALID_GATEWAY_REQUEST", "payload.message",
    ),
    "NUL in a name": (payload(**{"a\x00b": 1}), 422, "INVALID_GATEWAY_REQUEST", "payload.a?b"),
    "a lone surrogate": (
        b'{"payload": {"message": "oi \\ud800"}}', 422, "INVALID_GATEWAY_REQUEST", "payload.message",
    ),
    "a lone surrogate deep inside": (
        b'{"payload": {"message": "oi", "context": {"a": ["\\udfff"]}}}', 422,
        "INVALID_GATEWAY_REQUEST", "payload.context.a[0]",
    ),
    "a lone surrogate in a name": (
        b'{"payload": {"message": "oi", "\\ud800": 1}}', 422, "INVALID_GATEWAY_REQUEST", "payload.?",
    ),
    "a channel that is a number": (body(channel=1), 422, "INVALID_GATEWAY_REQUEST", "channel"),
    "an unknown channel": (body(channel="fax"), 422, "INVALID_GATEWAY_REQUEST", "channel"),
    "a tenant that is an object": (
        body(tenant_id={}), 422, "INVALID_GATEWAY_REQUEST", "tenant_id",
    ),
    "an unknown tenant": (body(tenant_id="nobody"), 404, "NOT_FOUND", "tenant_id"),
    "an agent that is a list": (body(agent_id=[]), 422, "INVALID_GATEWAY_REQUEST", "agent_id"),
    "an unknown agent": (body(agent_id="vip_agent"), 404, "UNKNOWN_AGENT", "agent_id"),
    "an unknown backend": (body(backend_id="contas"), 404, "UNKNOWN_BACKEND", "backend_id"),
    "a session that is a number": (
        payload(session_id=5), 422, "INVALID_GATEWAY_REQUEST", "payload.session_id",
    ),
    "a session of 201 characters": (
        payload(session_id="s" * 201), 422, "INVALID_GATEWAY_REQUEST", "payload.session_id",
    ),
    "a session with a line break": (
        payload(session_id="a\nb"), 422, "INVALID_GATEWAY_REQUEST", "payload.session_id",
    ),
    "a session of another tenant": (
        payload(session_id="loja:retail_orders:s1"), 404, "NOT_FOUND", "",
    ),
    "a session of a tenant that is none": (
        payload(session_id="nobody:agent:s1"), 404, "NOT_FOUND", "",
    ),
    "a session of another agent": (
        body(agent_id="retail_orders", payload={"message": "oi", "session_id": "default:telecom_contas:x"}),
        422, "INVALID_GATEWAY_REQUEST", "payload.session_id",
    ),
    "a session of an unknown agent": (
        payload(session_id="default:vip_agent:s1"), 404, "UNKNOWN_AGENT", "agent_id",
    ),
    "a message id that is a number": (
        payload(message_id=12), 422, "INVALID_GATEWAY_REQUEST", "payload.message_id",
    ),
    "a message id of 201 characters": (
        payload(message_id="m" * 201), 422, "INVALID_GATEWAY_REQUEST", "payload.message_id",
    ),
    "a user that is a truth": (
        payload(user_id=True), 422, "INVALID_GATEWAY_REQUEST", "payload.user_id",
    ),
    "a business context that is a text": (
        payload(business_context="x"), 422, "INVALID_GATEWAY_REQUEST", "payload.business_context",
    ),
    "a customer key that is a list": (
        payload(business_context={"customer_key": ["1"]}), 422, "INVALID_GATEWAY_REQUEST",
        "payload.business_context.customer_key",
    ),
    "a flat customer key that is an object": (
        payload(customer_key={}), 422, "INVALID_GATEWAY_REQUEST", "payload.customer_key",
    ),
    "tool arguments that are a list": (
        payload(tool_arguments=[1]), 422, "INVALID_GATEWAY_REQUEST", "payload.tool_arguments",
    ),
    "metadata that is a number": (
        payload(metadata=1), 422, "INVALID_GATEWAY_REQUEST", "payload.metadata",
    ),
    "outer metadata that is a text": (
        body(metadata="x"), 422, "INVALID_GATEWAY_REQUEST", "metadata",
    ),
    "another contract version": (
        payload(metadata={"contract_version": "gateway-request-v2"}), 422, "UNSUPPORTED_CONTRACT",
        "payload.metadata.contract_version",
    ),
    "a contract version that is a number": (
        payload(metadata={"contract_version": 1}), 422, "UNSUPPORTED_CONTRACT",
        "payload.metadata.contract_version",
    ),
    "another outer contract version": (
        body(metadata={"contract_version": "v0"}), 422, "UNSUPPORTED_CONTRACT",
        "metadata.contract_version",
    ),
    "a request id that is a list": (
        payload(metadata={"request_id": []}), 422, "INVALID_GATEWAY_REQUEST",
        "payload.metadata.request_id",
    ),
}  # fmt: skip

# what -> (headers, status, code, the field that the problem names)
HEADERS: dict[str, tuple[dict[str, str], int, str, str]] = {
    "another contract version": (
        {"X-Agent-Framework-Contract": "gateway-request-v9"}, 422, "UNSUPPORTED_CONTRACT",
        "X-Agent-Framework-Contract",
    ),
    "no content type": ({"content-type": ""}, 415, "UNSUPPORTED_MEDIA_TYPE", ""),
    "a form": (
        {"content-type": "application/x-www-form-urlencoded"}, 415, "UNSUPPORTED_MEDIA_TYPE", "",
    ),
    "a multipart form": (
        {"content-type": "multipart/form-data; boundary=x"}, 415, "UNSUPPORTED_MEDIA_TYPE", "",
    ),
    "another charset": (
        {"content-type": "application/json; charset=latin-1"}, 415, "UNSUPPORTED_MEDIA_TYPE", "",
    ),
    "a wait that is no number": ({"prefer": "wait=soon"}, 400, "INVALID_PREFERENCE", "Prefer"),
    "a negative wait": ({"prefer": "wait=-1"}, 400, "INVALID_PREFERENCE", "Prefer"),
    "an empty wait": ({"prefer": "respond-async, wait="}, 400, "INVALID_PREFERENCE", "Prefer"),
    "an unknown channel": ({"x-channel": "fax"}, 422, "INVALID_GATEWAY_REQUEST", "x-channel"),
    "a call id of 201 characters": (
        {"x-ura-call-id": "u" * 201}, 422, "INVALID_GATEWAY_REQUEST", "x-ura-call-id",
    ),
    "a scheme that is not ours": ({"authorization": "Basic YTpi"}, 401, "BAD_CREDENTIAL", ""),
    "a key nobody issued": (
        {"authorization": "Bearer ak_00000000_nothing"}, 401, "UNKNOWN_KEY", "",
    ),
    "a token nobody signed": ({"authorization": "Bearer st_nothing"}, 401, "INVALID_TOKEN", ""),
    "an expired key": ({"authorization": "expired"}, 401, "EXPIRED_KEY", ""),
    "a key without the scope": ({"authorization": "reader"}, 403, "MISSING_SCOPE", ""),
    "a key of an undeployed tenant": ({"authorization": "empty"}, 503, "NOT_DEPLOYED", ""),
}  # fmt: skip


def refused(response, status: int, code: str, field: str) -> None:
    """Check the problem body."""
    problem = response.json()
    assert (response.status_code, problem["code"]) == (status, code), problem
    assert response.headers["content-type"] == "application/problem+json"
    assert problem["status"] == status
    assert problem["title"]
    assert problem["detail"]
    assert len(response.content) < 2000
    assert [error["field"] for error in problem.get("errors", [])] == ([field] if field else [])


@pytest.mark.parametrize("what", BODIES)
@pytest.mark.parametrize("door", ["/gateway/message", "/gateway/message/sse"])
def test_message__bad_body__is_refused_and_nothing_stored(client, quiet, what, door):
    content, status, code, field = BODIES[what]
    before = quiet.stored()
    headers = {"content-type": "application/json", "accept": "text/event-stream"}
    refused(client.post(door, content=content, headers=headers), status, code, field)
    assert quiet.stored() == before


@pytest.mark.parametrize("what", HEADERS)
def test_message__bad_header__is_refused_and_nothing_stored(client, quiet, what):
    headers, status, code, field = HEADERS[what]
    key = headers.get("authorization", "")
    if key in quiet.keys:
        headers = quiet.bearer(key)
    before = quiet.stored()
    sent = {"content-type": "application/json", **headers}
    content = json.dumps({**GOOD, "channel": None}).encode()
    refused(client.post("/gateway/message", content=content, headers=sent), status, code, field)
    assert quiet.stored() == before


def test_message__of_50_mb_in_chunks__is_413_and_costs_the_process_no_memory(client, quiet):
    def memory() -> int:
        with open(f"/proc/{quiet.web.process.pid}/status") as status:
            return int(next(line for line in status if line.startswith("VmHWM:")).split()[1])

    before, rows = memory(), quiet.stored()
    chunks = (b'{"payload": {"message": "' if n == 0 else b"a" * 65536 for n in range(800))
    headers = {"content-type": "application/json"}
    refused(
        client.post("/gateway/message", content=chunks, headers=headers),
        413, "MESSAGE_TOO_LARGE", "body",
    )  # fmt: skip
    assert memory() - before < 20_000  # kB
    assert quiet.stored() == rows


def test_message__same_id_with_another_body__is_a_conflict_and_adds_nothing(client, quiet, session):
    first = {"payload": {"message": "oi", "session_id": session, "message_id": "m1"}}
    other = {"payload": {"message": "tchau", "session_id": session, "message_id": "m1"}}
    answered = client.post("/gateway/message", json=first)
    before = quiet.stored()
    refused(
        client.post("/gateway/message", json=other), 409, "MESSAGE_ID_REUSED", "payload.message_id"
    )
    assert quiet.stored() == before
    assert client.post("/gateway/message", json=first).json() == answered.json()


@pytest.mark.parametrize(
    ("method", "door", "allowed"),
    [
        ("GET", "/gateway/message", "POST"),
        ("PUT", "/gateway/message", "POST"),
        ("DELETE", "/gateway/message/sse", "POST"),
        ("POST", "/gateway/events/s1", "GET"),
        ("POST", "/sessions/s1/messages", "GET"),
        ("PATCH", "/agents", "GET"),
        ("POST", "/ready", "GET, HEAD"),
        ("GET", "/debug/route", "POST"),
    ],
)
def test_door__wrong_method__says_the_right_one(client, method, door, allowed):
    answer = client.request(method, door)
    refused(answer, 405, "METHOD_NOT_ALLOWED", "")
    assert answer.headers["allow"] == allowed


@pytest.mark.parametrize(
    "session_id",
    [
        "nothing-here", "default:telecom_contas:nothing", "loja:retail_orders:nothing",
        "nobody:agent:s", "a%00b", "a%0Ab", "::", "default::x", "x" * 401, "%ff%fe", "a%2Fb",
    ],
)  # fmt: skip
@pytest.mark.parametrize("what", ["messages", "checkpoint"])
def test_session__that_is_not_there__is_the_same_404(client_of, session_id, what):
    answer = client_of("full").get(f"/sessions/{session_id}/{what}")
    refused(answer, 404, "NOT_FOUND", "")
    assert answer.content == client_of("full").get("/nowhere").content


def test_session__of_another_tenant__is_absent_byte_for_byte(client_of, session):
    full, loja = client_of("full"), client_of("loja")
    body = {"payload": {"message": "oi", "session_id": session}}
    key = full.post("/gateway/message", json=body).json()["session_id"]
    for path in (
        f"/sessions/{key}/messages",
        f"/sessions/{key}/checkpoint",
        f"/gateway/events/{key}",
    ):
        with full.stream("GET", path) as own:
            assert own.status_code == 200
        foreign, absent = loja.get(path), loja.get(path.replace(session, "nothing"))
        assert (foreign.status_code, foreign.content) == (404, absent.content)


@pytest.mark.parametrize("value", ["abc", "-1", "1.5", "1e3", "٣", "9" * 19, "1 2"])
def test_events__bad_last_event_id__is_400(client, session, value):
    query = client.get(f"/gateway/events/{session}", params={"last_event_id": value})
    refused(query, 400, "INVALID_CURSOR", "Last-Event-ID")
    if value.isascii():
        header = client.get(f"/gateway/events/{session}", headers={"Last-Event-ID": value})
        refused(header, 400, "INVALID_CURSOR", "Last-Event-ID")


@pytest.mark.parametrize("value", ["0", "-1", "501", "x", "", "٣"])
def test_messages__bad_limit__is_422(client, session, value):
    answer = client.get(f"/sessions/{session}/messages", params={"limit": value})
    refused(answer, 422, "INVALID_PARAMETER", "limit")


def test_turn__unknown_or_no_uuid__is_404(client):
    for turn in ("00000000-0000-4000-8000-000000000000", "nothing", "1"):
        refused(client.get(f"/gateway/turns/{turn}"), 404, "NOT_FOUND", "")


def test_host__that_is_not_served__is_400_without_a_page(live):
    with live.client() as client:
        answer = client.get("/health", headers={"host": "evil.example"})
    refused(answer, 400, "BAD_REQUEST", "")
