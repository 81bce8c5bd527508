"""The ports of workflow runs over the database: short transactions behind async faces."""

from apps.runtime.ports import WorkflowNodeRow, WorkflowOpening, WorkflowRunState
from apps.runtime.turn import Turn
from apps.tenants.threads import in_thread
from apps.tools.workflows import services


class DatabaseWorkflows:
    """A ``WorkflowStore`` and a ``CoveragePort``."""

    async def open(self, turn: Turn, opening: WorkflowOpening) -> WorkflowRunState:
        return await in_thread(
            services.run_open, tenant_id=int(turn.tenant), turn=turn, opening=opening
        )

    async def take(self, turn: Turn, run_id: str) -> WorkflowRunState | None:
        return await in_thread(
            services.run_take, tenant_id=int(turn.tenant), turn=turn, run_id=run_id
        )

    async def peek(self, turn: Turn, run_id: str) -> WorkflowRunState | None:
        return await in_thread(
            services.run_peek, tenant_id=int(turn.tenant), turn=turn, run_id=run_id
        )

    async def note(self, turn: Turn, run_id: str, row: WorkflowNodeRow) -> None:
        await in_thread(
            services.node_note, tenant_id=int(turn.tenant), turn=turn, run_id=run_id, row=row
        )

    async def close(
        self, turn: Turn, run_id: str, *, status: str, node: str, outcome: str, error: str
    ) -> None:
        await in_thread(
            services.run_close,
            tenant_id=int(turn.tenant),
            turn=turn,
            run_id=run_id,
            status=status,
            node=node,
            outcome=outcome,
            error=error,
        )

    async def covers(self, turn: Turn, run_id: str, tool: str) -> bool:
        return await in_thread(
            services.run_covers, tenant_id=int(turn.tenant), turn=turn, run_id=run_id, tool=tool
        )
