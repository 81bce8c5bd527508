"""Order of a list that two people changed. Pure; entries are named by unique texts."""

from collections.abc import Iterable, Sequence


def order_merge(
    present: Sequence[str], added: Iterable[str], before: Sequence[str], after: Sequence[str]
) -> list[str] | None:
    """Return ``present`` as an editor wants it who saw ``before`` and left ``after``.

    ``added``: entries this editor's patch has just put at the end. Entries the editor never saw keep
    the neighbour they stand behind. ``None``: the editor and somebody else moved the same entries,
    differently.
    """
    here, seen = set(present), set(before)
    wanted = [entry for entry in after if entry in here]
    moved = [entry for entry in wanted if entry in seen]
    shared = set(moved)
    saw = [entry for entry in before if entry in shared]
    stands = [entry for entry in present if entry in shared]
    if _within(present, wanted) == wanted or moved in (saw, stands):
        return entries_inserted(present, added, wanted)
    if stands == saw:
        return order_forced(present, after)
    return None


def order_forced(present: Sequence[str], after: Sequence[str]) -> list[str]:
    """Return ``present`` with the entries of ``after`` in that order, others behind what they follow."""
    here = set(present)
    wanted = [entry for entry in after if entry in here]
    return _behind(wanted, present, set(wanted))


def entries_inserted(
    present: Sequence[str], added: Iterable[str], after: Sequence[str]
) -> list[str]:
    """Return ``present`` with each of ``added`` behind what it follows in ``after``, the rest as is."""
    new = set(after).intersection(added)
    rest = [entry for entry in present if entry not in new]
    known = set(rest)
    return _behind(rest, [entry for entry in after if entry in new or entry in known], known)


def _behind(anchors: Sequence[str], sequence: Sequence[str], known: set[str]) -> list[str]:
    """Return ``anchors`` with what ``sequence`` has besides, each behind the anchor it follows."""
    followers: dict[str | None, list[str]] = {}
    anchor: str | None = None
    for entry in sequence:
        if entry in known:
            anchor = entry
        else:
            followers.setdefault(anchor, []).append(entry)
    placed = list(followers.get(None, ()))
    for entry in anchors:
        placed += [entry, *followers.get(entry, ())]
    return placed


def _within(entries: Sequence[str], of: Sequence[str]) -> list[str]:
    wanted = set(of)
    return [entry for entry in entries if entry in wanted]
