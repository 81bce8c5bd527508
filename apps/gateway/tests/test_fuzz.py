"""Generated requests against the running product: never a 500, always a documented answer."""

import json
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from apps.gateway.tests.test_contract import BODIES, LEAVES, NAMES, VALUES

BOUNDED = hypothesis_settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
# What HTTP lets through; the rest never reaches a door.
HEADER_TEXT = st.text(
    st.characters(min_codepoint=32, max_codepoint=126)
    | st.characters(min_codepoint=161, max_codepoint=255),
    max_size=30,
).map(str.strip) | st.just("sessionid=nobody")
HEADERS = st.dictionaries(
    st.sampled_from(
        ["prefer", "accept", "x-request-id", "x-channel", "x-ura-call-id", "last-event-id",
         "x-agent-framework-contract", "accept-language", "cookie"]
    ),
    HEADER_TEXT, max_size=3,
)  # fmt: skip
# A message that fails late: everything up to the store is right but for one field.
NEARLY = st.builds(
    lambda name, value: {"payload": {"message": "oi", "session_id": "fuzz", name: value}},
    NAMES.filter(lambda name: name not in ("message", "session_id")),
    VALUES,
)


def send(client, method, path, headers, **content):
    raw = {name: value.encode("latin-1") for name, value in headers.items()}
    answer = client.request(method, path, headers=raw, **content)
    assert answer.status_code < 500, answer.text
    return answer


@pytest.mark.parametrize("path", ["/gateway/message", "/debug/route", "/debug/identity"])
@given(body=BODIES | NEARLY, headers=HEADERS)
@BOUNDED
def test_post__any_body__is_answered_as_documented(client, path, body, headers):
    headers = {"prefer": "wait=0", **headers, "content-type": "application/json"}
    headers["accept"] = "application/json"
    send(client, "POST", path, headers, content=json.dumps(body).encode())


@given(
    tool=st.sampled_from(["consultar_fatura", "solicitar_troca", "nothing", "%00", "a b"]),
    body=st.dictionaries(
        NAMES | st.sampled_from(["msisdn", "invoice_id", "business_context"]), VALUES, max_size=5
    ),
)
@BOUNDED
def test_tool_call__any_body__is_answered_as_documented(client, tool, body):
    headers = {"content-type": "application/json"}
    content = json.dumps(body).encode()
    send(client, "POST", f"/debug/mcp/call/{tool}", headers, content=content)


@given(
    path=st.sampled_from(["/sessions/{}/messages", "/sessions/{}/checkpoint", "/gateway/turns/{}"]),
    name=st.text(max_size=20) | st.sampled_from(["default:x:y", "..", "%2e%2e", "tim:a:b"]),
    query=st.dictionaries(
        st.sampled_from(["limit", "tenant_id", "session_id", "token", "days", "last_event_id"]),
        st.text(max_size=12), max_size=2,
    ),
    headers=HEADERS,
)  # fmt: skip
@BOUNDED
def test_get__any_name_and_query__is_answered_as_documented(client, path, name, query, headers):
    where = path.format(quote(name.encode("utf-8", "replace"), safe="%"))
    send(client, "GET", where, headers, params=query)


@given(
    query=st.dictionaries(
        st.sampled_from(["days", "tenant_id", "session_id"]), st.text(max_size=12)
    )
)
@pytest.mark.parametrize("path", ["/debug/usage", "/debug/env", "/debug/mcp/tools", "/agents"])
@BOUNDED
def test_get__any_query__is_answered_as_documented(client, path, query):
    send(client, "GET", path, {}, params=query)


@given(body=st.dictionaries(
    st.sampled_from(["tenant_id", "agent_id", "session_id", "customer", "scopes", "lifetime_seconds"]),
    LEAVES | VALUES, max_size=4,
))  # fmt: skip
@BOUNDED
def test_token__any_body__is_answered_as_documented(client, body):
    headers = {"content-type": "application/json"}
    content = json.dumps(body).encode()
    send(client, "POST", "/gateway/sessions/token", headers, content=content)
