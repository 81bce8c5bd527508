"""What tool servers were seen to offer, what differs from what was accepted, and mocks. Tables."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from apps.tenants.owned import TenantOwned


class ServerState(TenantOwned):
    """When a server was last asked for its tools in an environment, and what came of it."""

    environment = models.CharField(_("environment"), max_length=40)
    server = models.CharField(_("tool server"), max_length=120)
    count = models.PositiveIntegerField(_("tools"), default=0)
    checked_at = models.DateTimeField(_("last asked"), null=True)
    listed_at = models.DateTimeField(_("last answered"), null=True)
    error = models.CharField(_("error"), max_length=500, blank=True)
    code = models.CharField(_("error code"), max_length=40, blank=True)
    milliseconds = models.PositiveIntegerField(_("milliseconds"), default=0)
    # A server said that its list changed; a chore asks it again.
    changed_at = models.DateTimeField(_("said to have changed"), null=True)
    claimed_until = models.DateTimeField(null=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("state of a tool server")
        verbose_name_plural = _("states of tool servers")
        ordering = ["environment", "server"]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "environment", "server"], name="server_state_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.environment} · {self.server}"


class SeenTool(TenantOwned):
    """One tool as a server listed it last. ``contract`` is canonical text of every visible field."""

    environment = models.CharField(_("environment"), max_length=40)
    server = models.CharField(_("tool server"), max_length=120)
    name = models.CharField(_("name"), max_length=500)
    sha256 = models.CharField(_("hash"), max_length=64)
    contract = models.TextField(_("contract"))
    first_seen_at = models.DateTimeField(_("first seen"), auto_now_add=True)
    changed_at = models.DateTimeField(_("changed"), null=True)
    gone_at = models.DateTimeField(_("gone since"), null=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("seen tool")
        verbose_name_plural = _("seen tools")
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "environment", "server", "name"], name="seen_tool_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.server}: {self.name}"


class ToolQuarantine(TenantOwned):
    """A tool whose server declares something else than what was accepted, or declares it no more.

    While it is open no new release has the tool as it was accepted; what runs goes on. ``affected``
    and ``notes`` are JSON lists.
    """

    class Reason(models.TextChoices):
        CHANGED = "changed", _("Drifted")
        GONE = "gone", _("Gone")

    environment = models.CharField(_("environment"), max_length=40)
    server = models.CharField(_("tool server"), max_length=120)
    tool = models.CharField(_("tool"), max_length=120)
    reason = models.CharField(_("reason"), max_length=10, choices=Reason.choices)
    pinned_sha256 = models.CharField(_("accepted hash"), max_length=64)
    pinned = models.TextField(_("accepted contract"))
    seen_sha256 = models.CharField(_("seen hash"), max_length=64, blank=True)
    seen = models.TextField(_("seen contract"), blank=True)
    affected = models.TextField(default="[]")
    notes = models.TextField(default="[]")
    # No foreign key to patches: the request says it all, also after it was closed.
    request = models.ForeignKey(
        "releases.ChangeRequest", on_delete=models.PROTECT, null=True, related_name="+",
        verbose_name=_("change request"),
    )  # fmt: skip
    opened_at = models.DateTimeField(_("since"), auto_now_add=True)
    changed_at = models.DateTimeField(_("changed"))
    opened_by = models.CharField(_("found by"), max_length=200)
    closed_at = models.DateTimeField(_("over since"), null=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("tool in quarantine")
        verbose_name_plural = _("tools in quarantine")
        ordering = ["environment", "tool"]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "environment", "tool"],
                condition=Q(closed_at=None),
                name="tool_quarantined_once",
            )
        ]
        indexes = [models.Index(fields=["tenant", "tool"], name="quarantines_of_tool")]

    def __str__(self) -> str:
        return f"{self.tool}: {self.reason}"


class ToolMock(TenantOwned):
    """What the bench answers in a tool's place: ``steps`` is a JSON list, tried in order."""

    tool = models.CharField(_("tool"), max_length=120)
    steps = models.TextField(_("steps"), default="[]")
    updated_by = models.CharField(_("updated by"), max_length=200, editable=False)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("tool mock")
        verbose_name_plural = _("tool mocks")
        ordering = ["tool"]
        constraints = [models.UniqueConstraint(fields=["tenant", "tool"], name="tool_mock_once")]

    def __str__(self) -> str:
        return self.tool
