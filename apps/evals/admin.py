"""Admin of judge policies."""

from django.contrib import admin

from apps.evals.models import JudgePolicy
from apps.releases.pages.kind_admin import KindAdmin


@admin.register(JudgePolicy)
class JudgePolicyAdmin(KindAdmin):
    icon = "gavel"
