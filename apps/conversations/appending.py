"""The one way events of a session are written: numbered and appended under the session's lock."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection
from django.utils import timezone

from apps.conversations.stored import stored_id, stored_time
from apps.runtime.canonical import canonical_json
from apps.tenants.scope import current_tenant_id


def events_write(
    session_id: uuid.UUID,
    turn_id: uuid.UUID | None,
    events: Sequence[tuple[str, Mapping[str, Any]]],
    *,
    turns: int = 0,
    state: Mapping[str, Any] | None = None,
) -> int:
    """Append ``events`` to the session's sequence; return its last turn number.

    ``state``: columns of the session that change with them (names from ``accepting`` and ``services`` only).

    One statement gives out the numbers and locks the session, so numbers and commits have the same
    order and a reader's cursor never skips a row.
    """
    tenant_id = current_tenant_id()
    now = stored_time(timezone.now())
    changed = dict(state or {})
    columns = "".join(f", {column} = %s" for column in changed)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE conversations_session SET event_sequence = event_sequence + %s,"  # noqa: S608
            f" turn_number = turn_number + %s, updated_at = %s{columns}"
            " WHERE id = %s AND tenant_id = %s RETURNING event_sequence, turn_number",
            [len(events), turns, now, *changed.values(), stored_id(session_id), tenant_id],
        )
        last, turn_number = cursor.fetchone()
        first = last - len(events) + 1
        # One statement, not the ORM's: a turn writes events four times.
        rows = ", ".join(["(%s, %s, %s, %s, %s, %s, %s)"] * len(events))
        cursor.execute(
            "INSERT INTO conversations_event (tenant_id, session_id, turn_id, sequence,"  # noqa: S608
            f" event_type, payload, created_at) VALUES {rows}",
            [
                value
                for offset, (event_type, payload) in enumerate(events)
                for value in (
                    tenant_id,
                    stored_id(session_id),
                    stored_id(turn_id),
                    first + offset,
                    event_type,
                    canonical_json(dict(payload)),
                    now,
                )
            ],
        )
    return int(turn_number)
