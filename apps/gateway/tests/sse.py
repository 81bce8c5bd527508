"""Reads server-sent events as a browser does: a frame counts when its blank line has come."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Seen:
    """One received event; ``id`` is ``None`` for what carries none."""

    event: str
    data: dict[str, Any]
    id: int | None

    @property
    def text(self) -> str:
        """Return a delta's text, "" for any other event."""
        return str(self.data["payload"]["text"]) if self.event == "message.delta" else ""


def frames(chunks: Iterable[bytes]) -> Iterator[Seen | None]:
    """Yield the events in ``chunks``, ``None`` for each comment; an unfinished frame is lost."""
    rest = b""
    for chunk in chunks:
        rest += chunk
        while b"\n\n" in rest:
            frame, rest = rest.split(b"\n\n", 1)
            yield _parsed(frame.decode())


def _parsed(frame: str) -> Seen | None:
    fields = dict(line.split(": ", 1) for line in frame.split("\n"))
    if "event" not in fields:
        return None
    sequence = int(fields["id"]) if "id" in fields else None
    return Seen(fields["event"], json.loads(fields["data"]), sequence)
