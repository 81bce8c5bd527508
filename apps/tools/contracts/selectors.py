"""Reads of servers, of what they were seen to offer, and of what differs. Inside a tenant scope."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import F, QuerySet
from django.utils.module_loading import import_string
from pydantic import ValidationError

from apps.releases.environments.live import Running, releases_running
from apps.releases.models import ConfigItem, Deployment, Reference
from apps.releases.patches.diff import FieldChange, content_diff
from apps.releases.selectors import bindings_load, item_head_users, item_heads, release_load
from apps.runtime.ports import RemoteTool
from apps.runtime.release import Release
from apps.tenants.models import Tenant
from apps.tenants.scope import current_tenant_id
from apps.tools import remotes
from apps.tools.config import ToolConfig, ToolServerConfig
from apps.tools.contract_models import SeenTool, ServerState, ToolQuarantine
from apps.tools.contracts.hashing import Contract, contract_parse, contract_pinned

CURRENT = -1
"""No version of bindings: ``bindings_load`` then gives the current ones."""


class UnknownServer(LookupError):
    """The tenant has no tool server of that name."""


@dataclass(frozen=True)
class ServerListed:
    """A tool server in one environment: what is known of it without asking it."""

    server: str
    environment: str
    config: ToolServerConfig
    is_bound: bool
    has_credential: bool
    count: int = 0
    checked_at: datetime | None = None
    listed_at: datetime | None = None
    changed_at: datetime | None = None
    milliseconds: int = 0
    error: str = ""
    code: str = ""
    drifted: int = 0

    @property
    def needs_credential(self) -> bool:
        return bool(self.config.credential)


@dataclass
class Pins:
    """One tool's configuration that names a server: as it is now and as it runs.

    ``head`` is ``None`` for a tool that only a running release still has.
    """

    slug: str
    head: ToolConfig | None = None
    running: list[ToolConfig] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What the server calls it."""
        tool = self.head or self.running[0]
        return tool.remote_name or self.slug

    def accepted(self) -> list[Contract]:
        """Return every accepted contract, the one of today's configuration first."""
        tools = [*([self.head] if self.head else []), *self.running]
        pinned = [contract_pinned(self.slug, tool) for tool in tools]
        return list({found.sha256: found for found in pinned if found}.values())


# -- servers -----------------------------------------------------------------------------------
def servers_list(environment: str = "") -> list[ServerListed]:
    """Return every tool server of the tenant as ``environment`` (default: the last one) has it."""
    environment = environment or settings.DEFAULT_ENVIRONMENT
    running = release_deployed(environment)
    bound = bindings_load(current_tenant_id(), environment, CURRENT)
    states = {state.server: state for state in ServerState.objects.filter(environment=environment)}
    drifted = Counter(
        quarantines_open().filter(environment=environment).values_list("server", flat=True)
    )
    found = dict(servers_known(running))
    return [
        _listed(slug, environment, config, bound, states.get(slug), drifted[slug])
        for slug, config in sorted(found.items())
    ]


def server_listed(server: str, environment: str) -> ServerListed:
    """Return one of ``servers_list``. Raises ``UnknownServer``."""
    config = server_config(server, environment)
    bound = bindings_load(current_tenant_id(), environment, CURRENT)
    state = ServerState.objects.filter(environment=environment, server=server).first()
    drifted = quarantines_open().filter(environment=environment, server=server).count()
    return _listed(server, environment, config, bound, state, drifted)


def servers_known(running: Release | None) -> Iterator[tuple[str, ToolServerConfig]]:
    """Yield each server by slug: as configured now, and then (so that it wins) as it runs."""
    for item in item_heads(ToolServerConfig.kind):
        config = _server_of(item)
        if config is not None:
            yield item.slug, config
    if running is not None:
        yield from running.all(ToolServerConfig).items()


