"""The ledger of a turn's tool and model calls: a finished step is never run twice."""

import uuid
from collections.abc import Sequence

from django.db.models import F
from django.utils import timezone

from apps.conversations.models import LedgerEntry, TurnRecord
from apps.runtime.canonical import sha256_text
from apps.runtime.ports import LeaseLost, LedgerCall, LedgerResult, LedgerState
from apps.tenants.scope import tenant_transaction


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
    """
    keys = [ledger_key(turn_id, call) for call in calls]
    with tenant_transaction(tenant_id):
        held = TurnRecord.objects.select_for_update().filter(
            pk=turn_id, fence=fence, status="running"
        )
        if not held.values_list("pk", flat=True):
            raise LeaseLost(turn_id)
        known = {
            entry.key: entry for entry in LedgerEntry.objects.filter(turn_id=turn_id, key__in=keys)
        }
        fresh: dict[str, LedgerEntry] = {}
        states = []
        for key, call in zip(keys, calls, strict=True):
            entry = known.get(key)
            if entry is None:
                known[key] = fresh[key] = _entry(turn_id, key, call)
                states.append(LedgerState(state="fresh", idempotency_key=key))
            elif entry.ended_at is not None:
                states.append(LedgerState(state="done", idempotency_key=key, result=entry.result))
            elif call.action and not call.idempotent:
                states.append(LedgerState(state="unknown", idempotency_key=key))
            else:
                states.append(LedgerState(state="restarted", idempotency_key=key))
        if fresh:
            LedgerEntry.objects.bulk_create(fresh.values())
        again = [state.idempotency_key for state in states if state.state == "restarted"]
        if again:
            LedgerEntry.objects.filter(turn_id=turn_id, key__in=again).update(
                starts=F("starts") + 1
            )
    return states


def _entry(turn_id: str, key: str, call: LedgerCall) -> LedgerEntry:
    return LedgerEntry(
        turn_id=uuid.UUID(turn_id),
        key=key,
        kind=call.kind,
        name=call.name,
        ordinal=call.ordinal,
        contract=call.contract,
        arguments=call.arguments,
        action=call.action,
        idempotent=call.idempotent,
    )


def ledger_finish(
    *, tenant_id: int, turn_id: str, fence: int, results: Sequence[LedgerResult]
) -> None:
    """Write the ends of calls. Raises ``LeaseLost``."""
    now = timezone.now()
    with tenant_transaction(tenant_id):
        for result in results:
            held = LedgerEntry.objects.filter(
                turn_id=turn_id,
                key=result.idempotency_key,
                turn__fence=fence,
                turn__status="running",
            )
            if not held.update(ended_at=now, result=result.result):
                raise LeaseLost(turn_id)
