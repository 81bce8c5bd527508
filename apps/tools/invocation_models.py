"""Calls of tools by other systems, outside any conversation. A table of its own: it is their ledger."""

import uuid

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from apps.tenants.owned import TenantOwned


class ToolInvocation(TenantOwned):
    """One call of a tool through a door, from its request to its result.

    Written before anything is sent and ended with the answer, which a repeated request gets again.
    ``answer`` and ``result`` are sealed; ``arguments`` is canonical text without restricted values.
    ``fence`` rises with every process that takes it up; every later write checks it.

    One that was refused because somebody has to say yes first (``reason`` confirmation_required) is
    the question: ``contract`` and ``arguments_sha256`` are what would run, ``expires_at`` until when
    a yes counts, ``used_by`` the call that used the yes up.
    """

    class Status(models.TextChoices):
        RUNNING = "running", _("Running")
        OK = "ok", _("Done")
        ERROR = "error", _("Failed")
        UNKNOWN = "unknown", _("Unknown")
        DENIED = "denied", _("Refused")

    class Door(models.TextChoices):
        REST = "rest", "REST"
        MCP = "mcp", "MCP"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    caller = models.CharField(_("caller"), max_length=200)
    agent = models.CharField(_("agent"), max_length=120)
    tool = models.CharField(_("tool"), max_length=120)
    server = models.CharField(_("tool server"), max_length=120, blank=True)
    channel = models.CharField(_("channel"), max_length=40, blank=True)
    door = models.CharField(_("door"), max_length=10, choices=Door.choices)
    request_id = models.CharField(_("request id"), max_length=200)
    trace_id = models.CharField(_("trace id"), max_length=200, blank=True)
    body_digest = models.CharField(max_length=64)
    environment = models.CharField(_("environment"), max_length=20)
    release = models.ForeignKey(
        "releases.Release", on_delete=models.PROTECT, related_name="+", db_index=False,
        verbose_name=_("release"),
    )  # fmt: skip
    arguments = models.TextField(_("arguments"), default="{}")
    arguments_sha256 = models.CharField(max_length=64, blank=True)
    contract = models.CharField(_("contract"), max_length=64, blank=True)
    status = models.CharField(
        _("status"), max_length=10, choices=Status.choices, default=Status.RUNNING
    )
    reason = models.CharField(_("reason"), max_length=60, blank=True)
    # What the tool's server gets as idempotency key; empty until the call is about to be sent.
    call_key = models.CharField(max_length=64, blank=True)
    result = models.TextField(blank=True)
    answer = models.TextField(blank=True)
    events = models.TextField(_("events"), default="[]")
    milliseconds = models.FloatField(_("milliseconds"), null=True)
    fence = models.PositiveIntegerField(default=1)
    lease_until = models.DateTimeField()
    expires_at = models.DateTimeField(_("yes counts until"), null=True)
    used_by = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    created_at = models.DateTimeField(_("at"), auto_now_add=True)
    started_at = models.DateTimeField(_("sent at"), null=True)
    ended_at = models.DateTimeField(_("ended at"), null=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("tool call from outside")
        verbose_name_plural = _("tool calls from outside")
        ordering = ["-created_at"]
        constraints = [
            # A refused request sent nothing: it may be corrected and sent under the same id.
            models.UniqueConstraint(
                fields=["tenant", "caller", "request_id"],
                condition=~Q(status="denied"),
                name="tool_invocation_once",
            )
        ]
        indexes = [
            models.Index(fields=["tenant", "-created_at"], name="tool_invocation_recent"),
            models.Index(
                fields=["tenant", "caller", "tool"],
                condition=Q(reason="confirmation_required"),
                name="tool_invocation_asked",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tool} {self.request_id}"
