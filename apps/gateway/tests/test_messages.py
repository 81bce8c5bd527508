"""One message in, one answer out, over HTTP."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

INVOICE = {"customer_key": "11999999999", "contract_key": "3000131180"}


def message(session: str, text: str = "Quero entender minha fatura", **more: Any) -> dict[str, Any]:
    return {"channel": "web", "payload": {"message": text, "session_id": session, **more}}


def test_message__about_an_invoice__is_answered_from_both_tools(client, live, session):
    amount = live.telecom.rows("SELECT valor_total FROM faturas WHERE invoice_id = '3000131180'")
    before = len(live.telecom.calls())
    answer = client.post("/gateway/message", json=message(session, **INVOICE))
    assert answer.status_code == 200
    metadata = answer.json()["metadata"]
    assert metadata["route"] == "billing_agent"
    assert metadata["intent"] == "billing_invoice_explanation"
    # Both at once: which arrives first is the network's business.
    assert sorted(call.tool for call in live.telecom.calls()[before:]) == [
        "consultar_fatura",
        "consultar_pagamentos",
    ]
    assert f"R$ {amount[0][0]:.2f}".replace(".", ",") in answer.json()["text"]


def test_message__without_agent_id__is_for_the_default_agent(client, session):
    for agent in ({}, {"agent_id": None}, {"agent_id": " "}):
        answer = client.post("/gateway/message", json={**message(session, "oi"), **agent})
        assert answer.json()["session_id"] == f"default:assistente:{session}"
        assert answer.json()["metadata"]["agent_id"] == "assistente"


def test_message__without_session_id__gets_a_new_one_each_time(client):
    sessions = {
        client.post("/gateway/message", json={"payload": {"message": "oi"}}).json()["session_id"]
        for _ in range(3)
    }
    assert len(sessions) == 3


def test_message__of_one_visitor__is_unseen_by_the_next(client):
    first = client.post("/gateway/message", json={"payload": {"message": "oi", **INVOICE}}).json()
    second = client.post("/gateway/message", json={"payload": {"message": "minha fatura"}}).json()
    assert first["session_id"] != second["session_id"]
    assert second["metadata"]["business_context"] == {}


def test_message__in_a_scoped_session__continues_it(client, session):
    first = client.post(
        "/gateway/message", json={"agent_id": "telecom_contas", **message(session, **INVOICE)}
    ).json()
    assert first["session_id"] == f"default:telecom_contas:{session}"
    second = client.post("/gateway/message", json=message(first["session_id"], "e o valor?")).json()
    assert second["session_id"] == first["session_id"]
    said = client.get(f"/sessions/{first['session_id']}/messages").json()["messages"]
    assert [line["role"] for line in said] == ["user", "assistant"] * 2


def test_x_request_id__is_echoed_and_kept(client, live, session):
    headers = {"x-request-id": f"req-{session}"}
    answer = client.post("/gateway/message", json=message(session, "oi"), headers=headers)
    assert answer.headers["x-request-id"] == f"req-{session}"
    turn = answer.json()["metadata"]["turn_id"].replace("-", "")
    kept = live.rows("SELECT id, request_id FROM conversations_turnrecord")
    assert {str(pk).replace("-", ""): request for pk, request in kept}[turn] == f"req-{session}"


@pytest.mark.parametrize("value", ["", "a b", "x" * 101, "<script>"])
def test_x_request_id__that_is_none__is_replaced(client, value):
    answer = client.get("/health", headers={"x-request-id": value})
    assert answer.headers["x-request-id"] != value
    assert len(answer.headers["x-request-id"]) == 32


def test_x_channel_and_x_ura_call_id__count_when_the_body_says_nothing(client, session):
    headers = {"x-channel": "voice", "x-ura-call-id": "URA-9"}
    body = {"payload": {"message": "minha fatura", "session_id": session}}
    answer = client.post("/debug/identity", json=body, headers=headers).json()
    assert answer["technical_identity"]["channel"] == "voice"
    assert answer["business_context"]["interaction_key"] == "URA-9"
    assert answer["business_context"]["source_fields"]["interaction_key"] == "ura_call_id"


@pytest.mark.parametrize("channel", ["web", "whatsapp", "voice", "teams", "api"])
def test_answer__on_any_channel__is_the_same_object(client, session, channel):
    answer = client.post("/gateway/message", json={**message(session, "oi"), "channel": channel})
    assert list(answer.json()) == ["channel", "session_id", "text", "metadata"]
    assert answer.json()["channel"] == channel


def test_answer__full_record__needs_trace_read(client_of, session):
    plain = client_of("channel").post("/gateway/message", json=message(session, **INVOICE)).json()
    assert "trace" not in plain["metadata"]
    assert all(set(result) == {"tool", "ok"} for result in plain["metadata"]["mcp_results"])
    turn = f"/gateway/turns/{plain['metadata']['turn_id']}"
    full = client_of("full").get(turn).json()
    assert full["metadata"]["trace"]["tool_calls"][0]["result"]["invoice_id"] == "3000131180"
    assert full["text"] == plain["text"]


def test_customer__named_by_a_key_without_identity_assert__is_ignored(client_of, session):
    answer = client_of("plain").post("/gateway/message", json=message(session, **INVOICE)).json()
    assert answer["metadata"]["identity_ignored"] == ["customer_key"]
    assert "214,37" not in answer["text"]


# -- waiting -----------------------------------------------------------------------------------


def test_wait__shorter_than_the_turn__gives_202_and_a_location(client_of, session):
    client = client_of("papo")
    body = {"agent_id": "lento", **message(session, "oi", message_id="m1")}
    waiting = client.post("/gateway/message", json=body, headers={"prefer": "wait=0"})
    assert waiting.status_code == 202
    location = waiting.headers["location"]
    assert location == f"/gateway/turns/{waiting.json()['metadata']['turn_id']}"
    assert client.get(location).status_code == 202
    answered = client.post("/gateway/message", json=body, headers={"prefer": "wait=20"})
    assert answered.status_code == 200
    assert client.get(location).json() == answered.json()


@pytest.mark.parametrize("prefer", ["respond-async", "wait=0", "return=minimal, wait=0;x=1"])
def test_prefer__not_to_wait__is_202_at_once(client_of, session, prefer):
    body = {"agent_id": "lento", **message(session, "oi")}
    answer = client_of("papo").post("/gateway/message", json=body, headers={"prefer": prefer})
    assert answer.status_code == 202
    assert answer.elapsed.total_seconds() < 1


@pytest.mark.parametrize("prefer", ["wait=99999", "handling=lenient", "", "wait=30"])
def test_prefer__to_wait_long_or_something_else__is_the_answer(client, session, prefer):
    answer = client.post(
        "/gateway/message", json=message(session, "oi"), headers={"prefer": prefer}
    )
    assert answer.status_code == 200


def test_turn__asked_for_by_who_wrote_it__needs_no_other_scope(client_of, session):
    answer = client_of("writer").post("/gateway/message", json=message(session, "oi")).json()
    turn = f"/gateway/turns/{answer['metadata']['turn_id']}"
    assert client_of("writer").get(turn).json() == answer
    assert client_of("reader").get(turn).json() == answer
    assert client_of("debugger").get(turn).status_code == 403
    assert client_of("loja").get(turn).status_code == 404


# -- once --------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", ["falador", "lento"])
def test_message__posted_five_times_at_once__is_one_turn(client_of, live, session, agent):
    clients = [client_of("papo") for _ in range(5)]
    body = {"agent_id": agent, **message(session, "oi", message_id="m-once")}
    together = threading.Barrier(5)

    def post(client):
        together.wait()
        return client.post("/gateway/message", json=body)

    with ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(post, clients))
    assert [answer.status_code for answer in answers] == [200] * 5
    assert len({answer.content for answer in answers}) == 1
    said = live.rows(
        "SELECT t.number, t.attempts FROM conversations_turnrecord t"
        " JOIN conversations_session s ON s.id = t.session_id WHERE s.name = ?",
        session,
    )
    assert said == [(1, 1)]


def test_message__repeated_after_its_answer__is_the_first_answer_again(client, live, session):
    body = message(session, "oi", message_id="m1")
    first = client.post("/gateway/message", json=body)
    before = live.stored()
    again = client.post("/gateway/message/sse", json=body)
    assert again.json() == first.json()
    assert live.stored() == before


def test_message_id__of_another_session_channel_or_user__is_another_message(client, session):
    bodies = [
        message(session, "oi", message_id="m1"),
        message(f"{session}-2", "oi", message_id="m1"),
        {**message(session, "oi", message_id="m1"), "channel": "api"},
        message(session, "oi", message_id="m1", user_id="u2"),
    ]
    turns = {
        client.post("/gateway/message", json=body).json()["metadata"]["turn_id"] for body in bodies
    }
    assert len(turns) == 4


# -- sessions ----------------------------------------------------------------------------------


def test_messages__limit__gives_the_newest_oldest_first(client, session):
    for number in (1, 2, 3):
        client.post("/gateway/message", json=message(session, f"oi {number}"))
    said = client.get(f"/sessions/{session}/messages", params={"limit": 4}).json()
    assert said["session_id"] == f"default:assistente:{session}"
    assert [line["content"] for line in said["messages"] if line["role"] == "user"] == [
        "oi 2",
        "oi 3",
    ]
    assert {line["release"] for line in said["messages"]} == {1}


def test_session__named_without_its_agent__is_the_newest_of_that_name(client, session):
    client.post("/gateway/message", json={"agent_id": "telecom_contas", **message(session, "a")})
    client.post("/gateway/message", json={"agent_id": "retail_orders", **message(session, "b")})
    found = client.get(f"/sessions/{session}/checkpoint").json()
    assert found["conversation_key"] == f"default:retail_orders:{session}"


def test_checkpoint__after_a_turn__says_where_the_session_stands(client_of, session):
    answer = client_of("full").post("/gateway/message", json=message(session, **INVOICE)).json()
    full = client_of("full").get(f"/sessions/{session}/checkpoint").json()
    assert full["checkpoint_id"] == answer["metadata"]["turn_id"]
    assert full["state"]["active_agent"] == "billing_agent"
    assert full["state"]["turn_number"] == 1
    assert full["state"]["business_context"]["contract_key"] == "3000131180"
    assert full["release"] == answer["metadata"]["release"]
    assert len(full["payload_hash"]) == 64
    plain = client_of("reader").get(f"/sessions/{session}/checkpoint").json()
    assert "business_context" not in plain["state"]


def test_agents__of_the_release__name_the_default(client, client_of):
    found = client.get("/agents").json()
    assert found["default_agent_id"] == "assistente"
    assert {"telecom_contas", "retail_orders", "financeiro_agent"} <= {
        agent["agent_id"] for agent in found["agents"]
    }
    assert client_of("empty").get("/agents").json() == {
        "agents": [],
        "default_agent_id": None,
        "release": None,
    }
    assert client.get("/agents", params={"tenant_id": "nobody"}).status_code == 404


# -- visitors' tokens --------------------------------------------------------------------------


def test_token__opens_its_session_and_no_other(client_of, session):
    issued = client_of("writer").post("/gateway/sessions/token", json={"session_id": session})
    assert issued.status_code == 201
    assert issued.json()["session_id"] == f"default:assistente:{session}"
    writer_token = client_of(issued.json()["token"])
    # The issuer holds message:write only, so its tokens do.
    assert writer_token.get(f"/sessions/{session}/messages").status_code == 403
    token = client_of(
        client_of("plain")
        .post("/gateway/sessions/token", json={"session_id": session})
        .json()["token"]
    )
    answer = token.post("/gateway/message", json={"payload": {"message": "oi"}})
    assert answer.json()["session_id"] == f"default:assistente:{session}"
    assert token.get(f"/sessions/{session}/messages").status_code == 200
    other = {"payload": {"message": "oi", "session_id": f"{session}-2"}}
    assert token.post("/gateway/message", json=other).status_code == 404
    agent = {"agent_id": "retail_orders", "payload": {"message": "oi", "session_id": session}}
    assert token.post("/gateway/message", json=agent).status_code == 404
    assert token.get(f"/sessions/default:retail_orders:{session}/messages").status_code == 404
    assert token.get("/gateway/events/other").status_code == 404
    assert token.get("/debug/env").status_code == 403
    assert token.post("/gateway/sessions/token", json={}).status_code == 403


def test_token__of_a_viewer__reads_and_does_not_write(client_of, session):
    body = {"session_id": session, "scopes": ["session:read"]}
    issued = client_of("plain").post("/gateway/sessions/token", json=body).json()
    viewer = client_of(issued["token"])
    assert viewer.post("/gateway/message", json={"payload": {"message": "oi"}}).status_code == 403
    assert viewer.get(f"/sessions/{session}/messages").status_code == 404


def test_token__with_a_customer__needs_identity_assert_and_counts(client_of, session):
    body = {"session_id": session, "customer": {"customer_key": "11999999999"}}
    refused = client_of("plain").post("/gateway/sessions/token", json=body)
    assert (refused.status_code, refused.json()["code"]) == (403, "MISSING_SCOPE")
    token = client_of("channel").post("/gateway/sessions/token", json=body).json()["token"]
    said = {
        "message": "Quero minha fatura",
        "customer_key": "21988887777",
        "contract_key": "3000131180",
    }
    answer = client_of(token).post("/gateway/message", json={"payload": said}).json()
    assert answer["metadata"]["identity_ignored"] == ["customer_key"]
    assert "214,37" in answer["text"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"scopes": ["debug"]}, "scopes"),
        ({"scopes": []}, "scopes"),
        ({"scopes": "session:read"}, "scopes"),
        ({"scopes": [{}]}, "scopes"),
        ({"lifetime_seconds": 59}, "lifetime_seconds"),
        ({"lifetime_seconds": 10**9}, "lifetime_seconds"),
        ({"lifetime_seconds": True}, "lifetime_seconds"),
        ({"lifetime_seconds": "60"}, "lifetime_seconds"),
        ({"customer": {"cpf": "1"}}, "customer.cpf"),
        ({"customer": []}, "customer"),
        ({"customer": {"customer_key": 1}}, "customer.customer_key"),
        ({"agent_id": "nobody"}, "agent_id"),
    ],
)
def test_token__bad_request__names_the_field(client, body, field):
    answer = client.post("/gateway/sessions/token", json=body)
    assert answer.status_code == (404 if field == "agent_id" else 422)
    assert [error["field"] for error in answer.json()["errors"]] == [field]
