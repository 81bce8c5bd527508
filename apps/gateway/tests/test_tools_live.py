"""The tool gateway in the running product: many requests at once, one effect."""

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from apps.gateway.tests.documented import answer_check


@pytest.fixture
def support(live):
    """A client whose answers are held to the OpenAPI document; bound to ``support_agent``."""
    with live.client("support", event_hooks={"response": [answer_check]}) as client:
        yield client


def invoke(client, tool, arguments, **body):
    body = {"tool_name": tool, "arguments": arguments, "channel": "web", **body}
    return client.post(f"/v1/tools/{tool}/invoke", json=body)


def test_one_request__sent_by_many_at_once__has_one_effect(support, live):
    call = ("solicitar_devolucao", {"order_id": "PED-001", "reason": "defeito"})
    known = {"business_context": {"customer_key": "cliente-1"}}
    asked = invoke(support, *call, **known).json()
    assert asked["code"] == "CONFIRMATION_REQUIRED", asked
    said = {n: asked["confirmation"][n] for n in ("id", "contract", "arguments_sha256")}
    body = {**known, "confirmation": said, "metadata": {"request_id": uuid.uuid4().hex}}
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _n: invoke(support, *call, **body), range(8)))
    done = [answer.json() for answer in answers if answer.status_code == 200]
    others = {a.json()["code"] for a in answers if a.status_code != 200}
    assert others <= {"REQUEST_RUNNING"}
    assert done
    assert all(answer["ok"] for answer in done), done
    assert sum("replayed" not in answer["metadata"] for answer in done) == 1
    later = invoke(support, *call, **body).json()
    assert later["data"] == done[0]["data"]
    opened = live.retail.rows("SELECT count(*) FROM protocolos WHERE order_id = 'PED-001'")
    assert opened == [(1,)]


def test_many_requests__of_two_agents_and_tenants__are_each_their_own(live):
    def ask(number):
        name, tool = KEYS[number % len(KEYS)]
        with live.client(name) as client:
            answer = invoke(client, tool, {"order_id": "PED-1001"})
        return name, answer.json()["metadata"]["agent_id"]

    with ThreadPoolExecutor(6) as pool:
        said = list(pool.map(ask, range(24)))
    agents = {"support": "support_agent", "orders": "orders_agent", "loja_support": "support_agent"}
    assert all(agent == agents[name] for name, agent in said)


KEYS = [
    ("support", "consultar_pedido"),
    ("orders", "consultar_entrega"),
    ("loja_support", "consultar_pedido"),
]


def test_documented_doors__answer_as_documented(support):
    assert support.get("/v1/tools?limit=2").json()["next_offset"] == 2
    assert support.get("/v1/tools/solicitar_troca").json()["confirmation_required"] is True
    assert support.get("/v1/tools/nothing").status_code == 404
    assert support.get("/v1/discovery/servers").status_code == 200
    assert invoke(support, "consultar_pedido", {"order_id": "PED-1001"}).json()["ok"] is True
    assert invoke(support, "consultar_pedido", {"order_id": "none"}).json()["ok"] is False
    assert invoke(support, "consultar_entrega", {}).status_code == 403
    assert support.post("/v1/discovery/sync", json={}).status_code == 403
