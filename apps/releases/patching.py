"""Field patches: what an edit changes, put onto a content that others changed meanwhile. Pure.

An operation changes one place. Places are named as in ``diff.FieldChange`` (``input[MSK].on_deny``),
list entries by their key, so an entry that moved is still found.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict


class Operation(TypedDict):
    """One change of one place. JSON values; ``before`` is what the editor saw.

    ``set``: a field or keyed entry gets ``after``. ``add`` and ``remove``: a field, a keyed entry, or
    one value of a list of scalars (then ``before``/``after`` is that value). ``order``: the entries
    of a list (keys, or scalars) stood as ``before`` and shall stand as ``after``.
    """

    op: Literal["set", "add", "remove", "order"]
    path: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Conflict:
    """The place was changed by both sides, differently. ``base``: what both started from.

    ``theirs`` is what is there now, ``mine`` what the patch wants; ``None`` for not there.
    """

    path: str
    base: Any
    theirs: Any
    mine: Any


@dataclass(frozen=True)
class Merged:
    """A content with a patch put onto it, and the places where that was not possible.

    At a conflict ``content`` keeps what was there (theirs).
    """

    content: dict[str, Any]
    conflicts: tuple[Conflict, ...] = ()


def patch_make(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Operation]:
    """Return the operations that lead from ``before`` to ``after``; none when they mean the same."""
    raise NotImplementedError


def patch_apply(content: Mapping[str, Any], operations: Sequence[Operation]) -> Merged:
    """Put ``operations`` onto ``content``, which may have changed since they were made.

    An operation whose place is as its editor saw it is done; one whose place already is as it wants
    is done before; any other is a conflict. Nothing that no operation names is touched.
    """
    raise NotImplementedError


def patch_resolve(
    content: Mapping[str, Any],
    operations: Sequence[Operation],
    choices: Mapping[str, Literal["mine", "theirs"] | dict[str, Any]],
) -> Merged:
    """``patch_apply`` with a decision for each conflict, by its path.

    ``mine``, ``theirs`` or ``{"value": …}``. A conflict without a choice stays one.
    """
    raise NotImplementedError
