"""Kinds of this app; their rows are configuration items."""

from django.utils.translation import gettext_lazy as _

from apps.releases.models import ConfigItem

# ``X as X``: Django finds an app's models here.
from apps.tools.cache_models import ToolAnswer as ToolAnswer
from apps.tools.config import (
    ParameterMappingConfig,
    ToolConfig,
    ToolServerConfig,
    WorkflowConfig,
)
from apps.tools.contract_models import SeenTool as SeenTool
from apps.tools.contract_models import ServerState as ServerState
from apps.tools.contract_models import ToolMock as ToolMock
from apps.tools.contract_models import ToolQuarantine as ToolQuarantine
from apps.tools.invocation_models import ToolInvocation as ToolInvocation
from apps.tools.oauth_models import ToolClient as ToolClient
from apps.tools.oauth_models import ToolConnection as ToolConnection
from apps.tools.oauth_models import ToolSignIn as ToolSignIn
from apps.tools.workflow_models import WorkflowNodeRun as WorkflowNodeRun
from apps.tools.workflow_models import WorkflowRun as WorkflowRun


class ParameterMapping(ConfigItem):
    config_class = ParameterMappingConfig

    class Meta:
        proxy = True
        verbose_name = _(ParameterMappingConfig.label)
        verbose_name_plural = _(ParameterMappingConfig.label_plural)


class Tool(ConfigItem):
    config_class = ToolConfig

    class Meta:
        proxy = True
        verbose_name = _(ToolConfig.label)
        verbose_name_plural = _(ToolConfig.label_plural)


class ToolServer(ConfigItem):
    config_class = ToolServerConfig

    class Meta:
        proxy = True
        verbose_name = _(ToolServerConfig.label)
        verbose_name_plural = _(ToolServerConfig.label_plural)


class Workflow(ConfigItem):
    config_class = WorkflowConfig

    class Meta:
        proxy = True
        verbose_name = _(WorkflowConfig.label)
        verbose_name_plural = _(WorkflowConfig.label_plural)
