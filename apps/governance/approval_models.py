"""Who must approve what, what an agent still lacks, and who is told. Tables, not configuration."""

import uuid

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.tenants.models import User
from apps.tenants.owned import TenantOwned


class Duty(models.TextChoices):
    """The roles of the responsibility matrix (who is R, A, C or I of an activity)."""

    PLATFORM = "platform", _("Platform")
    DOMAIN = "domain", _("Domain")
    INTEGRATION = "integration", _("Integration")
    SRE = "sre", _("Operations (SRE)")
    SECURITY = "security", _("Security")


class RaciEntry(TenantOwned):
    """One cell of the tenant's own responsibility matrix; where it has none, ``raci.DEFAULTS`` holds."""

    activity = models.CharField(_("activity"), max_length=40)
    duty = models.CharField(_("duty"), max_length=12, choices=Duty.choices)
    letters = models.CharField(_("letters"), max_length=3, blank=True)
    updated_by = models.CharField(_("updated by"), max_length=200, editable=False)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("responsibility")
        verbose_name_plural = _("responsibilities")
        ordering = ["activity", "duty"]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "activity", "duty"], name="raci_cell_once")
        ]

    def __str__(self) -> str:
        return f"{self.activity} · {self.duty}: {self.letters}"


class RiskQuorum(TenantOwned):
    """How many people approve a request of a risk class, and which duty beside the accountable one."""

    risk = models.CharField(_("risk"), max_length=12)
    approvals = models.PositiveSmallIntegerField(_("approvals"), default=1)
    extra_duty = models.CharField(_("second role"), max_length=12, choices=Duty.choices, blank=True)
    updated_by = models.CharField(_("updated by"), max_length=200, editable=False)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("quorum")
        verbose_name_plural = _("quorums")
        ordering = ["risk"]
        constraints = [models.UniqueConstraint(fields=["tenant", "risk"], name="quorum_once")]

    def __str__(self) -> str:
        return f"{self.risk}: {self.approvals}"


class DutyAssignment(TenantOwned):
    """A person holds a duty; with ``delegated_by`` for somebody else, and then only until it ends."""

    user = models.ForeignKey(
        User, on_delete=models.CASCADE, related_name="+", verbose_name=_("user")
    )
    duty = models.CharField(_("duty"), max_length=12, choices=Duty.choices)
    delegated_by = models.ForeignKey(
        User, on_delete=models.CASCADE, null=True, blank=True, related_name="+",
        verbose_name=_("on behalf of"),
    )  # fmt: skip
    starts_at = models.DateTimeField(_("from"), auto_now_add=True)
    expires_at = models.DateTimeField(_("until"), null=True, blank=True)
    ended_at = models.DateTimeField(_("ended at"), null=True, editable=False)
    reason = models.CharField(_("reason"), max_length=500, blank=True)
    granted_by = models.CharField(_("granted by"), max_length=200, editable=False)

    class Meta(TenantOwned.Meta):
        verbose_name = _("duty")
        verbose_name_plural = _("duties")
        ordering = ["duty", "user__username"]
        constraints = [
            models.CheckConstraint(
                condition=Q(delegated_by=None) | Q(expires_at__isnull=False),
                name="delegation_expires",
            )
        ]
        indexes = [models.Index(fields=["tenant", "user"], name="duties_of_person")]

    def __str__(self) -> str:
        return f"{self.user} · {self.duty}"


class GateLevel(TenantOwned):
    """What a gate's findings do in this tenant; where it has none, the gate's own level holds."""

    class Level(models.TextChoices):
        BLOCK = "block", _("Blocks")
        WARN = "warn", _("Warns")
        OFF = "off", _("Off")

    gate = models.CharField(_("gate"), max_length=60)
    level = models.CharField(_("level"), max_length=6, choices=Level.choices)
    updated_by = models.CharField(_("updated by"), max_length=200, editable=False)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("gate level")
        verbose_name_plural = _("gate levels")
        ordering = ["gate"]
        constraints = [models.UniqueConstraint(fields=["tenant", "gate"], name="gate_level_once")]

    def __str__(self) -> str:
        return f"{self.gate}: {self.level}"


class Evidence(TenantOwned):
    """A result somebody brings about exactly one manifest: tests, evaluation, certification. Append-only."""

    append_only = True

    class What(models.TextChoices):
        TESTS = "tests", _("Test report")
        EVALUATION = "evaluation", _("Evaluation report")
        CERTIFICATION = "certification", _("Certification report")
        SECURITY = "security", _("Security checklist")
        ROLLBACK = "rollback", _("Rollback tried")
        OTHER = "other", _("Other")

    manifest_sha256 = models.CharField(_("manifest"), max_length=64)
    what = models.CharField(_("type"), max_length=14, choices=What.choices)
    passed = models.BooleanField(_("passed"))
    result_sha256 = models.CharField(_("sha256 of the result"), max_length=64)
    summary = models.CharField(_("summary"), max_length=500, blank=True)
    link = models.URLField(_("link"), max_length=500, blank=True)
    recorded_by = models.CharField(_("recorded by"), max_length=200, editable=False)
    recorded_at = models.DateTimeField(_("recorded at"), auto_now_add=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("evidence")
        verbose_name_plural = _("evidence")
        ordering = ["-recorded_at"]
        indexes = [models.Index(fields=["tenant", "manifest_sha256"], name="evidence_of_manifest")]

    def __str__(self) -> str:
        return f"{self.what} {self.manifest_sha256[:12]}"


class ReadinessCheck(TenantOwned):
    """One point of an agent's readiness checklist (``readiness.CHECKLIST``), with its evidence.

    An exemption has a reason, who approved it and when it ends.
    """

    class State(models.TextChoices):
        OPEN = "open", _("Open")
        DONE = "done", _("Done")
        EXEMPT = "exempt", _("Exempt")

    agent = models.CharField(_("agent"), max_length=120)
    check_code = models.CharField(_("check"), max_length=60)
    state = models.CharField(_("state"), max_length=8, choices=State.choices, default=State.OPEN)
    note = models.TextField(_("note"), blank=True)
    link = models.URLField(_("evidence"), max_length=500, blank=True)
    reason = models.CharField(_("reason"), max_length=500, blank=True)
    approved_by = models.CharField(_("approved by"), max_length=200, blank=True)
    expires_at = models.DateTimeField(_("until"), null=True, blank=True)
    updated_by = models.CharField(_("updated by"), max_length=200, editable=False)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("readiness check")
        verbose_name_plural = _("readiness checks")
        ordering = ["agent", "check_code"]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "agent", "check_code"], name="readiness_once")
        ]

    def __str__(self) -> str:
        return f"{self.agent} · {self.check_code}"


