"""Reading a GatewayRequest, without a server."""

import json

import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from apps.gateway.bodies import body_read
from apps.gateway.contract import Envelope, inbound_read
from apps.gateway.older_shapes import call_request_of, request_of
from apps.gateway.problems import Problem
from apps.runtime.turn import Caller, Inbound

CALLER = Caller(principal="key:1")


def read(body: dict, **envelope: str) -> Inbound:
    return inbound_read(body, tenant_slug="acme", caller=CALLER, envelope=Envelope(**envelope))


def message(**payload: object) -> dict:
    return {"payload": {"message": "oi", **payload}}


@pytest.mark.parametrize("name", ["message", "text", "input", "user_text"])
def test_message__under_any_of_its_names__is_read(name):
    assert read({"payload": {name: " Olá "}}).text == " Olá "


def test_message__several_names__the_first_that_says_something_wins():
    assert read({"payload": {"message": " ", "text": "b", "input": "c"}}).text == "b"


def test_absent_and_null__are_the_same():
    names = ("session_id", "user_id", "message_id", "business_context", "context", "metadata")
    nulls = read({"channel": None, "agent_id": None, **message(**dict.fromkeys(names))})
    absent = read(message())
    for said in (nulls, absent):
        assert (said.channel, said.agent, said.user_id) == ("web", None, "")
    assert nulls.text == absent.text


def test_session_id__absent__is_a_new_one_nobody_can_guess():
    sessions = {read(message()).session for _ in range(100)}
    assert len(sessions) == 100
    assert min(map(len, sessions)) >= 32


def test_message_id__absent__is_made_up():
    assert read(message()).message_id != read(message()).message_id
    assert read(message(message_id="m1")).message_id == "m1"


def test_session_id__scoped__names_its_agent():
    said = read(message(session_id="acme:billing:s1"))
    assert (said.agent, said.session) == ("billing", "s1")
    same = read({"agent_id": "billing", **message(session_id="acme:billing:s:1")})
    assert (same.agent, same.session) == ("billing", "s:1")


def test_session_id__with_blanks_and_slashes__gets_underscores():
    assert read(message(session_id=" a b/c ")).session == "a_b_c"


def test_session_id__beside_the_payload__counts_when_the_payload_has_none():
    assert read({"session_id": "outer", **message()}).session == "outer"
    assert read({"session_id": "outer", **message(session_id="inner")}).session == "inner"


def test_token__without_a_session_id__means_its_own_session():
    said = read(message(), session="acme:billing:visit")
    assert (said.agent, said.session) == ("billing", "visit")


def test_x_channel__counts_when_the_body_names_none():
    assert read(message(), channel="voice").channel == "voice"
    assert read({"channel": "web", **message()}, channel="voice").channel == "web"


def test_x_ura_call_id__fills_the_payload_only_when_absent():
    assert read(message(), ura_call_id="URA-1").payload["ura_call_id"] == "URA-1"
    assert read(message(ura_call_id="U2"), ura_call_id="URA-1").payload["ura_call_id"] == "U2"


def test_request_id__of_the_metadata__wins_over_the_header():
    assert read(message(), request_id="h1").request_id == "h1"
    assert read(message(metadata={"request_id": "b1"}), request_id="h1").request_id == "b1"


def test_contract_version__ours__is_accepted_wherever_it_is_said():
    version = {"contract_version": "gateway-request-v1"}
    said = read({"metadata": version, **message(metadata=version)}, contract="gateway-request-v1")
    assert said.text == "oi"


def test_contract_version__right_in_the_header_and_wrong_in_the_body__is_refused():
    with pytest.raises(Problem, match="contract_version"):
        read(message(metadata={"contract_version": "v2"}), contract="gateway-request-v1")


def test_canonical_keys__may_be_whole_numbers():
    assert read(message(customer_key=11999999999)).payload["customer_key"] == 11999999999


# -- older shapes of the debug doors -----------------------------------------------------------


