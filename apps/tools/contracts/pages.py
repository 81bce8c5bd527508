"""Admin pages of what servers offer: a server's tools, and a tool's contract and drift."""

import json
from collections import Counter
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Exists, OuterRef, QuerySet
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from unfold.decorators import display

from apps.releases.changes.services import ChangeRefused
from apps.releases.changes.states import OPEN
from apps.releases.content import InvalidContent
from apps.releases.models import ConfigItem
from apps.releases.pages.diff_view import shown_changes
from apps.releases.pages.kind_admin import KindAdmin
from apps.releases.pages.links import kind_label, request_link, slug_link
from apps.runtime.ports import ToolUnavailable
from apps.tenants.tenant_admin import actor_of
from apps.tools.config import PinnedContract, ToolConfig
from apps.tools.contract_models import SeenTool, ToolQuarantine
from apps.tools.contracts.asynchronous import async_page, in_transaction
from apps.tools.contracts.hashing import Unreadable, contract_pinned, pin_holds
from apps.tools.contracts.refreshing import server_refresh_async, tools_fetch
from apps.tools.contracts.schemas import contradictions
from apps.tools.contracts.selectors import (
    ToolRow,
    UnknownServer,
    quarantine_diff,
    quarantines_of,
    server_listed,
    server_remote,
    tool_head,
    tool_rows,
)
from apps.tools.contracts.services import SYSTEM, NothingToPropose, Refreshed, tools_take

PAGE = 50
PAST_SHOWN = 10
MOST_TAKEN = 200
STATUS = {
    "drifted": gettext_lazy("drifted"),
    "gone": gettext_lazy("gone"),
    "new": gettext_lazy("new"),
    "unpinned": gettext_lazy("not pinned"),
    "unseen": gettext_lazy("not seen yet"),
    "pinned": gettext_lazy("pinned"),
}
BADGES = {"drifted": "error", "gone": "error", "new": "info", "unpinned": "warn", "unseen": "", "pinned": "good"}  # fmt: skip
ACT = "tools.change"


class DriftShown(KindAdmin):
    """A list that says which of its rows have a tool in quarantine; ``held_by`` is the row's column."""

    held_by = "tool"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        held = ToolQuarantine.objects.filter(closed_at=None, **{self.held_by: OuterRef("slug")})
        found: QuerySet[Any] = super().get_queryset(request)
        return found.annotate(is_held=Exists(held))  # type: ignore[no-any-return]

    @display(description=gettext_lazy("contract"))  # type: ignore[arg-type]
    def drift(self, item: Any) -> str:
        if not item.is_held:
            return "–"
        return format_html('<span class="ao-badge ao-badge-error">{}</span>', _("in quarantine"))


