"""The admin of a kind: list, edit, archive, restore. What only reads is in ``pages.item_pages``.

Every save lands in a change request, never in what runs; there is no delete, no bulk edit and no
editing in the list.
A kind's admin is three lines::

    @admin.register(Agent)
    class AgentAdmin(KindAdmin):
        icon = "smart_toy"
"""

from collections.abc import Callable, Iterator
from typing import Any

from django.contrib import messages
from django.contrib.admin import SimpleListFilter
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.decorators import display

from apps.releases.change_models import ChangePatch, ChangeRequest
from apps.releases.changes.candidate import labels_of
from apps.releases.changes.services import (
    ChangeRefused,
    Saved,
    patch_archive,
    patch_restore,
    patch_save,
)
from apps.releases.changes.states import OPEN
from apps.releases.content import InvalidContent
from apps.releases.models import ConfigItem
from apps.releases.pages.choices import ReferenceChoices
from apps.releases.pages.forms import (
    ConfigForm,
    config_form_class,
    default_content,
    errors_show,
)
from apps.releases.pages.item_editing import (
    SHOWN_OTHERS,
    Editing,
    Save,
    editing_of,
    saved_into,
    saved_text,
)
from apps.releases.pages.item_form import NEW_REQUEST, ItemForm, moment
from apps.releases.pages.item_pages import ItemPages, revision_or_404
from apps.releases.pages.links import kind_label, patch_link, request_link, shown_usages
from apps.releases.selectors import item_head_users, revision_content
from apps.releases.services import StaleBase
from apps.tenants.tenant_admin import actor_of

SHOWN_USERS = 100
SHOWN_DRAFTS = 20


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


