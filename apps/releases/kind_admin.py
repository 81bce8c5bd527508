"""The admin of a kind: list, edit, history, differences, used by.

Every save goes through ``services``; there is no delete, no bulk edit and no editing in the list.
A kind's admin is three lines::

    @admin.register(Agent)
    class AgentAdmin(KindAdmin):
        icon = "smart_toy"
"""

from collections.abc import Callable, Iterator
from typing import Any, cast

from django.contrib import messages
from django.contrib.admin import SimpleListFilter
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.decorators import display

from apps.releases.choices import ReferenceChoices
from apps.releases.config_admin import ConfigAdmin
from apps.releases.content import InvalidContent
from apps.releases.diff_view import shown_changes
from apps.releases.forms import (
    ConfigForm,
    config_form_class,
    default_content,
    errors_show,
)
from apps.releases.item_form import ItemForm
from apps.releases.links import item_link, shown_usages
from apps.releases.models import ConfigItem, Revision
from apps.releases.selectors import item_history, item_used_by, revision_content, revision_diff
from apps.releases.services import ItemInUse, StaleBase, item_archive, item_restore_head, item_save
from apps.runtime.config import KindConfig
from apps.tenants.tenant_admin import actor_of

HISTORY_PAGE = 50
USAGES_PAGE = 100


