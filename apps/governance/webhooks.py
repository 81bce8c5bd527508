"""Other systems are told by a signed POST: an outbox of deliveries, sent until they are taken.

A delivery is written in the transaction of what it tells of, so none is lost and none tells of what
was taken back. It is sent at least once and keeps its id: the receiver drops what it has seen.
"""

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from http.client import HTTPException
from typing import Any

from django.conf import settings
from django.db.models import F
from django.utils import timezone
from django.utils.module_loading import import_string

from apps.governance.approval_models import WebhookDelivery, WebhookEndpoint
from apps.governance.notices import webhook_disabled_noticed
from apps.governance.posting import SECONDS, post_signed
from apps.releases.changes.events import ChangeEvent
from apps.runtime.addresses import AddressRefused
from apps.runtime.canonical import canonical_json
from apps.tenants.models import Tenant
from apps.tenants.scope import current_tenant_id, release_connection, tenant_transaction
from apps.tenants.services import audit_append

logger = logging.getLogger(__name__)
TEST_EVENT = "webhook.test"
PAUSES = (10, 60, 300, 1800, 7200, 21_600, 43_200)
"""Seconds before each further attempt: eight in all, over some twenty hours."""
ATTEMPTS = len(PAUSES) + 1
AT_ONCE = 50
RUN_SECONDS = 30.0
# Longer than a run and its last attempt: only a process that died leaves a claim to run out.
CLAIM = timedelta(seconds=RUN_SECONDS + SECONDS * 4 + 10)


def change_delivered(event: ChangeEvent) -> None:
    """Note ``event`` for every endpoint that wants it. A listener: in the change's transaction."""
    wanting = [
        endpoint
        for endpoint in WebhookEndpoint.objects.filter(enabled=True)
        if wants(endpoint, event.event)
    ]
    if not wanting:
        return
    now = timezone.now()
    payload = canonical_json(payload_of(event, now))
    WebhookDelivery.objects.bulk_create(
        WebhookDelivery(endpoint=endpoint, event=event.event, payload=payload, next_at=now)
        for endpoint in wanting
    )


def wants(endpoint: WebhookEndpoint, event: str) -> bool:
    """Return whether ``endpoint`` lists ``event``, its family (``change.*``), or ``*``."""
    listed = endpoint.events.replace(",", " ").split()
    return any(name in ("*", event, event.partition(".")[0] + ".*") for name in listed)


def payload_of(event: ChangeEvent, at: datetime) -> dict[str, Any]:
    """Return what is told: which request, where, which manifest, by whom. No configuration."""
    request = event.request
    about: dict[str, Any] = {
        "tenant": Tenant.objects.values_list("slug", flat=True).get(pk=current_tenant_id()),
        "actor": event.actor,
        "subject": event.subject,
        "environment": event.environment or (request.environment if request else ""),
    }
    if request is not None:
        about["request"] = {
            "number": request.number,
            "title": request.title,
            "status": request.status,
            "risk": request.risk,
            "sha256": request.manifest_sha256,
        }
    return {"type": event.event, "timestamp": at.isoformat(), "data": about}


def delivery_test(*, endpoint: WebhookEndpoint, actor: str) -> WebhookDelivery:
    """Send ``endpoint`` a message that says only that it works."""
    with tenant_transaction():
        now = timezone.now()
        told = ChangeEvent(event=TEST_EVENT, actor=actor, subject=endpoint.name)
        delivery: WebhookDelivery = WebhookDelivery.objects.create(
            endpoint=endpoint,
            event=TEST_EVENT,
            payload=canonical_json(payload_of(told, now)),
            next_at=now,
        )
        audit_append(
            actor=actor,
            action=TEST_EVENT,
            entity=f"webhook:{endpoint.name}",
            detail={"delivery": str(delivery.pk)},
        )
    return delivery


