"""Names and payloads of a session's events."""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from apps.conversations.models import TurnRecord

# A delta holds at most this many characters (architecture, section 6).
DELTA_CHARACTERS = 200
_PIECE = re.compile(r"\S*\s*")


def text_deltas(text: str, size: int = DELTA_CHARACTERS) -> Iterator[str]:
    """Cut ``text`` into pieces of at most ``size`` characters whose concatenation is ``text``.

    Cuts fall between words; only a single longer word is cut inside.
    """
    piece = ""
    for match in _PIECE.finditer(text):
        word = match.group()
        while len(piece) + len(word) > size:
            if piece:
                yield piece
                piece = ""
            else:
                yield word[:size]
                word = word[size:]
        piece += word
    if piece:
        yield piece


def reply_events(turn: "TurnRecord") -> list[tuple[str, Mapping[str, Any]]]:
    """Return the events by which a settled turn's reply reaches its viewers, in order."""
    turn_id = str(turn.id)
    events: list[tuple[str, Mapping[str, Any]]] = [
        ("message.delta", {"turn_id": turn_id, "index": index, "text": piece})
        for index, piece in enumerate(text_deltas(turn.answer))
    ]
    done = {"turn_id": turn_id, "message_id": turn.message_id, "outcome": turn.outcome}
    events.append(("message.responded", {**done, "text": turn.answer}))
    if turn.outcome == "failed":
        events.append(("error", done))
    events.append(("flow.end", {"turn_id": turn_id}))
    return events
