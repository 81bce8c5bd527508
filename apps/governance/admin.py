"""Admin of rail policies."""

from django.contrib import admin

from apps.governance import approval_admin as approval_admin  # registers its pages
from apps.governance import notice_admin as notice_admin  # registers its pages
from apps.governance import proof_admin as proof_admin
from apps.governance import readiness_admin as readiness_admin
from apps.governance.models import RailPolicy
from apps.releases.pages.kind_admin import KindAdmin


@admin.register(RailPolicy)
class RailPolicyAdmin(KindAdmin):
    icon = "shield"
