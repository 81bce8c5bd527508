"""Writes of what servers offer: compare, quarantine, propose. Inside a tenant scope.

Nothing here changes what runs, or what will: a difference becomes a draft change request, which
people approve like any other. ``refreshing`` asks the servers.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext as _

from apps.releases.change_models import ChangeRequest
from apps.releases.changes.policy import RISKS
from apps.releases.changes.services import (
    ChangeRefused,
    comment_add,
    patch_save,
    request_describe,
    request_open,
)
from apps.releases.changes.states import DRAFT, OPEN
from apps.releases.content import InvalidContent, slug_is_valid
from apps.releases.models import ConfigItem, Deployment
from apps.releases.services import configuration_locked
from apps.runtime.canonical import canonical_json
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import audit_append
from apps.tools.config import ParameterMappingConfig, ToolConfig
from apps.tools.contract_models import SeenTool, ServerState, ToolQuarantine
from apps.tools.contracts.hashing import Contract, contract_parse
from apps.tools.contracts.proposing import Note, notes_of_mapping, tool_added, tool_adjusted
from apps.tools.contracts.selectors import (
    Pins,
    quarantines_open,
    seen_contract,
    tool_users,
    tools_of_server,
)

SYSTEM = "command:tools_refresh"
"""Author of what nobody asked for: a server said that its list changed, or it was due."""

MOST_NAMES = 200


@dataclass(frozen=True)
class Refreshed:
    """What came of asking a server.

    ``state``: ``listed``; or ``empty``, ``unreachable``, ``unbound``, which change nothing but the
    server's own row. ``added`` are names the server lists and no tool has; ``drifted`` and ``gone``
    tools in quarantine now, ``released`` those that no longer are. ``request``: the number of the
    draft with what was found new.
    """

    server: str
    environment: str
    state: str
    count: int = 0
    added: tuple[str, ...] = ()
    drifted: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    released: tuple[str, ...] = ()
    request: int | None = None
    error: str = ""
    milliseconds: int = 0


class NothingToPropose(ValueError):
    """None of the names given is a tool that the server lists and that can be taken over."""


# -- what a server answered --------------------------------------------------------------------
def refresh_failed(
    *, server: str, environment: str, error: str, code: str, state: str, milliseconds: int = 0
) -> Refreshed:
    """Note that a server did not answer, or listed nothing. Everything else stays as it is."""
    with tenant_transaction():
        row = _state(server, environment)
        row.checked_at, row.error, row.code = timezone.now(), error[:500], code
        row.milliseconds, row.changed_at, row.claimed_until = milliseconds, None, None
        row.save()
    return Refreshed(server, environment, state, row.count, error=error, milliseconds=milliseconds)


def refresh_store(
    *,
    server: str,
    environment: str,
    listed: Sequence[Contract],
    actor: str,
    author: str = "",
    milliseconds: int = 0,
) -> Refreshed:
    """Compare what a server lists with what was accepted; quarantine and propose what differs.

    One transaction under the tenant's lock, so two answers at once make one draft. An empty list
    changes nothing: a server that starts has no tools for a moment. ``author`` (default: ``actor``)
    is whose draft it becomes.
    """
    if not listed:
        return refresh_failed(
            server=server,
            environment=environment,
            error=gettext("The server lists no tools; nothing was changed."),
            code="empty",
            state="empty",
            milliseconds=milliseconds,
        )
    with tenant_transaction():
        configuration_locked()
        now = timezone.now()
        _seen_store(server, environment, listed, now)
        refresh = _Refresh(server, environment, actor, author or actor, now)
        done = refresh.compare(listed)
        row = _state(server, environment)
        row.count, row.error, row.code, row.milliseconds = len(listed), "", "", milliseconds
        row.checked_at = row.listed_at = now
        row.changed_at = row.claimed_until = None
        row.save()
        return replace(done, count=len(listed), milliseconds=milliseconds)


def server_changed(*, server: str) -> None:
    """Note that a server said its list changed: the next chore asks it again, in every environment
    that runs something."""
    now = timezone.now()
    with tenant_transaction():
        for environment in Deployment.objects.values_list("environment", flat=True):
            _state(server, environment)
        ServerState.objects.filter(server=server, changed_at=None).update(changed_at=now)


def _state(server: str, environment: str) -> ServerState:
    found: ServerState
    found, _created = ServerState.objects.get_or_create(environment=environment, server=server)
    return found


def _seen_store(server: str, environment: str, listed: Sequence[Contract], now: datetime) -> None:
    rows = SeenTool.objects.filter(environment=environment, server=server)
    known = {row.name: row for row in rows}
    fresh, moved = [], []
    for contract in listed:
        row = known.pop(contract.name, None)
        if row is None:
            fresh.append(
                SeenTool(
                    environment=environment, server=server, name=contract.name[:500],
                    sha256=contract.sha256, contract=contract.text,
                )
            )  # fmt: skip
        elif row.sha256 != contract.sha256 or row.gone_at is not None:
            if row.sha256 != contract.sha256:
                row.sha256, row.contract, row.changed_at = contract.sha256, contract.text, now
            row.gone_at = None
            moved.append(row)
    for row in known.values():
        if row.gone_at is None:
            row.gone_at = now
            moved.append(row)
    SeenTool.objects.bulk_create(fresh, batch_size=500)
    SeenTool.objects.bulk_update(
        moved, ["sha256", "contract", "changed_at", "gone_at"], batch_size=500
    )


@dataclass
class _Refresh:
    """One comparison of a server's list with what was accepted."""

    server: str
    environment: str
    actor: str
    author: str
    now: datetime
    fresh: list[tuple[Pins, ToolQuarantine]] = field(default_factory=list)
    released: list[str] = field(default_factory=list)

    def compare(self, listed: Sequence[Contract]) -> Refreshed:
        """Open and close quarantines; return what was found."""
        seen = {contract.name: contract for contract in listed}
        rows = quarantines_open().filter(environment=self.environment, server=self.server)
        held = {row.tool: row for row in rows}
        tools = tools_of_server(self.server, self.environment)
        drifted: list[str] = []
        gone: list[str] = []
        for pins in tools:
            accepted, found = pins.accepted(), seen.get(pins.name)
            row = held.pop(pins.slug, None)
            if not accepted or (found and found.sha256 in {pin.sha256 for pin in accepted}):
                self._release(row)
            else:
                self._hold(pins, accepted[0], found, row)
                (drifted if found else gone).append(pins.slug)
        for row in held.values():  # A tool that is gone here, or on another server now.
            self._release(row)
        named = {pins.name for pins in tools}
        return Refreshed(
            server=self.server,
            environment=self.environment,
            state="listed",
            added=tuple(name for name in seen if name not in named),
            drifted=tuple(drifted),
            gone=tuple(gone),
            released=tuple(self.released),
            request=self._propose(),
        )

    def _hold(
        self, pins: Pins, accepted: Contract, found: Contract | None, row: ToolQuarantine | None
    ) -> None:
        sha256 = found.sha256 if found else ""
        if row is not None and (row.seen_sha256, row.pinned_sha256) == (sha256, accepted.sha256):
            return
        if row is None:
            row = ToolQuarantine(environment=self.environment, tool=pins.slug, opened_by=self.actor)
        reason = ToolQuarantine.Reason
        row.server, row.changed_at = self.server, self.now
        row.reason = reason.CHANGED if found else reason.GONE
        row.pinned_sha256, row.pinned = accepted.sha256, accepted.text
        row.seen_sha256, row.seen = sha256, found.text if found else ""
        row.affected = canonical_json(tool_users(pins.slug))
        row.save()
        self._audit("tool.quarantined", row)
        if found is not None and pins.head is not None:
            self.fresh.append((pins, row))

    def _release(self, row: ToolQuarantine | None) -> None:
        if row is None:
            return
        row.closed_at = self.now
        row.save()
        self.released.append(row.tool)
        self._audit("tool.released", row)
        request = row.request
        if request is not None and request.status in OPEN:
            text = _("The server of %(tool)s declares again what was accepted.")
            comment_add(
                request=request, actor=self.actor, text=text % {"tool": row.tool},
                kind=ToolConfig.kind, slug=row.tool,
            )  # fmt: skip

    def _audit(self, action: str, row: ToolQuarantine) -> None:
        audit_append(
            actor=self.actor,
            action=action,
            entity=f"tool:{row.tool}",
            detail={
                "environment": row.environment,
                "server": row.server,
                "reason": row.reason,
                "accepted": row.pinned_sha256,
                "seen": row.seen_sha256,
            },
        )

    def _propose(self) -> int | None:
        """Put what is newly different into the draft of this server, or a new one."""
        if not self.fresh:
            return None
        request: ChangeRequest | None = None
        for pins, row in self.fresh:
            own = row.request if row.request and row.request.status == DRAFT else None
            request = own or request or self._draft()
            row.request = request
            self._patch(pins, row, request)
            row.save()
            _risk_declared(request, self.author)
        return request.number if request else None

    def _draft(self) -> ChangeRequest:
        words = {"server": self.server, "environment": self.environment}
        names = ", ".join(row.tool for _pins, row in self.fresh)[:MOST_NAMES]
        reason = _(
            "%(server)s (%(environment)s) declares other contracts than were accepted: %(tools)s."
        )
        return request_open(
            actor=self.author,
            title=(_("Contracts of %(server)s") % words)[:200],
            reason=reason % {**words, "tools": names},
            environment=self.environment,
        )

    def _patch(self, pins: Pins, row: ToolQuarantine, request: ChangeRequest) -> None:
        assert pins.head is not None
        proposal = tool_adjusted(pins.slug, pins.head, contract_parse(json.loads(row.seen)))
        notes = [*proposal.notes, *_notes_of_mappings(pins.slug, proposal.gone)]
        try:
            patch_save(
                actor=self.author,
                kind=ToolConfig.kind,
                slug=pins.slug,
                content=proposal.content,
                request=request,
                note=_("as the server declares it"),
            )
        except (InvalidContent, ChangeRefused) as refused:
            # Held all the same; a person sees what stands against taking it over.
            notes.append((str(refused).replace("%", "%%"), {}))
        row.notes = canonical_json([list(note) for note in notes])


