"""Reads of webhooks, for their admin pages and the API. Inside a tenant's scope."""

from django.db.models import Count, Q, QuerySet

from apps.governance.approval_models import WebhookDelivery, WebhookEndpoint


def webhooks_counted(
    found: QuerySet[WebhookEndpoint] | None = None,
) -> QuerySet[WebhookEndpoint]:
    """Return the webhooks (or those of ``found``) with ``waiting_count``, deliveries still to be
    tried, and ``given_up_count``, those that will not be."""
    rows: QuerySet[WebhookEndpoint] = WebhookEndpoint.objects.all() if found is None else found
    open_ones = Q(deliveries__delivered_at=None)
    return rows.annotate(
        waiting_count=Count("deliveries", filter=open_ones & Q(deliveries__next_at__isnull=False)),
        given_up_count=Count("deliveries", filter=open_ones & Q(deliveries__next_at=None)),
    )


def deliveries_of(endpoint: WebhookEndpoint) -> QuerySet[WebhookDelivery]:
    """Return what ``endpoint`` was told, newest first, without the bodies."""
    found: QuerySet[WebhookDelivery] = WebhookDelivery.objects.filter(endpoint=endpoint)
    return found.defer("payload").order_by("-created_at", "pk")
