"""What differs between two configurations, item by item. Pure: manifests in, changes out."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from apps.releases.patches.diff import FieldChange, content_diff

Items = Mapping[tuple[str, str], Any]
# More than a person reads on one page; the rest is counted and named without its fields.
DETAILED_ITEMS = 200


@dataclass(frozen=True)
class ItemChange:
    """One item that differs. ``fields`` is empty for an added or removed one, ``None`` when left out."""

    kind: str
    slug: str
    change: Literal["added", "removed", "changed"]
    fields: list[FieldChange] | None


def manifest_items(manifest: str) -> dict[tuple[str, str], Any]:
    """Return (kind, slug) → content of a canonical manifest; nothing of an empty text."""
    if not manifest:
        return {}
    kinds: dict[str, dict[str, Any]] = json.loads(manifest)["items"]
    return {(kind, slug): body for kind, items in kinds.items() for slug, body in items.items()}


def items_changed(
    before: Items, after: Items, *, detailed: int = DETAILED_ITEMS
) -> list[ItemChange]:
    """Return every item that is not the same in both, by kind and slug.

    The fields of the first ``detailed`` ones are told; of the rest, only that they changed.
    """
    found: list[ItemChange] = []
    for kind, slug in sorted({*before, *after}):
        old, new = before.get((kind, slug)), after.get((kind, slug))
        if old is None:
            found.append(ItemChange(kind, slug, "added", []))
        elif new is None:
            found.append(ItemChange(kind, slug, "removed", []))
        elif repr(old) == repr(new):  # The same text means the same; another order is looked into.
            continue
        elif fields := content_diff(old, new):
            shown = fields if len(found) < detailed else None
            found.append(ItemChange(kind, slug, "changed", shown))
    return found
