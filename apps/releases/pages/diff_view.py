"""Changes between two contents, in the words a page shows."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.utils.translation import gettext, gettext_lazy

from apps.releases.changes.policy import Risk
from apps.releases.pages.links import kind_label, slug_link
from apps.releases.patches.comparing import ItemChange
from apps.releases.patches.diff import FieldChange
from apps.releases.patches.word_diff import Piece, word_diff
from apps.runtime.config import KINDS, Config

LABELS = {
    "added": gettext_lazy("added"),
    "removed": gettext_lazy("removed"),
    "changed": gettext_lazy("changed"),
    "text": gettext_lazy("changed"),
    "moved": gettext_lazy("order changed"),
}
SHOWN_ITEMS = 200
FIRST_NAME = re.compile(r"[^.\[]*")


@dataclass(frozen=True)
class ShownChange:
    """One change: the field's title, its path, both values as text, or the words that changed."""

    title: str
    path: str
    change: str
    label: Any
    before: str | None
    after: str | None
    pieces: list[Piece] = field(default_factory=list)
    weakens: list[str] = field(default_factory=list)


def shown_changes(config_class: type[Config], changes: Iterable[FieldChange]) -> list[ShownChange]:
    """Return ``changes`` of a ``config_class`` as a page shows them."""
    return [_shown(config_class, change) for change in changes]


def value_text(value: Any) -> str:
    """Return a JSON value as people read it."""
    if isinstance(value, str):
        return value if value else gettext("(empty)")
    if value is None:
        return gettext("(not set)")
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value) if value else gettext("(empty)")
    if isinstance(value, dict) and all(_is_short(item) for item in value.values()):
        lines = [f"{name}: {value_text(item)}" for name, item in value.items()]
        return "\n".join(lines) if lines else gettext("(empty)")
    return json.dumps(value, ensure_ascii=False, indent=2)


def _is_short(value: Any) -> bool:
    """Return whether ``value`` is said on one line: a scalar, a list of texts, nothing in a list."""
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return not isinstance(value, dict) or not value


def field_title(config_class: type[Config], path: str) -> str:
    """Return the title of the field that ``path`` begins with."""
    match = FIRST_NAME.match(path)
    name = match.group() if match else path
    info = config_class.model_fields.get(name)
    return gettext(info.title) if info and info.title else name


def _shown(config_class: type[Config], change: FieldChange) -> ShownChange:
    kind = change["change"]
    is_text = kind == "text"
    return ShownChange(
        title=field_title(config_class, change["path"]),
        path=change["path"],
        change=kind,
        label=LABELS[kind],
        before=None if is_text or kind == "added" else value_text(change["before"]),
        after=None if is_text or kind == "removed" else value_text(change["after"]),
        pieces=word_diff(change["before"], change["after"]) if is_text else [],
    )


@dataclass(frozen=True)
class ShownItem:
    """One item that differs between two releases, as a page shows it."""

    kind: str
    slug: str
    url: str
    label: Any
    changes: list[ShownChange] | None
    # What weakens safety and is at no field that is shown.
    weakens: list[Risk] = field(default_factory=list)


@dataclass(frozen=True)
class ShownDifference:
    """How two configurations differ: at most ``SHOWN_ITEMS`` of each sort, and how many more."""

    count: int
    changed: list[ShownItem]
    others: list[tuple[Any, str, list[ShownItem], int]]


def shown_difference(items: list[ItemChange], risks: Sequence[Risk] = ()) -> ShownDifference:
    """Return ``items`` as a page shows them, what weakens safety by ``risks`` marked."""
    weakening = [risk for risk in risks if risk.risk == "weakening"]
    by_change = {
        change: [item for item in items if item.change == change]
        for change in ("added", "removed", "changed")
    }
    return ShownDifference(
        count=len(items),
        changed=[_shown_item(item, weakening) for item in by_change["changed"]],
        others=[
            (
                LABELS[change],
                change,
                [_shown_item(item, weakening) for item in by_change[change][:SHOWN_ITEMS]],
                max(0, len(by_change[change]) - SHOWN_ITEMS),
            )
            for change in ("added", "removed")
            if by_change[change]
        ],
    )


def _shown_item(item: ItemChange, weakening: Sequence[Risk]) -> ShownItem:
    config_class = KINDS.get(item.kind, Config)
    about = [risk for risk in weakening if (risk.kind, risk.slug) == (item.kind, item.slug)]
    fields = None if item.fields is None else shown_changes(config_class, item.fields)
    paths = [change.path for change in fields or ()]
    return ShownItem(
        kind=kind_label(item.kind),
        slug=item.slug,
        url=slug_link(item.kind, item.slug),
        label=LABELS[item.change],
        changes=fields and [_marked(change, about) for change in fields],
        weakens=[risk for risk in about if not any(_touches(risk.path, p) for p in paths)],
    )


def _marked(change: ShownChange, risks: Sequence[Risk]) -> ShownChange:
    found = [risk.message for risk in risks if _touches(risk.path, change.path)]
    return replace(change, weakens=found) if found else change


def _touches(one: str, other: str) -> bool:
    """Return whether one of the places is the other, or inside it."""
    short, long = sorted((one, other), key=len)
    return bool(short) and (long == short or (long.startswith(short) and long[len(short)] in ".["))
