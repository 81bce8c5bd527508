"""Admin of identity keys."""

from django.contrib import admin

from apps.conversations.models import IdentityKey
from apps.releases.pages.kind_admin import KindAdmin


@admin.register(IdentityKey)
class IdentityKeyAdmin(KindAdmin):
    icon = "badge"
