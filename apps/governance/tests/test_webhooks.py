"""Other systems are told once it is true, until they take it, and only what they may know."""

import base64
import hashlib
import hmac
import json
from datetime import timedelta

import pytest
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from apps.governance.approval_models import Notification, WebhookDelivery, WebhookEndpoint
from apps.governance.tests.hooks import receiving
from apps.governance.webhook_services import InvalidWebhook, webhook_save
from apps.governance.webhooks import ATTEMPTS, CLAIM, change_delivered, webhooks_send
from apps.releases.change_models import ChangeRequest
from apps.releases.changes.events import ChangeEvent
from apps.tenants.chores import chores_run
from apps.tenants.models import AuditEntry, Tenant
from apps.tenants.scope import tenant_transaction

SECRET = "HOOK"
CHORE = ["apps.governance.webhooks.webhooks_send"]


@pytest.fixture(autouse=True)
def _settings(settings, monkeypatch):
    settings.WEBHOOK_ALLOW_PRIVATE = ["127.0.0.1"]
    monkeypatch.setenv("AGENTOPS_SECRET__ACME__HOOK", "acme signs")
    monkeypatch.setenv("AGENTOPS_SECRET__OTHER__HOOK", "other signs")


@pytest.fixture
def receiver():
    with receiving() as receiver:
        yield receiver


def endpoint_make(url: str, **more) -> WebhookEndpoint:
    fields = {"name": "ops", "secret_name": SECRET, "events": "*", **more}
    return webhook_save(actor="user:alice", url=url, **fields)


def event_of(name: str = "change.submitted", **more) -> ChangeEvent:
    request = ChangeRequest.objects.create(
        number=ChangeRequest.objects.count() + 1,
        title="Warmer greeting",
        reason="said in confidence",
        author="user:alice",
        manifest_sha256="ab" * 32,
    )
    return ChangeEvent(event=name, actor="user:alice", subject="#1", request=request, **more)


def told(name: str = "change.submitted") -> None:
    change_delivered(event_of(name))


def delivery() -> WebhookDelivery:
    found: WebhookDelivery = WebhookDelivery.objects.get()
    return found


# -- what is written -----------------------------------------------------------------------------


def test_event__with_a_webhook__is_delivered_with_a_signature_the_receiver_can_verify(
    in_acme, receiver
):
    endpoint_make(receiver.url)
    told()
    webhooks_send(timezone.now())
    headers, body = receiver.posts[0]
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    mac = hmac.new(b"acme signs", signed, hashlib.sha256).digest()
    assert headers["webhook-signature"] == "v1," + base64.b64encode(mac).decode()
    wrong = hmac.new(b"other signs", signed, hashlib.sha256).digest()
    assert headers["webhook-signature"] != "v1," + base64.b64encode(wrong).decode()
    said = json.loads(body)
    assert said["type"] == "change.submitted"
    assert said["data"]["tenant"] == "acme"
    assert said["data"]["actor"] == "user:alice"
    assert said["data"]["environment"] == "staging"
    assert said["data"]["request"]["title"] == "Warmer greeting"
    assert said["data"]["request"]["sha256"] == "ab" * 32
    # Neither the reason nor anything else of the request.
    assert "confidence" not in body.decode()
    row = delivery()
    assert (row.status, row.next_at, row.attempts) == ("200", None, 1)
    assert row.delivered_at is not None


def test_event__taken_back_with_its_transaction__is_never_delivered(in_acme, receiver):
    endpoint_make(receiver.url)

    def change_that_fails() -> None:
        with transaction.atomic():
            told()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        change_that_fails()
    webhooks_send(timezone.now())
    assert receiver.posts == []


@pytest.mark.parametrize(
    ("events", "taken"),
    [
        ("*", True),
        ("change.*", True),
        ("change.submitted environment.*", True),
        ("change.published", False),
        ("environment.*", False),
    ],
)
def test_endpoint__that_lists_events__gets_those(in_acme, events, taken):
    endpoint_make("https://hooks.example.com/", events=events)
    told()
    assert WebhookDelivery.objects.exists() is taken


def test_endpoint__that_is_off__gets_nothing(in_acme):
    endpoint_make("https://hooks.example.com/", enabled=False)
    told()
    assert not WebhookDelivery.objects.exists()


def test_event__of_another_tenant__reaches_no_endpoint_of_ours(world, receiver, settings):
    settings.TENANT_CHORES = CHORE
    with tenant_transaction(world.acme):
        endpoint_make(receiver.url)
    with tenant_transaction(world.other):
        told()
        assert not WebhookDelivery.objects.exists()
    chores_run()
    assert receiver.posts == []


# -- retries ---------------------------------------------------------------------------------------