def webhooks_send(now: datetime) -> None:
    """Send what is due of this tenant. A chore: see ``apps.tenants.chores``.

    An endpoint that does not answer is asked once a run, so it keeps no other waiting.
    """
    until = time.monotonic() + RUN_SECONDS
    silent: set[Any] = set()
    for delivery in _due(now):
        if time.monotonic() > until:
            break
        if delivery.endpoint_id in silent or not _claim(delivery, now):
            continue
        release_connection()
        status, taken = _post(delivery)
        if taken:
            _delivered(delivery, status, now)
        else:
            silent.add(delivery.endpoint_id)
            _postponed(delivery, status, now)


def _due(now: datetime) -> list[WebhookDelivery]:
    with tenant_transaction():
        waiting = WebhookDelivery.objects.filter(next_at__lte=now, endpoint__enabled=True)
        return list(waiting.select_related("endpoint").order_by("next_at", "created_at")[:AT_ONCE])


def _claim(delivery: WebhookDelivery, now: datetime) -> bool:
    with tenant_transaction():
        free = WebhookDelivery.objects.filter(pk=delivery.pk, next_at=delivery.next_at)
        taken = free.update(next_at=now + CLAIM, attempts=F("attempts") + 1)
    delivery.attempts += 1
    return bool(taken)


def _post(delivery: WebhookDelivery) -> tuple[str, bool]:
    """Send it; return what came of it in a word, and whether it was taken."""
    endpoint = delivery.endpoint
    with tenant_transaction():
        slug = Tenant.objects.values_list("slug", flat=True).get(pk=current_tenant_id())
    release_connection()
    secret_of: Callable[[str, str], str] = import_string(settings.TENANT_SECRET)
    secret = secret_of(slug, endpoint.secret_name)
    if not secret:
        return "secret_not_set", False
    try:
        status = post_signed(
            endpoint.url,
            secret=secret,
            identity=str(delivery.pk),
            timestamp=int(time.time()),
            body=delivery.payload.encode(),
            private=settings.WEBHOOK_ALLOW_PRIVATE,
        )
    except AddressRefused as refused:
        return str(refused), False
    except ValueError:
        return "secret_not_base64", False
    except TimeoutError:
        return "timeout", False
    except (OSError, HTTPException) as error:
        return type(error).__name__[:60], False
    return str(status), 200 <= status < 300


def _delivered(delivery: WebhookDelivery, status: str, now: datetime) -> None:
    with tenant_transaction():
        _own(delivery).update(delivered_at=now, next_at=None, status=status)


def _postponed(delivery: WebhookDelivery, status: str, now: datetime) -> None:
    """Try again later; after the last attempt give up, and on an endpoint that took nothing since."""
    logger.warning("webhook delivery %s: %s", delivery.pk, status)
    gone = status == "410"  # the receiver says that it wants no more
    last = gone or delivery.attempts >= ATTEMPTS
    with tenant_transaction():
        pause = None if last else now + timedelta(seconds=PAUSES[delivery.attempts - 1])
        if not _own(delivery).update(next_at=pause, status=status):
            return
        taken_since = WebhookDelivery.objects.filter(
            endpoint=delivery.endpoint_id, delivered_at__gte=delivery.created_at
        )
        if last and (gone or not taken_since.exists()):
            _disable(delivery.endpoint, status)


def _own(delivery: WebhookDelivery) -> Any:
    """Return the row while this attempt is its last one: a late answer changes nothing."""
    return WebhookDelivery.objects.filter(
        pk=delivery.pk, attempts=delivery.attempts, delivered_at=None
    )


def _disable(endpoint: WebhookEndpoint, status: str) -> None:
    if WebhookEndpoint.objects.filter(pk=endpoint.pk, enabled=True).update(enabled=False):
        audit_append(
            actor="system",
            action="webhook.disabled",
            entity=f"webhook:{endpoint.name}",
            detail={"answer": status},
        )
        webhook_disabled_noticed(endpoint)
