"""What the admin shows of an item beside its form: history, differences, used by. Reads only."""

from typing import Any, cast

from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _

from apps.releases.change_models import ChangeRequest
from apps.releases.changes.selectors import patched_content
from apps.releases.models import ConfigItem, Revision
from apps.releases.pages.config_admin import ConfigAdmin
from apps.releases.pages.diff_view import shown_changes
from apps.releases.pages.history_views import item_as_of, item_reach
from apps.releases.pages.links import item_link, shown_usages
from apps.releases.patches.diff import content_diff
from apps.releases.selectors import item_history, item_used_by, revision_content, revision_diff
from apps.runtime.config import KindConfig

HISTORY_PAGE = 50
USAGES_PAGE = 100


class ItemPages(ConfigAdmin):
    """The pages of one item of a kind, with tabs between them."""

    @property
    def config_class(self) -> type[KindConfig]:
        return cast("type[KindConfig]", self.model.config_class)

    def by_slug_view(self, request: HttpRequest, slug: str) -> HttpResponse:
        """Send a reference's reader to the item it names."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        item = self.get_queryset(request).filter(slug=slug).first()
        if item is None:
            raise Http404
        query = request.META.get("QUERY_STRING", "")
        return HttpResponseRedirect(item_link(item.kind, item.pk) + (f"?{query}" if query else ""))

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """List the revisions of an item, newest first."""
        item = self.row_or_404(request, object_id)
        pages = Paginator(item_history(item), HISTORY_PAGE)
        page = pages.get_page(request.GET.get("p"))
        return self._item_page(
            request, "releases/item_history.html", item, item, {"revisions": page, "item": item}
        )

    def diff_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show what changed between two revisions, or (``request``) what a request would change.

        Without numbers: the head and the one before.
        """
        item = self.row_or_404(request, object_id)
        if "request" in request.GET:
            return self._request_diff(request, item)
        new = revision_or_404(item, request.GET.get("to")) or item.head
        before = str(new.number - 1) if new else None
        old = revision_or_404(item, request.GET.get("from") or before)
        context = {
            "item": item,
            "old": old,
            "new": new,
            "changes": shown_changes(self.config_class, revision_diff(old, new)),
        }
        return self._item_page(request, "releases/revision_diff.html", item, item, context)

    def _request_diff(self, request: HttpRequest, item: ConfigItem) -> HttpResponse:
        change = request_or_404(request.GET.get("request"))
        after = patched_content(change, item.kind, item.slug)
        if after is None:
            raise Http404
        changes = content_diff(revision_content(item.head), after)
        context = {
            "item": item,
            "old": item.head,
            "change": change,
            "changes": shown_changes(self.config_class, changes),
        }
        return self._item_page(request, "releases/request_item_diff.html", item, item, context)

    def used_by_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """List who names an item: heads, and what the environments run."""
        item = self.row_or_404(request, object_id)
        page: Any = Paginator(item_used_by(item), USAGES_PAGE).get_page(request.GET.get("p"))
        context = {"item": item, "page": page, "usages": shown_usages(page.object_list)}
        return self._item_page(request, "releases/item_used_by.html", item, item, context)

    def as_of_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show an item as it stood at a moment (``at``, ``zone``), and what changed since."""
        item = self.row_or_404(request, object_id)
        return self._item_page(
            request, "releases/item_as_of.html", item, item, item_as_of(request, item)
        )

    def reach_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show how far a change of an item reaches."""
        item = self.row_or_404(request, object_id)
        return self._item_page(request, "releases/item_reach.html", item, item, item_reach(item))

    def _row_to_change(self, request: HttpRequest, object_id: str) -> Any:
        item = self.row_or_404(request, object_id)
        if not self.has_change_permission(request):
            raise PermissionDenied
        return item

    def _item_page(
        self, request: HttpRequest, template: str, title: Any, item: Any, context: dict[str, Any]
    ) -> HttpResponse:
        may_change = self.has_change_permission(request)
        tabs = item and [
            {"name": name, "title": text, "url": self._url(name, item.pk)}
            for name, text in (
                ("change", _("Edit") if may_change else _("View")),
                ("history", _("History")),
                ("as_of", _("As it was")),
                ("used_by", _("Used by")),
                ("reach", _("Blast radius")),
            )
        ]
        tabs = tabs and [*tabs, *self.more_tabs(item)]
        match = request.resolver_match
        view = (match.url_name or "") if match else ""
        extra = {
            "tabs": tabs,
            "tab": "history" if view.endswith("_diff") else view.removeprefix(self._name("")),
            "may_change": may_change,
            "list_url": self._url("changelist"),
            "original": item,
        }
        for name in ("change", "diff", "history", "archive", "restore") if item else ():
            extra[f"{name}_url"] = self._url(name, item.pk)
        return self.page(request, template, title, {**extra, **context})

    def more_tabs(self, item: ConfigItem) -> list[dict[str, Any]]:
        """Return further tabs of a kind's items: ``name``, ``title``, ``url``."""
        return []

    def _name(self, view: str) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{view}"

    def _url(self, view: str, *args: Any) -> str:
        return reverse(f"{self.admin_site.name}:{self._name(view)}", args=args)


def revision_or_404(item: ConfigItem, number: str | None) -> Revision | None:
    """Return the revision of ``item`` with ``number``, or None without one; 404 for nonsense."""
    if not number or number == "0":
        return None
    found = item_history(item).select_related("item").filter(number=_number(number)).first()
    if found is None:
        raise Http404
    return found


def request_or_404(number: str | None) -> ChangeRequest:
    """Return the tenant's change request ``number``; raise ``Http404`` when there is none."""
    found: ChangeRequest | None = ChangeRequest.objects.filter(number=_number(number)).first()
    if found is None:
        raise Http404
    return found


def _number(text: str | None) -> int:
    if not (text and text.isascii() and text.isdigit() and len(text) < 10):
        raise Http404
    return int(text)