def test_delivery__refused_twice__is_repeated_later_under_the_same_id(in_acme, receiver):
    endpoint_make(receiver.url)
    told()
    receiver.answers = [500, 503]
    now = timezone.now()
    webhooks_send(now)
    assert (delivery().status, delivery().attempts) == ("500", 1)
    webhooks_send(now + timedelta(seconds=9))
    assert len(receiver.posts) == 1
    webhooks_send(now + timedelta(seconds=10))
    webhooks_send(now + timedelta(seconds=71))
    webhooks_send(now + timedelta(days=1))
    assert len(receiver.posts) == 3
    assert len({headers["webhook-id"] for headers, _body in receiver.posts}) == 1
    assert len({body for _headers, body in receiver.posts}) == 1
    assert delivery().status == "200"


def test_delivery__whose_worker_died__is_repeated_when_its_claim_runs_out(
    in_acme, receiver, monkeypatch
):
    endpoint_make(receiver.url)
    told()
    now = timezone.now()

    def die(*_args, **_more):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("apps.governance.webhooks.post_signed", die)
        with pytest.raises(KeyboardInterrupt):
            webhooks_send(now)
    webhooks_send(now + CLAIM - timedelta(seconds=1))
    assert receiver.posts == []
    webhooks_send(now + CLAIM)
    assert len(receiver.posts) == 1
    assert delivery().attempts == 2


def test_endpoint__that_takes_nothing_to_the_end__is_switched_off_and_the_admins_told(
    in_acme, receiver
):
    endpoint = endpoint_make(receiver.url)
    told()
    receiver.answers = [500] * ATTEMPTS
    now = timezone.now()
    for day in range(ATTEMPTS + 2):
        webhooks_send(now + timedelta(days=day))
    assert len(receiver.posts) == ATTEMPTS
    endpoint.refresh_from_db()
    assert endpoint.enabled is False
    notice = Notification.objects.get(event="webhook.disabled")
    assert (notice.user, notice.subject) == (in_acme.alice, "ops")
    assert AuditEntry.objects.filter(action="webhook.disabled").count() == 1


def test_endpoint__that_took_another_message_meanwhile__stays_on(in_acme, receiver):
    endpoint = endpoint_make(receiver.url)
    told()
    WebhookDelivery.objects.update(attempts=ATTEMPTS - 1)
    told()
    receiver.answers = [500, 200]
    now = timezone.now() + timedelta(seconds=1)
    first = WebhookDelivery.objects.earliest("created_at")
    WebhookDelivery.objects.filter(pk=first.pk).update(next_at=now + timedelta(hours=1))
    receiver.answers = [200, 500]
    webhooks_send(now)
    webhooks_send(now + timedelta(hours=1))
    endpoint.refresh_from_db()
    first.refresh_from_db()
    assert (first.next_at, first.status) == (None, "500")
    assert endpoint.enabled is True


def test_endpoint__that_says_gone__is_switched_off_at_once(in_acme, receiver):
    endpoint = endpoint_make(receiver.url)
    told()
    receiver.answers = [410]
    webhooks_send(timezone.now())
    endpoint.refresh_from_db()
    assert endpoint.enabled is False


def test_endpoint__that_is_silent__is_asked_once_a_run(in_acme, receiver):
    endpoint_make("http://127.0.0.1:9/", name="nobody")
    told()
    told()
    endpoint_make(receiver.url, name="somebody", events="change.published")
    told("change.published")
    webhooks_send(timezone.now())
    assert sorted(
        WebhookDelivery.objects.filter(endpoint__name="nobody").values_list("attempts", flat=True)
    ) == [0, 0, 1]
    assert len(receiver.posts) == 1


def test_delivery__without_its_secret__is_not_sent_unsigned(in_acme, receiver):
    endpoint_make(receiver.url, secret_name="NOT_THERE")
    told()
    webhooks_send(timezone.now())
    assert receiver.posts == []
    assert delivery().status == "secret_not_set"


def test_delivery__to_an_address_inside__is_refused_at_sending_too(in_acme, settings, receiver):
    endpoint_make(receiver.url)
    told()
    settings.WEBHOOK_ALLOW_PRIVATE = []
    webhooks_send(timezone.now())
    assert receiver.posts == []
    assert delivery().status == "https_only"


def test_delivery__that_fails__leaves_neither_address_nor_secret_in_the_log(
    in_acme, receiver, caplog
):
    endpoint_make("http://127.0.0.1:9/path-token-1234")
    told()
    webhooks_send(timezone.now())
    assert "ConnectionRefusedError" in caplog.text
    assert "path-token-1234" not in caplog.text
    assert "acme signs" not in caplog.text


