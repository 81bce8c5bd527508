"""The ledger of a turn's tool and model calls: a finished step is never run twice."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Literal

from django.db import connection
from django.db.models import F
from django.utils import timezone

from apps.conversations.models import LedgerEntry, TurnRecord
from apps.conversations.stored import stored_id, stored_time
from apps.runtime.canonical import sha256_text
from apps.runtime.ports import LeaseLost, LedgerCall, LedgerResult, LedgerState
from apps.tenants.scope import current_tenant_id, tenant_transaction


def ledger_key(turn_id: str, call: LedgerCall) -> str:
    """Return the call's identity in the platform; tool servers receive it as idempotency key."""
    parts = (turn_id, call.kind, call.name, str(call.ordinal), call.contract, call.arguments)
    return sha256_text("\x1f".join(parts))


def ledger_begin(
    *, tenant_id: int, turn_id: str, fence: int, calls: Sequence[LedgerCall]
) -> list[LedgerState]:
    """Note that ``calls`` are about to be sent; say of each what is already known.

    The turn's row is locked while it looks, so that an older holder's start is either seen here or
    refused there. Raises ``LeaseLost``.

    While it is not known how an action of the turn ended, every other one is ``unknown``, too: an
    attempt that went another way than the one that died must not do a second thing.
    """
    keys = [ledger_key(turn_id, call) for call in calls]
    with tenant_transaction(tenant_id):
        turn_hold(turn_id, fence)
        fresh = _start(turn_id, dict(zip(keys, calls, strict=True)))
        # What could not be started is known: from an earlier holder, or an earlier attempt.
        known = {} if len(fresh) == len(keys) else _known(turn_id, keys)
        acts = any(call.action for key, call in zip(keys, calls, strict=True) if key in fresh)
        lost = acts and _is_lost(turn_id, keys)
        states = []
        for key, call in zip(keys, calls, strict=True):
            if key in fresh:
                fresh.remove(key)  # an equal call in the same batch is not sent a second time
                state: Literal["fresh", "unknown"] = "unknown" if lost and call.action else "fresh"
                states.append(LedgerState(state=state, idempotency_key=key))
            else:
                states.append(_state(key, call, known[key]))
        again = [state.idempotency_key for state in states if state.state == "restarted"]
        if again:
            LedgerEntry.objects.filter(turn_id=turn_id, key__in=again).update(
                starts=F("starts") + 1
            )
    return states


def _state(key: str, call: LedgerCall, entry: LedgerEntry) -> LedgerState:
    if entry.ended_at is not None:
        return LedgerState(state="done", idempotency_key=key, result=entry.result)
    if call.action and not call.idempotent:
        return LedgerState(state="unknown", idempotency_key=key)
    return LedgerState(state="restarted", idempotency_key=key)


def _is_lost(turn_id: str, keys: Sequence[str]) -> bool:
    """Whether the turn has begun another action that nobody may repeat, and not seen its end."""
    begun = LedgerEntry.objects.filter(turn_id=turn_id, kind="tool", action=True, idempotent=False)
    lost: bool = begun.filter(ended_at=None).exclude(key__in=keys).exists()
    return lost


def _known(turn_id: str, keys: Sequence[str]) -> dict[str, LedgerEntry]:
    entries = LedgerEntry.objects.filter(turn_id=turn_id, key__in=keys)
    return {entry.key: entry for entry in entries}


def _start(turn_id: str, calls: Mapping[str, LedgerCall]) -> set[str]:
    """Insert what is not there yet; return the keys of what was inserted."""
    tenant_id = current_tenant_id()
    turn = stored_id(uuid.UUID(turn_id))
    now = stored_time(timezone.now())
    rows = ", ".join(["(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, 1, %s, NULL, '')"] * len(calls))
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO conversations_ledgerentry (tenant_id, turn_id, key, kind, name, ordinal,"  # noqa: S608
            " contract, arguments, action, idempotent, starts, started_at, ended_at, result)"
            f" VALUES {rows} ON CONFLICT (turn_id, key) DO NOTHING RETURNING key",
            [
                value
                for key, call in calls.items()
                for value in (
                    tenant_id,
                    turn,
                    key,
                    call.kind,
                    call.name,
                    call.ordinal,
                    call.contract,
                    call.arguments,
                    call.action,
                    call.idempotent,
                    now,
                )
            ],
        )
        return {key for (key,) in cursor.fetchall()}


def ledger_finish(
    *, tenant_id: int, turn_id: str, fence: int, results: Sequence[LedgerResult]
) -> None:
    """Write the ends of calls. Raises ``LeaseLost``."""
    now = timezone.now()
    with tenant_transaction(tenant_id):
        turn_hold(turn_id, fence)
        for result in results:
            entries = LedgerEntry.objects.filter(turn_id=turn_id, key=result.idempotency_key)
            entries.update(ended_at=now, result=result.result)


def turn_hold(turn_id: str, fence: int) -> None:
    """Lock the turn's row, or raise ``LeaseLost``. By its key alone: a join would let the database
    begin with every turn that runs."""
    row = (
        TurnRecord.objects.select_for_update()
        .filter(pk=turn_id)
        .values_list("fence", "status")
        .first()
    )
    if row != (fence, "running"):
        raise LeaseLost(turn_id)
