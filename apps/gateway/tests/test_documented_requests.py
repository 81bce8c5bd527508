"""Every request of the other platform's manual: answered as documented, or whose turn it is.

A row is found by method, port, path and the place it is printed at. A row without a verdict fails.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from apps.gateway.tests.sse import Seen, frames

FILE = Path(__file__).resolve().parents[4] / "shared/material/seed/documented_requests.json"
Row = dict[str, Any]
Check = Callable[[httpx2.Response, Row], None]

# Issues that own a row of a part that this one does not build.
TOOL_GATEWAY = "issue 4 (Conversation: the tool gateway, /v1/tools and discovery)"
BACKENDS = "issue 4 (Conversation: the global supervisor and its backends)"
CHANNELS = "the channels issue (/channels/web/message of the channel gateway)"
EVALS = "the evaluation issue (runs and their progress)"
FRONTEND = "the console here; the other platform's own front end is no part of this product"

EVENT_ORDER = [
    "connected", "flow.start", "session.upserted", "message.received", "workflow.started",
    "workflow.completed", "message.responded", "flow.end",
]  # fmt: skip


def answered(
    response: httpx2.Response, row: Row, *, agent: str, route: str, tools: list[str] | None = None
) -> dict[str, Any]:
    """Check a ChannelResponse and return its metadata."""
    assert response.status_code == 200, response.text
    body, sent = response.json(), row["body"]
    tenant = sent.get("tenant_id") or "default"
    key = f"{tenant}:{agent}:{sent['payload']['session_id']}"
    assert body["channel"] == "web"
    assert body["session_id"] == key
    assert body["text"].strip()
    metadata = body["metadata"]
    assert metadata["tenant_id"] == tenant
    assert metadata["agent_id"] == agent
    assert metadata["conversation_key"] == key
    assert metadata["original_session_id"] == sent["payload"]["session_id"]
    assert metadata["route"] == route
    if "message_id" in sent["payload"]:
        assert metadata["message_id"] == sent["payload"]["message_id"]
    if tools is not None:
        assert metadata["mcp_tools"] == tools
        assert metadata["mcp_results"] == [{"tool": tool, "ok": True} for tool in tools]
    for name in ("guardrails", "judges"):
        assert isinstance(metadata[name], list)
    assert isinstance(metadata["business_context"], dict)
    found: dict[str, Any] = metadata
    return found


INVOICE_TOOLS = ["consultar_fatura", "consultar_pagamentos"]
ORDER_TOOLS = ["consultar_pedido", "consultar_entrega"]
FINANCE_TOOLS = ["consultar_titulo_financeiro", "consultar_pagamentos_financeiro"]


def invoice_of_session_001(response: httpx2.Response, row: Row) -> None:
    metadata = answered(
        response, row, agent="telecom_contas", route="billing_agent", tools=INVOICE_TOOLS
    )
    assert metadata["intent"] == "billing_invoice_explanation"
    assert metadata["business_context"]["customer_key"] == "11999999999"
    assert "157,70" in response.json()["text"]


def greeting(response: httpx2.Response, row: Row) -> None:
    """“teste” is no intent: a greeting, and no tool is called (the other platform called some)."""
    metadata = answered(response, row, agent="assistente", route="assistente", tools=[])
    assert metadata["route_decision"]["method"] == "fallback"


def greeting_of_another_backend(response: httpx2.Response, row: Row) -> None:
    """Two other rows say the same in session s1, of another backend there. Here all three are one
    session, and the third time is a loop (VLOOP, reference facts 6.2); alone it is the greeting."""
    assert response.status_code == 200
    assert response.json()["metadata"]["guardrails"][-1] == {"code": "VLOOP", "status": "block"}
    payload = {**row["body"]["payload"], "session_id": "s1-of-8001"}
    again = {**row, "body": {**row["body"], "payload": payload}}
    with client_again(response) as client:
        greeting(client.post(row["path"], json=again["body"]), again)


def order_not_arrived(response: httpx2.Response, row: Row) -> None:
    metadata = answered(response, row, agent="assistente", route="orders_agent", tools=ORDER_TOOLS)
    assert metadata["intent"] == "retail_order_tracking"
    assert "PED-1001" in response.json()["text"]


def invoice_at_tim(response: httpx2.Response, row: Row) -> None:
    answered(response, row, agent="telecom_contas", route="billing_agent")
    assert response.json()["session_id"] == "tim:telecom_contas:sessao-123"


def order_at_loja(response: httpx2.Response, row: Row) -> None:
    answered(response, row, agent="retail_orders", route="orders_agent")
    assert response.json()["session_id"] == "loja:retail_orders:sessao-123"


def payment(response: httpx2.Response, row: Row) -> None:
    metadata = answered(
        response, row, agent="financeiro_agent", route="financeiro_agent", tools=FINANCE_TOOLS
    )
    assert metadata["intent"] == "financeiro_pagamentos"
    assert metadata["business_context"]["customer_key"] == "12345"
    assert metadata["business_context"]["contract_key"] == "ABC-999"


def payment_without_agent(response: httpx2.Response, row: Row) -> None:
    metadata = answered(
        response, row, agent="assistente", route="financeiro_agent", tools=FINANCE_TOOLS
    )
    assert metadata["intent"] == "financeiro_pagamentos"


def payment_in_english(response: httpx2.Response, row: Row) -> None:
    """The manual repeats the Portuguese request's message_id with another body in one session: a
    conflict here. Under an id of its own it is the payment's answer."""
    assert response.status_code == 409
    assert response.json()["code"] == "MESSAGE_ID_REUSED"
    payload = {**row["body"]["payload"], "message_id": "msg-001-en"}
    again = {**row, "body": {**row["body"], "payload": payload}}
    with client_again(response) as client:
        payment(client.post(row["path"], json=again["body"]), again)