# -- endpoints -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", " "),
        ("url", "http://hooks.example.com/"),
        ("url", "https://hooks.example.com/?token=abc"),
        ("secret_name", "the secret itself"),
        ("secret_name", "DATABASE_URL"),
        ("events", ""),
        ("events", "change.submitted change.imagined"),
    ],
)
def test_webhook__with_a_bad_value__is_refused_and_nothing_saved(in_acme, field, value):
    good = {"url": "https://hooks.example.com/"}
    with pytest.raises(InvalidWebhook) as refused:
        endpoint_make(**{**good, field: value})
    assert set(refused.value.errors) == {field}
    assert not WebhookEndpoint.objects.exists()


def test_webhook__saved__is_in_the_trail_without_its_path(in_acme):
    endpoint_make("https://hooks.example.com/T000/path-token")
    entry = AuditEntry.objects.get(action="webhook.added")
    assert "hooks.example.com" in entry.detail
    assert "path-token" not in entry.detail


def test_webhook__saved_as_it_is__writes_nothing(in_acme):
    first = endpoint_make("https://hooks.example.com/")
    count = AuditEntry.objects.count()
    assert endpoint_make("https://hooks.example.com/", endpoint=first) == first
    assert AuditEntry.objects.count() == count


# -- pages -----------------------------------------------------------------------------------------

ADD = "admin:governance_webhookendpoint_add"
TYPED = {
    "name": "ops", "url": "https://hooks.example.com/", "secret_name": "HOOK", "events": "change.*",
    "enabled": "on",
}  # fmt: skip


def test_admin__adds_a_webhook__and_sends_a_test_message(world, as_alice, receiver):
    response = as_alice.post(reverse(ADD), {**TYPED, "url": receiver.url})
    assert response.status_code == 302
    with tenant_transaction(world.acme):
        endpoint = WebhookEndpoint.objects.get()
    assert (endpoint.url, endpoint.created_by) == (receiver.url, "user:alice")
    page = reverse("admin:governance_webhook_test", args=[endpoint.pk])
    assert as_alice.get(page).status_code == 404
    assert as_alice.post(page).status_code == 302
    with tenant_transaction(world.acme):
        webhooks_send(timezone.now())
    assert json.loads(receiver.posts[0][1])["type"] == "webhook.test"
    shown = as_alice.get(
        reverse("admin:governance_webhookendpoint_change", args=[endpoint.pk])
    ).content.decode()
    assert "webhook.test" in shown
    assert "200" in shown


def test_admin__with_bad_values__says_which(world, as_alice):
    typed = {**TYPED, "url": "http://hooks.example.com/", "events": "nothing"}
    page = as_alice.post(reverse(ADD), typed)
    assert page.status_code == 200
    assert set(page.context["adminform"].form.errors) == {"url", "events"}


def test_webhook__of_another_tenant__is_absent_and_an_auditor_changes_none(
    world, as_bob, as_charlie
):
    with tenant_transaction(world.acme):
        endpoint = endpoint_make("https://hooks.example.com/")
    change = reverse("admin:governance_webhookendpoint_change", args=[endpoint.pk])
    test = reverse("admin:governance_webhook_test", args=[endpoint.pk])
    assert as_charlie.get(change).status_code == 404
    assert as_charlie.post(test).status_code == 404
    assert as_bob.get(change).status_code == 200
    assert as_bob.post(change, TYPED).status_code == 403
    assert as_bob.post(test).status_code == 403
    assert as_bob.post(reverse(ADD), TYPED).status_code == 403


# -- two at once -----------------------------------------------------------------------------------


@pytest.mark.services
@pytest.mark.django_db(transaction=True)
def test_two_processes__sending_at_once__send_each_delivery_once(world, receiver, tmp_path):
    """Two real processes run the chore over forty deliveries: each is posted by one of them."""
    from agentops.tests.services.processes import Process
    from apps.governance.tests.sending import environment_of

    with tenant_transaction(world.acme):
        endpoint = endpoint_make(receiver.url)
        now = timezone.now()
        WebhookDelivery.objects.bulk_create(
            WebhookDelivery(endpoint=endpoint, event="change.submitted", payload="{}", next_at=now)
            for _ in range(40)
        )
    processes = [
        Process(
            f"sender-{number}",
            "-m",
            "apps.governance.tests.sending",
            environment=environment_of(),
            folder=tmp_path,
        )
        for number in (1, 2)
    ]
    for process in processes:
        assert process.wait(60) == 0, process.said()
    ids = [headers["webhook-id"] for headers, _body in receiver.posts]
    assert len(ids) == len(set(ids)) == 40
    sent = [int(process.said().split()[-1]) for process in processes]
    assert sum(sent) == 40
    with tenant_transaction(Tenant.objects.get(slug="acme")):
        assert not WebhookDelivery.objects.exclude(status="200", attempts=1).exists()
