"""What neither a customer nor a model ever notices. Pure. Anything unknown is not in here."""

from collections.abc import Iterator
from typing import Any

from apps.governance.weakening.edited import Edited, mapping
from apps.releases.patches.places import field_path
from apps.runtime.canonical import canonical_json

# Lists of which only the members count.
UNORDERED = frozenset({("agent", "tools"), ("intent", "keywords"), ("tool", "selection_keywords")})


def description(edited: Edited) -> Iterator[str]:
    """A text for colleagues. A tool's is not one: models read it."""
    if not edited.is_new and edited.changed("description"):
        yield "description"


def metadata(edited: Edited) -> Iterator[str]:
    """Free labels."""
    if edited.is_new:
        return
    before, after = mapping(edited.before, "metadata"), mapping(edited.after, "metadata")
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            yield field_path("metadata", name)


def order(edited: Edited) -> Iterator[str]:
    """The same entries stand in another order, where order means nothing."""
    for kind, name in sorted(UNORDERED):
        old, new = edited.before.get(name), edited.after.get(name)
        if kind != edited.kind or edited.is_new or old == new:
            continue
        if isinstance(old, list) and isinstance(new, list) and _members(old) == _members(new):
            yield name


def _members(entries: list[Any]) -> list[str]:
    return sorted(map(canonical_json, entries))