def server_config(server: str, environment: str) -> ToolServerConfig:
    """Return a server as it runs in ``environment``, else as configured now. Raises ``UnknownServer``."""
    running = release_deployed(environment)
    found = running.find(ToolServerConfig, server) if running else None
    if found is None:
        item = item_heads(ToolServerConfig.kind).filter(slug=server).first()
        found = _server_of(item) if item else None
    if found is None:
        raise UnknownServer(server)
    return found


def server_remote(server: str, environment: str, principal: str = "") -> RemoteTool | None:
    """Return how to reach a server, ``None`` when the environment has no address or secret for it.

    ``principal``: who asks, for a server where everybody signs in. Raises ``UnknownServer``.
    """
    config = server_config(server, environment)
    try:
        found = remotes.server_remote(
            server,
            config,
            tenant=str(current_tenant_id()),
            bindings=bindings_load(current_tenant_id(), environment, CURRENT),
            secret=secrets_of_tenant(),
            principal=principal,
            environment=environment,
        )
    except remotes.Unbound:
        return None
    return replace(
        found, timeout_seconds=min(found.timeout_seconds, settings.TOOLS_REFRESH_TIMEOUT_SECONDS)
    )


def _listed(
    slug: str,
    environment: str,
    config: ToolServerConfig,
    bound: Mapping[str, str],
    state: ServerState | None,
    drifted: int,
) -> ServerListed:
    known = {
        name: getattr(state, name)
        for name in (
            "count",
            "checked_at",
            "listed_at",
            "changed_at",
            "milliseconds",
            "error",
            "code",
        )
        if state is not None
    }
    return ServerListed(
        server=slug,
        environment=environment,
        config=config,
        is_bound=bool(_address(config, bound)),
        has_credential=bool(bound.get(f"credential:{config.credential}") and config.credential),
        drifted=drifted,
        **known,
    )


def _address(config: ToolServerConfig, bound: Mapping[str, str]) -> str:
    if config.transport == "stdio":
        return config.program
    return bound.get(f"address:{config.endpoint}", "")


def secrets_of_tenant() -> remotes.Secret:
    """Return what gives the current tenant's secrets by name, "" for one that is not set."""
    slug = Tenant.objects.values_list("slug", flat=True).get(pk=current_tenant_id())
    secret = import_string(settings.TENANT_SECRET)

    def named(name: str) -> str:
        return str(secret(slug, name)) if name else ""

    return named


def _server_of(item: ConfigItem) -> ToolServerConfig | None:
    try:
        return ToolServerConfig.model_validate_json(item.head.content) if item.head else None
    except ValidationError:
        return None


# -- tools -------------------------------------------------------------------------------------
def release_deployed(environment: str) -> Release | None:
    """Return the parsed release that ``environment`` runs, ``None`` when it runs none."""
    found = Deployment.objects.filter(environment=environment).values_list("release_id", flat=True)
    release_id = found.first()
    return release_load(current_tenant_id(), release_id) if release_id else None


def tools_of_server(server: str, environment: str) -> list[Pins]:
    """Return every tool that names ``server``, as configured now and as ``environment`` runs it."""
    found: dict[str, Pins] = {}
    for item in _items_naming(server):
        tool = _tool_of(item)
        if tool is not None and tool.mcp_server == server:
            found[item.slug] = Pins(item.slug, tool)
    for running in _running(environment):
        assert running.release is not None
        for slug, tool in running.release.all(ToolConfig).items():
            if tool.mcp_server == server:
                found.setdefault(slug, Pins(slug)).running.append(tool)
    return [found[slug] for slug in sorted(found)]


def _running(environment: str) -> Sequence[Running]:
    return [
        found
        for found in releases_running()
        if found.environment == environment and found.release is not None
    ]


def _items_naming(server: str) -> QuerySet[ConfigItem]:
    """Return the tools whose head names ``server``: found by reference, so that a tenant with ten
    thousand tools does not have them all read for one server."""
    naming = Reference.objects.filter(
        kind=ToolServerConfig.kind, slug=server, revision__item__head=F("revision")
    )
    items: QuerySet[ConfigItem] = item_heads(ToolConfig.kind)
    return items.filter(head__in=naming.values("revision"))


