"""Which tools of a release an agent may use, and what is told of them."""

from collections.abc import Iterator, Mapping
from typing import Any

from apps.agents.config import AgentConfig
from apps.runtime.release import Release
from apps.tools.config import ToolConfig, ToolServerConfig
from apps.tools.preparing import contract_of


def tools_served(release: Release) -> dict[str, ToolConfig]:
    """Return the tools that are switched on, and whose servers are, by name."""
    return {
        slug: tool
        for slug, tool in release.all(ToolConfig).items()
        if tool.enabled and (server := server_of(release, tool)) and server.enabled
    }


def tools_of(release: Release, agent: str) -> dict[str, ToolConfig]:
    """Return the tools ``agent`` may use: it lists them, and they do not exclude it."""
    return {
        slug: tool
        for slug, tool in tools_served(release).items()
        if agent_may(release, agent, slug, tool)
    }


def agent_may(release: Release, agent: str, slug: str, tool: ToolConfig) -> bool:
    """Return whether ``agent`` lists ``slug`` and the tool does not exclude it."""
    config = release.find(AgentConfig, agent)
    listed = config is not None and config.may_answer and slug in config.tools
    return listed and (not tool.allowed_agents or agent in tool.allowed_agents)


def agents_of(release: Release, slug: str, tool: ToolConfig) -> Iterator[str]:
    """Yield the agents that may use ``slug``."""
    for agent in release.all(AgentConfig):
        if agent_may(release, agent, slug, tool):
            yield agent


def server_of(release: Release, tool: ToolConfig) -> ToolServerConfig | None:
    """Return the tool's server."""
    return release.find(ToolServerConfig, tool.mcp_server)


def tool_version(release: Release, slug: str, tool: ToolConfig) -> str:
    """Return what tells two states of a tool apart: the sha256 of what is called."""
    server = server_of(release, tool)
    assert server is not None
    return contract_of(release, slug, tool, server)


def tool_shown(
    release: Release, slug: str, tool: ToolConfig, function: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what a caller is told of a tool. ``function``: as a model is offered it."""
    server = server_of(release, tool)
    assert server is not None
    return {
        "name": slug,
        "title": tool.contract.title or None,
        "description": tool.description,
        "version": tool_version(release, slug, tool),
        "server": tool.mcp_server,
        "enabled": True,
        "tool_type": tool.tool_type,
        "idempotent": is_repeatable(tool),
        "confirmation_required": tool.confirmation_required,
        "required_business_keys": list(tool.required_business_keys),
        "allowed_agents": list(agents_of(release, slug, tool)),
        "allowed_channels": list(tool.allowed_channels),
        "cache_ttl_seconds": ttl_of(tool),
        "timeout_seconds": tool.timeout_seconds or server.timeout_seconds,
        "input_schema": function["parameters"],
    }


def is_repeatable(tool: ToolConfig) -> bool:
    """Return whether calling it twice does no more than once: it reads, or it is declared so."""
    return tool.idempotent or not tool.transactional


def ttl_of(tool: ToolConfig) -> int:
    """Return for how long its answers are reused, 0 for not at all."""
    return tool.cache.ttl_seconds if tool.cache.enabled and not tool.transactional else 0
