"""Notifications in the product: one row per person and event, written with what it tells of."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.governance.approval_models import Notification, WebhookEndpoint
from apps.governance.audiences import people_told, tenant_admins
from apps.releases.changes.events import ChangeEvent
from apps.tenants.models import User
from apps.tenants.scope import tenant_transaction

WEBHOOK_DISABLED = "webhook.disabled"
TOOL_SIGN_IN = "tool.needs_sign_in"

TITLES: dict[str, Any] = {
    "change.submitted": _("Waits for your review"),
    "change.approved": _("Approved"),
    "change.decided": _("Somebody decided"),
    "change.changes_requested": _("Changes are requested"),
    "change.rejected": _("Rejected"),
    "change.withdrawn": _("Withdrawn"),
    "change.voided": _("Approvals are void: it changed"),
    "change.stale": _("Stale: something else was published"),
    "change.rebased": _("Rebased: to be approved again"),
    "change.scheduled": _("Scheduled"),
    "change.schedule_failed": _("The scheduled publication failed"),
    "change.published": _("Published"),
    "change.deployed": _("Runs in its environment"),
    "change.left": _("No longer runs in its environment"),
    "change.superseded": _("Superseded"),
    "change.commented": _("New comment"),
    "change.broken_glass": _("Emergency release: a second person must look"),
    "change.ratified": _("Emergency release ratified"),
    "change.reverted": _("Emergency release reverted"),
    "change.ratification_overdue": _("Emergency release: nobody ratified it in time"),
    "environment.deployed": _("Deployed"),
    "environment.promoted": _("Promoted"),
    "environment.rolled_back": _("Rolled back"),
    "environment.canary_started": _("Canary started"),
    "environment.canary_changed": _("Canary share changed"),
    "environment.canary_stopped": _("Canary stopped"),
    "environment.canary_finished": _("The canary took over"),
    "environment.frozen": _("Frozen"),
    "binding.proposed": _("A binding waits for approval"),
    "binding.decided": _("Your proposed binding was decided"),
    "duty.granted": _("You were given a duty"),
    "duty.ended": _("A duty of yours ended"),
    "responsibility.changed": _("Who approves what was changed"),
    "quorum.changed": _("How many people approve was changed"),
    TOOL_SIGN_IN: _("A tool server wants a sign-in: its tools cannot be used"),
    WEBHOOK_DISABLED: _("A webhook was switched off: nobody took its messages"),
}
"""What happened, in words; the row keeps what it happened to, so each reader has it in theirs."""


def change_noticed(event: ChangeEvent) -> None:
    """Tell the people ``audiences.AUDIENCE`` names. A listener: runs in the change's transaction."""
    _told(people_told(event), event.event, _subject(event), _link(event))


def webhook_disabled_noticed(endpoint: WebhookEndpoint) -> None:
    """Tell the tenant's admins that ``endpoint`` was switched off."""
    link = _page("governance_webhookendpoint_change", endpoint.pk)
    _told(tenant_admins(), WEBHOOK_DISABLED, endpoint.name, link)


def tool_sign_in_noticed(*, server: str, principal: str) -> None:
    """Tell the person whose sign-in it is, or for the tenant's own its admins.

    A listener (``TOOL_SIGN_IN_LISTENERS``): runs in the transaction of what it tells of.
    """
    username = principal.removeprefix("user:") if principal.startswith("user:") else ""
    people = list(User.objects.filter(username=username)) if username else tenant_admins()
    _told(people, TOOL_SIGN_IN, server, _page("tools_toolconnection_changelist"))


def notices_of(user: User) -> QuerySet[Notification]:
    """Return the person's notifications in this tenant, newest first."""
    found: QuerySet[Notification] = Notification.objects.filter(user=user)
    return found.order_by("-created_at", "-pk")


def unread_count(user: User) -> int:
    """Return how many notifications of the person are unread, counted up to 100."""
    return int(notices_of(user).filter(read_at=None).order_by()[:100].count())


def notices_read(*, user: User, pk: int | None = None, now: datetime | None = None) -> int:
    """Mark the person's unread notifications (or only ``pk``) as read; return how many were."""
    with tenant_transaction():
        unread = notices_of(user).filter(read_at=None)
        chosen = unread if pk is None else unread.filter(pk=pk)
        return int(chosen.order_by().update(read_at=now or timezone.now()))


def _told(people: list[User], event: str, subject: str, link: str) -> None:
    """Write a row each; who has not read the same about the same thing yet is not told twice."""
    same = Notification.objects.filter(
        user__in=people, event=event, subject=subject, read_at=None
    ).order_by()
    knowing = set(same.values_list("user_id", flat=True))
    Notification.objects.bulk_create(
        Notification(user=user, event=event, subject=subject, link=link)
        for user in people
        if user.pk not in knowing
    )


def _subject(event: ChangeEvent) -> str:
    """Name what it is about: a request by number and title, else an environment or a thing."""
    request = event.request
    if request is None:
        return str(event.detail.get("duty") or event.subject or event.environment)[:300]
    named = f"#{request.number} {request.title}".strip()
    return (f"{named} · {event.environment}" if event.environment else named)[:300]


def _link(event: ChangeEvent) -> str:
    if event.request is not None:
        return _page("releases_changerequest_change", event.request.pk)
    pages = {
        "binding": "releases_bindingproposal_changelist",
        "environment": "releases_deployment_changelist",
        "duty": "governance_dutyassignment_changelist",
    }
    return _page(pages.get(event.event.partition(".")[0], ""))


def _page(name: str, *args: Any) -> str:
    """Return the admin page's path; "" when there is none."""
    try:
        return reverse(f"admin:{name}", args=args)
    except NoReverseMatch:
        return ""
