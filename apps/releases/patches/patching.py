"""Field patches: what an edit changes, put onto a content that others changed meanwhile. Pure.

An operation changes one place. Places are named as in ``diff.FieldChange`` (``input[MSK].on_deny``),
list entries by their key, so an entry that moved is still found. ``places`` has the grammar.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.releases.patches.merging import Merge
from apps.releases.patches.operations import Choice
from apps.releases.patches.operations import Conflict as Conflict
from apps.releases.patches.operations import Operation as Operation
from apps.releases.patches.places import entry_path, field_path, keyed_pair, values_path
from apps.runtime.canonical import canonical_json


@dataclass(frozen=True)
class Merged:
    """A content with a patch put onto it, and the places where that was not possible.

    At a conflict ``content`` keeps what was there (theirs). Parts nobody changed are shared with the
    content that was given.
    """

    content: dict[str, Any]
    conflicts: tuple[Conflict, ...] = ()


def patch_make(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Operation]:
    """Return the operations that lead from ``before`` to ``after``; none when they mean the same."""
    return list(_fields(before, after, ""))


def patch_apply(content: Mapping[str, Any], operations: Sequence[Operation]) -> Merged:
    """Put ``operations`` onto ``content``, which may have changed since they were made.

    An operation whose place is as its editor saw it is done; one whose place already is as it wants
    is done before; any other is a conflict. Nothing that no operation names is touched. Raises
    ``BadPath`` for an operation that names no place.
    """
    return patch_resolve(content, operations, {})


def patch_resolve(
    content: Mapping[str, Any],
    operations: Sequence[Operation],
    choices: Mapping[str, Choice],
    base: Mapping[str, Any] | None = None,
) -> Merged:
    """``patch_apply`` with a decision for each conflict, by its path.

    ``mine``, ``theirs`` or ``{"value": …}``. A conflict without a choice stays one. ``base`` is the
    content the operations were made against: ``mine`` inside an entry that somebody removed brings
    the entry back as it was there (without ``base``, with its key and the changed field only).
    """
    merge = Merge(choices)
    merged = merge.content(content, operations, base or {})
    return Merged(content=merged, conflicts=tuple(merge.conflicts))


# -- making ------------------------------------------------------------------------------------
def _fields(
    before: Mapping[str, Any], after: Mapping[str, Any], path: str, brackets: bool = False
) -> Iterator[Operation]:
    """Yield what changed from one object, or one keyed list (``brackets``), to another.

    What went and changed comes in alphabetical order, what came in its own order.
    """
    inner = entry_path if brackets else field_path
    for name in sorted(before):
        place = inner(path, name)
        if name not in after:
            yield Operation(op="remove", path=place, before=before[name], after=None)
        else:
            yield from _changed(before[name], after[name], place)
    for name in after:
        if name not in before:
            yield Operation(op="add", path=inner(path, name), before=None, after=after[name])


def _changed(before: Any, after: Any, path: str) -> Iterator[Operation]:
    if canonical_json(before) == canonical_json(after):  # Python calls 1, 1.0 and True equal.
        return
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _fields(before, after, path)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _lists(before, after, path)
    else:
        yield Operation(op="set", path=path, before=before, after=after)


def _lists(before: list[Any], after: list[Any], path: str) -> Iterator[Operation]:
    by_key = keyed_pair(before, after)
    if by_key is not None:
        old, new = by_key
        yield from _fields(old, new, path, brackets=True)
        yield from _order(list(old), list(new), path)
    elif _are_different_scalars(before) and _are_different_scalars(after):
        yield from _scalars(before, after, path)
        yield from _order(before, after, path)
    else:
        yield Operation(op="set", path=path, before=before, after=after)


def _scalars(before: list[Any], after: list[Any], path: str) -> Iterator[Operation]:
    place = values_path(path)
    old, new = ({canonical_json(value) for value in side} for side in (before, after))
    for value in before:
        if canonical_json(value) not in new:
            yield Operation(op="remove", path=place, before=value, after=None)
    for value in after:
        if canonical_json(value) not in old:
            yield Operation(op="add", path=place, before=None, after=value)


def _order(before: list[Any], after: list[Any], path: str) -> Iterator[Operation]:
    """Yield one operation unless what stayed, then what came at the end, is the order wanted."""
    old, new = [canonical_json(v) for v in before], [canonical_json(v) for v in after]
    here, seen = set(new), set(old)
    if [v for v in old if v in here] + [v for v in new if v not in seen] != new:
        yield Operation(op="order", path=path, before=before, after=after)


def _are_different_scalars(entries: list[Any]) -> bool:
    if any(isinstance(entry, dict | list) for entry in entries):
        return False
    return len({canonical_json(entry) for entry in entries}) == len(entries)
