"""How a turn can end: a closed set."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Answered:
    """The agent's reply passed every check."""

    text: str
    kind: Literal["answered"] = "answered"


@dataclass(frozen=True)
class Blocked:
    """A rail ended the turn; ``text`` is the tenant's own words for ``code``."""

    text: str
    code: str
    kind: Literal["blocked"] = "blocked"


@dataclass(frozen=True)
class Waiting:
    """The customer has to say something before the turn's purpose can go on."""

    text: str
    waiting_for: Literal["confirmation", "parameter", "approval", "clarification"]
    missing_fields: tuple[str, ...] = ()
    kind: Literal["waiting"] = "waiting"


@dataclass(frozen=True)
class HandedOver:
    """A person takes the conversation."""

    text: str
    reason: str
    kind: Literal["handed_over"] = "handed_over"


@dataclass(frozen=True)
class Ended:
    """The session is over."""

    text: str
    kind: Literal["ended"] = "ended"


@dataclass(frozen=True)
class Failed:
    """Something broke. ``error_id`` is what the customer sees and what the log holds."""

    text: str
    code: str
    error_id: str
    kind: Literal["failed"] = "failed"


KINDS = ("answered", "blocked", "waiting", "handed_over", "ended", "failed")
"""The names of the outcomes, as configuration and records write them."""

Outcome = Answered | Blocked | Waiting | HandedOver | Ended | Failed
