"""The ports of a tool call from outside: its invocation is the ledger and holds the questions."""

import secrets
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from apps.runtime.ports import Grant, GrantAnswer, LedgerCall, LedgerResult, LedgerState
from apps.runtime.turn import Turn
from apps.tenants.threads import in_thread
from apps.tools.invoking import services


@dataclass(frozen=True)
class InvocationLedger:
    """The ``Ledger`` and ``ConfirmationPort`` of one invocation, for its one call of ``tool``.

    Whatever else is called on the way (a check that changes nothing) is new every time.
    """

    tenant_id: int
    pk: uuid.UUID
    fence: int
    tool: str

    async def begin(self, turn: Turn, calls: Sequence[LedgerCall]) -> list[LedgerState]:
        """See ``Ledger``. Raises ``LeaseLost``."""
        return [await self._begin(call) for call in calls]

    async def _begin(self, call: LedgerCall) -> LedgerState:
        if call.kind != "tool" or call.name != self.tool:
            return LedgerState(state="fresh", idempotency_key=f"aside-{secrets.token_hex(16)}")
        return await in_thread(
            services.invocation_start,
            tenant_id=self.tenant_id,
            pk=self.pk,
            fence=self.fence,
            call=call,
        )

    async def finish(self, turn: Turn, results: Sequence[LedgerResult]) -> None:
        """See ``Ledger``. Raises ``LeaseLost``."""
        for result in results:
            if not result.idempotency_key.startswith("aside-"):
                await in_thread(
                    services.invocation_result,
                    tenant_id=self.tenant_id,
                    pk=self.pk,
                    fence=self.fence,
                    result=result.result,
                )

    async def use(self, turn: Turn, grant: Grant) -> GrantAnswer:
        """See ``ConfirmationPort``. Raises ``LeaseLost``."""
        return await in_thread(
            services.confirmation_use,
            tenant_id=self.tenant_id,
            pk=self.pk,
            fence=self.fence,
            release_id=turn.release.id,
            grant=grant,
        )
