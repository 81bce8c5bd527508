"""What the debug doors show: a route, an identity, tools, one tool call, the settings.

Named by the ``DEBUG_…`` settings. Nothing here writes: no session, no turn, no ledger row. Only
``tool_call`` reaches outside, and only for tools that change nothing.
"""

import secrets
from collections.abc import Sequence
from typing import Any

from django.conf import settings

from agentops import policies, wiring
from agentops.tool_gateway import running
from apps.agents.config import AgentConfig
from apps.conversations import selectors
from apps.conversations.services import NotDeployed, UnknownAgent
from apps.conversations.steps.identify import Identify
from apps.gateway.debug import ActionTool, UnknownTool
from apps.governance.steps.guard_input import GuardInput
from apps.routing.explain import explain
from apps.routing.step import ChooseAgent
from apps.runtime.config import bindings
from apps.runtime.dialogue import Dialogue
from apps.runtime.ports import LedgerCall, LedgerResult, LedgerState, ToolRequest
from apps.runtime.release import Release
from apps.runtime.turn import Inbound, SessionState, ToolCall, Turn
from apps.tenants.auth import Principal
from apps.tenants.threads import in_thread
from apps.tools.config import ToolConfig, ToolServerConfig
from apps.tools.validation import json_schema

SHOWN_SETTINGS = (
    "VERSION", "REVISION", "DEBUG", "DEMO", "EMBEDDED", "LOG_LEVEL", "LANGUAGE_CODE", "TIME_ZONE",
    "GATEWAY_CHANNELS", "CONTRACT_VERSION", "WAIT_SECONDS", "WAIT_SECONDS_MAX",
    "SSE_KEEPALIVE_SECONDS", "SSE_REPLAY_LIMIT", "MESSAGE_MAX_BYTES", "DATABASE_THREADS",
    "SESSION_TOKEN_MAX_AGE_SECONDS", "TURN_LEASE_SECONDS", "TURN_HEARTBEAT_SECONDS",
    "TURN_SWEEP_SECONDS", "TURN_MAX_ATTEMPTS", "TURN_CONCURRENCY", "RELEASE_CACHE_SIZE",
    "RELEASE_ENVIRONMENTS", "DEFAULT_ENVIRONMENT",
)  # fmt: skip
"""Settings that say nothing secret and no address; a new one is shown when it is entered here."""


async def route_explain(*, principal: Principal, inbound: Inbound) -> dict[str, Any]:
    """Return where a message would go and why, without sending it there.

    Raises ``NotDeployed`` and ``UnknownAgent``.
    """
    turn = await in_thread(turn_open, principal, inbound)
    turn = await Identify()(turn)
    guarded = await GuardInput(policy_for=policies.rails)(turn)
    # A blocked message goes nowhere; where it would have gone is what an operator asks for.
    routed = await ChooseAgent(policies.agents_of, embeddings=wiring.meanings)(
        guarded.evolve(outcome=None)
    )
    assert routed.route is not None
    return {
        **explain(routed.route, policies.routing_policy(turn.release).mode),
        "requested_agent": turn.session.agent,
        "session_id": turn.session.key,
        "state": turn.session.next_state or None,
        "blocked": guarded.outcome is not None,
        "guardrails": [{"code": d.code, "status": d.action} for d in guarded.decisions if d.phase == "input"],
        "release": _release_of(turn.release),
    }  # fmt: skip


async def identity_explain(*, principal: Principal, inbound: Inbound) -> dict[str, Any]:
    """Return who and what a message would be about, and where each key came from.

    Raises ``NotDeployed`` and ``UnknownAgent``.
    """
    turn = await Identify()(await in_thread(turn_open, principal, inbound))
    context = turn.business_context
    return {
        "technical_identity": {
            "tenant_id": principal.tenant_slug,
            "agent_id": turn.session.agent,
            "session_id": inbound.session,
            "conversation_key": turn.session.key,
            "channel": inbound.channel,
            "user_id": inbound.user_id or None,
            "message_id": inbound.message_id,
            "principal": principal.name,
        },
        "business_context": {
            **context.values,
            "source_fields": dict(context.sources),
            "metadata": {"identity_version": "v2", "source_channel": inbound.channel},
        },
        "identity_missing": list(context.missing),
        "identity_ignored": [
            d.metadata.get("key") for d in turn.decisions if d.code == "IDENTITY_NOT_TRUSTED"
        ],
        "context_keys": sorted(inbound.payload),
    }


async def tools_list(*, principal: Principal) -> dict[str, Any]:
    """Return the tools of the running release and their servers. Raises ``NotDeployed``."""
    release, bound = await in_thread(running, principal)
    return {
        "tools": [_tool_shown(slug, tool) for slug, tool in release.all(ToolConfig).items()],
        "servers": [
            {
                "name": slug,
                "description": server.description,
                "transport": server.transport,
                "enabled": server.enabled,
                "bound": bool(bound.get(f"address:{server.endpoint}")),
            }
            for slug, server in release.all(ToolServerConfig).items()
        ],
        "release": _release_of(release),
    }


