"""Webhooks through the API: Alice sets them, Otto and Bob read, Charlie sees his own."""

from typing import Any

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agentops.tests.governed_world import Governed
from apps.governance.approval_models import WebhookDelivery, WebhookEndpoint
from apps.governance.webhook_services import InvalidWebhook, webhook_save
from apps.tenants.models import AuditEntry
from apps.tenants.roles import KEY_SCOPES
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import api_key_issue

pytestmark = [pytest.mark.django_db, pytest.mark.governed]
HOOKS = "governance/webhooks"
HOOK = {
    "name": "ops", "url": "https://hooks.example.com/path-token", "secret_name": "OPS_HOOK",
    "events": ["change.*", "environment.promoted"],
}  # fmt: skip


def added(governed: Governed, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = governed.call("post", HOOKS, {**HOOK, **more}, by="alice", status=201)
    return found


def stored(governed: Governed) -> list[dict[str, Any]]:
    with tenant_transaction(governed.world.acme):
        return list(WebhookEndpoint.objects.order_by("name").values("name", "url", "enabled"))


def system_key(governed: Governed, *scopes: str) -> None:
    with tenant_transaction(governed.world.acme):
        governed.keys["deployer"] = api_key_issue(
            name="deployer", scopes=scopes, environment="production", expires_at=None, actor="test"
        )[1]


def test_webhook__added__is_listed_and_signed_by_a_name_never_a_value(
    governed: Governed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTOPS_SECRET__ACME__OPS_HOOK", "acme signs with this")
    made = added(governed)
    assert made["events"] == HOOK["events"]
    assert (made["enabled"], made["created_by"]) == (True, "user:alice")
    listed = governed.call("get", HOOKS, by="bob", status=200)
    assert listed == {"results": [made], "next_offset": None}
    assert governed.call("get", f"{HOOKS}/{made['id']}", by="otto", status=200) == made
    assert "acme signs with this" not in str(listed)
    assert set(made) == {
        "id", "name", "url", "secret_name", "events", "enabled", "waiting", "given_up",
        "created_by", "created_at",
    }  # fmt: skip


def test_webhook__without_events__is_told_of_all(governed: Governed) -> None:
    plain = {name: HOOK[name] for name in ("name", "url", "secret_name")}
    assert governed.call("post", HOOKS, plain, by="alice", status=201)["events"] == ["*"]


def test_webhook__changed_in_part__keeps_the_rest_and_is_in_the_trail(governed: Governed) -> None:
    made = added(governed)
    address = f"{HOOKS}/{made['id']}"
    off = governed.call("patch", address, {"enabled": False}, by="alice", status=200)
    assert off == {**made, "enabled": False}
    renamed = governed.call("patch", address, {"name": "night"}, by="alice", status=200)
    assert renamed == {**made, "enabled": False, "name": "night"}
    assert governed.audited("webhook.added", "webhook.changed") == 3
    assert governed.call("patch", address, {}, by="alice", status=200) == renamed
    assert governed.audited("webhook.added", "webhook.changed") == 3, "nothing changed"
    with tenant_transaction(governed.world.acme):
        details = AuditEntry.objects.filter(action__startswith="webhook.").values_list(
            "detail", flat=True
        )
        assert not any("path-token" in str(detail) for detail in details)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("url", "http://hooks.example.com/"),
        ("url", "https://127.0.0.1/"),
        ("url", "https://169.254.169.254/latest"),
        ("url", "https://me:word@hooks.example.com/"),
        ("url", "https://hooks.example.com/?token=x"),
        ("secret_name", "the secret itself"),
        ("secret_name", "SECRET_KEY"),
        ("events", ["change.nothing"]),
        ("events", []),
        ("events", ["change.approved"] * 40),
        ("name", ""),
        ("secret", "s3cret"),
    ],
)
def test_webhook__of_a_bad_value__is_refused_by_field_and_nothing_saved(
    governed: Governed, field: str, value: Any
) -> None:
    answer = governed.call("post", HOOKS, {**HOOK, field: value}, by="alice", status=422)
    assert [error["field"] for error in answer["errors"]] == [field]
    assert stored(governed) == []
    made = added(governed)
    governed.call("patch", f"{HOOKS}/{made['id']}", {field: value}, by="alice", status=422)
    assert governed.call("get", f"{HOOKS}/{made['id']}", by="alice", status=200) == made


