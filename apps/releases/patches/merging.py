"""Puts operations onto a content, place by place. Pure; ``patching`` is the way in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from apps.releases.patches.operations import Choice, Conflict, Operation
from apps.releases.patches.ordering import order_forced, order_merge
from apps.releases.patches.places import LIST_KEYS, BadPath, Step, list_key, path_parse
from apps.runtime.canonical import canonical_json


class _Missing:
    """What is at a place where nothing is: JSON's null is something."""


MISSING: Final = _Missing()


@dataclass
class _Place:
    """The operations at one place and at those inside it, in their order."""

    path: str = ""
    operations: list[Operation] = field(default_factory=list)
    inside: dict[Step, "_Place"] = field(default_factory=dict)


class Merge:
    """One merge: what was decided beforehand, and the conflicts found on the way."""

    def __init__(self, choices: Mapping[str, Choice]) -> None:
        self.conflicts: list[Conflict] = []
        self._choices = choices

    def content(
        self, content: Mapping[str, Any], operations: Sequence[Operation], base: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return ``content`` with ``operations``; ``conflicts`` holds what could not be done."""
        merged = self._fields(_places(operations).inside, dict(content), base, True)
        return dict(merged)

    def _place(self, place: _Place, here: Any, base: Any, sure: bool) -> Any:
        """Return what shall be at ``place``.

        Not ``sure``: what it stands in is not there, or stands there twice.
        """
        for operation in place.operations:
            if operation["op"] != "order":
                here = self._decided(operation, here, sure)
        orders = [operation for operation in place.operations if operation["op"] == "order"]
        fields = {step: inner for step, inner in place.inside.items() if step.kind == "field"}
        entries = {step: inner for step, inner in place.inside.items() if step.kind != "field"}
        if fields:
            here = self._fields(fields, here, base, sure)
        if entries or orders:
            here = self._list(entries, orders, here, base, sure)
        return here

    def _decided(self, operation: Operation, here: Any, sure: bool) -> Any:
        wanted = MISSING if operation["op"] == "remove" else operation["after"]
        seen = MISSING if operation["op"] == "add" else operation["before"]
        if _same(here, wanted):
            return here
        if sure and _same(here, seen):
            return wanted
        return self._chosen(operation, here, wanted)

    def _chosen(self, operation: Operation, here: Any, wanted: Any) -> Any:
        """Return what was decided about a conflict; note the conflict when nothing was."""
        choice = self._choices.get(operation["path"])
        if choice == "mine":
            return wanted
        if isinstance(choice, dict) and "value" in choice:
            return choice["value"]
        if choice != "theirs":
            theirs = None if here is MISSING else here
            self.conflicts.append(
                Conflict(operation["path"], operation["before"], theirs, operation["after"])
            )
        return here

    def _fields(self, places: Mapping[Step, _Place], here: Any, base: Any, sure: bool) -> Any:
        there = isinstance(here, dict)
        known = base if isinstance(base, Mapping) else {}
        merged = here
        for step, place in places.items():
            old = here.get(step.name, MISSING) if there else MISSING
            new = self._place(place, old, known.get(step.name, MISSING), sure and there)
            if new is old:
                continue
            if merged is here:  # Changed for the first time: what was given stays as it is.
                merged = dict(here) if there else dict(known)
            if new is MISSING:
                merged.pop(step.name, None)
            else:
                merged[step.name] = new
        return merged

    def _list(
        self,
        places: Mapping[Step, _Place],
        orders: Sequence[Operation],
        here: Any,
        base: Any,
        sure: bool,
    ) -> Any:
        entries = _Entries(here if isinstance(here, list) else [], places)
        there = sure and isinstance(here, list)
        before = _Entries(base if isinstance(base, list) else [], places)
        for step, place in places.items():
            if step.kind == "values":
                self._values(place, entries, there)
            else:
                self._entry(step, place, entries, before, there)
        for operation in orders:
            self._order(operation, entries, there)
        return entries.all() if entries.changed else here

    def _entry(
        self, step: Step, place: _Place, entries: "_Entries", before: "_Entries", there: bool
    ) -> None:
        name = canonical_json(step.name)
        old = entries.get(name)
        sure = there and entries.count(name) < 2
        # A field of an entry that is not there: ``mine`` brings it back under its key at least.
        known = {entries.key: step.name} if before.get(name) is MISSING else before.get(name)
        new = self._place(place, old, known, sure)
        if new is not old:
            entries.put(name, new)

    def _values(self, place: _Place, entries: "_Entries", there: bool) -> None:
        for operation in place.operations:
            if operation["op"] not in ("add", "remove"):
                raise BadPath(operation["path"])
            name = canonical_json(operation["after" if operation["op"] == "add" else "before"])
            old = entries.get(name)
            # A value is there or not, whatever somebody else did to it: no conflict inside a list.
            new = self._decided(operation, old, there)
            if new is not old:
                entries.put(name, new)

    def _order(self, operation: Operation, entries: "_Entries", there: bool) -> None:
        before, after = (
            [canonical_json(name) for name in operation[side]] for side in ("before", "after")
        )
        order = order_merge(entries.names(), entries.added, before, after) if there else None
        if order is None:
            stands = [entries.label(name) for name in entries.names()] if there else MISSING
            wanted = self._chosen(operation, stands, operation["after"])
            if wanted is stands or not isinstance(wanted, list):
                return
            order = order_forced(entries.names(), [canonical_json(name) for name in wanted])
        entries.arrange(order)


class _Entries:
    """The entries of a list by name: an object's key or a scalar, as canonical text.

    A name that stands twice belongs to the first; the others have names nobody asks for.
    """

    def __init__(self, entries: Sequence[Any], places: Mapping[Step, _Place]) -> None:
        self.key = _key_of(entries, places)
        self.added: list[str] = []
        self.changed = False
        self._entries: dict[str, Any] = {}
        self._counts: dict[str, int] = {}
        for entry in entries:
            name = self._name(entry)
            self._counts[name] = count = self._counts.get(name, 0) + 1
            self._entries[_numbered(name, count)] = entry

    def get(self, name: str) -> Any:
        return self._entries.get(name, MISSING)

    def count(self, name: str) -> int:
        return self._counts.get(name, 0)

    def put(self, name: str, entry: Any) -> None:
        """Set, add at the end, or (``MISSING``) take out the entry ``name``."""
        self.changed = True
        if entry is MISSING:
            for number in range(self.count(name)):
                self._entries.pop(_numbered(name, number + 1))
            self._counts.pop(name, None)
            return
        if name not in self._entries:
            self._counts[name] = 1
            self.added.append(name)
        self._entries[name] = entry

    def names(self) -> list[str]:
        return list(self._entries)

    def label(self, name: str) -> Any:
        """Return what names the entry, for a person: its key, or the scalar."""
        entry = self._entries[name]
        return entry.get(self.key) if isinstance(entry, dict) else entry

    def arrange(self, order: Sequence[str]) -> None:
        if list(self._entries) != list(order):
            self.changed = True
            self._entries = {name: self._entries[name] for name in order}

    def all(self) -> list[Any]:
        return list(self._entries.values())

    def _name(self, entry: Any) -> str:
        return canonical_json(entry.get(self.key, entry) if isinstance(entry, dict) else entry)


def _numbered(name: str, count: int) -> str:
    return name if count == 1 else f"{name}#{count}"


def _key_of(entries: Sequence[Any], places: Mapping[Step, _Place]) -> str:
    """Return what names the entries; of an empty list, of those that are put into it."""
    added = [
        operation["after"]
        for step, place in places.items()
        for operation in place.operations
        if step.kind == "entry" and operation["op"] == "add"
    ]
    key = list_key(entries or added)
    # Not unique any more: still the field that most likely named them.
    objects = [entry for entry in entries if isinstance(entry, dict)]
    return key or next((k for k in LIST_KEYS if any(k in entry for entry in objects)), LIST_KEYS[0])


def _places(operations: Sequence[Operation]) -> _Place:
    root = _Place()
    for operation in operations:
        place = root
        for step in path_parse(operation["path"]):
            place = place.inside.setdefault(step, _Place())
        place.operations.append(operation)
    if any(step.kind != "field" for step in root.inside):
        raise BadPath(operations[0]["path"])
    return root


def _same(one: Any, other: Any) -> bool:
    if one is MISSING or other is MISSING:
        return one is other
    return canonical_json(one) == canonical_json(other)
