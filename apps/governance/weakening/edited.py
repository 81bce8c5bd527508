"""What a rule about changes looks at: one item before and after, and what changes beside it. Pure.

A rule is a function from an ``Edited`` to the paths where it applies, in the words of a diff
(``input[PINJ].on_deny``), so that a page can mark the very line.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from apps.releases.changes.policy import ItemEdit
from apps.runtime.config import KINDS, KindConfig

Content = Mapping[str, Any]
Finder = Callable[["Edited"], Iterator[str]]


@dataclass(frozen=True)
class Edited:
    """One item's contents with every default written out.

    ``before`` of a new item is what its class says by itself: being laxer than that is a change.
    ``after`` of an archived one is empty, or the class's defaults where they take its place.
    """

    kind: str
    before: Content
    after: Content
    slug: str = ""
    is_new: bool = False
    is_archived: bool = False
    beside: Mapping[tuple[str, str], ItemEdit] = field(default_factory=dict)

    def changed(self, name: str) -> bool:
        """Return whether the top-level field ``name`` has another value now."""
        return bool(self.before.get(name) != self.after.get(name))

    def dropped(self, name: str) -> bool:
        """Return whether ``name`` was on and is off now."""
        return bool(self.before.get(name)) and not self.after.get(name)

    def raised(self, name: str) -> bool:
        """Return whether ``name`` was off and is on now."""
        return not self.before.get(name) and bool(self.after.get(name))

    def came(self, name: str) -> set[Any]:
        """Return the values that the list ``name`` has now and had not."""
        return values(self.after, name) - values(self.before, name)

    def went(self, name: str) -> set[Any]:
        """Return the values that the list ``name`` had and has no more."""
        return values(self.before, name) - values(self.after, name)


def defaults(kind: str) -> Content:
    """Return what the class of ``kind`` says by itself; nothing for a kind there is not."""
    config_class = KINDS.get(kind)
    return _defaults(config_class) if config_class else {}


def number(content: Content, name: str, default: float) -> float:
    """Return the number ``name``; ``default`` when it is none."""
    value = content.get(name, default)
    return float(value) if isinstance(value, int | float) else default


def mapping(content: Content, name: str) -> Content:
    """Return the object ``name``; an empty one when it is none."""
    value = content.get(name)
    return value if isinstance(value, Mapping) else {}


def values(content: Content, name: str) -> set[Any]:
    """Return the scalars of the list ``name`` as a set."""
    value = content.get(name)
    found = value if isinstance(value, list | tuple) else ()
    return {entry for entry in found if not isinstance(entry, dict | list)}


def entries(content: Content, name: str, key: str) -> dict[str, Content]:
    """Return the objects of the list ``name`` by ``key``; one that stands twice is numbered."""
    value = content.get(name)
    found: dict[str, Content] = {}
    for entry in value if isinstance(value, Sequence) and not isinstance(value, str) else ():
        if isinstance(entry, Mapping):
            label = str(entry.get(key, ""))
            while label in found:
                label += "+"
            found[label] = entry
    return found


@cache
def _defaults(config_class: type[KindConfig]) -> Content:
    return config_class.model_construct().model_dump(mode="json", warnings=False)
