"""One call of a tool as a turn would make it, in no conversation. No database below ``plan_make``.

What is tried is mapped, checked and authorised by the same ``ToolCaller`` as a customer's call;
only the ledger forgets and the person's tick stands for the customer's yes.
"""

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from django.conf import settings

from apps.releases.change_models import ChangeRequest
from apps.releases.changes.selectors import patched_content
from apps.releases.models import ConfigItem
from apps.releases.selectors import bindings_load, item_heads
from apps.runtime.config import KINDS, KindConfig
from apps.runtime.ports import (
    Grant,
    GrantAnswer,
    LedgerCall,
    LedgerResult,
    LedgerState,
    RemoteResult,
    RemoteTool,
    ToolRequest,
    ToolTransport,
    ToolUnavailable,
)
from apps.runtime.release import Release
from apps.runtime.turn import BusinessContext, Caller, Inbound, Route, SessionState, ToolCall, Turn
from apps.tenants.scope import current_tenant_id
from apps.tools.bench.mocking import MockStep, MockTransport
from apps.tools.calling import ToolCaller
from apps.tools.config import ParameterMappingConfig, ToolConfig, ToolServerConfig
from apps.tools.contracts.refreshing import ClosableTransport, transport_make
from apps.tools.contracts.selectors import (
    CURRENT,
    release_deployed,
    secrets_of_tenant,
    tool_users,
)
from apps.tools.remotes import Secret
from apps.tools.restricted import value_scrub
from apps.tools.transports.watching import watching

HIDDEN = "***"
CONFIRMED = "bench"


ANYBODY = "bench"


class Anybody(KindConfig):
    """Stands for no agent in particular: it may call the tool that is tried, as far as that has no
    list of its own."""

    kind: ClassVar[str] = "agent"

    tools: list[str]


class NoSuchConfiguration(LookupError):
    """The tool is not in the configuration that was asked for, or does not fit its class."""


@dataclass(frozen=True)
class Plan:
    """A call to be tried: everything that was read from the database."""

    slug: str
    tool: ToolConfig
    turn: Turn
    arguments: Mapping[str, Any]
    secret: Secret
    is_confirmed: bool = False
    steps: Sequence[MockStep] | None = None
    """The mock's; ``None``: the server itself is asked."""

    @property
    def mode(self) -> str:
        return "live" if self.steps is None else "mock"


@dataclass
class Tried:
    """What came of it. ``request``: what was sent, secrets hidden, ``None`` when nothing was.

    ``raw``: what the server wrote; ``answer``: the same as the transport handed it on.
    """

    call: ToolCall
    mode: str
    milliseconds: int
    request: dict[str, Any] | None = None
    raw: Any = None
    answer: dict[str, Any] | None = None


# -- what is tried -----------------------------------------------------------------------------
def configuration(slug: str, which: str, environment: str) -> Release:
    """Return the release that tool ``slug`` is tried with: ``running``, ``head`` or ``request:N``.

    Of heads only what a call needs is read. Raises ``NoSuchConfiguration``.
    """
    if which == "running":
        running = release_deployed(environment)
        if running is None or running.find(ToolConfig, slug) is None:
            raise NoSuchConfiguration(slug)
        return running
    content = _drafted(slug, which) if which.startswith("request:") else None
    return _release_of_heads(slug, content)


def _drafted(slug: str, which: str) -> dict[str, Any] | None:
    number = which.removeprefix("request:")
    found = ChangeRequest.objects.filter(number=number).first() if number.isdigit() else None
    content = patched_content(found, ToolConfig.kind, slug) if found else None
    if content is None:
        raise NoSuchConfiguration(slug)
    return content


