"""Who may call a tool, where from, and about whom: what is not allowed is refused.

An agent is a sibling app's kind; it is met by slug and by what it lists in ``tools``. What a listed
tool calls itself (the tool that says whether it is possible, the nodes of its workflow) is allowed with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from apps.runtime.i18n import gettext_noop as _
from apps.runtime.ports import ToolRequest
from apps.runtime.release import Release
from apps.runtime.turn import Turn
from apps.tools.config import ToolConfig, WorkflowConfig


@dataclass(frozen=True)
class Denial:
    """``reason`` is the code, ``message`` the words, ``errors`` the same by the policy's field, which
    no argument can be called."""

    reason: str
    message: str
    errors: tuple[Mapping[str, str], ...]


AGENT = "agent_not_allowed"
CHANNEL = "channel_not_allowed"
BUSINESS_KEY = "business_key_missing"


def caller_of(turn: Turn, request: ToolRequest) -> str:
    """Return the agent that asks: the request's, else the one that answers, else the addressed one."""
    if request.agent:
        return request.agent
    return turn.route.agent if turn.route is not None else turn.session.agent


def denial_of(turn: Turn, request: ToolRequest, tool: ToolConfig) -> Denial | None:
    """Return why ``request`` is not allowed in ``turn``, ``None`` when it is."""
    agent = caller_of(turn, request)
    if not _lists(turn.release, agent, request, tool) or (
        tool.allowed_agents and agent not in tool.allowed_agents
    ):
        text = _("This agent may not call this tool.")
        return Denial(AGENT, text, (_error("policy.allowed_agents", text, ""),))
    channel = turn.inbound.channel
    if tool.allowed_channels and channel not in tool.allowed_channels:
        text = _("This tool is not called from this channel.")
        error = _error("policy.allowed_channels", text, ", ".join(tool.allowed_channels))
        return Denial(CHANNEL, text, (error,))
    missing = [k for k in tool.required_business_keys if not turn.business_context.get(k)]
    if missing:
        text = _("It has to be known first who or what this is about.")
        known = _("This must be known first.")
        errors = tuple(_error(f"policy.required_business_keys.{key}", known, "") for key in missing)
        return Denial(BUSINESS_KEY, text, errors)
    return None


def _error(field: str, message: str, accepted: str) -> Mapping[str, str]:
    return {"field": field, "message": message, "accepted": accepted}


def _lists(release: Release, agent: str, request: ToolRequest, tool: ToolConfig) -> bool:
    item = release.items.get(("agent", agent))
    listed = tuple(getattr(item, "tools", ()))
    if request.tool in listed:
        return True
    of_listed = [found for slug in listed if (found := release.find(ToolConfig, slug)) is not None]
    if not tool.transactional and any(t.pre_validation.tool == request.tool for t in of_listed):
        return True
    return request.node is not None and any(
        request.tool in _of_workflow(release, found) for found in of_listed
    )


def _of_workflow(release: Release, tool: ToolConfig) -> set[str]:
    """Return the tools that the workflow of ``tool`` calls."""
    workflow = release.find(WorkflowConfig, tool.execution.workflow)
    nodes = workflow.nodes if workflow is not None else ()
    return {node.tool for node in nodes} | {node.compensate_tool for node in nodes}
