"""Who says who the customer is, and for how long it holds. Pure."""

from collections.abc import Iterator

from apps.governance.weakening.edited import Edited, mapping
from apps.releases.patches.places import field_path


def assertable(edited: Edited) -> Iterator[str]:
    """A caller may state what only a credential could."""
    if edited.dropped("identifies_customer"):
        yield "identifies_customer"


def source_added(edited: Edited) -> Iterator[str]:
    """The key is taken from one more place of what callers send."""
    if edited.came("sources"):
        yield "sources"


def kept_longer(edited: Edited) -> Iterator[str]:
    """A value is carried into later turns."""
    if edited.changed("scope") and edited.after.get("scope") == "session":
        yield "scope"


def protection_archived(edited: Edited) -> Iterator[str]:
    """The key that only a credential could set is gone, and with it what it protected."""
    if edited.before.get("identifies_customer"):
        yield ""


def key_unmapped(edited: Edited) -> Iterator[str]:
    """An argument is not filled from the verified identity any more: a caller may fill it."""
    before, after = mapping(edited.before, "map"), mapping(edited.after, "map")
    for key in sorted(before):
        if after.get(key) != before[key]:
            yield field_path("map", key)


def key_beside(edited: Edited) -> Iterator[str]:
    """An argument that one key filled is filled from another one, too: a caller may state that."""
    before, after = mapping(edited.before, "map"), mapping(edited.after, "map")
    filled = {str(argument) for argument in before.values()}
    for key in sorted(after):
        if key not in before and str(after[key]) in filled:
            yield field_path("map", key)


def mapping_added(edited: Edited) -> Iterator[str]:
    """A mapping comes for a tool that is there: it may take the place of the one that protects it.

    Which mapping held until now is in other items. Only of a tool that comes with it nobody can have
    protected an argument before.
    """
    tool = edited.beside.get(("tool", str(edited.after.get("tool") or edited.slug)))
    if edited.is_new and (tool is None or tool.before is not None):
        yield ""


def mapping_moved(edited: Edited) -> Iterator[str]:
    """The mapping protects another tool's arguments now."""
    if not edited.is_new and edited.changed("tool") and mapping(edited.before, "map"):
        yield "tool"


def mapping_archived(edited: Edited) -> Iterator[str]:
    """Arguments are not filled from the verified identity any more."""
    if mapping(edited.before, "map"):
        yield ""
