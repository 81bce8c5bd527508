"""What a patch is made of: one change of one place, and a place both sides changed. Pure."""

from dataclasses import dataclass
from typing import Any, Literal, TypedDict

Choice = Literal["mine", "theirs"] | dict[str, Any]


class Operation(TypedDict):
    """One change of one place. JSON values; ``before`` is what the editor saw.

    ``set``: a field or keyed entry gets ``after``. ``add`` and ``remove``: a field, a keyed entry, or
    one value of a list of scalars, whose path ends in ``[]`` (then ``before``/``after`` is that
    value). ``order``: the entries of a list (keys, or scalars) stood as ``before`` and shall stand as
    ``after``. ``before`` of ``add`` and ``after`` of ``remove`` are ``None``.

    A list that has no unique key, or holds a scalar twice, is one place: it is ``set`` as a whole.
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
