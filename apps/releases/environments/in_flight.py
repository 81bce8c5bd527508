"""The port to what conversations know of a release: open ones, and how its turns fare.

``settings.OPEN_CONVERSATIONS`` and ``settings.TURN_RATES`` name the functions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string


@dataclass(frozen=True)
class OpenConversation:
    """One open conversation: ``release`` it last ran on, ``uses`` "kind:slug" it stands on now."""

    session_id: UUID
    key: str
    release_id: UUID | None
    pending: bool
    updated_at: datetime
    uses: tuple[str, ...] = ()


@dataclass(frozen=True)
class TurnRates:
    """What became of the settled turns of a release. ``cost_usd`` is None when none is known."""

    turns: int = 0
    failed: int = 0
    blocked: int = 0
    cost_usd: float | None = None


def open_conversations(
    *, environment: str, using: Sequence[tuple[str, str]] = (), limit: int = 200
) -> tuple[int, list[OpenConversation]]:
    """Return how many conversations of ``environment`` are open, and the newest of them.

    Open: written to within 24 hours and not ended. ``using``: only those that stand on one of these
    (kind, slug), for "uses something that this release removes".
    """
    find: Any = import_string(settings.OPEN_CONVERSATIONS)
    found: tuple[int, list[OpenConversation]] = find(
        environment=environment, using=using, limit=limit
    )
    return found


def turn_rates(
    *, release_id: UUID, environment: str = "", since: datetime | None = None
) -> TurnRates:
    """Return what became of the turns that ``release_id`` answered (in ``environment``, ``since``)."""
    rates: Any = import_string(settings.TURN_RATES)
    found: TurnRates = rates(release_id=release_id, environment=environment, since=since)
    return found
