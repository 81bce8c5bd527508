"""Vectors of example sentences, and how far making them has come. Tables, not configuration."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.tenants.owned import TenantOwned


class ExampleVector(TenantOwned):
    """What one embedding model makes of one sentence: float32 numbers, little-endian.

    ``digest`` is the sha256 of the sentence as it is embedded, so every release that has the
    sentence shares the row.
    """

    model = models.CharField(_("embedding model"), max_length=120)
    digest = models.CharField(_("digest"), max_length=64)
    vector = models.BinaryField(_("vector"))
    created_at = models.DateTimeField(_("made at"), auto_now_add=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("example vector")
        verbose_name_plural = _("example vectors")
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "model", "digest"], name="example_vector_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.model}: {self.digest[:12]}"


class VectorWork(TenantOwned):
    """How many of the examples that run somewhere have their vectors; claimed by who makes them.

    ``releases`` names the deployed releases that ``total`` was counted for.
    """

    model = models.CharField(_("embedding model"), max_length=120)
    releases = models.CharField(_("releases"), max_length=64, blank=True)
    total = models.PositiveIntegerField(_("examples"), default=0)
    done = models.PositiveIntegerField(_("made"), default=0)
    error = models.CharField(_("error"), max_length=200, blank=True)
    claimed_until = models.DateTimeField(null=True)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("work on vectors")
        verbose_name_plural = _("work on vectors")
        constraints = [models.UniqueConstraint(fields=["tenant", "model"], name="vector_work_once")]

    def __str__(self) -> str:
        return f"{self.model}: {self.done}/{self.total}"