class KindAdmin(ItemPages):
    """The admin of one kind of configuration; the model is its proxy."""

    icon = "settings"
    list_display = ("slug", "name", "head_number", "head_digest", "owner", "updated_at")
    list_display_links = ("slug",)
    list_select_related = ("head",)
    list_filter = (StateFilter,)
    search_fields = ("slug", "name", "owner")
    search_help_text = gettext_lazy("Slug, name or owner")
    ordering = ("slug",)
    list_before_template = "releases/_drafted_items.html"  # type: ignore[assignment]

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
            ("<path:object_id>/as-of/", self.as_of_view, "as_of"),
            ("<path:object_id>/reach/", self.reach_view, "reach"),
            ("<path:object_id>/archive/", self.archive_view, "archive"),
            ("<path:object_id>/restore/", self.restore_view, "restore"),
        ]
        urls = [path(route, wrap(view), name=self._name(label)) for route, view, label in own]
        return [*urls, *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> TemplateResponse:
        """The list, and above it the items that only open change requests have yet."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        drafted = ChangePatch.objects.filter(
            kind=self.config_class.kind,
            base=None,
            request__status__in=OPEN,
        )
        shown = drafted.select_related("request").order_by("slug")[: SHOWN_DRAFTS + 1]
        context: dict[str, Any] = {
            "drafted": [{"patch": patch, "url": patch_link(patch)} for patch in shown],
            "drafted_more": len(shown) > SHOWN_DRAFTS,
        }
        response: TemplateResponse = super().changelist_view(
            request, {**context, **(extra_context or {})}
        )
        return response

    # -- edit --------------------------------------------------------------------------------------
    def _changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None,
        form_url: str,
        extra_context: dict[str, Any] | None,
    ) -> HttpResponse:
        """Django's own would save the row itself; this one hands the content to ``patch_save``."""
        item = self.row_or_404(request, object_id) if object_id else None
        may_save = self.has_change_permission(request) if item else self.has_add_permission(request)
        if not may_save and (item is None or request.method == "POST"):
            raise PermissionDenied
        editing = editing_of(request, kind=self.config_class.kind, item=item)
        item_form, form = self._forms(request, item, editing)
        conflict = None
        if request.method == "POST" and all([item_form.is_valid(), form.is_valid()]):
            try:
                saved = self._save(request, item_form, form)
            except InvalidContent as invalid:
                errors_show(item_form, form, invalid.errors)
            except ChangeRefused as refusal:
                item_form.add_error("request", str(refusal))
            except StaleBase as stale:
                conflict = stale
            else:
                return self._saved(request, item_form, saved)
        if not may_save:
            item_form.lock()
            form.lock()
        return self._edit_page(request, item, item_form, form, editing, conflict)

    def _forms(
        self, request: HttpRequest, item: ConfigItem | None, editing: Editing
    ) -> tuple[ItemForm, ConfigForm]:
        data = request.POST if request.method == "POST" else None
        head = item.head if item else None
        chosen, patch = editing.chosen, editing.patch
        content = editing.content
        if content is None:
            content = revision_content(head) if head else default_content(self.config_class)
        initial = {
            **_labels(request, item, patch),
            "note": patch.note if patch else "",
            "request": str(chosen.number) if chosen else NEW_REQUEST,
            "shown": chosen.number if chosen and patch else "",
            "shown_at": moment(patch),
            "base": head.number if head else 0,
        }
        return (
            ItemForm(
                data,
                kind=self.config_class.kind,
                slug=editing.slug,
                requests=editing.choices,
                initial=initial,
            ),
            config_form_class(self.config_class)(
                data, prefix="content", initial=content, choices=ReferenceChoices()
            ),
        )

    def _save(self, request: HttpRequest, item_form: ItemForm, form: ConfigForm) -> Saved | None:
        typed, actor = item_form.cleaned_data, actor_of(request)
        slug = item_form.item_slug or typed["slug"]
        kind = self.config_class.kind

        def save(chosen: ChangeRequest) -> Saved:
            item_form.seen_check()
            return patch_save(
                actor=actor,
                kind=kind,
                slug=slug,
                content=form.content(),
                request=chosen,
                name=typed["name"],
                owner=typed["owner"],
                technical_owner=typed["technical_owner"],
                note=typed["note"],
                base=typed["overwrite"] or typed["base"],
            )

        title = typed["note"][:200] or f"{kind_label(kind)} {slug}"
        return saved_into(typed["request"], actor, save, title=title)

    def _saved(
        self, request: HttpRequest, item_form: ItemForm, saved: Saved | None
    ) -> HttpResponseRedirect:
        tell = messages.success if saved else messages.info
        tell(request, saved_text(saved))
        if "_continue" not in request.POST:
            return HttpResponseRedirect(self._url("changelist"))
        if saved and saved.patch:
            return HttpResponseRedirect(patch_link(saved.patch))
        return HttpResponseRedirect(
            request.get_full_path() if item_form.item_slug else self._url("add")
        )

    def _edit_page(
        self,
        request: HttpRequest,
        item: ConfigItem | None,
        item_form: ItemForm,
        form: ConfigForm,
        editing: Editing,
        conflict: StaleBase | None,
    ) -> HttpResponse:
        kind = self.opts.verbose_name
        shown = editing.chosen if editing.patch else None
        context = {
            "item": item,
            "item_form": item_form,
            "form": form,
            "conflict": conflict,
            "editing": editing,
            "shown_request": shown,
            "shown_request_url": request_link(shown) if shown else "",
            "others": [
                {"patch": patch, "url": request_link(patch.request), "edit": patch_link(patch)}
                for patch in editing.others[:SHOWN_OTHERS]
            ],
            "others_more": len(editing.others) > SHOWN_OTHERS,
            "errors": [*item_form.error_list(), *form.error_list()] if form.is_bound else [],
            "media": self.media + item_form.media + form.media,
            "kind_help": self.config_class.__doc__,
        }
        title = item or editing.slug or _("Add %(kind)s") % {"kind": kind}
        return self._item_page(request, "releases/item_form.html", title, item, context)

    # -- archive, restore --------------------------------------------------------------------------
    def archive_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask, then put the archiving into a change request; says who still names the item."""
        item = self._row_to_change(request, object_id)
        actor = actor_of(request)
        editing = editing_of(request, kind=item.kind, item=item)
        if request.method == "POST":
            done = self._put(
                request,
                lambda chosen: patch_archive(actor=actor, item=item, request=chosen),
                title=_("Archive %(slug)s") % {"slug": item.slug},
                editing=editing,
            )
            if done:
                return HttpResponseRedirect(self._url("changelist"))
        usages = item_head_users(item)
        context = {
            "item": item,
            "chosen": editing.chosen,
            "usages": shown_usages(usages[:SHOWN_USERS]),
            "more": max(0, len(usages) - SHOWN_USERS),
        }
        return self._item_page(request, "releases/item_archive.html", item, item, context)

    def restore_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for an older revision's content to be the head again (POST ``revision``)."""
        item = self._row_to_change(request, object_id)
        revision = revision_or_404(item, request.POST.get("revision"))
        if request.method != "POST" or revision is None:
            raise Http404
        actor = actor_of(request)
        try:
            self._put(
                request,
                lambda chosen: patch_restore(
                    actor=actor, item=item, revision=revision, request=chosen
                ),
                title=_("%(slug)s as in revision %(number)s")
                % {"slug": item.slug, "number": revision.number},
                editing=editing_of(request, kind=item.kind, item=item),
            )
        except InvalidContent as invalid:
            text = _("Revision %(number)s no longer fits: %(errors)s")
            messages.error(request, text % {"number": revision.number, "errors": invalid})
        return HttpResponseRedirect(self._url("history", item.pk))

    def _put(self, request: HttpRequest, save: Save, *, title: str, editing: Editing) -> bool:
        """Save into the person's newest draft or a new request; tell, and return whether it was."""
        number = editing.chosen.number if editing.chosen else None
        try:
            saved = saved_into(number, actor_of(request), save, title=title[:200])
        except ChangeRefused as refusal:
            messages.error(request, str(refusal))
            return False
        tell = messages.success if saved else messages.info
        tell(request, saved_text(saved))
        return True


def _labels(
    request: HttpRequest, item: ConfigItem | None, patch: ChangePatch | None
) -> dict[str, str]:
    """Return what the item is called: as the patch says, else as it is, else as the address says."""
    fields = ("slug", "name", "owner", "technical_owner")
    labels: dict[str, str] = {
        field: getattr(item, field) if item else request.GET.get(field, "") for field in fields
    }
    return {**labels, **(labels_of(patch) if patch else {})}