class ServerPages(DriftShown):
    """A tool server's page of tools: what it lists, what of that is accepted, and when it was asked."""

    held_by = "server"

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        pages = [
            path("<path:object_id>/tools/", wrap(self.tools_view), name=self._name("tools")),
            path("<path:object_id>/take/", wrap(self.take_view), name=self._name("take")),
        ]
        waiting = [
            path(
                f"<path:object_id>/{page}/",
                async_page(self.admin_site, view),
                name=self._name(page),
            )
            for page, view in (("refresh", self.refresh_view), ("connect", self.connect_view))
        ]
        return [*pages, *waiting, *super().get_urls()]

    def more_tabs(self, item: ConfigItem) -> list[dict[str, Any]]:
        tools = {"name": "tools", "title": _("Tools"), "url": self._url("tools", item.pk)}
        return [*super().more_tabs(item), tools]

    def tools_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show what a server lists in one environment."""
        item = self.row_or_404(request, object_id)
        environment = environment_or_404(request.GET.get("environment"))
        try:
            listed = server_listed(item.slug, environment)
        except UnknownServer:
            raise Http404 from None
        rows = tool_rows(item.slug, environment)
        counts = Counter(row.status for row in rows)
        status = request.GET.get("status", "")
        search = request.GET.get("q", "").strip()
        shown = [row for row in rows if _matches(row, status, search)]
        page = Paginator(shown, PAGE).get_page(request.GET.get("p"))
        context = {
            "item": item,
            "listed": listed,
            "environment": environment,
            "environments": settings.RELEASE_ENVIRONMENTS,
            "page": page,
            "rows": [_shown_row(row) for row in page.object_list],
            "found": len(shown),
            "statuses": [(name, STATUS[name], counts[name]) for name in STATUS if counts[name]],
            "status": status,
            "search": search,
            "may_act": request.user.has_perm(ACT),
            "may_take": request.user.has_perm("config.change"),
            "takeable": any(
                row.status in ("new", "unpinned", "drifted") for row in page.object_list
            ),
            **{f"{name}_url": self._url(name, item.pk) for name in ("refresh", "connect", "take")},
        }
        return self._item_page(request, "tools/server_tools.html", item, item, context)

    def take_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Put chosen tools, as the server lists them, into a new draft (POST ``name``…)."""
        item = self.row_or_404(request, object_id)
        if request.method != "POST":
            raise Http404
        if not request.user.has_perm("config.change"):
            raise PermissionDenied
        environment = environment_or_404(request.POST.get("environment"))
        names = request.POST.getlist("name")[:MOST_TAKEN]
        try:
            change = tools_take(
                server=item.slug, environment=environment, names=names, actor=actor_of(request)
            )
        except NothingToPropose:
            messages.warning(request, _("Choose tools that the server lists."))
        except (InvalidContent, ChangeRefused) as refused:
            messages.error(request, str(refused))
        else:
            text = _("Proposed in change request #%(number)s: look at it and submit it for review.")
            messages.success(request, text % {"number": change.number})
            return HttpResponseRedirect(request_link(change))
        return HttpResponseRedirect(self._tools_url(item.pk, environment))

    async def refresh_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask the server now, and say what was found (POST ``environment``)."""
        asked = await in_transaction(self._asked, request, object_id)
        if isinstance(asked, HttpResponse):
            return asked
        slug, key, environment, author = asked
        done = await server_refresh_async(
            server=slug, environment=environment, actor=actor_of(request), author=author
        )
        return await in_transaction(self._refreshed, request, key, done)  # type: ignore[no-any-return]

    async def connect_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Try whether the server answers; nothing is compared or stored."""
        asked = await in_transaction(self._asked, request, object_id)
        if isinstance(asked, HttpResponse):
            return asked
        slug, key, environment, _author = asked
        remote = await in_transaction(server_remote, slug, environment, actor_of(request))
        if remote is None:
            said = (messages.ERROR, _("The environment has no address or no credential for it."))
        else:
            try:
                found = len(await tools_fetch(remote))
            except (ToolUnavailable, Unreadable) as failure:
                said = (messages.ERROR, _("No answer: %(why)s") % {"why": _(str(failure))})
            else:
                text = ngettext("It answers and lists %(count)s tool.", "It answers and lists %(count)s tools.", found)  # fmt: skip
                said = (messages.SUCCESS, text % {"count": found})
        return await in_transaction(self._told, request, key, environment, *said)  # type: ignore[no-any-return]

    def _asked(self, request: HttpRequest, object_id: str) -> Any:
        """Return (slug, key, environment, author) of what is asked, or the refusal."""
        item = self.row_or_404(request, object_id)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not request.user.has_perm(ACT):
            raise PermissionDenied
        environment = environment_or_404(request.POST.get("environment"))
        # Whoever may not edit has no drafts: what is found is then nobody's in person.
        author = actor_of(request) if request.user.has_perm("config.change") else SYSTEM
        return item.slug, item.pk, environment, author

    def _refreshed(self, request: HttpRequest, key: Any, done: Refreshed) -> HttpResponse:
        if done.state != "listed":
            text = _("Nothing was changed: %(why)s") % {"why": _(done.error)}
            return self._told(request, key, done.environment, messages.WARNING, text)
        said = [ngettext("%(count)s tool.", "%(count)s tools.", done.count) % {"count": done.count}]
        for names, text in (
            (done.drifted, _("Drifted: %(names)s.")),
            (done.gone, _("Gone: %(names)s.")),
            (done.released, _("As accepted again: %(names)s.")),
        ):
            if names:
                said.append(text % {"names": _few(names)})
        if done.request is not None:
            said.append(_("Proposed in change request #%(number)s.") % {"number": done.request})
        level = messages.WARNING if done.drifted or done.gone else messages.SUCCESS
        return self._told(request, key, done.environment, level, " ".join(said))

    def _told(
        self, request: HttpRequest, key: Any, environment: str, level: int, text: str
    ) -> HttpResponse:
        messages.add_message(request, level, text)
        return HttpResponseRedirect(self._tools_url(key, environment))

    def _tools_url(self, key: Any, environment: str) -> str:
        return f"{self._url('tools', key)}?{urlencode({'environment': environment})}"