class CompatibilityRow(TenantOwned):
    """Which versions work together; each is a version or a pattern like ``2.1.x``."""

    framework = models.CharField(_("framework"), max_length=40)
    runtime = models.CharField(_("runtime"), max_length=40)
    agent_gateway = models.CharField(_("agent gateway"), max_length=40)
    supported = models.BooleanField(_("supported"), default=True)
    note = models.CharField(_("note"), max_length=500, blank=True)
    updated_by = models.CharField(_("updated by"), max_length=200, editable=False)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("compatibility row")
        verbose_name_plural = _("compatibility matrix")
        ordering = ["framework", "runtime", "agent_gateway"]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "framework", "runtime", "agent_gateway"],
                name="compatibility_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.framework} · {self.runtime} · {self.agent_gateway}"


class ContractVersion(TenantOwned):
    """A contract by name and version (``gateway-request-v1``), and where it is in its life."""

    class Status(models.TextChoices):
        ACTIVE = "active", _("Active")
        DEPRECATED = "deprecated", _("Deprecated")
        RETIRED = "retired", _("Retired")

    name = models.CharField(_("name"), max_length=80)
    version = models.PositiveIntegerField(_("version"))
    status = models.CharField(
        _("status"), max_length=10, choices=Status.choices, default=Status.ACTIVE
    )
    schema = models.TextField(_("JSON schema"), blank=True)
    deprecated_on = models.DateField(_("deprecated on"), null=True, blank=True)
    retired_on = models.DateField(_("retired on"), null=True, blank=True)
    owner = models.CharField(_("owner"), max_length=200, blank=True)
    updated_by = models.CharField(_("updated by"), max_length=200, editable=False)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("contract")
        verbose_name_plural = _("contracts")
        ordering = ["name", "-version"]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name", "version"], name="contract_once")
        ]

    def __str__(self) -> str:
        return f"{self.name}-v{self.version}"


class Notification(TenantOwned):
    """Something a person should know, in the product and by e-mail."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    event = models.CharField(_("event"), max_length=60)
    subject = models.CharField(_("subject"), max_length=300)
    link = models.CharField(_("link"), max_length=300, blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    read_at = models.DateTimeField(_("read at"), null=True)
    mailed_at = models.DateTimeField(null=True)
    mail_attempts = models.PositiveSmallIntegerField(default=0)
    # Not before: the pause after a failure, and the claim of who is sending it now.
    mail_after = models.DateTimeField(default=timezone.now)

    class Meta(TenantOwned.Meta):
        verbose_name = _("notification")
        verbose_name_plural = _("notifications")
        ordering = ["-created_at"]
        indexes = [
            models.Index(fields=["tenant", "user", "-created_at"], name="notification_recent"),
            models.Index(
                fields=["tenant", "created_at"], condition=Q(mailed_at=None),
                name="notification_unmailed",
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return self.subject


class WebhookEndpoint(TenantOwned):
    """Another system that is told. ``secret_name`` names the signing secret, as a binding does."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(_("name"), max_length=120)
    url = models.URLField(_("address"), max_length=500)
    secret_name = models.CharField(_("name of the secret"), max_length=120)
    events = models.CharField(_("events"), max_length=500, default="*")
    enabled = models.BooleanField(_("enabled"), default=True)
    created_by = models.CharField(_("created by"), max_length=200, editable=False)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("webhook")
        verbose_name_plural = _("webhooks")
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="webhook_once")]

    def __str__(self) -> str:
        return self.name


class WebhookDelivery(TenantOwned):
    """One event on its way to an endpoint: sent until it is taken or given up. Signed when sent."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    endpoint = models.ForeignKey(
        WebhookEndpoint, on_delete=models.CASCADE, related_name="deliveries"
    )
    event = models.CharField(_("event"), max_length=60)
    payload = models.TextField()
    attempts = models.PositiveSmallIntegerField(_("attempts"), default=0)
    next_at = models.DateTimeField(_("next attempt at"), null=True)
    status = models.CharField(_("answer"), max_length=60, blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    delivered_at = models.DateTimeField(_("delivered at"), null=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("webhook delivery")
        verbose_name_plural = _("webhook deliveries")
        ordering = ["-created_at"]
        indexes = [
            models.Index(
                fields=["tenant", "next_at"], condition=Q(next_at__isnull=False),
                name="webhook_waiting",
            )
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.event} {self.status}"
