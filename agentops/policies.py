"""Which item of a release holds for a turn: where sibling apps meet, by slug. Pure."""

from collections.abc import Mapping
from typing import Any

from apps.agents.config import AgentConfig, MemoryPolicyConfig
from apps.evals.config import JudgePolicyConfig
from apps.governance.config import RailPolicyConfig
from apps.routing.config import RoutingPolicyConfig
from apps.runtime.release import Release
from apps.runtime.turn import Turn
from apps.tools.config import ToolConfig
from apps.tools.validation import json_schema

DEFAULT = "default"


def routing_policy(release: Release) -> RoutingPolicyConfig:
    """Return the tenant's routing policy; the class's defaults when it has none."""
    return release.find(RoutingPolicyConfig, DEFAULT) or RoutingPolicyConfig()


def requested_agent(release: Release, agent: str | None) -> str | None:
    """Return the agent a message is for: the one it names, else the tenant's default.

    ``None`` when the release has no such agent or it is disabled.
    """
    slug = agent or routing_policy(release).default_agent
    config = release.find(AgentConfig, slug)
    return slug if config is not None and config.enabled else None


def members_of(release: Release, agent: str) -> tuple[str, ...]:
    """Return the agents whose intents may answer when ``agent`` is requested, itself first.

    Members of members count; a cycle ends; disabled agents are left out.
    """
    key = f"members:{agent}"
    if key not in release.derived:
        found: list[str] = []
        todo = [agent]
        while todo:
            slug = todo.pop(0)
            config = release.find(AgentConfig, slug)
            if slug in found or config is None or not config.enabled:
                continue
            found.append(slug)
            todo.extend(config.members)
        release.derived[key] = tuple(found)
    members: tuple[str, ...] = release.derived[key]
    return members


def answering_agent(turn: Turn) -> AgentConfig | None:
    """Return the configuration of the agent that answers, before routing the requested one."""
    slug = turn.route.agent if turn.route else turn.session.agent
    return turn.release.find(AgentConfig, slug)


def memory_policy(turn: Turn) -> MemoryPolicyConfig:
    """Return what the turn may remember."""
    agent = turn.release.find(AgentConfig, turn.session.agent)
    slug = agent.memory if agent else DEFAULT
    return turn.release.find(MemoryPolicyConfig, slug) or MemoryPolicyConfig()


def rails(turn: Turn) -> RailPolicyConfig:
    """Return the rail policy of the agent that answers, before routing of the requested one."""
    agent = answering_agent(turn)
    slug = agent.rails if agent else DEFAULT
    return turn.release.find(RailPolicyConfig, slug) or RailPolicyConfig()


def judge_policy(turn: Turn) -> JudgePolicyConfig:
    """Return the judge policy of the agent that answers."""
    agent = answering_agent(turn)
    slug = agent.judges if agent else DEFAULT
    return turn.release.find(JudgePolicyConfig, slug) or JudgePolicyConfig()


def failure_text(turn: Turn) -> str:
    """Return what the customer reads when something broke."""
    return routing_policy(turn.release).failure_text


def route_text(turn: Turn) -> str:
    """Return the tenant's words for a route that has no agent's answer: fallback or clarify."""
    policy = routing_policy(turn.release)
    if turn.route is not None and turn.route.method == "clarify":
        return policy.clarify_text
    return policy.fallback_text


def tool_info(release: Release, slug: str) -> Mapping[str, Any] | None:
    """Return what an agent may know of a tool, or ``None`` when the release has none."""
    key = f"tool_info:{slug}"
    if key not in release.derived:
        tool = release.find(ToolConfig, slug)
        release.derived[key] = tool and {
            "description": tool.description,
            "action": tool.tool_type == "action",
            "confirmation_required": tool.confirmation_required,
            "selection_keywords": tuple(tool.selection_keywords),
            "json_schema": json_schema(tool),
        }
    info: Mapping[str, Any] | None = release.derived[key]
    return info
