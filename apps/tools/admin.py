"""Admin of tool servers, tools and parameter mappings."""

from django.contrib import admin

from apps.releases.pages.kind_admin import KindAdmin
from apps.tools.models import ParameterMapping, Tool, ToolServer, Workflow


@admin.register(ToolServer)
class ToolServerAdmin(KindAdmin):
    icon = "dns"


@admin.register(Tool)
class ToolAdmin(KindAdmin):
    icon = "build"


@admin.register(ParameterMapping)
class ParameterMappingAdmin(KindAdmin):
    icon = "swap_horiz"


@admin.register(Workflow)
class WorkflowAdmin(KindAdmin):
    icon = "account_tree"
