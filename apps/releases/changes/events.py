"""Tells other apps that something happened to a change: ``settings.CHANGE_LISTENERS``, dotted names.

A listener is called inside the transaction of the change and may only write rows (a notification, a
webhook to send): what it tells is then true, and nothing is told that was taken back.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from apps.releases.change_models import ChangeRequest

EVENTS = (
    "change.submitted", "change.approved", "change.decided", "change.changes_requested",
    "change.rejected", "change.withdrawn", "change.voided", "change.stale", "change.rebased",
    "change.scheduled", "change.schedule_failed", "change.published", "change.deployed", "change.left",
    "change.superseded", "change.commented", "change.broken_glass", "change.ratified",
    "change.reverted", "change.ratification_overdue",
    "environment.deployed", "environment.promoted", "environment.rolled_back",
    "environment.canary_started", "environment.canary_changed",
    "environment.canary_stopped", "environment.canary_finished",
    "environment.frozen", "binding.proposed", "binding.decided",
    "duty.granted", "duty.ended", "responsibility.changed", "quorum.changed",
)  # fmt: skip
"""Every event; the audit trail has an entry of the same name."""


@dataclass(frozen=True)
class ChangeEvent:
    """What happened. ``request`` is ``None`` when it was not about one; ``detail`` holds JSON values."""

    event: str
    actor: str
    subject: str
    request: ChangeRequest | None = None
    environment: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)


def change_told(event: ChangeEvent) -> None:
    """Call every listener with ``event``."""
    assert event.event in EVENTS, event.event
    for name in settings.CHANGE_LISTENERS:
        listener: Callable[[ChangeEvent], None] = import_string(name)
        listener(event)
