"""Workflow runs and what each of their nodes did. Tables.

``inputs``, ``result`` and ``outcome`` are sealed: tools answer in clear, and a later node may need it.
"""

import uuid

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from apps.tenants.owned import TenantOwned


class WorkflowRun(TenantOwned):
    """One execution of a workflow, from its start to its end, over any number of turns.

    ``definition`` is the workflow it began with, and ``release`` the tools: a newer one is for new
    runs. ``identity`` says which request it is; one run at a time carries a request out. ``turn``,
    ``turn_number`` and ``fence`` are those of who may write to it.
    """

    class Status(models.TextChoices):
        RUNNING = "RUNNING", _("Running")
        PAUSED = "PAUSED", _("Waits for the customer")
        COMPLETED = "COMPLETED", _("Completed")
        FAILED = "FAILED", _("Failed")
        COMPENSATED = "COMPENSATED", _("Failed and taken back")
        UNKNOWN = "UNKNOWN", _("Outcome unknown")

    OPEN = (Status.RUNNING, Status.PAUSED)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    # Of an app beside this one, hence no foreign key.
    session_id = models.UUIDField(_("session"))
    workflow = models.CharField(_("workflow"), max_length=120)
    release = models.ForeignKey(
        "releases.Release",
        on_delete=models.PROTECT,
        related_name="+",
        verbose_name=_("release"),
        db_index=False,
    )
    definition = models.TextField()
    identity = models.CharField(max_length=64)
    tool = models.CharField(_("tool"), max_length=120, blank=True)
    agent = models.CharField(_("agent"), max_length=120, blank=True)
    confirmed = models.BooleanField(_("confirmed"), default=False)
    status = models.CharField(
        _("status"), max_length=12, choices=Status.choices, default=Status.RUNNING
    )
    node = models.CharField(_("node"), max_length=60, blank=True)
    inputs = models.TextField()
    outcome = models.TextField(blank=True)
    error = models.TextField(_("error"), blank=True)
    began_turn = models.UUIDField()
    turn = models.UUIDField()
    turn_number = models.PositiveIntegerField()
    fence = models.PositiveIntegerField()
    started_at = models.DateTimeField(_("started at"), auto_now_add=True)
    touched_at = models.DateTimeField(auto_now=True)
    ended_at = models.DateTimeField(_("ended at"), null=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("workflow run")
        verbose_name_plural = _("workflow runs")
        ordering = ["-started_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "identity"],
                condition=Q(status__in=("RUNNING", "PAUSED")),
                name="workflow_request_once",
            )
        ]
        indexes = [
            models.Index(fields=["tenant", "-started_at"], name="workflow_run_recent"),
            models.Index(fields=["tenant", "identity", "-started_at"], name="workflow_run_request"),
        ]

    def __str__(self) -> str:
        return f"{self.workflow} {self.id}"


class WorkflowNodeRun(TenantOwned):
    """One time a node was reached: its tool, its question or its compensation.

    ``arguments`` are as the tool contract saw them, restricted values as placeholders.
    """

    class Kind(models.TextChoices):
        CALL = "call", _("Tool")
        PAUSE = "pause", _("Question")
        COMPENSATION = "compensation", _("Compensation")

    class Status(models.TextChoices):
        BEGUN = "begun", _("Begun")
        OK = "ok", _("Done")
        FAILED = "failed", _("Failed")
        REFUSED = "refused", _("Refused")
        UNKNOWN = "unknown", _("Unknown")
        ANSWERED = "answered", _("Answered")
        ABANDONED = "abandoned", _("Given up")

    run = models.ForeignKey(
        WorkflowRun, on_delete=models.PROTECT, related_name="nodes", db_index=False
    )
    kind = models.CharField(_("kind"), max_length=12, choices=Kind.choices)
    node = models.CharField(_("node"), max_length=60)
    visit = models.PositiveIntegerField(_("visit"))
    status = models.CharField(_("status"), max_length=10, choices=Status.choices)
    key = models.CharField(_("idempotency key"), max_length=64, blank=True)
    tool = models.CharField(_("tool"), max_length=120, blank=True)
    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    arguments = models.TextField(default="{}")
    result = models.TextField(blank=True)
    turn = models.UUIDField()
    started_at = models.DateTimeField(_("started at"), auto_now_add=True)
    ended_at = models.DateTimeField(_("ended at"), null=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("node of a workflow run")
        verbose_name_plural = _("nodes of workflow runs")
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["run", "kind", "node", "visit"], name="workflow_node_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.node} {self.status}"
