"""Which release the next message of a conversation runs on. Pure.

One rule for every policy: a conversation goes to its *target*, the canary for its share of
conversations and the current release for the others, unless it may stay where it is.

| policy | stays on the release it last ran on |
|---|---|
| ``follow`` | never |
| ``pin`` | until it ends, or the longest pin is over |
| ``migrate`` | while something is pending, or the longest pin is over |
| ``force`` | never; and a message that waits to be taken runs on the target too (``turn_take``) |

It can stay on what runs (the current release, the canary) and on what the pointer keeps; see
``releases.environments.pointers`` for what that is and how deployments follow each other. A release that was rolled
back and a canary that was stopped are not kept: from them everybody goes to the target.
"""

import hashlib
from dataclasses import dataclass
from uuid import UUID

from apps.releases.environments.pointers import FORCE, MIGRATE, STAYING, Pointer

POINTS = 10_000


@dataclass(frozen=True)
class Standing:
    """Where a conversation is. ``name`` is the caller's own name of it.

    ``release``: what it last ran on; None for a new one and one that has ended. ``at_boundary``:
    nothing was asked of the customer, no state holds it, and no message of it is being answered.
    """

    name: str
    release: UUID | None = None
    at_boundary: bool = True


def share_point(tenant_id: int, name: str) -> int:
    """Return where a conversation stands between 0 and ``POINTS``: always the same, in any process.

    By its name and not its key: the agent a nameless message goes to depends on the release, so the
    release must not depend on the agent.
    """
    digest = hashlib.sha256(f"{tenant_id}:{name}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % POINTS


def release_target(pointer: Pointer, tenant_id: int, name: str) -> UUID:
    """Return the release that a new conversation called ``name`` runs on.

    Who is in a canary's share stays in it when the share rises.
    """
    if pointer.canary is not None and share_point(tenant_id, name) < pointer.share * POINTS // 100:
        return pointer.canary
    return pointer.release


def release_choose(pointer: Pointer, tenant_id: int, standing: Standing, now: float) -> UUID:
    """Return the release that the conversation's next message runs on; ``now`` since the epoch."""
    target = release_target(pointer, tenant_id, standing.name)
    current = standing.release
    if current is None or current == target or pointer.in_flight not in STAYING:
        return target
    if pointer.in_flight == MIGRATE and standing.at_boundary:
        return target
    left = pointer.canary_at if pointer.runs(current) else pointer.kept.get(current)
    if left is None or now >= left + pointer.max_pin_seconds:
        return target
    return current


def release_forced(
    pointer: Pointer, tenant_id: int, name: str, accepted: UUID, accepted_at: float
) -> UUID | None:
    """Return what a message of conversation ``name`` that was accepted for release ``accepted`` and
    still waits must run on instead, or None.

    While the policy is ``force`` nothing runs on anything else, so a message whose acceptance and
    that deployment crossed is caught too; later deployments do not let go what waited then.
    """
    if pointer.in_flight != FORCE and accepted_at >= pointer.forced_at:
        return None
    target = release_target(pointer, tenant_id, name)
    return None if target == accepted else target