def _release_of_heads(slug: str, content: dict[str, Any] | None) -> Release:
    items: dict[tuple[str, str], KindConfig] = {}
    try:
        tool = ToolConfig.model_validate(content) if content else _head(ToolConfig.kind, slug)
        assert isinstance(tool, ToolConfig)
        items[ToolConfig.kind, slug] = tool
        items[ToolServerConfig.kind, tool.mcp_server] = _head(
            ToolServerConfig.kind, tool.mcp_server
        )
        # Identity keys and agents belong to sibling apps and are met by their kinds' names.
        for item in item_heads().filter(kind__in=(ParameterMappingConfig.kind, "identity_key")):
            items[item.kind, item.slug] = _parsed(item)
        names = [user["slug"] for user in tool_users(slug) if user["kind"] == "agent"]
        for item in item_heads("agent").filter(slug__in=names):
            items[item.kind, item.slug] = _parsed(item)
    except ValueError:
        raise NoSuchConfiguration(slug) from None
    return Release(sha256="", items=items)


def _head(kind: str, slug: str) -> KindConfig:
    item = item_heads(kind).filter(slug=slug).first()
    if item is None:
        raise NoSuchConfiguration(slug)
    return _parsed(item)


def _parsed(item: ConfigItem) -> KindConfig:
    assert item.head is not None
    return KINDS[item.kind].model_validate_json(item.head.content)


def plan_make(
    *,
    slug: str,
    release: Release,
    environment: str,
    actor: str,
    arguments: Mapping[str, Any],
    context: Mapping[str, str],
    agent: str = "",
    channel: str = "",
    is_confirmed: bool = False,
    steps: Sequence[MockStep] | None = None,
) -> Plan:
    """Return the call to try; the last that reads the database."""
    name = f"bench-{secrets.token_hex(8)}"
    if not agent:
        agent = ANYBODY
        items = {**release.items, ("agent", ANYBODY): Anybody(tools=[slug])}
        release = Release(sha256=release.sha256, items=items, id=release.id, number=release.number)
    key = f"bench:{agent}:{name}"
    bound = bindings_load(current_tenant_id(), environment, CURRENT)
    server = release.get(ToolServerConfig, release.get(ToolConfig, slug).mcp_server)
    if steps is not None:  # Nobody is asked, so nothing has to be bound.
        bound = {
            f"address:{server.endpoint}": "http://mock.invalid",
            f"credential:{server.credential}": HIDDEN,
            **bound,
        }
    turn = Turn(
        id=name,
        tenant=str(current_tenant_id()),
        release=release,
        inbound=Inbound(
            channel=channel,
            text="",
            agent=agent or None,
            message_id=name,
            session=name,
            caller=Caller(principal=actor, may_name_customer=True),
        ),
        session=SessionState(key=key, agent=agent),
        environment=environment,
        bindings=bound,
        business_context=BusinessContext(
            values=dict(context), sources=dict.fromkeys(context, "bench")
        ),
        route=Route(agent=agent, intent="", method="requested", confidence=1.0),
    )
    return Plan(
        slug=slug,
        tool=release.get(ToolConfig, slug),
        turn=turn,
        arguments=dict(arguments),
        secret=secrets_of_tenant() if steps is None else (lambda name: HIDDEN),
        is_confirmed=is_confirmed,
        steps=steps,
    )


# -- trying ------------------------------------------------------------------------------------
async def plan_run(plan: Plan) -> Tried:
    """Make the call. A failing tool is in the answer, like a refusal; nothing is raised for it."""
    remote_name = plan.tool.remote_name or plan.slug
    transport: ClosableTransport = (
        transport_make() if plan.steps is None else MockTransport({remote_name: plan.steps})
    )
    watched = _Watched(transport)
    caller = ToolCaller(
        watched, _Forgetful(), plan.secret, confirmations=_Ticked(plan.is_confirmed)
    )
    request = ToolRequest(
        tool=plan.slug,
        arguments=plan.arguments,
        confirmation=CONFIRMED,
        agent=plan.turn.session.agent,
    )
    started = time.perf_counter()
    try:
        with watching(watched.raw_seen):
            [call] = await caller.call(plan.turn, [request])
    finally:
        await transport.aclose()
    return Tried(
        call=call,
        mode=plan.mode,
        milliseconds=round((time.perf_counter() - started) * 1000),
        request=watched.request(plan.tool),
        raw=value_scrub(watched.raw, watched.secrets(plan.tool)),
        answer=value_scrub(watched.answer, watched.secrets(plan.tool)),
    )