def client_again(response: httpx2.Response) -> httpx2.Client:
    return httpx2.Client(base_url=response.request.url.copy_with(path="/"), trust_env=False)


def contract_test(response: httpx2.Response, row: Row) -> None:
    metadata = answered(
        response, row, agent="telecom_contas", route="billing_agent", tools=INVOICE_TOOLS
    )
    assert metadata["intent"] == "billing_invoice_explanation"
    # The manual's answer begins with “[BillingAgent]”; no agent's name is shown here.
    assert not response.json()["text"].startswith("[")
    assert "214,37" in response.json()["text"]


def high_bill(response: httpx2.Response, row: Row) -> None:
    metadata = answered(response, row, agent="assistente", route="billing_agent")
    assert metadata["intent"] == "billing_invoice_explanation"


def high_bill_repeated(response: httpx2.Response, row: Row) -> None:
    high_bill(response, row)
    assert response.json()["metadata"]["mcp_tools"] == INVOICE_TOOLS


def raw_payload(response: httpx2.Response, row: Row) -> None:
    assert response.status_code == 422
    assert response.json()["code"] == "INVALID_GATEWAY_REQUEST"
    assert response.json()["errors"][0]["field"] == "payload"


def streamed_json(response: httpx2.Response, row: Row) -> None:
    """Sent without ``Accept: text/event-stream``, as printed: JSON; the events are at the session."""
    greeting(response, row)


def boleto_streamed(response: httpx2.Response, row: Row) -> None:
    answered(response, row, agent="financeiro_agent", route="financeiro_agent", tools=FINANCE_TOOLS)


def messages_of(*roles: str) -> Check:
    def check(response: httpx2.Response, row: Row) -> None:
        assert response.status_code == 200, response.text
        body = response.json()
        assert [line["role"] for line in body["messages"]][: len(roles)] == list(roles)
        assert all(line["content"] for line in body["messages"])

    return check


def checkpoint(response: httpx2.Response, row: Row) -> None:
    assert response.status_code == 200, response.text
    body = response.json()
    assert body["conversation_key"].endswith(":s1")
    assert body["checkpoint_id"]
    assert body["state"]["agent_id"] == "assistente"


