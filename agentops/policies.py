"""Which item of a release holds for a turn: where sibling apps meet, by slug. Pure."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from apps.agents.config import AgentConfig, MemoryPolicyConfig, PromptConfig
from apps.agents.delegation.functions import specialists
from apps.agents.delegation.sub_conversation import sub_left
from apps.agents.evidence import vault_mask
from apps.agents.tooling import mentions, stems
from apps.evals.config import JudgePolicyConfig
from apps.governance.config import RailPolicyConfig
from apps.governance.detection.masking import text_mask
from apps.governance.vault import Vault
from apps.routing.answers import answer_sense
from apps.routing.config import RoutingPolicyConfig
from apps.routing.hops import hop_cap
from apps.routing.index import AgentFacts, Budget
from apps.runtime.dialogue import Evidence
from apps.runtime.release import Release
from apps.runtime.turn import ToolCall, Turn
from apps.tools.config import ToolConfig
from apps.tools.mapping import arguments_map, sources_of
from apps.tools.naming import keys_named
from apps.tools.transactions.machine import Facts
from apps.tools.transactions.outcome import evidence_of, status_of
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
            actions=frozenset(slug for slug in agent.tools if _acts(release, slug)),
            specialists={
                role: Budget(turns=delegate.max_turns, minutes=delegate.max_minutes)
                for role, delegate in specialists(agent).items()
            },
        )
        for slug, agent in release.all(AgentConfig).items()
    }


def _acts(release: Release, slug: str) -> bool:
    """Whether the tool ``slug`` changes something."""
    tool = release.find(ToolConfig, slug)
    return tool is not None and tool.transactional


def topics_text(turn: Turn) -> str:
    """Return the tenant's sentence about what is kept for later, "" for the built-in one."""
    return routing_policy(turn.release).topics_text


def answering_agent(turn: Turn) -> AgentConfig | None:
    """Return the configuration of the agent that answers: the one whose words the draft is, before
    that the route's, before routing the requested one."""
    slug = turn.route.agent if turn.route else turn.session.agent
    if turn.draft is not None and turn.draft.agent:
        slug = turn.draft.agent  # a specialist's words pass its own rails and judges
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


def tools_read_for(turn: Turn) -> list[str]:
    """Return the tools for which a model may read what is missing in the message: the queries that
    are collected now, and those whose arguments a model that calls tools is not asked for."""
    route = turn.route
    if route is None:
        return []
    asked = [(route.agent, route.tools), *((part.agent, part.tools) for part in route.plan)]
    said = stems(turn.text)
    found: list[str] = []
    for slug, tools in asked:
        agent = turn.release.find(AgentConfig, slug)
        for name in tools:
            tool = turn.release.find(ToolConfig, name)
            if agent is None or tool is None or name not in agent.tools or tool.transactional:
                continue
            hidden = any(arg.source == "extraction" for arg in tool.args_schema.values())
            named = any(mentions(said, keyword) for keyword in tool.selection_keywords)
            collected = agent.tool_use == "collect" and (named or not tool.selection_keywords)
            if collected or (agent.tool_use == "model" and hidden):
                found.append(name)
    return found


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


def named_keys(turn: Turn) -> Mapping[str, str]:
    """Return canonical key -> the one value of it that the message names for the route's tools."""
    route = turn.route
    if route is None:
        return {}
    found: dict[str, set[str]] = {}
    for slug in dict.fromkeys((*route.tools, *(t for part in route.plan for t in part.tools))):
        for key, value in keys_named(turn, slug).items():
            found.setdefault(key, set()).add(value)
    return {key: values.pop() for key, values in found.items() if len(values) == 1}


def control_text(turn: Turn) -> str:
    """Return the tenant's words for a conversation that goes to a person or ends."""
    policy = routing_policy(turn.release)
    handed = turn.route is not None and turn.route.control == "HUMAN_HANDOFF"
    return policy.handoff_text if handed else policy.end_text


def specialist_left(turn: Turn) -> Turn:
    """End the sub-conversation of a customer who asked for a person, or for the end."""
    return sub_left(turn, vault_mask(turn, model_mask(turn)))


def cancelled_text(turn: Turn) -> str:
    """Return the tenant's words for an action that the customer gave up."""
    return routing_policy(turn.release).cancelled_text


def turn_routing_policy(turn: Turn) -> RoutingPolicyConfig:
    """Return the routing policy of the turn's release."""
    return routing_policy(turn.release)


def language_of(turn: Turn) -> str:
    """Return the language of the agent that answers, as a tag; Portuguese when none is known."""
    agent = answering_agent(turn)
    prompt = turn.release.find(PromptConfig, agent.prompt) if agent else None
    return prompt.language if prompt else "pt-BR"


def hop_budget(turn: Turn) -> int:
    """Return how often one message may be passed on before it is answered."""
    return hop_cap(routing_policy(turn.release).hop_budget, agents_of(turn.release))


def action_evidence(turn: Turn, call: ToolCall) -> Evidence | None:
    """Return what is kept of an action that a model had carried out; ``None`` for no known tool."""
    tool = turn.release.find(ToolConfig, call.tool)
    if tool is None:
        return None
    status, _items = status_of(call)
    return evidence_of(tool, call, status, turn.session.turn_number, model_mask(turn))


def action_named(turn: Turn) -> str:
    """Return the one action of the route that the message asks for, "" for none or several.

    An action without selection keywords is meant by its intent alone, but only when it is the
    route's only one and the customer is asked before it runs. An agent whose model asks for tools
    decides by itself.
    """
    route, agent = turn.route, answering_agent(turn)
    prompt = turn.release.find(PromptConfig, agent.prompt) if agent else None
    if route is None or agent is None or agent.tool_use != "collect":
        return ""
    if prompt is None or not prompt.allow_tool_usage:
        return ""
    found = {
        slug: turn.release.find(ToolConfig, slug) for slug in route.tools if slug in agent.tools
    }
    actions = {
        slug: tool
        for slug, tool in found.items()
        if tool is not None and tool.enabled and tool.transactional
    }
    said = stems(turn.text)
    named = [
        slug
        for slug, tool in actions.items()
        if any(mentions(said, keyword) for keyword in tool.selection_keywords)
    ]
    if len(named) == 1:
        return named[0]
    only = next(iter(actions)) if len(actions) == 1 else ""
    if only and not actions[only].selection_keywords and actions[only].confirmation_required:
        return only
    return ""


def transaction_facts() -> Facts:
    """Return what an action's state machine asks of the other apps."""
    return Facts(
        action_of=action_named,
        language_of=language_of,
        cancelled_text=cancelled_text,
        sense_of=answer_sense,
        mask_for=model_mask,
    )


def refusal_text(turn: Turn) -> str:
    """Return what the customer reads when a model's answer was filtered."""
    return rails(turn).block_text


def answer_label(turn: Turn) -> str:
    """Return the agent's name to put before its answers, or "" (the default)."""
    agent = answering_agent(turn)
    if turn.route is None or turn.route.plan:
        return ""  # several agents' answer is one voice
    if turn.route.method == "delegation" or (turn.draft and turn.draft.agent != turn.route.agent):
        return ""  # the customer is not told that another agent speaks
    return turn.route.agent if agent is not None and agent.label_answers else ""


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
