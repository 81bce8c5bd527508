"""The page of calls from outside: who may look, and what is masked."""

import pytest
from django.utils import timezone

from apps.releases.models import Release
from apps.runtime.canonical import canonical_json
from apps.tenants import roles
from apps.tenants.models import Role
from apps.tenants.scope import tenant_transaction
from apps.tenants.sealing import seal
from apps.tools.models import ToolInvocation

pytestmark = pytest.mark.django_db
LIST = "/admin/tools/toolinvocation/"


@pytest.fixture
def call(world):
    with tenant_transaction(world.acme):
        release = Release.objects.create(
            number=1, manifest="{}", sha256="7" * 64, published_by="test"
        )
        return ToolInvocation.objects.create(
            caller="key:0a1b2c3d", agent="loja", tool="consultar_pedido", server="shop", door="mcp",
            request_id="r-77", body_digest="0" * 64, environment="production", status="error",
            release=release, lease_until=timezone.now(), reason="unreachable",
            arguments=canonical_json({"cpf": "529.982.247-25", "order_id": "PED-1"}),
            answer=seal({"ok": False, "data": {"cpf": "529.982.247-25"}}),
            events=canonical_json([{"event": "mcp.tool.requested", "at": "2026-11-30T12:00:00Z"}]),
            milliseconds=12.5,
        )  # fmt: skip


def test_list__says_who_called_what_and_how_it_ended(as_alice, call):
    shown = as_alice.get(LIST).content.decode()
    for text in ("consultar_pedido", "key:0a1b2c3d", "MCP", "unreachable"):
        assert text in shown
    assert "consultar_pedido" in as_alice.get(LIST + "?q=r-77").content.decode()
    assert "No call is like that" in as_alice.get(LIST + "?status=ok").content.decode()


def test_call__shows_its_events_and_masks_personal_data(as_alice, call):
    shown = as_alice.get(f"{LIST}{call.pk}/change/").content.decode()
    assert "mcp.tool.requested" in shown
    assert "PED-1" in shown
    assert "529.982.247-25" not in shown


def test_call__of_another_tenant__is_absent(as_charlie, call):
    assert "consultar_pedido" not in as_charlie.get(LIST).content.decode()
    assert as_charlie.get(f"{LIST}{call.pk}/change/").status_code == 404


def test_call__is_changed_by_nobody(as_alice, call, world):
    assert as_alice.get(LIST + "add/").status_code == 403
    assert as_alice.get(f"{LIST}{call.pk}/delete/").status_code == 403


def test_values__are_shown_to_who_reads_traces_only(world, as_bob, call, monkeypatch):
    monkeypatch.setitem(
        roles.PERMISSIONS, Role.AUDITOR, roles.PERMISSIONS[Role.AUDITOR] - {"conversations.trace"}
    )
    shown = as_bob.get(f"{LIST}{call.pk}/change/").content.decode()
    assert "mcp.tool.requested" in shown
    assert "PED-1" not in shown


def test_list__with_many_calls__asks_the_database_no_more_often(
    world, as_alice, call, django_assert_max_num_queries
):
    with django_assert_max_num_queries(40) as few:
        as_alice.get(LIST)
    with tenant_transaction(world.acme):
        for number in range(20):
            ToolInvocation.objects.create(
                caller="key:0a1b2c3d", agent="loja", tool=f"t{number}", door="rest",
                request_id=f"n-{number}", body_digest="0" * 64, environment="production",
                status="ok", release=call.release, lease_until=timezone.now(),
            )  # fmt: skip
    with django_assert_max_num_queries(len(few.captured_queries)):
        as_alice.get(LIST)
