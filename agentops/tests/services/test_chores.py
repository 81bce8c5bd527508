"""What is due by the clock is done once, however many processes look, and by beat in production."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from agentops.tests.governed_world import governed  # noqa: F401  # a fixture
from agentops.tests.services.deployment import deployed
from agentops.tests.services.processes import Process, until
from apps.governance.approval_models import Notification, WebhookDelivery
from apps.governance.tests.hooks import receiving
from apps.governance.tests.sending import environment_of
from apps.governance.webhook_services import webhook_save
from apps.governance.webhooks import delivery_test
from apps.releases.change_models import ChangeRequest
from apps.releases.changes.services import (
    patch_save,
    request_break_glass,
    request_decide,
    request_open,
    request_schedule,
    request_submit,
)
from apps.releases.models import Deployment, Release
from apps.tenants.models import AuditEntry
from apps.tenants.scope import tenant_transaction

pytestmark = [
    pytest.mark.services,
    pytest.mark.governed,
    pytest.mark.django_db(transaction=True),
]
RUN = "from apps.tenants.chores import chores_run; chores_run()"


def submitted(title: str) -> ChangeRequest:
    """A request of Olga's on the billing prompt, in review."""
    request = request_open(actor="user:olga", title=title, reason="Asked for")
    content = {"system": f"You explain invoices. {title}"}
    patch_save(actor="user:olga", kind="prompt", slug="billing", content=content, request=request)
    return request_submit(request=request, actor="user:olga")


def run_at_once(folder, count: int = 4, **environment: str) -> None:
    """Run every chore in ``count`` processes that start together."""
    processes = [
        Process(
            f"chores-{number}", "manage.py", "shell", "-v", "0", "-c", RUN,
            environment={**environment_of(), **environment}, folder=folder,
        )
        for number in range(count)
    ]  # fmt: skip
    for process in processes:
        assert process.wait(120) == 0, process.said()
        assert "Traceback" not in process.said(), process.said()


@pytest.mark.timeout(240)
def test_schedule__that_four_processes_find_due__is_published_once(governed, tmp_path):  # noqa: F811
    acme = governed.world.acme
    with tenant_transaction(acme):
        request = submitted("Kinder")
        request_decide(
            request=request, actor="user:ana", decision="approve", sha256=request.manifest_sha256
        )
        request.refresh_from_db()
        at = timezone.now() + timedelta(hours=1)
        request_schedule(request=request, actor="user:ana", at=at, zone="America/Sao_Paulo")
        ChangeRequest.objects.update(scheduled_for=timezone.now() - timedelta(seconds=1))
    run_at_once(tmp_path)
    with tenant_transaction(acme):
        request.refresh_from_db()
        assert request.status == "deployed"
        assert Release.objects.count() == 2
        assert AuditEntry.objects.filter(action="change.published").count() == 1
        assert not AuditEntry.objects.filter(action="change.schedule_failed").exists()
        assert Deployment.objects.get(environment="staging").release_id == request.release_id


@pytest.mark.timeout(240)
def test_emergency__that_four_processes_find_overdue__is_reverted_once(
    governed,  # noqa: F811
    tmp_path,
):
    acme = governed.world.acme
    with tenant_transaction(acme):
        request_break_glass(request=submitted("At once"), actor="user:ana", reason="Wrong prices")
        ChangeRequest.objects.update(broken_glass_until=timezone.now() - timedelta(seconds=1))
    run_at_once(tmp_path)
    with tenant_transaction(acme):
        assert AuditEntry.objects.filter(action="change.reverted").count() == 1
        production = Deployment.objects.select_related("release").get(environment="production")
        assert production.release.sha256 == governed.release.sha256


@pytest.mark.timeout(240)
def test_mails__that_four_processes_find_due__are_sent_once(governed, tmp_path):  # noqa: F811
    acme = governed.world.acme
    data = tmp_path / "data"
    with tenant_transaction(acme):
        Notification.objects.all().delete()
        Notification.objects.bulk_create(
            Notification(
                user=governed.world.alice, event="change.submitted", subject=f"#{number} Kinder"
            )
            for number in range(30)
        )
    run_at_once(tmp_path, DEMO="1", DATA_DIR=str(data), SECRET_KEY="only of this test")
    letters = [path.read_text() for path in (data / "mail").iterdir()]
    sent = "\n".join(letters)
    for number in range(30):
        assert sent.count(f"Subject: [Acme] Waits for your review: #{number} Kinder\n") == 1
    with tenant_transaction(acme):
        assert not Notification.objects.filter(mailed_at=None).exists()
        assert set(Notification.objects.values_list("mail_attempts", flat=True)) == {1}


@pytest.mark.timeout(240)
def test_production__with_beat_and_a_worker__does_what_is_due(
    governed,  # noqa: F811
    tmp_path,
    settings,
):
    settings.WEBHOOK_ALLOW_PRIVATE = ["127.0.0.1"]
    acme = governed.world.acme
    with (
        receiving() as receiver,
        deployed(
            tmp_path / "fleet",
            CHORES_SECONDS="1",
            WEBHOOK_ALLOW_PRIVATE="127.0.0.1",
            AGENTOPS_SECRET__ACME__HOOK="acme signs",
        ) as deployment,
    ):
        deployment.worker()
        deployment.beat()
        with tenant_transaction(acme):
            endpoint = webhook_save(
                actor="user:alice", name="ops", url=receiver.url, secret_name="HOOK"
            )
            delivery_test(endpoint=endpoint, actor="user:alice")
        until(lambda: receiver.posts, "the webhook", seconds=60)

        def noted() -> bool:
            with tenant_transaction(acme):
                return not WebhookDelivery.objects.filter(delivered_at=None).exists()

        until(noted, "the delivery to be noted", seconds=20)
        assert len(receiver.posts) == 1
        assert json.loads(receiver.posts[0][1])["data"]["subject"] == "ops"