def test_webhook__of_a_name_that_is_taken__is_refused(governed: Governed) -> None:
    made = added(governed)
    answer = governed.call("post", HOOKS, HOOK, by="alice", status=422)
    assert [error["field"] for error in answer["errors"]] == ["name"]
    assert answer["code"] == "INVALID_WEBHOOK"
    other = added(governed, name="night")
    governed.call("patch", f"{HOOKS}/{other['id']}", {"name": "ops"}, by="alice", status=422)
    assert governed.call("get", f"{HOOKS}/{made['id']}", by="alice", status=200) == made


def test_webhook__whose_name_was_taken_in_the_same_moment__is_refused(
    governed: Governed, monkeypatch: pytest.MonkeyPatch
) -> None:
    added(governed)
    columns: dict[str, Any] = {**HOOK, "events": "*"}
    with tenant_transaction(governed.world.acme):
        monkeypatch.setattr(QuerySet, "exists", lambda _rows: False)
        with pytest.raises(InvalidWebhook):
            webhook_save(actor="user:alice", **columns)
    assert len(stored(governed)) == 1
    assert governed.audited("webhook.added") == 1


def test_deliveries__newest_first__without_what_was_sent(governed: Governed) -> None:
    made = added(governed)
    now = timezone.now()
    with tenant_transaction(governed.world.acme):
        common = {"endpoint_id": made["id"], "payload": '{"said":"in confidence"}'}
        WebhookDelivery.objects.create(event="change.approved", status="503", attempts=8, **common)
        WebhookDelivery.objects.create(
            event="change.published", status="timeout", attempts=1, next_at=now, **common
        )
        WebhookDelivery.objects.create(
            event="change.rejected", status="200", attempts=1, delivered_at=now, **common
        )
    page = governed.call("get", f"{HOOKS}/{made['id']}/deliveries?limit=2", by="bob", status=200)
    assert [row["event"] for row in page["results"]] == ["change.rejected", "change.published"]
    assert [row["answer"] for row in page["results"]] == ["200", "timeout"]
    assert page["next_offset"] == 2
    assert "confidence" not in str(page)
    shown = governed.call("get", f"{HOOKS}/{made['id']}", by="bob", status=200)
    assert (shown["waiting"], shown["given_up"]) == (1, 1)


@pytest.mark.parametrize("who", ["olga", "ana", "otto", "bob", "system"])
def test_webhook__changed_by_who_may_not__is_refused(governed: Governed, who: str) -> None:
    if who == "system":
        system_key(governed, *(scope for scope in KEY_SCOPES if scope != "governance:write"))
        who = "deployer"
    made = added(governed)
    before = stored(governed)
    governed.call("post", HOOKS, {**HOOK, "name": "mine"}, by=who, status=403)
    governed.call("patch", f"{HOOKS}/{made['id']}", {"enabled": False}, by=who, status=403)
    assert stored(governed) == before


@pytest.mark.parametrize("who", ["olga", "ana"])
def test_webhooks__read_by_whom_the_admin_shows_none__are_refused(
    governed: Governed, who: str
) -> None:
    made = added(governed)
    for address in (HOOKS, f"{HOOKS}/{made['id']}", f"{HOOKS}/{made['id']}/deliveries"):
        governed.call("get", address, by=who, status=403)


def test_webhook__set_by_a_key_of_a_system__says_which_key(governed: Governed) -> None:
    system_key(governed, "governance:write")
    made = governed.call("post", HOOKS, HOOK, by="deployer", status=201)
    assert made["created_by"].startswith("key:")
    governed.call("get", HOOKS, by="deployer", status=403)


def test_webhook__of_another_tenant__is_absent(governed: Governed) -> None:
    made = added(governed)
    for method, suffix in (("get", ""), ("get", "/deliveries"), ("patch", "")):
        body = None if method == "get" else {"enabled": False}
        governed.call(method, f"{HOOKS}/{made['id']}{suffix}", body, by="charlie", status=404)
    assert governed.call("get", HOOKS, by="charlie", status=200)["results"] == []
    assert stored(governed)[0]["enabled"] is True


def test_webhooks__more_of_them__ask_as_many_queries(governed: Governed) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            governed.call("get", HOOKS, by="alice", status=200)
        return len(captured)

    added(governed)
    queries()
    few = queries()
    for number in range(10):
        added(governed, name=f"hook {number}")
    assert queries() == few