def nothing_said_yet(response: httpx2.Response, row: Row) -> None:
    """The manual prints it without the message before it: a session nobody has opened is absent."""
    assert response.status_code == 404
    assert response.json()["code"] == "NOT_FOUND"


def usage(response: httpx2.Response, row: Row) -> None:
    assert response.status_code == 200
    body = response.json()
    assert body["tenant_id"] == "default"
    assert body["totals"]["turns"] > 0
    assert body["totals"]["total_tokens"] > 0


def tool_answered(server: str, **result: Any) -> Check:
    def check(response: httpx2.Response, row: Row) -> None:
        assert response.status_code == 200, response.text
        body = response.json()
        assert body["tool_name"] == row["path"].rpartition("/")[2]
        assert (body["ok"], body["server_name"]) == (True, server)
        assert {name: body["result"][name] for name in result} == result

    return check


def routed(route: str, intent: str = "") -> Check:
    def check(response: httpx2.Response, row: Row) -> None:
        assert response.status_code == 200, response.text
        body = response.json()
        assert (body["mode"], body["route"]) == ("router", route)
        assert body["intent"] == intent or not intent
        assert 0 <= body["confidence"] <= 1

    return check


def two_subjects(response: httpx2.Response, row: Row) -> None:
    """In router mode the customer is asked which comes first; supervisor mode is issue 4's."""
    routed("assistente")(response, row)
    body = response.json()
    assert body["method"] == "clarify"
    assert {"billing_agent", "orders_agent"} <= set(body["agents"])


def identified(**keys: str) -> Check:
    def check(response: httpx2.Response, row: Row) -> None:
        assert response.status_code == 200, response.text
        body = response.json()
        assert set(body) == {
            "technical_identity", "business_context", "identity_missing", "identity_ignored",
            "context_keys",
        }  # fmt: skip
        assert {key: body["business_context"][key] for key in keys} == keys
        assert body["identity_missing"] == []

    return check


def environment(response: httpx2.Response, row: Row) -> None:
    assert response.status_code == 200
    assert response.json()["settings"]["CONTRACT_VERSION"] == "gateway-request-v1"
    for secret in ("SECRET", "PASSWORD", "TOKEN=", "ak_", "http://", "postgres:", "redis:"):
        assert secret not in response.text


def session_stream(response: httpx2.Response, row: Row) -> None:
    assert response.headers["content-type"] == "text/event-stream"
    seen: list[Seen] = []
    for event in frames(response.iter_raw()):
        if event is not None and event.event != "message.delta":
            seen.append(event)
        if event is not None and event.event == "flow.end":
            break
    assert [event.event for event in seen] == EVENT_ORDER


