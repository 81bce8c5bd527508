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


def mapping_moved(edited: Edited) -> Iterator[str]:
    """The mapping protects another tool's arguments now."""
    if not edited.is_new and edited.changed("tool") and mapping(edited.before, "map"):
        yield "tool"


def mapping_archived(edited: Edited) -> Iterator[str]:
    """Arguments are not filled from the verified identity any more."""
    if mapping(edited.before, "map"):
        yield ""
