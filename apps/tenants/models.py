"""Who: tenants, people, their roles, keys, and what they did."""

import re
import uuid

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.tenants.owned import TenantOwned

# A slug is part of session ids ("tenant:agent:session"), file names and URLs.
TENANT_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


class User(AbstractUser):
    """A person. A superuser is a platform administrator across tenants."""

    class Meta(AbstractUser.Meta):
        swappable = "AUTH_USER_MODEL"


class Tenant(models.Model):
    """A customer of the platform: everything else belongs to one."""

    slug = models.SlugField(_("slug"), max_length=63, unique=True)
    name = models.CharField(_("name"), max_length=200)
    demo_keyless = models.BooleanField(
        _("keyless demo calls"),
        default=False,
        help_text=_("Only with DEMO=1, from this machine, without a key. Never in production."),
    )
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    # The audit trail's last line. Its lock orders writers; its hash shows a trail cut at the end.
    audit_sequence = models.BigIntegerField(default=0, editable=False)
    audit_hash = models.CharField(max_length=64, default="", editable=False)

    class Meta:
        verbose_name = _("tenant")
        verbose_name_plural = _("tenants")
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.name


class Role(models.TextChoices):
    """What a member may do; see ``apps/tenants/roles.py`` for the permissions of each."""

    TENANT_ADMIN = "tenant_admin", _("Tenant admin")
    BUSINESS_OWNER = "business_owner", _("Business owner")
    APPROVER = "approver", _("Approver")
    OPERATOR = "operator", _("Operator")
    AUDITOR = "auditor", _("Auditor")


class Membership(TenantOwned):
    """A person's role in a tenant; one may hold several."""

    user = models.ForeignKey(
        User, on_delete=models.CASCADE, related_name="memberships", verbose_name=_("user")
    )
    role = models.CharField(_("role"), max_length=20, choices=Role.choices)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("membership")
        verbose_name_plural = _("memberships")
        constraints = [
            models.UniqueConstraint(fields=["tenant", "user", "role"], name="membership_once")
        ]

    def __str__(self) -> str:
        return f"{self.user} · {self.get_role_display()}"


class ApiKey(TenantOwned):
    """A system's credential. Only its hash is kept; the prefix is shown to find it again."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(_("name"), max_length=200)
    prefix = models.CharField(_("prefix"), max_length=16, unique=True, editable=False)
    digest = models.CharField(max_length=64, editable=False)
    scopes = models.JSONField(_("scopes"), default=list)
    # A personal key acts as this person, within their roles; without one it is a system's.
    person = models.ForeignKey(
        User, on_delete=models.CASCADE, null=True, blank=True, related_name="+",
        verbose_name=_("person"),
    )  # fmt: skip
    environment = models.CharField(_("environment"), max_length=20, default="production")
    # The one agent it may speak to and act for; empty: any of its tenant.
    agent = models.CharField(_("agent"), max_length=120, blank=True, default="", db_default="")
    expires_at = models.DateTimeField(_("expires at"), null=True, blank=True)
    last_used_at = models.DateTimeField(_("last used at"), null=True, editable=False)
    revoked_at = models.DateTimeField(_("revoked at"), null=True, editable=False)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    created_by = models.CharField(_("created by"), max_length=200, default="", editable=False)

    class Meta(TenantOwned.Meta):
        verbose_name = _("API key")
        verbose_name_plural = _("API keys")
        ordering = ["name"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class AuditEntry(TenantOwned):
    """One line of a tenant's audit trail. Append-only; each holds the hash of the one before."""

    append_only = True

    sequence = models.BigIntegerField(_("sequence"))
    at = models.DateTimeField(_("at"))
    actor = models.CharField(_("actor"), max_length=200)
    action = models.CharField(_("action"), max_length=100)
    entity = models.CharField(_("entity"), max_length=300)
    detail = models.TextField(_("detail"))
    previous_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    class Meta(TenantOwned.Meta):
        verbose_name = _("audit entry")
        verbose_name_plural = _("audit trail")
        ordering = ["-sequence"]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "sequence"], name="audit_sequence_once")
        ]

    def __str__(self) -> str:
        return f"{self.sequence} {self.action} {self.entity}"