# method, port, path, where → what its answer must be, or which issue answers it. In an order in
# which they work: what a session is asked for was said in it before.
VERDICTS: dict[tuple[str, str, str, str], Check | str] = {
    ("POST", "8000", "/gateway/message/sse", "Documentacao/README_FIRST_READY.md:120"): streamed_json,
    ("GET", "8000", "/gateway/events/s1", "Documentacao/README_FIRST_READY.md:114"): session_stream,
    ("GET", "8000", "/sessions/s1/messages", "Documentacao/README_FIRST_READY.md:128"): messages_of("user", "assistant"),
    ("GET", "8000", "/sessions/s1/checkpoint", "Documentacao/README_FIRST_READY.md:134"): checkpoint,
    ("POST", "8000", "/gateway/message", "Documentacao/README_MAX_OPERACIONAL.md:98"): greeting,
    ("POST", "9000", "/gateway/message", "Documentacao/MANUAL_EXECUCAO_AGENT_GATEWAY_MCP_GATEWAY_FRONTEND.md:325"): invoice_of_session_001,
    ("GET", "8000", "/debug/usage", "Documentacao/README_MAX_OPERACIONAL.md:106"): usage,
    ("POST", "8000", "/debug/mcp/call/consultar_fatura", "Documentacao/README_MCP.md:48"): tool_answered("telecom", invoice_id="INV-001", msisdn="11999999999", valor_total=157.7),
    ("POST", "8000", "/gateway/message", "Documentacao/README_MCP.md:64"): order_not_arrived,
    ("POST", "8000", "/gateway/message", "Documentacao/README_MULTI_AGENT_ISOLATION.md:50"): invoice_at_tim,
    ("POST", "8000", "/gateway/message", "Documentacao/README_MULTI_AGENT_ISOLATION.md:68"): order_at_loja,
    ("POST", "8000", "/debug/route", "Documentacao/README_ROUTING_MODES.md:214"): routed("orders_agent", "retail_order_tracking"),
    ("POST", "8000", "/debug/route", "Documentacao/README_ROUTING_MODES.md:238"): two_subjects,
    ("POST", "8000", "/debug/identity", "Documentacao/README_TEMPLATE_BUSINESS_CONTEXT_V2.md:53"): identified(customer_key="11999999999", contract_key="3000131180", interaction_key="URA-123", session_key="teste-001"),
    ("POST", "8000", "/debug/mcp/call/consultar_fatura", "Documentacao/README_TEMPLATE_BUSINESS_CONTEXT_V2.md:74"): tool_answered("telecom", invoice_id="3000131180", msisdn="11999999999", valor_total=214.37),
    ("POST", "8000", "/debug/mcp/call/consultar_titulo_financeiro", "Documentacao/README_old2.md:1010"): tool_answered("telecom", customer_id="12345", contract_id="ABC-999", valor=342.15),
    ("POST", "8000", "/gateway/message", "Documentacao/README_old2.md:1106"): payment,
    ("POST", "8000", "/gateway/message", "Documentacao/README_old2.md:1147"): payment_without_agent,
    ("POST", "8000", "/gateway/message/sse", "Documentacao/README_old2.md:1167"): boleto_streamed,
    ("GET", "8000", "/gateway/events/default:financeiro_agent:teste-sse-001", "Documentacao/README_old2.md:1186"): session_stream,
    ("POST", "8000", "/debug/route", "Documentacao/README_old2.md:1209"): routed("financeiro_agent", "financeiro_pagamentos"),
    ("POST", "8000", "/debug/identity", "Documentacao/README_old2.md:1223"): identified(customer_key="12345", contract_key="ABC-999", session_key="teste-id-001"),
    ("GET", "8000", "/sessions/default:financeiro_agent:teste-financeiro-001/messages", "Documentacao/README_old2.md:1236"): messages_of("user", "assistant"),
    ("POST", "8000", "/debug/route", "Documentacao/README_old2.md:1357"): routed("financeiro_agent", "fallback"),
    ("GET", "8000", "/debug/env", "Documentacao/README_old2.md:1435"): environment,
    ("GET", "8000", "/sessions/default:financeiro_agent:teste-final-001/messages", "Documentacao/README_old2.md:1523"): nothing_said_yet,
    ("GET", "8000", "/sessions/default:financeiro_agent:teste-final-001/checkpoint", "Documentacao/README_old2.md:1526"): nothing_said_yet,
    ("POST", "8000", "/gateway/message", "README.md:1727"): contract_test,
    ("POST", "8000", "/gateway/message", "README.md:9972"): high_bill_repeated,
    ("POST", "8000", "/gateway/message", "README_en.md:8121"): payment_in_english,
    ("POST", "8000", "/gateway/message", "README_en.md:8160"): payment_without_agent,
    ("POST", "8000", "/debug/route", "README_en.md:8222"): routed("financeiro_agent", "financeiro_pagamentos"),
    ("POST", "8000", "/debug/identity", "README_en.md:8236"): identified(customer_key="12345", contract_key="ABC-999", session_key="test-id-001"),
    ("POST", "8010", "/gateway/message", "README_en.md:9104"): high_bill,
    ("POST", "8000", "/gateway/message", "README_en.md:9878"): high_bill_repeated,
    ("POST", "8001", "/gateway/message", "README.md:9438"): greeting_of_another_backend,
    ("POST", "8010", "/gateway/message", "apps/agent_gateway/README.md:45"): high_bill,
    ("POST", "8000", "/gateway/message", "templates/agent_template_backend/docs/FRAMEWORK_CHANNEL_INPUT_MODE.md:68"): raw_payload,
    # The agent gateway's decision between backends has another answer, `backend_id`; the route
    # between agents is answered at the same path.
    ("POST", "8010", "/debug/route", "README_en.md:9068"): routed("billing_agent", "billing_invoice_explanation"),
    ("GET", "8300", "/ready", "Documentacao/MANUAL_EXECUCAO_AGENT_GATEWAY_MCP_GATEWAY_FRONTEND.md:125"): TOOL_GATEWAY,
    ("GET", "8300", "/v1/tools", "Documentacao/MANUAL_EXECUCAO_AGENT_GATEWAY_MCP_GATEWAY_FRONTEND.md:131"): TOOL_GATEWAY,
    ("POST", "8300", "/v1/tools/consultar_fatura/invoke", "Documentacao/MCP_GATEWAY_RUNBOOK.md:69"): TOOL_GATEWAY,
    ("POST", "8300", "/v1/tools/consultar_fatura/invoke", "MANUAL_AGENT_PLATFORM_GATEWAYS.md:133"): TOOL_GATEWAY,
    ("GET", "8300", "/v1/discovery/servers", "docs/MCP_GATEWAY_DISCOVERY.md:107"): TOOL_GATEWAY,
    ("POST", "8300", "/v1/discovery/sync", "docs/MCP_GATEWAY_DISCOVERY.md:113"): TOOL_GATEWAY,
    ("GET", "8010", "/backends/health", "README.md:9150"): BACKENDS,
    ("GET", "8010", "/debug/sessions", "README.md:9464"): BACKENDS,
    ("POST", "7000", "/channels/web/message", "apps/channel_gateway/README.md:56"): CHANNELS,
    ("GET", "5173", "", "evals/certification/README.md:40"): FRONTEND,
    ("GET", "8001", "/runs/<run_id>/progress", "evals/offline/README.en-US.md:963"): EVALS,
}  # fmt: skip


