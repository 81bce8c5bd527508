"""Operations on webhooks: who is told of what, and whether they took it. Never the secret's value."""

from typing import Any

from django.shortcuts import get_object_or_404
from rest_framework import serializers

from apps.governance import webhook_services
from apps.governance.approval_models import WebhookEndpoint
from apps.governance.webhook_selectors import deliveries_of, webhooks_counted
from apps.releases.api.inputs import Given, Paging
from apps.releases.api.operations import Operation, Page, page_of
from apps.releases.api.shapes import Shape


class WebhookShape(Shape):
    """A webhook. `secret_name` is the name of the secret that signs, as bindings have it.

    `waiting`: deliveries still to be tried; `given_up`: those that will not be.
    """

    id = serializers.UUIDField(source="pk")
    name = serializers.CharField()
    url = serializers.CharField()
    secret_name = serializers.CharField()
    events = serializers.SerializerMethodField()
    enabled = serializers.BooleanField()
    waiting = serializers.IntegerField(source="waiting_count")
    given_up = serializers.IntegerField(source="given_up_count")
    created_by = serializers.CharField()
    created_at = serializers.DateTimeField()

    def get_events(self, endpoint: WebhookEndpoint) -> list[str]:
        return endpoint.events.replace(",", " ").split()


class EventNames(serializers.ListField):
    """Names of events or of families (`change.*`), or `*` for all."""

    child = serializers.CharField(max_length=60)


class WebhookGiven(Given):
    name = serializers.CharField(max_length=120)
    url = serializers.CharField(max_length=500)
    secret_name = serializers.CharField(max_length=120)
    events = EventNames(default=["*"], max_length=50)
    enabled = serializers.BooleanField(default=True)


class WebhookChanged(Given):
    name = serializers.CharField(max_length=120, required=False)
    url = serializers.CharField(max_length=500, required=False)
    secret_name = serializers.CharField(max_length=120, required=False)
    events = EventNames(required=False, max_length=50)
    enabled = serializers.BooleanField(required=False)


def _columns(given: dict[str, Any]) -> dict[str, Any]:
    """Return what was given by the names and forms of the row."""
    return {**given, "events": " ".join(given["events"])} if "events" in given else given


def _shown(endpoint: WebhookEndpoint) -> WebhookEndpoint:
    return webhooks_counted().get(pk=endpoint.pk)


class WebhookList(Operation):
    """The tenant's webhooks, by name."""

    scope = "webhook:read"
    tag = "governance"
    many = True
    Query = Paging
    Output = WebhookShape

    def answer(self, **given: Any) -> Page:
        return page_of(webhooks_counted().order_by("name"), given)


class WebhookAdd(Operation):
    """Add a webhook: each event is one signed POST to an https address outside.

    Without `events` it is told of all.
    """

    scope = "governance:write"
    tag = "governance"
    status = 201
    Input = WebhookGiven
    Output = WebhookShape

    def answer(self, **given: Any) -> WebhookEndpoint:
        return _shown(webhook_services.webhook_save(actor=self.actor, **_columns(given)))


class WebhookGet(Operation):
    """One webhook."""

    scope = "webhook:read"
    tag = "governance"
    Output = WebhookShape

    def answer(self, **given: Any) -> WebhookEndpoint:
        found: WebhookEndpoint = get_object_or_404(webhooks_counted(), pk=self.named["webhook"])
        return found


class WebhookChange(Operation):
    """Change a webhook, or switch it off or on (`enabled`); what is left out stays as it is."""

    scope = "governance:write"
    tag = "governance"
    Input = WebhookChanged
    Output = WebhookShape

    def answer(self, **given: Any) -> WebhookEndpoint:
        row = get_object_or_404(WebhookEndpoint, pk=self.named["webhook"])
        changed = _columns(given)
        return _shown(webhook_services.webhook_change(endpoint=row, actor=self.actor, **changed))


class WebhookDeliveries(Operation):
    """What a webhook was told, newest first: the last answer, and when it is tried again.

    `next_at` and `delivered_at` both null: given up.
    """

    scope = "webhook:read"
    tag = "governance"
    many = True
    Query = Paging

    class Output(Shape):
        id = serializers.UUIDField(source="pk")
        event = serializers.CharField()
        answer = serializers.CharField(source="status")
        attempts = serializers.IntegerField()
        created_at = serializers.DateTimeField()
        next_at = serializers.DateTimeField(allow_null=True)
        delivered_at = serializers.DateTimeField(allow_null=True)

    def answer(self, **given: Any) -> Page:
        row = get_object_or_404(WebhookEndpoint, pk=self.named["webhook"])
        return page_of(deliveries_of(row), given)