def test_request_of__text_and_context__takes_agent_and_tenant_from_the_context():
    body = request_of(
        {"text": "oi", "context": {"agent_id": "a", "tenant_id": "t", "order_id": "9"}}
    )
    assert (body["agent_id"], body["tenant_id"]) == ("a", "t")
    assert body["payload"]["text"] == "oi"
    assert body["payload"]["context"]["order_id"] == "9"


def test_request_of__flat__is_the_payload():
    body = request_of({"session_id": "s", "customer_id": "1", "tenant_id": "t", "agent_id": "a"})
    assert body["payload"] == {"session_id": "s", "customer_id": "1", "context": {}}
    assert (body["tenant_id"], body["agent_id"]) == ("t", "a")


def test_request_of__nested__is_unchanged():
    nested = {"tenant_id": "t", "payload": {"message": "oi"}}
    assert request_of(nested) == nested


def test_call_request_of__plain__is_the_tools_arguments():
    body = call_request_of({"msisdn": "119", "invoice_id": "INV-1", "tenant_id": "t"})
    assert body["payload"] == {"tool_arguments": {"msisdn": "119", "invoice_id": "INV-1"}}
    assert body["tenant_id"] == "t"


def test_call_request_of__contexts__has_no_explicit_arguments():
    body = call_request_of(
        {"business_context": {"customer_key": "1"}, "original_context": {"session_id": "s"}}
    )
    assert body["payload"] == {
        "business_context": {"customer_key": "1"},
        "context": {"session_id": "s"},
        "tool_arguments": {},
        "session_id": "s",
    }


# -- whatever comes ------------------------------------------------------------------------------

LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20),
    st.text(st.characters(min_codepoint=0xD7F0, max_codepoint=0xE010), max_size=4),
    st.sampled_from(["", " ", "\x00", "acme:a:b", "x" * 300, "gateway-request-v1", 10**400]),
)  # fmt: skip
NAMES = st.sampled_from(
    [
        "channel", "tenant_id", "agent_id", "payload", "backend_id", "session_id", "metadata",
        "message", "text", "input", "user_text", "user_id", "message_id", "business_context",
        "context", "tool_arguments", "contract_version", "request_id", "customer_key",
        "original_context", "arguments", "ura_call_id", "\x00", "\ud800", "",
    ]
)  # fmt: skip
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=25,
)
BODIES = st.fixed_dictionaries(
    {}, optional={"payload": st.dictionaries(NAMES, VALUES, max_size=8), "channel": LEAVES,
                  "agent_id": LEAVES, "metadata": VALUES, "tenant_id": LEAVES},
)  # fmt: skip


def found_by(function, *args):
    """Return what ``function`` returns, or the problem it raises."""
    try:
        return function(*args)
    except Problem as problem:
        return problem


@given(raw=st.binary(max_size=300))
@example(raw=b'{"a":' * 2000)
@example(raw=b'{"payload":{"message":"\\ud800"}}')
@hypothesis_settings(max_examples=300, deadline=None)
def test_body_read__any_bytes__is_an_object_or_a_problem(raw):
    found = found_by(body_read, raw)
    if isinstance(found, Problem):
        assert found.status in (400, 413, 422)
        found.response().content.decode()
    else:
        assert isinstance(found, dict)


@pytest.mark.parametrize("shape", [dict, request_of, call_request_of])
@given(body=BODIES)
@hypothesis_settings(max_examples=300, deadline=None)
def test_inbound_read__any_object__is_an_inbound_or_a_problem_that_names_the_field(shape, body):
    raw = json.dumps(body).encode()
    found = found_by(lambda: read(shape(body_read(raw))))
    if isinstance(found, Problem):
        assert found.status in (400, 404, 422)
        assert found.status != 422 or [error["field"] for error in found.errors] != []
        found.response().content.decode()
        return
    assert found.text.strip()
    assert found.session
    assert found.message_id
    for name in (found.session, found.message_id, found.user_id, found.request_id):
        assert len(name) <= 200
        assert "\x00" not in name.encode().decode()