def tool_head(slug: str) -> ToolConfig | None:
    """Return a tool as configured now, ``None`` when there is none or it no longer fits its class."""
    item = item_heads(ToolConfig.kind).filter(slug=slug).first()
    return _tool_of(item) if item else None


def _tool_of(item: ConfigItem) -> ToolConfig | None:
    try:
        return ToolConfig.model_validate_json(item.head.content) if item.head else None
    except ValidationError:
        return None


# -- what differs ------------------------------------------------------------------------------
def quarantines_open() -> QuerySet[ToolQuarantine]:
    """Return the tools in quarantine."""
    found: QuerySet[ToolQuarantine] = ToolQuarantine.objects.filter(closed_at=None)
    return found.select_related("request")


def quarantines_of(tool: str) -> QuerySet[ToolQuarantine]:
    """Return every quarantine of a tool, the newest first."""
    found: QuerySet[ToolQuarantine] = ToolQuarantine.objects.filter(tool=tool)
    return found.select_related("request").order_by("-pk")


def quarantine_diff(row: ToolQuarantine) -> list[FieldChange]:
    """Return what the server declares differently from what was accepted; nothing for a tool that is gone."""
    return content_diff(json.loads(row.pinned), json.loads(row.seen)) if row.seen else []


def seen_contract(row: SeenTool) -> Contract:
    """Return what a server declared of a tool."""
    return contract_parse(json.loads(row.contract))


def tool_users(slug: str) -> list[dict[str, str]]:
    """Return who names a tool today: agents, intents, mappings, workflows."""
    item = ConfigItem.objects.filter(kind=ToolConfig.kind, slug=slug).first()
    if item is None:
        return []
    found = [usage for usage in item_head_users(item) if usage.kind != ToolConfig.kind]
    return [{"kind": usage.kind, "slug": usage.slug, "path": usage.path} for usage in found]


@dataclass(frozen=True)
class ToolRow:
    """One line of a server's page: what the server lists, and the tools made of it.

    ``status``: ``pinned``, ``unpinned``, ``drifted``, ``gone``, ``new`` or (before the first answer)
    ``unseen``.
    """

    name: str
    status: str
    tool: str = ""
    description: str = ""
    sha256: str = ""
    pinned_sha256: str = ""
    request: Any = None


def tool_rows(server: str, environment: str) -> list[ToolRow]:
    """Return every tool of a server, those that need somebody first."""
    seen = {
        row.name: row for row in SeenTool.objects.filter(environment=environment, server=server)
    }
    held = {
        row.tool: row for row in quarantines_open().filter(environment=environment, server=server)
    }
    rows: list[ToolRow] = []
    named = set()
    for pins in tools_of_server(server, environment):
        named.add(pins.name)
        rows.append(_row(pins, seen.get(pins.name), held.get(pins.slug)))
    for name, row in seen.items():
        if name not in named and row.gone_at is None:
            contract = seen_contract(row)
            rows.append(ToolRow(name, "new", description=contract.description, sha256=row.sha256))
    order = ("drifted", "gone", "new", "unpinned", "unseen", "pinned")
    return sorted(rows, key=lambda row: (order.index(row.status), row.name, row.tool))


def _row(pins: Pins, seen: SeenTool | None, held: ToolQuarantine | None) -> ToolRow:
    accepted = pins.accepted()
    tool = pins.head or pins.running[0]
    if held is not None:
        status = "gone" if held.reason == ToolQuarantine.Reason.GONE else "drifted"
    elif not accepted:
        status = "unpinned"
    else:
        status = "pinned" if seen is not None and seen.gone_at is None else "unseen"
    return ToolRow(
        name=pins.name,
        status=status,
        tool=pins.slug,
        description=tool.description,
        sha256=seen.sha256 if seen else "",
        pinned_sha256=accepted[0].sha256 if accepted else "",
        request=held.request if held else None,
    )
