"""A key that is bound to one agent speaks to no other, whatever the request names."""

import pytest
from django.test import Client

from apps.releases.environments.services import release_deploy
from apps.releases.services import item_save, release_publish
from apps.tenants.scope import tenant_transaction

pytestmark = pytest.mark.django_db


@pytest.fixture
def two_agents(world):
    """acme runs the agents ``contas`` and ``vendas``; contas is the default."""
    with tenant_transaction(world.acme):
        for kind in ("rail_policy", "judge_policy", "memory_policy"):
            item_save(kind=kind, slug="default", content={}, actor="test")
        for kind, slug, content in (
            ("model_profile", "default", {"provider": "scripted"}),
            ("prompt", "p", {"system": "Answer."}),
            ("agent", "contas", {"prompt": "p"}),
            ("agent", "vendas", {"prompt": "p"}),
            ("routing_policy", "default", {"default_agent": "contas"}),
        ):
            item_save(kind=kind, slug=slug, content=content, actor="test")
        release_deploy(
            release=release_publish(actor="test"), environment="production", actor="test"
        )
    return world


def send(key, path, body):
    headers = {"authorization": f"Bearer {key}", "prefer": "wait=0"}
    return Client().post(path, body, content_type="application/json", headers=headers)


def message(**body):
    return {"channel": "web", "payload": {"message": "oi", "session_id": "s1"}, **body}


def test_message__of_a_bound_key__goes_to_its_agent_even_unnamed(two_agents, issue_key):
    key = issue_key("message:write", agent="vendas")
    assert send(key, "/gateway/message", message()).json()["session_id"] == "acme:vendas:s1"


@pytest.mark.parametrize("path", ["/gateway/message", "/gateway/sessions/token", "/debug/route"])
def test_request__that_names_another_agent__is_refused(two_agents, issue_key, path):
    key = issue_key("message:write", "debug", agent="vendas")
    answer = send(key, path, message(agent_id="contas"))
    assert (answer.status_code, answer.json()["code"]) == (403, "AGENT_NOT_ALLOWED")
    assert answer.json()["errors"][0]["field"] == "agent_id"


def test_session__of_another_agent__is_absent_for_a_bound_key(two_agents, issue_key):
    assert send(two_agents.acme_key, "/gateway/message", message()).status_code == 202
    key = issue_key("session:read", agent="vendas")
    headers = {"authorization": f"Bearer {key}"}
    for name in ("acme:contas:s1", "s1"):
        answer = Client().get(f"/sessions/{name}/messages", headers=headers)
        assert answer.status_code == 404
    own = {"authorization": f"Bearer {two_agents.acme_key}"}
    assert Client().get("/sessions/acme:contas:s1/messages", headers=own).status_code == 200