def _notes_of_mappings(slug: str, gone: list[str]) -> list[Note]:
    if not gone:
        return []
    names = [u["slug"] for u in tool_users(slug) if u["kind"] == ParameterMappingConfig.kind]
    items = ConfigItem.objects.filter(kind=ParameterMappingConfig.kind, slug__in=names)
    return [
        note
        for item in items.select_related("head").order_by("slug")
        if item.head
        for note in notes_of_mapping(item.slug, json.loads(item.head.content), gone)
    ]


def _risk_declared(request: ChangeRequest, actor: str) -> None:
    """Declare what the changes are: nobody wrote them who could say something milder."""
    request.refresh_from_db()
    if RISKS.index(request.risk) > RISKS.index(request.declared_risk):
        request_describe(request=request, actor=actor, declared_risk=request.risk)


# -- taking over -------------------------------------------------------------------------------
def tools_take(*, server: str, environment: str, names: Sequence[str], actor: str) -> ChangeRequest:
    """Put tools as a server lists them into one new draft: unknown ones are added, known ones pinned.

    ``names`` are the server's. What is added is never active by itself: it is a draft, names no
    agent, and acts only after a confirmation unless the server says that it only reads. Raises
    ``NothingToPropose`` and ``InvalidContent``.
    """
    with tenant_transaction():
        configuration_locked()
        rows = SeenTool.objects.filter(
            environment=environment, server=server, name__in=list(names), gone_at=None
        )
        seen = {row.name: seen_contract(row) for row in rows}
        tools: dict[str, list[Pins]] = {}
        for pins in tools_of_server(server, environment):
            tools.setdefault(pins.name, []).append(pins)
        contents: dict[str, dict[str, Any]] = {}
        for name, contract in seen.items():
            known = [pins for pins in tools.get(name, []) if pins.head]
            for pins in known:
                assert pins.head is not None
                contents[pins.slug] = tool_adjusted(pins.slug, pins.head, contract).content
            if name not in tools:
                slug = _slug_for(server, name)
                contents[slug] = tool_added(server, slug, contract)
        if not contents:
            raise NothingToPropose(", ".join(names)[:MOST_NAMES])
        request = request_open(
            actor=actor,
            title=(_("Tools of %(server)s") % {"server": server})[:200],
            reason=_("As the server lists them: %(names)s.")
            % {"names": ", ".join(sorted(contents))[:MOST_NAMES]},
            environment=environment,
        )
        for slug, content in sorted(contents.items()):
            patch_save(
                actor=actor, kind=ToolConfig.kind, slug=slug, content=content, request=request
            )
        _risk_declared(request, actor)
        for row in quarantines_open().filter(
            environment=environment, server=server, tool__in=list(contents)
        ):
            row.request = request
            row.save()
        return request


def _slug_for(server: str, name: str) -> str:
    """Return a slug for a new tool: the server's name of it, or one qualified by the server.

    Two servers may have a tool of the same name; a name may have characters that no slug has.
    """
    plain = "".join(char if char.isalnum() or char in "._:-" else "_" for char in name)[:120]
    candidates = [plain, f"{server}.{plain}"[:120]]
    candidates += [f"{server}.{plain}"[:110] + f"-{number}" for number in range(2, 100)]
    taken = set(
        ConfigItem.objects.filter(kind=ToolConfig.kind, slug__in=candidates).values_list(
            "slug", flat=True
        )
    )
    free = [slug for slug in candidates if slug_is_valid(slug) and slug not in taken]
    if not free:
        raise NothingToPropose(name[:MOST_NAMES])
    return free[0]