@dataclass
class _Watched:
    """A transport that remembers the last thing it was asked and answered."""

    inner: ToolTransport
    sent: tuple[RemoteTool, Mapping[str, Any], str] | None = None
    raw: Any = None
    answer: dict[str, Any] | None = None
    attempts: int = field(default=0)

    async def call(
        self, tool: RemoteTool, arguments: Mapping[str, Any], *, idempotency_key: str
    ) -> RemoteResult:
        self.sent, self.raw, self.answer = (tool, arguments, idempotency_key), None, None
        self.attempts += 1
        try:
            found = await self.inner.call(tool, arguments, idempotency_key=idempotency_key)
        except ToolUnavailable as failure:
            self.answer = {"unavailable": str(failure), "code": failure.code, "sent": failure.sent}
            raise
        self.answer = {
            "ok": found.ok,
            "result": found.result,
            "error": found.error,
            "metadata": dict(found.metadata),
        }
        return found

    async def list_tools(self, tool: RemoteTool) -> list[Mapping[str, Any]]:
        return await self.inner.list_tools(tool)

    def raw_seen(self, value: Any) -> None:
        self.raw = value

    def request(self, config: ToolConfig) -> dict[str, Any] | None:
        """Return what was sent last, with what is secret or restricted hidden."""
        if self.sent is None:
            return None
        tool, arguments, key = self.sent
        return {
            "transport": tool.transport,
            "server": tool.server,
            "tool": tool.name,
            "arguments": {
                name: HIDDEN if _is_hidden(config, name) else value
                for name, value in arguments.items()
            },
            **({"credential": HIDDEN} if tool.credential else {}),
            "idempotency_key": key,
            "timeout_seconds": tool.timeout_seconds,
            "attempts": self.attempts,
        }

    def secrets(self, config: ToolConfig) -> dict[str, str]:
        """Return what a server may have repeated and nobody may read -> what is shown instead."""
        if self.sent is None:
            return {}
        tool, arguments, _key = self.sent
        schema = config.args_schema
        found = [v for n, v in arguments.items() if n in schema and schema[n].source == "secret"]
        return {str(value): HIDDEN for value in (*found, tool.credential) if value}


def _is_hidden(config: ToolConfig, name: str) -> bool:
    argument = config.args_schema.get(name)
    return argument is not None and (argument.restricted or argument.source == "secret")


@dataclass(frozen=True)
class _Ticked:
    """The person at the bench says yes, not a customer."""

    is_confirmed: bool

    async def use(self, turn: Turn, grant: Grant) -> GrantAnswer:
        return "granted" if self.is_confirmed else "absent"


class _Forgetful:
    """A ``Ledger`` for a call that belongs to no turn: every call is new."""

    async def begin(self, turn: Turn, calls: Sequence[LedgerCall]) -> list[LedgerState]:
        return [
            LedgerState(state="fresh", idempotency_key=f"{turn.id}-{n}")
            for n, _c in enumerate(calls)
        ]

    async def finish(self, turn: Turn, results: Sequence[LedgerResult]) -> None:
        """Nothing is kept."""


def agents_of(slug: str, release: Release) -> list[str]:
    """Return the agents that may call the tool: those that list it, of its own list when it has one."""
    allowed = release.get(ToolConfig, slug).allowed_agents
    listing = [
        name
        for (kind, name), item in release.items.items()
        if kind == "agent" and slug in getattr(item, "tools", ())
    ]
    return sorted(name for name in listing if not allowed or name in allowed)


def channels() -> list[str]:
    """Return the channels a message may come from."""
    return list(settings.GATEWAY_CHANNELS)
