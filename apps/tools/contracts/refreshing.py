"""Asks servers for their tools. No transaction is open while one answers."""

import time
from collections.abc import Mapping
from typing import Any, Protocol

from asgiref.sync import async_to_sync
from django.conf import settings
from django.utils.module_loading import import_string

from apps.runtime.i18n import gettext_noop as _
from apps.runtime.ports import RemoteTool, ToolTransport, ToolUnavailable
from apps.tenants.scope import tenant_scope, tenant_transaction
from apps.tenants.threads import in_thread
from apps.tools.contracts.hashing import Contract, Unreadable, contracts_listed
from apps.tools.contracts.selectors import server_remote
from apps.tools.contracts.services import (
    Refreshed,
    refresh_failed,
    refresh_store,
    server_changed,
)


class ClosableTransport(ToolTransport, Protocol):
    """A transport that keeps connections until it is closed."""

    async def aclose(self) -> None: ...


def transport_make() -> ClosableTransport:
    """Return a new transport, for one event loop; named by ``TOOL_TRANSPORT``."""
    made: ClosableTransport = import_string(settings.TOOL_TRANSPORT)()
    return made


def server_refresh(*, server: str, environment: str, actor: str, author: str = "") -> Refreshed:
    """``server_refresh_async`` for code that waits: commands, chores, synchronous views."""
    return async_to_sync(server_refresh_async)(
        server=server, environment=environment, actor=actor, author=author
    )


async def server_refresh_async(
    *, server: str, environment: str, actor: str, author: str = ""
) -> Refreshed:
    """Ask ``server`` for all its tools, compare them with what was accepted, and store what differs.

    ``author`` (default: ``actor``) is whose draft a difference becomes. Raises ``UnknownServer``;
    a server that cannot be reached is in the answer.
    """
    where: dict[str, Any] = {"server": server, "environment": environment}
    remote = await in_thread(_remote, server, environment, actor)
    if remote is None:
        text = _("The environment has no address or no credential for this server.")
        return await in_thread(refresh_failed, **where, error=text, code="unbound", state="unbound")
    started = time.perf_counter()
    try:
        listed = await tools_fetch(remote)
    except (ToolUnavailable, Unreadable) as failure:
        code = getattr(failure, "code", "unreadable")
        text = str(failure) if isinstance(failure, ToolUnavailable) else _UNREADABLE
        return await in_thread(
            refresh_failed, **where, error=text, code=code, state="unreachable",
            milliseconds=_since(started),
        )  # fmt: skip
    return await in_thread(
        refresh_store, **where, listed=listed, actor=actor, author=author,
        milliseconds=_since(started),
    )  # fmt: skip


_UNREADABLE = _("What the server lists cannot be read.")


async def tools_fetch(remote: RemoteTool) -> list[Contract]:
    """Return every tool a server lists, all pages. Raises ``ToolUnavailable`` and ``Unreadable``."""
    transport = transport_make()
    try:
        listed: list[Mapping[str, Any]] = await transport.list_tools(remote)
    finally:
        await transport.aclose()
    return contracts_listed(listed)


def _remote(server: str, environment: str, actor: str) -> RemoteTool | None:
    with tenant_transaction():
        return server_remote(server, environment, actor)


def _since(started: float) -> int:
    return round((time.perf_counter() - started) * 1000)


async def changed_noticed(tenant: str, server: str) -> None:
    """Note that ``server`` told a turn's connection of a changed list; ``tenant``: its primary key."""

    def note() -> None:
        with tenant_scope(int(tenant)):
            server_changed(server=server)

    await in_thread(note)
