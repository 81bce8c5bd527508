"""How configuration becomes live: item -> revision -> change request -> release -> deployment.

What stands between an edit and a release is in ``change_models``.
"""

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.releases.kinds import KindManager
from apps.runtime.config import KindConfig
from apps.tenants.owned import TenantOwned


class ConfigItem(TenantOwned):
    """One thing that takes effect only by publishing. Its content is in its revisions.

    A kind is a proxy of this class that names its ``config_class``; its rows are those of the kind.
    """

    config_class: ClassVar[type[KindConfig] | None] = None

    kind = models.CharField(_("kind"), max_length=40, editable=False)
    slug = models.CharField(_("slug"), max_length=120)
    name = models.CharField(_("name"), max_length=200, blank=True)
    owner = models.CharField(_("owner"), max_length=200, blank=True)
    technical_owner = models.CharField(_("technical owner"), max_length=200, blank=True)
    archived_at = models.DateTimeField(_("archived at"), null=True, blank=True, editable=False)
    head = models.ForeignKey(
        "Revision", on_delete=models.PROTECT, null=True, related_name="+", editable=False
    )
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    objects: ClassVar[KindManager] = KindManager()

    class Meta(TenantOwned.Meta):
        verbose_name = _("configuration item")
        verbose_name_plural = _("configuration items")
        ordering = ["kind", "slug"]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "kind", "slug"], name="config_item_once")
        ]

    def __str__(self) -> str:
        return self.name or self.slug


class Revision(TenantOwned):
    """One state of an item's content. Append-only. ``content`` is canonical text."""

    append_only = True

    item = models.ForeignKey(ConfigItem, on_delete=models.PROTECT, related_name="revisions")
    number = models.PositiveIntegerField(_("number"))
    version = models.CharField(_("version"), max_length=40, default="1.0.0")
    content = models.TextField(_("content"))
    digest = models.CharField(_("digest"), max_length=64)
    author = models.CharField(_("author"), max_length=200)
    note = models.CharField(_("note"), max_length=500, blank=True)
    base = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("revision")
        verbose_name_plural = _("revisions")
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["item", "number"], name="revision_number_once")
        ]

    def __str__(self) -> str:
        return f"{self.item} #{self.number}"


class Reference(TenantOwned):
    """A revision names another item: where ("path"), which kind, which slug."""

    append_only = True

    revision = models.ForeignKey(Revision, on_delete=models.PROTECT, related_name="references")
    path = models.CharField(max_length=200)
    kind = models.CharField(max_length=40)
    slug = models.CharField(max_length=120)

    class Meta(TenantOwned.Meta):
        verbose_name = _("reference")
        verbose_name_plural = _("references")
        indexes = [models.Index(fields=["tenant", "kind", "slug"], name="reference_target")]

    def __str__(self) -> str:
        return f"{self.path} → {self.kind}:{self.slug}"


class Release(TenantOwned):
    """A tenant's whole configuration, frozen. Immutable. ``manifest`` is canonical text."""

    append_only = True

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    number = models.PositiveIntegerField(_("number"))
    manifest = models.TextField(_("manifest"))
    sha256 = models.CharField(_("sha256"), max_length=64)
    parent = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="+")
    note = models.CharField(_("note"), max_length=500, blank=True)
    published_by = models.CharField(_("published by"), max_length=200)
    published_at = models.DateTimeField(_("published at"), auto_now_add=True)
    gates = models.TextField(default="[]")

    class Meta(TenantOwned.Meta):
        verbose_name = _("release")
        verbose_name_plural = _("releases")
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "number"], name="release_number_once"),
            models.UniqueConstraint(fields=["tenant", "sha256"], name="release_manifest_once"),
        ]

    def __str__(self) -> str:
        return f"#{self.number} {self.sha256[:12]}"


def environment_choices() -> list[tuple[str, str]]:
    return [(name, name) for name in settings.RELEASE_ENVIRONMENTS]


class Deployment(TenantOwned):
    """Which release an environment runs, and a canary beside it: the only mutable pointer.

    ``environments.in_flight`` and ``max_pin_hours`` say what becomes of conversations that are open when the
    release arrives (``since``). ``canary_rules``: when a canary stops by itself, canonical text.
    ``bindings_version`` rises with every change of the environment's bindings; a turn takes it over
    when it is accepted, so a process keeps resolved bindings per version and asks nothing again.
    """

    environment = models.CharField(_("environment"), max_length=20, choices=environment_choices)
    release = models.ForeignKey(Release, on_delete=models.PROTECT, related_name="deployments")
    canary = models.ForeignKey(Release, on_delete=models.PROTECT, null=True, related_name="+")
    canary_share = models.PositiveSmallIntegerField(_("canary share"), default=0)
    canary_rules = models.TextField(default="{}")
    canary_started_at = models.DateTimeField(null=True)
    in_flight = models.CharField(_("open conversations"), max_length=8, default="follow")
    max_pin_hours = models.PositiveIntegerField(_("longest pin in hours"), default=72)
    since = models.DateTimeField(_("since"), null=True)
    bindings_version = models.PositiveIntegerField(default=1)
    # All of the above that a turn needs, as canonical text: one column to read with the session.
    pointer = models.TextField(default="{}", editable=False)
    deployed_by = models.CharField(_("deployed by"), max_length=200)
    deployed_at = models.DateTimeField(_("deployed at"), auto_now=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("deployment")
        verbose_name_plural = _("deployments")
        constraints = [
            models.UniqueConstraint(fields=["tenant", "environment"], name="deployment_once")
        ]

    def __str__(self) -> str:
        return f"{self.environment} → {self.release}"


class Binding(TenantOwned):
    """A value that differs by environment and is not part of a release.

    ``address``: a URL. ``credential``: the *name* of a secret in the process environment, never the
    secret itself.
    """

    class What(models.TextChoices):
        ADDRESS = "address", _("Address")
        CREDENTIAL = "credential", _("Credential name")

    environment = models.CharField(_("environment"), max_length=20, choices=environment_choices)
    what = models.CharField(_("type"), max_length=12, choices=What.choices)
    name = models.CharField(_("name"), max_length=120)
    value = models.CharField(_("value"), max_length=500)
    updated_by = models.CharField(_("updated by"), max_length=200, editable=False)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("binding")
        verbose_name_plural = _("bindings")
        ordering = ["environment", "what", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "environment", "what", "name"], name="binding_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.environment} · {self.name}"


# Django looks for models here.
from apps.releases import change_models as change_models  # noqa: E402