def rows() -> list[Row]:
    """Return the file's rows, or none where it is absent."""
    return json.loads(FILE.read_text()) if FILE.exists() else []


def identity(row: Row) -> tuple[str, str, str, str]:
    return row["method"], row["port"], row["path"], row["where"]


needs_the_file = pytest.mark.skipif(
    not FILE.exists(), reason="the documented requests are not beside this project"
)


@needs_the_file
def test_documented_requests__every_row__has_a_verdict():
    assert {identity(row) for row in rows()} == set(VERDICTS)
    assert len(rows()) == len(VERDICTS) == 50


@needs_the_file
def test_documented_requests__of_this_issue__are_answered_as_documented(live):
    """In one go, against fresh sessions: some rows ask for what another one said."""
    by_identity = {identity(row): row for row in rows()}
    wrong, answered_rows, owned = [], 0, []
    for where, verdict in VERDICTS.items():
        if isinstance(verdict, str):
            owned.append((where, verdict))
            continue
        row = by_identity[where]
        headers = dict(header.split(": ", 1) for header in row["headers"])
        with (
            live.client(headers=headers) as client,
            client.stream(row["method"], row["path"], json=row["body"]) as response,
        ):
            if response.headers["content-type"] != "text/event-stream":
                response.read()
            try:
                verdict(response, row)
            except AssertionError as error:
                wrong.append(f"{' '.join(where)}: {error}")
        answered_rows += 1
    print(f"\ndocumented requests: {answered_rows} answered as documented, {len(owned)} elsewhere:")
    for (method, port, path, _place), issue in owned:
        print(f"  {method} :{port}{path} → {issue}")
    assert wrong == []
