"""Writes of webhook endpoints. All inside a tenant scope."""

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from apps.governance.approval_models import WebhookEndpoint
from apps.governance.posting import address_parse
from apps.releases.changes.events import EVENTS
from apps.releases.environments.binding_values import (
    InvalidBinding,
    address_check,
    credential_check,
)
from apps.runtime.addresses import AddressRefused
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import audit_append

FAMILIES = sorted({event.partition(".")[0] + ".*" for event in EVENTS})
LONGEST_EVENTS = 500
FIELDS = ("name", "url", "secret_name", "events", "enabled")


class InvalidWebhook(ValueError):
    """A webhook's value is not acceptable. ``errors``: field → sentence."""

    code = "invalid_webhook"

    def __init__(self, errors: dict[str, str]) -> None:
        self.errors = errors
        super().__init__(" ".join(errors.values()))


def webhook_check(*, name: str, url: str, secret_name: str, events: str) -> None:
    """Raise ``InvalidWebhook`` unless these values may be saved."""
    errors = {}
    if not name.strip() or len(name) > 120:
        errors["name"] = _("A name has 1 to 120 characters.")
    if problem := _address_problem(url):
        errors["url"] = problem
    try:
        credential_check(secret_name)
    except InvalidBinding as error:
        errors["secret_name"] = str(error)
    listed = events.replace(",", " ").split()
    unknown = [event for event in listed if event not in (*EVENTS, *FAMILIES, "*")]
    if not listed:
        errors["events"] = _("Name at least one event, or * for all of them.")
    elif len(events) > LONGEST_EVENTS:
        errors["events"] = _("Events have at most %(count)s characters; name families.") % {
            "count": LONGEST_EVENTS
        }
    elif unknown:
        errors["events"] = _("No such event: %(names)s.") % {"names": ", ".join(unknown)}
    if errors:
        raise InvalidWebhook(errors)


def _address_problem(url: str) -> str:
    try:
        address_check(url)
        address_parse(url, private=settings.WEBHOOK_ALLOW_PRIVATE)
    except InvalidBinding as error:
        return str(error)
    except AddressRefused as refused:
        if str(refused) == "private_address":
            return _("The address is inside; an operator allows it by WEBHOOK_ALLOW_PRIVATE.")
        return _("The address must begin with https://.")
    return ""


def webhook_save(
    *,
    actor: str,
    name: str,
    url: str,
    secret_name: str,
    events: str = "*",
    enabled: bool = True,
    endpoint: WebhookEndpoint | None = None,
) -> WebhookEndpoint:
    """Make a webhook, or change ``endpoint``; saving what it already is writes nothing.

    Raises ``InvalidWebhook``, also for a name that another one has.
    """
    webhook_check(name=name, url=url, secret_name=secret_name, events=events)
    after = {
        "name": name.strip(),
        "url": url,
        "secret_name": secret_name,
        "events": " ".join(events.replace(",", " ").split()),
        "enabled": enabled,
    }
    with tenant_transaction():
        same_name = WebhookEndpoint.objects.filter(name=after["name"])
        if same_name.exclude(pk=endpoint.pk if endpoint else None).exists():
            raise _name_taken()
        row = _locked(endpoint)
        before = _values(row) if endpoint else {}
        if before == after:
            return row
        for field, value in after.items():
            setattr(row, field, value)
        row.created_by = row.created_by or actor
        try:
            with transaction.atomic():
                row.save()
        except IntegrityError:  # Somebody else took the name in the same moment.
            raise _name_taken() from None
        audit_append(
            actor=actor,
            action="webhook.changed" if endpoint else "webhook.added",
            entity=f"webhook:{row.name}",
            detail={"before": _shown(before), "after": _shown(after)},
        )
    return row


def webhook_change(*, endpoint: WebhookEndpoint, actor: str, **changed: Any) -> WebhookEndpoint:
    """Change only these of ``FIELDS``; the others stay as whoever wrote last has them.

    Raises as ``webhook_save``.
    """
    with tenant_transaction():
        values = _values(_locked(endpoint))
        return webhook_save(actor=actor, endpoint=endpoint, **{**values, **changed})


def _name_taken() -> InvalidWebhook:
    return InvalidWebhook({"name": _("There is a webhook of this name.")})


def _locked(endpoint: WebhookEndpoint | None) -> WebhookEndpoint:
    if endpoint is None:
        return WebhookEndpoint()
    row: WebhookEndpoint = WebhookEndpoint.objects.select_for_update(no_key=True).get(
        pk=endpoint.pk
    )
    return row


def _values(endpoint: WebhookEndpoint) -> dict[str, Any]:
    return {field: getattr(endpoint, field) for field in FIELDS}


def _shown(values: dict[str, Any]) -> dict[str, Any]:
    """Return what the trail keeps: of the address only its host, for some carry a token in the path."""
    if not values:
        return {}
    kept = {field: values[field] for field in ("name", "events", "enabled")}
    return {**kept, "host": urlsplit(values["url"]).netloc, "signed_with": values["secret_name"]}
