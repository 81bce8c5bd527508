"""Which change request an item is edited in, and the item as that request has it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from apps.releases.change_models import ChangePatch, ChangeRequest
from apps.releases.changes.selectors import editable_requests, patched_content
from apps.releases.changes.services import Saved, request_open
from apps.releases.changes.states import DRAFT, OPEN
from apps.releases.models import ConfigItem
from apps.releases.pages.item_pages import request_or_404
from apps.releases.pages.links import request_link
from apps.releases.services import configuration_locked
from apps.tenants.scope import tenant_transaction
from apps.tenants.tenant_admin import actor_of

OFFERED_REQUESTS = 50
SHOWN_OTHERS = 10
Save = Callable[[ChangeRequest], Saved]


@dataclass(frozen=True)
class Editing:
    """An item (``slug``) as it is edited: in which request, and who else changes it.

    ``chosen`` is the request that saving goes to (None: a new one), ``patch`` what it has of the
    item already, ``content`` the item with that. ``offered``: the requests to choose from.
    """

    slug: str
    chosen: ChangeRequest | None
    offered: Sequence[ChangeRequest] = ()
    patch: ChangePatch | None = None
    content: dict[str, Any] | None = None
    others: Sequence[ChangePatch] = field(default=())

    @property
    def choices(self) -> list[tuple[str, str]]:
        """The requests to choose from; of one that was submitted also how far it is."""
        return [
            (str(found.number), str(found) if found.status == DRAFT else _submitted(found))
            for found in self.offered
        ]

    @property
    def is_archiving(self) -> bool:
        """Whether the request asks for the item to be archived."""
        return self.patch is not None and self.patch.action == ChangePatch.Action.ARCHIVE


def _submitted(request: ChangeRequest) -> str:
    """Return a submitted request's name with its status: an edit there voids its approvals."""
    return f"{request} ({request.get_status_display()})"


def editing_of(request: HttpRequest, *, kind: str, item: ConfigItem | None) -> Editing:
    """Return how the person edits ``item`` (None: one that is not there yet).

    ``?request=<number>`` chooses; else it is their newest draft. Raises ``Http404`` for a number
    that no request has.
    """
    slug = item.slug if item else request.GET.get("slug", "")
    offered = list(editable_requests(actor_of(request))[:OFFERED_REQUESTS])
    patches = ChangePatch.objects.filter(kind=kind, slug=slug, request__status__in=OPEN)
    chosen = _chosen(request, offered, patches)
    if chosen is not None and chosen.status in OPEN and chosen not in offered:
        offered.insert(0, chosen)
    patch = patches.filter(request=chosen).select_related("request").first() if chosen else None
    if item is None and patch is None:
        slug = ""  # A slug in the address is a proposal, unless a request adds the item.
    return Editing(
        slug=slug,
        chosen=chosen,
        offered=offered,
        patch=patch,
        content=patched_content(chosen, kind, slug) if chosen and patch else None,
        others=_others(patches, patch) if slug else [],
    )


def _others(patches: QuerySet[ChangePatch], patch: ChangePatch | None) -> list[ChangePatch]:
    """Return the newest patches of the item in other requests, one more than is shown."""
    others = patches.exclude(pk=patch.pk) if patch else patches
    rows = others.select_related("request").defer("operations", "carried")
    return list(rows.order_by("-request__number")[: SHOWN_OTHERS + 1])


def _chosen(
    request: HttpRequest, offered: Sequence[ChangeRequest], patches: QuerySet[ChangePatch]
) -> ChangeRequest | None:
    number = request.GET.get("request")
    if number == "new":
        return None
    if number:
        return request_or_404(number)
    drafts = [found for found in offered if found.status == DRAFT]
    with_patch = set(patches.filter(request__in=drafts).values_list("request_id", flat=True))
    return next(iter(sorted(drafts, key=lambda found: found.pk not in with_patch)), None)


class _NothingChanged(Exception):
    """Takes back the request that was opened for an edit that turned out to be none."""


def saved_into(number: int | None, actor: str, save: Save, *, title: str = "") -> Saved | None:
    """Call ``save`` with the request ``number``, or with a new one (``number`` None).

    Returns what it returns, or None when nothing changed; no empty request stays behind then.
    """
    try:
        with tenant_transaction():
            configuration_locked()
            chosen = (
                request_or_404(str(number)) if number else request_open(actor=actor, title=title)
            )
            saved: Saved = save(chosen)
            if not saved.changed:
                raise _NothingChanged
            return saved
    except _NothingChanged:
        return None


def saved_text(saved: Saved | None) -> SafeString | str:
    """Return the sentence that tells what saving did, with a link to the request."""
    if saved is None:
        return _("Nothing changed, so nothing was saved.")
    link = format_html(
        '<a class="underline" href="{}">{}</a>',
        request_link(saved.request),
        _("change request #%(number)s") % {"number": saved.request.number},
    )
    if saved.patch is None:
        text = _("This is how it is now, so it was taken out of {request}.")
    else:
        text = _("Saved in {request}. What runs is unchanged until that is approved and published.")
    return format_html(text, request=link)
