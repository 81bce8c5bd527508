"""Answers of read-only tools that may be used again."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.tenants.owned import TenantOwned


class ToolAnswer(TenantOwned):
    """One answer, sealed. ``key`` and ``scope`` are keyed digests; see ``apps.tools.caching``."""

    key = models.CharField(max_length=64)
    scope = models.CharField(max_length=64)
    tool = models.CharField(_("tool"), max_length=120)
    answer = models.TextField()
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    expires_at = models.DateTimeField(_("expires at"))

    class Meta(TenantOwned.Meta):
        verbose_name = _("kept answer")
        verbose_name_plural = _("kept answers")
        constraints = [models.UniqueConstraint(fields=["tenant", "key"], name="tool_answer_once")]
        indexes = [
            models.Index(fields=["tenant", "scope"], name="tool_answer_scope"),
            models.Index(fields=["tenant", "expires_at"], name="tool_answer_expires"),
        ]

    def __str__(self) -> str:
        return f"{self.tool} {self.key[:12]}"
