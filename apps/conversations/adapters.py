"""The conversation's side of a turn's ports: short synchronous transactions behind async faces."""

import uuid
from collections.abc import Sequence

from asgiref.sync import sync_to_async

from apps.conversations import announcing, ledger, selectors, services
from apps.runtime.ports import LedgerCall, LedgerResult, LedgerState
from apps.runtime.turn import ChatMessage, Turn


def tenant_of(turn: Turn) -> int:
    """Return the primary key of the turn's tenant."""
    return int(turn.tenant)


class DatabaseLedger:
    """A ``Ledger`` in the database."""

    async def begin(self, turn: Turn, calls: Sequence[LedgerCall]) -> list[LedgerState]:
        return await sync_to_async(ledger.ledger_begin)(
            tenant_id=tenant_of(turn), turn_id=turn.id, fence=turn.fence, calls=calls
        )

    async def finish(self, turn: Turn, results: Sequence[LedgerResult]) -> None:
        if results:
            await sync_to_async(ledger.ledger_finish)(
                tenant_id=tenant_of(turn), turn_id=turn.id, fence=turn.fence, results=results
            )


class DatabaseHistory:
    """A ``HistoryPort`` over the stored messages."""

    async def recent(self, turn: Turn, limit: int) -> tuple[ChatMessage, ...]:
        if limit == 0 or turn.session.turn_number == 1:
            return ()
        return await sync_to_async(selectors.messages_recent)(
            tenant_id=tenant_of(turn), session_id=uuid.UUID(turn.session.id), limit=limit
        )


class DatabaseTurnStore:
    """A ``TurnStore`` that announces what it wrote."""

    async def settle(self, turn: Turn) -> None:
        await sync_to_async(services.turn_settle)(turn=turn, tenant_id=tenant_of(turn))

    async def deliver(self, turn: Turn) -> None:
        more = await sync_to_async(services.turn_deliver)(
            tenant_id=tenant_of(turn), turn_id=uuid.UUID(turn.id)
        )
        await announcing.announce(tenant_of(turn), turn.session.key.split(":", 2)[-1])
        if more:
            await sync_to_async(services.doorbell)(tenant_of(turn), uuid.UUID(turn.id))
