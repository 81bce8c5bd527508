"""Which item of a release holds for a turn: where sibling apps meet, by slug. Pure."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from apps.agents.config import AgentConfig, MemoryPolicyConfig, PromptConfig
from apps.evals.config import JudgePolicyConfig
from apps.governance.config import RailPolicyConfig
from apps.governance.detection.masking import text_mask
from apps.governance.vault import Vault
from apps.routing.config import RoutingPolicyConfig
from apps.routing.index import AgentFacts
from apps.runtime.release import Release
from apps.runtime.turn import Turn
from apps.tools.config import ToolConfig
from apps.tools.mapping import arguments_map, sources_of
from apps.tools.validation import json_schema

DEFAULT = "default"


def routing_policy(release: Release) -> RoutingPolicyConfig:
    """Return the tenant's routing policy; the class's defaults when it has none."""
    return release.find(RoutingPolicyConfig, DEFAULT) or RoutingPolicyConfig()


def requested_agent(release: Release, agent: str | None) -> str | None:
    """Return the agent a message is for: the one it names, else the tenant's default.

    ``None`` when the release has no such agent, or it is disabled or retired.
    """
    slug = agent or routing_policy(release).default_agent
    config = release.find(AgentConfig, slug)
    return slug if config is not None and config.may_answer else None


def agents_of(release: Release) -> dict[str, AgentFacts]:
    """Return what routing has to know of every agent of ``release``."""
    return {
        slug: AgentFacts(
            enabled=agent.may_answer,
            members=tuple(agent.members),
            domain=agent.domain,
            next_state=dict(agent.next_state),
            model_tools=tuple(agent.tools) if agent.tool_use == "model" else (),
        )
        for slug, agent in release.all(AgentConfig).items()
    }


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
        release.derived[key] = (
            tool
            and tool.enabled
            and {
                "description": tool.description,
                "action": tool.tool_type == "action",
                "confirmation_required": tool.confirmation_required,
                "selection_keywords": tuple(tool.selection_keywords),
                "json_schema": json_schema(tool),
                "questions": {
                    name: argument.user_prompt
                    for name, argument in tool.args_schema.items()
                    if argument.user_prompt
                },
            }
        )
    info: Mapping[str, Any] | None = release.derived[key] or None
    return info


def asked_key(turn: Turn) -> str:
    """Return the canonical key that feeds the first argument the route's read-only tools lack.

    "" when the agent does not ask by itself, or when no key of the business context feeds that
    argument. Tools and arguments go in the agent step's
    order, so it is the argument that was asked for.
    """
    agent = answering_agent(turn)
    prompt = turn.release.find(PromptConfig, agent.prompt) if agent else None
    if turn.route is None or agent is None or agent.tool_use != "collect" or prompt is None:
        return ""
    if not (prompt.require_evidence and prompt.allow_tool_usage):
        return ""
    for slug in turn.route.tools:
        tool = turn.release.find(ToolConfig, slug) if slug in agent.tools else None
        if (
            tool is None
            or not tool.enabled
            or tool.tool_type == "action"
            or tool.selection_keywords
        ):
            continue
        given = arguments_map(turn, slug, tool, {}).arguments
        for name, argument in tool.args_schema.items():
            if name in tool.requires and name not in given and argument.user_prompt:
                return next(iter(sources_of(turn.release, slug, tool).context.get(name, ())), "")
    return ""


def refusal_text(turn: Turn) -> str:
    """Return what the customer reads when a model's answer was filtered."""
    return rails(turn).block_text


def answer_label(turn: Turn) -> str:
    """Return the agent's name to put before its answers, or "" (the default)."""
    agent = answering_agent(turn)
    return turn.route.agent if agent is not None and agent.label_answers and turn.route else ""


def agent_next_state(turn: Turn) -> Mapping[str, str]:
    """Return the answering agent's map from outcome to next state."""
    agent = answering_agent(turn)
    return agent.next_state if agent is not None else {}


def model_mask(turn: Turn) -> Callable[[str], str]:
    """Return what hides personal data in tool results from a model.

    The turn's own identifiers stay: an answer has to name the invoice it is about. New placeholders
    live for this answer only.
    """
    return partial(
        text_mask, vault=Vault(turn.vault), skip=frozenset(turn.business_context.values.values())
    )
