"""What changed between two contents, field by field. Pure: JSON values in, changes out."""

from collections import Counter
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any, Literal, TypedDict

from apps.releases.patches.places import entry_path, field_path, keyed_pair
from apps.runtime.canonical import canonical_json

# Longer strings, those of more words, and those of several lines are shown word by word.
LONG_TEXT = 80
FEW_WORDS = 3

Change = Literal["added", "removed", "changed", "text", "moved"]


class FieldChange(TypedDict):
    """One change: ``path`` is dotted, list entries by their key, see ``places``.

    ``text``: both sides are sentences, see ``patches.word_diff``. ``moved``: the same entries in
    another order.
    """

    path: str
    before: Any
    after: Any
    change: Change


def content_diff(before: Any, after: Any, path: str = "") -> list[FieldChange]:
    """Return every change from ``before`` to ``after``, paths in alphabetical order of fields."""
    return list(_diff(before, after, path))


def text_lines(before: str, after: str) -> list[tuple[str, str]]:
    """Return the lines of both texts as ``(sign, line)``; the sign is ``+``, ``-`` or a blank."""
    old, new = before.splitlines(), after.splitlines()
    lines: list[tuple[str, str]] = []
    # Not ``ndiff``: it looks into lines, in cubic time, for hints that nobody reads.
    for operation, start, end, new_start, new_end in SequenceMatcher(None, old, new).get_opcodes():
        if operation == "equal":
            lines += [(" ", line) for line in old[start:end]]
        else:
            lines += [("-", line) for line in old[start:end]]
            lines += [("+", line) for line in new[new_start:new_end]]
    return lines


def _diff(before: Any, after: Any, path: str) -> Iterator[FieldChange]:
    if canonical_json(before) == canonical_json(after):  # Python calls 1, 1.0 and True equal.
        return
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _diff_fields(before, after, path)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _diff_lists(before, after, path)
    elif isinstance(before, str) and isinstance(after, str) and _is_text(before, after):
        yield _change(path, before, after, "text")
    else:
        yield _change(path, before, after, "changed")


def _diff_fields(
    before: dict[str, Any], after: dict[str, Any], path: str, brackets: bool = False
) -> Iterator[FieldChange]:
    for key in sorted({*before, *after}):
        inner = entry_path(path, key) if brackets else field_path(path, key)
        if key not in before:
            yield _change(inner, None, after[key], "added")
        elif key not in after:
            yield _change(inner, before[key], None, "removed")
        else:
            yield from _diff(before[key], after[key], inner)


def _diff_lists(before: list[Any], after: list[Any], path: str) -> Iterator[FieldChange]:
    by_key = keyed_pair(before, after)
    if by_key is not None:
        old, new = by_key
        yield from _diff_fields(old, new, path, brackets=True)
        yield from _moved(list(old), list(new), path)
    elif all(_is_scalar(entry) for entry in [*before, *after]):
        yield from _diff_scalars(before, after, path)
    else:
        by_place = [
            {str(place): entry for place, entry in enumerate(side)} for side in (before, after)
        ]
        yield from _diff_fields(by_place[0], by_place[1], path, brackets=True)


def _diff_scalars(before: list[Any], after: list[Any], path: str) -> Iterator[FieldChange]:
    old, new = Counter(map(_identity, before)), Counter(map(_identity, after))
    for _kind, entry in (old - new).elements():
        yield _change(path, entry, None, "removed")
    for _kind, entry in (new - old).elements():
        yield _change(path, None, entry, "added")
    yield from _moved(before, after, path)


def _moved(before: list[Any], after: list[Any], path: str) -> Iterator[FieldChange]:
    """Yield one change when the entries both sides share stand in another order."""
    shared = Counter(map(_identity, before)) & Counter(map(_identity, after))
    old, new = _kept(before, shared), _kept(after, shared)
    if old != new:
        yield _change(path, before, after, "moved")


def _kept(entries: list[Any], shared: Counter[tuple[str, Any]]) -> list[Any]:
    left = Counter(shared)
    kept = []
    for entry in entries:
        if left[_identity(entry)] > 0:
            left[_identity(entry)] -= 1
            kept.append(entry)
    return kept


def _identity(entry: Any) -> tuple[str, Any]:
    return type(entry).__name__, entry


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, (dict, list))


def _is_text(*texts: str) -> bool:
    return any(
        len(text) > LONG_TEXT or "\n" in text or len(text.split()) > FEW_WORDS for text in texts
    )


def _change(path: str, before: Any, after: Any, change: Change) -> FieldChange:
    return FieldChange(path=path, before=before, after=after, change=change)
