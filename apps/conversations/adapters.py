"""The conversation's side of a turn's ports: short synchronous transactions behind async faces."""

import uuid
from collections.abc import Sequence

from apps.conversations import announcing, confirming, ledger, selectors, services
from apps.runtime.ports import Grant, GrantAnswer, LedgerCall, LedgerResult, LedgerState
from apps.runtime.turn import ChatMessage, Turn
from apps.tenants.threads import in_thread


def tenant_of(turn: Turn) -> int:
    """Return the primary key of the turn's tenant."""
    return int(turn.tenant)


class DatabaseLedger:
    """A ``Ledger`` in the database."""

    async def begin(self, turn: Turn, calls: Sequence[LedgerCall]) -> list[LedgerState]:
        return await in_thread(
            ledger.ledger_begin,
            tenant_id=tenant_of(turn),
            turn_id=turn.id,
            fence=turn.fence,
            calls=calls,
        )

    async def finish(self, turn: Turn, results: Sequence[LedgerResult]) -> None:
        if results:
            await in_thread(
                ledger.ledger_finish,
                tenant_id=tenant_of(turn),
                turn_id=turn.id,
                fence=turn.fence,
                results=results,
            )


class DatabaseHistory:
    """A ``HistoryPort`` over the stored messages."""

    async def recent(self, turn: Turn, limit: int) -> tuple[ChatMessage, ...]:
        if limit == 0 or turn.session.turn_number == 1:
            return ()
        return await in_thread(
            selectors.messages_recent,
            tenant_id=tenant_of(turn),
            session_id=uuid.UUID(turn.session.id),
            limit=limit,
        )


class DatabaseTurnStore:
    """A ``TurnStore`` that announces what it wrote."""

    async def settle(self, turn: Turn) -> None:
        await in_thread(services.turn_settle, turn=turn, tenant_id=tenant_of(turn))

    async def deliver(self, turn: Turn) -> None:
        more = await in_thread(
            services.turn_deliver, tenant_id=tenant_of(turn), turn_id=uuid.UUID(turn.id)
        )
        await announcing.announce(
            tenant_of(turn), turn.session.key.split(":", 2)[-1], settled=turn.id
        )
        if more:
            await in_thread(services.doorbell, tenant_of(turn), uuid.UUID(turn.id))


class DatabaseConfirmations:
    """A ``ConfirmationPort`` over the recorded questions."""

    async def use(self, turn: Turn, grant: Grant) -> GrantAnswer:
        return await in_thread(
            confirming.confirmation_use, turn=turn, tenant_id=tenant_of(turn), grant=grant
        )
