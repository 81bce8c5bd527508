"""Admin of tool servers, tools and parameter mappings."""

from django.contrib import admin

from apps.releases.pages.kind_admin import KindAdmin
from apps.tools.bench.pages import BenchPages
from apps.tools.contracts.pages import ServerPages
from apps.tools.invoking.pages import InvocationPages
from apps.tools.models import (
    ParameterMapping,
    Tool,
    ToolConnection,
    ToolInvocation,
    ToolServer,
    Workflow,
    WorkflowRun,
)
from apps.tools.oauth.pages import ConnectionPages
from apps.tools.workflows.pages import WorkflowRunPages


@admin.register(ToolServer)
class ToolServerAdmin(ServerPages):
    icon = "dns"
    list_display = (*KindAdmin.list_display, "drift")  # type: ignore[assignment]


@admin.register(Tool)
class ToolAdmin(BenchPages):
    icon = "build"
    list_display = (*KindAdmin.list_display, "drift")  # type: ignore[assignment]


@admin.register(ParameterMapping)
class ParameterMappingAdmin(KindAdmin):
    icon = "swap_horiz"


@admin.register(Workflow)
class WorkflowAdmin(KindAdmin):
    icon = "account_tree"


@admin.register(WorkflowRun)
class WorkflowRunAdmin(WorkflowRunPages):
    pass


@admin.register(ToolInvocation)
class ToolInvocationAdmin(InvocationPages):
    pass


@admin.register(ToolConnection)
class ToolConnectionAdmin(ConnectionPages):
    pass
