"""What the tool that checks an action may do and say at the tool gateway."""

import pytest

from apps.gateway import tools_invoking
from apps.gateway.tests.gateway_world import RETURN, gateway, shop
from apps.releases.environments.services import release_deploy
from apps.releases.services import item_save, release_publish
from apps.tenants.scope import tenant_transaction
from apps.tools.transactions.validating import Verdict

__all__ = ["gateway", "shop"]

pytestmark = pytest.mark.django_db

CHECKED = {**RETURN, "pre_validation": {"tool": "consultar_pedido"}}
ARGUMENTS = {"order_id": "PED-1001", "reason": "defeito"}


def publish(gateway, content):
    """Deploy acme's release with another ``solicitar_devolucao``."""
    with tenant_transaction(gateway.world.acme):
        item_save(kind="tool", slug="solicitar_devolucao", content=content, actor="test")
        release_deploy(
            release=release_publish(actor="test"), environment="production", actor="test"
        )


def test_check__of_an_action_that_a_policy_forbids__is_not_asked(gateway):
    publish(gateway, {**CHECKED, "allowed_channels": ["voice"]})
    before = gateway.sent("consultar_pedido")

    answer = gateway.invoke("solicitar_devolucao", ARGUMENTS, channel="web")

    assert (answer.status_code, answer.json()["code"]) == (403, "CHANNEL_NOT_ALLOWED")
    assert gateway.sent("consultar_pedido") == before


def test_check__that_wants_a_yes__has_its_question_recorded_and_used_once(gateway, monkeypatch):
    publish(gateway, CHECKED)
    wants = Verdict(reconfirm=True)
    monkeypatch.setattr(tools_invoking, "validator_verdict", lambda call, *, fail_open: wants)
    before = gateway.sent("solicitar_devolucao")

    asked = gateway.invoke("solicitar_devolucao", ARGUMENTS, gateway.confirmer)
    said = {n: asked.json()["confirmation"][n] for n in ("id", "contract", "arguments_sha256")}

    assert (asked.status_code, asked.json()["code"]) == (409, "CONFIRMATION_REQUIRED")
    assert gateway.sent("solicitar_devolucao") == before
    statuses = [
        gateway.invoke("solicitar_devolucao", ARGUMENTS, gateway.confirmer, confirmation=said)
        for _ in range(2)
    ]
    assert [answer.status_code for answer in statuses] == [200, 409]
    assert gateway.sent("solicitar_devolucao") == before + 1
