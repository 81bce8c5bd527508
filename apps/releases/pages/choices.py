"""What the reference fields of a form may name: read once per form, whatever the number of fields."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import Q, QuerySet
from django.urls import reverse
from django.utils.translation import gettext

from apps.releases.change_models import ChangePatch
from apps.releases.changes.states import OPEN
from apps.releases.models import Binding, ConfigItem

Option = tuple[str, str]
# More items than this are not put into the page; the field searches on the server instead.
INLINE_OPTIONS = 200
SEARCH_RESULTS = 30


class ReferenceChoices:
    """The current tenant's items and binding names, each kind asked for once."""

    def __init__(self) -> None:
        self._options: dict[str, list[Option]] = {}
        self._bindings: dict[str, list[str]] = {}
        self._drafts: dict[str, list[Option]] | None = None

    def options(self, kind: str) -> list[Option] | None:
        """Return (slug, label) of all items of ``kind``; ``None`` when they are too many to list."""
        found = self._found(kind)
        return found if len(found) <= INLINE_OPTIONS else None

    def labels(self, kind: str, slugs: Sequence[str]) -> list[Option]:
        """Return (slug, label) of those ``slugs`` that are items, in the order given."""
        known = dict([*self._drafted(kind), *self._found(kind)])
        wanted = [slug for slug in slugs if slug]
        asked = [slug for slug in wanted if slug not in known]
        if asked and len(known) > INLINE_OPTIONS:
            known |= dict(_rows(_items(kind).filter(slug__in=asked)))
        return [(slug, known[slug]) for slug in wanted if slug in known]

    def search_url(self, kind: str) -> str:
        """Return where a reference field searches for items of ``kind``."""
        return reverse("admin:releases_options", args=[kind])

    def binding_names(self, what: str) -> list[str]:
        """Return the names of bindings of type ``what`` in any environment."""
        if what not in self._bindings:
            names = (
                Binding.objects.filter(what=what).order_by("name").values_list("name", flat=True)
            )
            self._bindings[what] = list(names.distinct()[:INLINE_OPTIONS])
        return self._bindings[what]

    def _found(self, kind: str) -> list[Option]:
        if kind not in self._options:
            found = _rows(_items(kind)[: INLINE_OPTIONS + 1])
            slugs = {slug for slug, _label in found}
            drafts = [option for option in self._drafted(kind) if option[0] not in slugs]
            self._options[kind] = [*found, *drafts]
        return self._options[kind]

    def _drafted(self, kind: str) -> list[Option]:
        """Return the items that only open change requests add: one request may hold a whole flow."""
        if self._drafts is None:
            self._drafts = {}
            for found, option in _drafts():
                self._drafts.setdefault(found, []).append(option)
        return self._drafts.get(kind, [])


def options_search(*, kind: str, term: str, page: int) -> tuple[list[Option], bool]:
    """Return one page of items of ``kind`` whose slug or name holds ``term``, and whether more follow."""
    found = _items(kind)
    if term:
        found = found.filter(Q(slug__icontains=term) | Q(name__icontains=term))
    start = (max(page, 1) - 1) * SEARCH_RESULTS
    rows = _rows(found[start : start + SEARCH_RESULTS + 1])
    if page <= 1:
        text = term.casefold()
        drafts = [option for of, option in _drafts() if of == kind and text in option[0].casefold()]
        return [*drafts, *rows[:SEARCH_RESULTS]], len(rows) > SEARCH_RESULTS
    return rows[:SEARCH_RESULTS], len(rows) > SEARCH_RESULTS


def _drafts() -> list[tuple[str, Option]]:
    """Return (kind, option) of every item that an open change request adds."""
    found = ChangePatch.objects.filter(base=None, request__status__in=OPEN)
    found = found.order_by("slug", "request__number")
    rows = found.values_list("kind", "slug", "request__number")[:INLINE_OPTIONS]
    return [
        (kind, (slug, gettext("%(slug)s — new in #%(number)s") % {"slug": slug, "number": number}))
        for kind, slug, number in rows
    ]


def _items(kind: str) -> "QuerySet[Any, tuple[str, str]]":
    items = ConfigItem.objects.filter(kind=kind, archived_at=None, head__isnull=False)
    found: QuerySet[Any, tuple[str, str]] = items.order_by("slug").values_list("slug", "name")
    return found


def _rows(rows: Iterable[tuple[str, str]]) -> list[Option]:
    return [(slug, f"{slug} — {name}" if name and name != slug else slug) for slug, name in rows]
