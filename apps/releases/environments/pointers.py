"""What an environment runs, as the one column that a turn reads. Pure.

``Deployment.pointer`` is ``pointer_text`` of its other columns, and one thing more: ``kept``, the
releases on which open conversations may stay, each with the time it was left. The rules:

- A new release that arrives with ``follow`` or ``force`` keeps nothing: everybody moves.
- One that arrives with ``pin`` or ``migrate`` keeps what ran before it (a canary too) and what was
  kept already. So the newest deployment's policy decides for everybody, a conversation that once was
  let go is never pinned again, and each release's longest pin counts from when *it* was left.
- What is taken back is not kept: rolled back, or a canary that was stopped. Its conversations go on
  with what runs, pinned or not; nobody else's move.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from uuid import UUID

from apps.runtime.canonical import canonical_json

FOLLOW, PIN, MIGRATE, FORCE = "follow", "pin", "migrate", "force"
IN_FLIGHT = (FOLLOW, PIN, MIGRATE, FORCE)
STAYING = (PIN, MIGRATE)
"""Policies under which an open conversation may stay on a release that is not the current one."""

MOST_KEPT = 64
"""Releases kept at once; the pointer is read with every message, so it stays small."""

NOTHING_KEPT: Mapping[UUID, float] = MappingProxyType({})


@dataclass(frozen=True)
class Pointer:
    """Everything that choosing a turn's release needs. Times are seconds since the epoch.

    ``share``: per cent of conversations that ``canary`` answers, since ``canary_at``. ``forced_at``:
    when a release last arrived with ``force``; what was accepted before and still waits moves too.
    """

    release: UUID
    canary: UUID | None = None
    share: int = 0
    canary_at: float = 0.0
    in_flight: str = FOLLOW
    max_pin_hours: int = 72
    kept: Mapping[UUID, float] = field(default_factory=lambda: NOTHING_KEPT)
    forced_at: float = 0.0

    @property
    def max_pin_seconds(self) -> float:
        return self.max_pin_hours * 3600.0

    def runs(self, release_id: UUID) -> bool:
        """Return whether ``release_id`` is the current release or the canary."""
        return release_id in (self.release, self.canary)


def pointer_text(pointer: Pointer) -> str:
    """Return ``pointer`` as the column holds it."""
    return canonical_json(
        {
            "release": str(pointer.release),
            "canary": str(pointer.canary) if pointer.canary else "",
            "share": pointer.share,
            "canary_at": pointer.canary_at,
            "in_flight": pointer.in_flight,
            "max_pin_hours": pointer.max_pin_hours,
            "kept": {str(key): at for key, at in pointer.kept.items()},
            "forced_at": pointer.forced_at,
        }
    )


@lru_cache(maxsize=1024)
def pointer_read(text: str) -> Pointer:
    """Return the pointer that ``text`` holds. Every message reads one, and it rarely changes."""
    stored = json.loads(text)
    return Pointer(
        release=UUID(stored["release"]),
        canary=UUID(stored["canary"]) if stored["canary"] else None,
        share=stored["share"],
        canary_at=stored["canary_at"],
        in_flight=stored["in_flight"],
        max_pin_hours=stored["max_pin_hours"],
        kept=MappingProxyType({UUID(key): at for key, at in stored["kept"].items()}),
        forced_at=stored.get("forced_at", 0.0),
    )


def kept_after(
    before: Pointer | None, after: Pointer, *, now: float, taken_back: frozenset[UUID] = frozenset()
) -> Mapping[UUID, float]:
    """Return what ``after`` keeps when it takes the place of ``before``.

    ``taken_back``: releases that nobody stays on. What was left longer ago than the longest pin is
    forgotten, and so is the oldest when there are more than ``MOST_KEPT``.
    """
    if before is None or after.in_flight not in STAYING:
        return NOTHING_KEPT
    kept = dict(before.kept)
    for left in (before.release, before.canary):
        if left is not None:
            kept[left] = now
    kept = {
        release: at
        for release, at in kept.items()
        if not after.runs(release)
        and release not in taken_back
        and now < at + after.max_pin_seconds
    }
    newest = sorted(kept.items(), key=lambda entry: -entry[1])[:MOST_KEPT]
    return dict(newest)