class StateFilter(SimpleListFilter):
    """Items that take part in the next release (unless asked otherwise), archived ones, or all."""

    title = gettext_lazy("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("archived", gettext_lazy("Archived")), ("all", gettext_lazy("All"))]

    def choices(self, changelist: Any) -> Iterator[Any]:
        first, *rest = super().choices(changelist)
        yield {**first, "display": _("In use")}
        yield from rest

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() == "all":
            return queryset
        return queryset.filter(archived_at__isnull=self.value() != "archived")


class KindAdmin(ConfigAdmin):
    """The admin of one kind of configuration; the model is its proxy."""

    icon = "settings"
    list_display = ("slug", "name", "head_number", "head_digest", "owner", "updated_at")
    list_display_links = ("slug",)
    list_select_related = ("head",)
    list_filter = (StateFilter,)
    search_fields = ("slug", "name", "owner")
    search_help_text = gettext_lazy("Slug, name or owner")
    ordering = ("slug",)

    @property
    def config_class(self) -> type[KindConfig]:
        return cast("type[KindConfig]", self.model.config_class)

    @display(description=gettext_lazy("revision"), ordering="head__number")  # type: ignore[arg-type]
    def head_number(self, item: ConfigItem) -> str:
        return f"#{item.head.number}" if item.head else "–"

    @display(description=gettext_lazy("digest"))  # type: ignore[arg-type]
    def head_digest(self, item: ConfigItem) -> str:
        if item.archived_at:
            return format_html('<span class="ao-badge">{}</span>', _("archived"))
        return format_html("<code>{}</code>", item.head.digest[:8] if item.head else "–")

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        own: list[tuple[str, Callable[..., HttpResponse], str]] = [
            ("by-slug/<path:slug>/", self.by_slug_view, "by_slug"),
            ("<path:object_id>/history/", self.history_view, "history"),
            ("<path:object_id>/diff/", self.diff_view, "diff"),
            ("<path:object_id>/used-by/", self.used_by_view, "used_by"),
            ("<path:object_id>/archive/", self.archive_view, "archive"),
            ("<path:object_id>/restore/", self.restore_view, "restore"),
        ]
        urls = [path(route, wrap(view), name=self._name(label)) for route, view, label in own]
        return [*urls, *super().get_urls()]

    # -- edit --------------------------------------------------------------------------------------
    def _changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None,
        form_url: str,
        extra_context: dict[str, Any] | None,
    ) -> HttpResponse:
        """Django's own would save the row itself; this one hands the content to ``item_save``."""
        item = self.row_or_404(request, object_id) if object_id else None
        may_save = self.has_change_permission(request) if item else self.has_add_permission(request)
        if not may_save and (item is None or request.method == "POST"):
            raise PermissionDenied
        item_form, form = self._forms(request, item)
        conflict = None
        if request.method == "POST" and all([item_form.is_valid(), form.is_valid()]):
            try:
                revision = self._save(request, item, item_form, form)
            except InvalidContent as invalid:
                errors_show(item_form, form, invalid.errors)
            except StaleBase as stale:
                conflict = stale
            else:
                return self._saved(request, item_form, revision)
        if not may_save:
            item_form.lock()
            form.lock()
        return self._edit_page(request, item, item_form, form, conflict)

    def _forms(self, request: HttpRequest, item: ConfigItem | None) -> tuple[ItemForm, ConfigForm]:
        data = request.POST if request.method == "POST" else None
        head = item.head if item else None
        labels = {
            field: getattr(item, field) if item else request.GET.get(field, "")
            for field in ("slug", "name", "owner", "technical_owner")
        }
        content = revision_content(head) if head else default_content(self.config_class)
        return (
            ItemForm(
                data,
                kind=self.config_class.kind,
                new=item is None,
                initial={**labels, "base": head.number if head else 0},
            ),
            config_form_class(self.config_class)(
                data, prefix="content", initial=content, choices=ReferenceChoices()
            ),
        )

    def _save(
        self, request: HttpRequest, item: ConfigItem | None, item_form: ItemForm, form: ConfigForm
    ) -> Revision:
        typed = item_form.cleaned_data
        return item_save(
            kind=self.config_class.kind,
            slug=item.slug if item else typed["slug"],
            content=form.content(),
            actor=actor_of(request),
            name=typed["name"],
            owner=typed["owner"],
            technical_owner=typed["technical_owner"],
            note=typed["note"],
            base=typed["overwrite"] or typed["base"],
        )

    def _saved(
        self, request: HttpRequest, item_form: ItemForm, revision: Revision
    ) -> HttpResponseRedirect:
        seen = item_form.cleaned_data["overwrite"] or item_form.cleaned_data["base"]
        if revision.number != seen:
            text = _("Saved as revision %(number)s. It takes effect with the next release.")
            messages.success(request, text % {"number": revision.number})
        elif {"name", "owner", "technical_owner"} & set(item_form.changed_data):
            messages.success(
                request, _("Saved. The content is unchanged, so no revision was made.")
            )
        else:
            messages.info(request, _("Nothing changed, so no revision was made."))
        return HttpResponseRedirect(
            item_link(self.config_class.kind, revision.item_id)
            if "_continue" in request.POST
            else self._url("changelist")
        )

    def _edit_page(
        self,
        request: HttpRequest,
        item: ConfigItem | None,
        item_form: ItemForm,
        form: ConfigForm,
        conflict: StaleBase | None,
    ) -> HttpResponse:
        kind = self.opts.verbose_name
        context = {
            "item": item,
            "item_form": item_form,
            "form": form,
            "conflict": conflict,
            "errors": [*item_form.error_list(), *form.error_list()] if form.is_bound else [],
            "media": self.media + item_form.media + form.media,
            "kind_help": self.config_class.__doc__,
        }
        title = item or _("Add %(kind)s") % {"kind": kind}
        return self._item_page(request, "releases/item_form.html", title, item, context)

    # -- history, differences, used by -------------------------------------------------------------
    def by_slug_view(self, request: HttpRequest, slug: str) -> HttpResponse:
        """Send a reference's reader to the item it names."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        item = self.get_queryset(request).filter(slug=slug).first()
        if item is None:
            raise Http404
        return HttpResponseRedirect(item_link(item.kind, item.pk))

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
        """Show what changed between two revisions; without numbers, the head and the one before."""
        item = self.row_or_404(request, object_id)
        new = _revision(item, request.GET.get("to")) or item.head
        before = str(new.number - 1) if new else None
        old = _revision(item, request.GET.get("from") or before)
        context = {
            "item": item,
            "old": old,
            "new": new,
            "changes": shown_changes(self.config_class, revision_diff(old, new)),
        }
        return self._item_page(request, "releases/revision_diff.html", item, item, context)

    def used_by_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """List who names an item: heads, and what the environments run."""
        item = self.row_or_404(request, object_id)
        page: Any = Paginator(item_used_by(item), USAGES_PAGE).get_page(request.GET.get("p"))
        context = {"item": item, "page": page, "usages": shown_usages(page.object_list)}
        return self._item_page(request, "releases/item_used_by.html", item, item, context)

    # -- archive, restore --------------------------------------------------------------------------
    def archive_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask, then leave an item out of the next release; refused while others name it."""
        item = self._row_to_change(request, object_id)
        usages: list[Any] = []
        if request.method == "POST":
            try:
                item_archive(item=item, actor=actor_of(request))
            except ItemInUse as refusal:
                usages = refusal.users
            else:
                text = _("“%(item)s” is archived: the next release is made without it.")
                messages.success(request, text % {"item": item})
                return HttpResponseRedirect(self._url("changelist"))
        context = {
            "item": item,
            "usages": shown_usages(usages[:USAGES_PAGE]),
            "more": max(0, len(usages) - USAGES_PAGE),
        }
        return self._item_page(request, "releases/item_archive.html", item, item, context)

    def restore_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Set the head back to an older revision (POST ``revision``); brings an archived item back."""
        item = self._row_to_change(request, object_id)
        revision = _revision(item, request.POST.get("revision"))
        if request.method != "POST" or revision is None:
            raise Http404
        try:
            item_restore_head(item=item, revision=revision, actor=actor_of(request))
        except InvalidContent as invalid:
            messages.error(
                request,
                _("Revision %(number)s no longer fits: %(errors)s")
                % {"number": revision.number, "errors": invalid},
            )
        else:
            text = _(
                "Revision %(number)s is the head again. It takes effect with the next release."
            )
            messages.success(request, text % {"number": revision.number})
        return HttpResponseRedirect(self._url("history", item.pk))

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
                ("used_by", _("Used by")),
            )
        ]
        match = request.resolver_match
        view = (match.url_name or "") if match else ""
        extra = {
            "tabs": tabs,
            "tab": "history" if view.endswith("_diff") else view.removeprefix(self._name("")),
            "may_change": may_change,
            "list_url": self._url("changelist"),
            "original": item,
        }
        for name in ("diff", "history", "archive", "restore") if item else ():
            extra[f"{name}_url"] = self._url(name, item.pk)
        return self.page(request, template, title, {**extra, **context})

    def _name(self, view: str) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{view}"

    def _url(self, view: str, *args: Any) -> str:
        return reverse(f"{self.admin_site.name}:{self._name(view)}", args=args)


def _revision(item: ConfigItem, number: str | None) -> Revision | None:
    """Return the revision of ``item`` with ``number``, or None; raise ``Http404`` for nonsense."""
    if not number or number == "0":
        return None
    if not (number.isascii() and number.isdigit() and len(number) < 10):
        raise Http404
    found = item_history(item).select_related("item").filter(number=number).first()
    if found is None:
        raise Http404
    return found