class ContractPages(DriftShown):
    """A tool's page of its contract: what is pinned, what its server declares now, who is affected."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.contract_view)
        own = path("<path:object_id>/contract/", view, name=self._name("contract"))
        return [own, *super().get_urls()]

    def more_tabs(self, item: ConfigItem) -> list[dict[str, Any]]:
        contract = {
            "name": "contract",
            "title": _("Contract"),
            "url": self._url("contract", item.pk),
        }
        return [*super().more_tabs(item), contract]

    def contract_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the pinned contract, and every difference from what a server declares."""
        item = self.row_or_404(request, object_id)
        tool = tool_head(item.slug)
        rows = list(quarantines_of(item.slug)[: PAST_SHOWN * 2])
        context = {
            "item": item,
            "tool": tool,
            "pinned": _pinned_shown(item.slug, tool) if tool else None,
            "held": [_held_shown(row) for row in rows if row.closed_at is None],
            "past": [row for row in rows if row.closed_at is not None][:PAST_SHOWN],
            "seen": _seen_shown(item.slug, tool) if tool else [],
            "server_url": slug_link("tool_server", tool.mcp_server) if tool else "",
            "may_take": request.user.has_perm("config.change"),
        }
        return self._item_page(request, "tools/contract.html", item, item, context)


def environment_or_404(name: str | None) -> str:
    """Return the environment ``name`` (default: the last one). Raises ``Http404``."""
    chosen = name or settings.DEFAULT_ENVIRONMENT
    if chosen not in settings.RELEASE_ENVIRONMENTS:
        raise Http404
    return chosen


def _few(names: tuple[str, ...], most: int = 5) -> str:
    more = len(names) - most
    shown = ", ".join(names[:most])
    return f"{shown} (+{more})" if more > 0 else shown


def _matches(row: ToolRow, status: str, search: str) -> bool:
    if status and row.status != status:
        return False
    words = f"{row.name} {row.tool} {row.description}".casefold()
    return search.casefold() in words


def _shown_row(row: ToolRow) -> dict[str, Any]:
    return {
        "row": row,
        "label": STATUS[row.status],
        "badge": BADGES[row.status],
        "url": slug_link(ToolConfig.kind, row.tool) if row.tool else "",
        "request_url": request_link(row.request) if row.request else "",
        "is_takeable": row.status in ("new", "unpinned", "drifted"),
    }


def _pinned_shown(slug: str, tool: ToolConfig) -> dict[str, Any]:
    contract = contract_pinned(slug, tool)
    return {
        "contract": contract,
        "holds": pin_holds(slug, tool),
        "fields": [
            (title, _text(value))
            for title, value in (
                (_("Title"), tool.contract.title),
                (_("Description"), tool.contract.description),
                (_("Input schema"), tool.contract.input_schema),
                (_("Output schema"), tool.contract.output_schema),
                (_("Annotations"), tool.contract.annotations),
            )
        ],
        "contradictions": [
            {"path": found.path, "level": found.level, "text": _(found.message) % found.words}
            for found in contradictions(tool, tool.contract.input_schema)
        ]
        if contract
        else [],
    }


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=2) if value else ""


def _held_shown(row: ToolQuarantine) -> dict[str, Any]:
    return {
        "row": row,
        "changes": shown_changes(PinnedContract, quarantine_diff(row)),
        "affected": [
            {**u, "kind": kind_label(u["kind"]), "url": slug_link(u["kind"], u["slug"])}
            for u in json.loads(row.affected)
        ],
        "notes": [_(text) % words for text, words in json.loads(row.notes)],
        "request_url": request_link(row.request) if row.request else "",
        "is_open": row.request is not None and row.request.status in OPEN,
        "server_url": _server_tools_url(row.server, row.environment),
    }


def _server_tools_url(server: str, environment: str) -> str:
    item = ConfigItem.objects.filter(kind="tool_server", slug=server).first()
    if item is None:
        return ""
    page = reverse("admin:tools_toolserver_tools", args=[item.pk])
    return f"{page}?{urlencode({'environment': environment})}"


def _seen_shown(slug: str, tool: ToolConfig) -> list[dict[str, Any]]:
    """Return what each environment's server was last seen to declare: same, newer, gone."""
    name, pinned = tool.remote_name or slug, tool.contract.sha256
    rows = SeenTool.objects.filter(server=tool.mcp_server, name=name).order_by("environment")
    return [
        {
            "row": row,
            "state": "gone" if row.gone_at else "same" if row.sha256 == pinned else "other",
            "url": _server_tools_url(tool.mcp_server, row.environment),
        }
        for row in rows
    ]