async def tool_call(*, principal: Principal, inbound: Inbound, tool: str) -> ToolCall:
    """Call ``tool`` once as a turn would, with the message's context and explicit arguments.

    Raises ``UnknownTool``, ``ActionTool`` for one that changes something, ``NotDeployed``,
    ``UnknownAgent``.
    """
    turn = await Identify()(await in_thread(turn_open, principal, inbound))
    config = turn.release.find(ToolConfig, tool)
    if config is None:
        raise UnknownTool(tool)
    if config.tool_type == "action":
        raise ActionTool(tool)
    transports = wiring.tool_transport()
    try:
        calling = wiring.tool_caller(transports, ForgetfulLedger())
        calls = await calling.call(turn, [ToolRequest(tool=tool, agent=_listing(turn, tool))])
    finally:
        await transports.aclose()
    return calls[0]


def _listing(turn: Turn, tool: str) -> str:
    """Return who asks for ``tool``: the agent addressed, or where none was named one that lists it."""
    if turn.inbound.agent is not None:
        return turn.session.agent
    agents = turn.release.all(AgentConfig)
    listing = [slug for slug, agent in agents.items() if agent.may_answer and tool in agent.tools]
    return listing[0] if listing and turn.session.agent not in listing else turn.session.agent


async def environment_describe(*, principal: Principal) -> dict[str, Any]:
    """Return the settings that hold nothing secret, and which bindings are there: names only."""
    running = await in_thread(_running_or_none, principal)
    engine = settings.DATABASES["default"]["ENGINE"].rsplit(".", 1)[-1]
    shown: dict[str, Any] = {
        "settings": {name: getattr(settings, name) for name in SHOWN_SETTINGS},
        "stores": {
            "database": engine,
            "channel_layer": "memory" if settings.EMBEDDED else "redis",
            "broker": settings.CELERY_BROKER_URL.split(":", 1)[0],
        },
        "environment": principal.environment,
        "bindings": [],
        "release": None,
    }
    if running is None:
        return shown
    release, bound = running
    named = {(b.what, b.name) for item in release.items.values() for b in bindings(item)}
    shown["release"] = _release_of(release)
    shown["bindings"] = [
        {"what": what, "name": name, **_binding_shown(what, bound.get(f"{what}:{name}", ""))}
        for what, name in sorted(named)
    ]
    return shown


def _binding_shown(what: str, value: str) -> dict[str, bool]:
    if what == "credential":
        return {"bound": bool(value), "set": bool(value and wiring.secret(value))}
    return {"bound": bool(value)}


def _tool_shown(slug: str, tool: ToolConfig) -> dict[str, Any]:
    return {
        "name": slug,
        "server_name": tool.mcp_server,
        "description": tool.description,
        "enabled": tool.enabled,
        "tool_type": tool.tool_type,
        "confirmation_required": tool.confirmation_required,
        "input_schema": json_schema(tool),
    }


def _release_of(release: Release) -> dict[str, Any]:
    return {"number": release.number, "sha256": release.sha256}


def _running_or_none(principal: Principal) -> tuple[Release, dict[str, str]] | None:
    try:
        return running(principal)
    except NotDeployed:
        return None


def turn_open(principal: Principal, inbound: Inbound) -> Turn:
    """Return the turn that ``inbound`` would become next in its session, which need not exist.

    Raises ``NotDeployed`` and ``UnknownAgent``.
    """
    release, bound = running(principal)
    agent = policies.requested_agent(release, inbound.agent)
    if agent is None:
        raise UnknownAgent(inbound.agent or "")
    key = f"{principal.tenant_slug}:{agent}:{inbound.session}"
    state = selectors.session_state(tenant_id=principal.tenant_id, key=key)
    return Turn(
        id="debug",
        tenant=str(principal.tenant_id),
        release=release,
        inbound=inbound,
        session=state or SessionState(key=key, agent=agent),
        dialogue=state.dialogue if state else Dialogue(),
        environment=principal.environment,
        bindings=bound,
        text=inbound.text,
    )


class ForgetfulLedger:
    """A ``Ledger`` for a call that belongs to no turn: every call is new."""

    async def begin(self, turn: Turn, calls: Sequence[LedgerCall]) -> list[LedgerState]:
        return [
            LedgerState(state="fresh", idempotency_key=f"debug-{secrets.token_hex(16)}")
            for _call in calls
        ]

    async def finish(self, turn: Turn, results: Sequence[LedgerResult]) -> None:
        """Nothing is kept."""
