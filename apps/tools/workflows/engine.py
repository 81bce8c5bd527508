"""Starts, resumes and gives up workflow runs. Pure: tools and rows are reached through ports."""

import asyncio
import hashlib
import hmac
import json
import uuid
from collections.abc import Mapping
from typing import Any

from apps.runtime.canonical import canonical_json, sha256_text
from apps.runtime.ports import (
    ConfirmationPort,
    Grant,
    ToolPort,
    ToolRequest,
    WorkflowOpening,
    WorkflowRunState,
    WorkflowStore,
)
from apps.runtime.turn import Signal, Turn
from apps.tools.config import ToolConfig, WorkflowConfig, WorkflowPause
from apps.tools.preparing import Reason
from apps.tools.workflows.interface import Code, Confirmed, WorkflowResult
from apps.tools.workflows.records import happened_in, result_dump, result_load, row_call
from apps.tools.workflows.walking import Sleep, Walk, answer_of

FINAL = ("COMPLETED", "FAILED", "COMPENSATED", "UNKNOWN")


class Workflows:
    """See ``interface.py``. ``tag_key`` keys the digest that says which request a run is."""

    def __init__(
        self,
        tools: ToolPort,
        store: WorkflowStore,
        *,
        confirmations: ConfirmationPort | None = None,
        tag_key: str = "",
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._tools = tools
        self._store = store
        self._confirmations = confirmations
        self._tag_key = tag_key
        self._sleep = sleep

    async def start(
        self,
        turn: Turn,
        workflow: str,
        inputs: Mapping[str, Any],
        run_id: str,
        *,
        agent: str = "",
        confirmed: Confirmed | None = None,
    ) -> tuple[Turn, WorkflowResult]:
        """Carry out ``workflow`` as run ``run_id`` as far as it goes.

        A run that is there already goes on where it stands; one that ended is answered from its
        record, and so is an equal request of the same customer. With ``confirmed`` the run is the
        execution of that tool: the yes given for it is used up, once, and covers the run's nodes.
        """
        run_id = run_uuid(turn, run_id)
        run = await self._store.take(turn, run_id)
        if run is None:
            opening = await self._opening(turn, workflow, inputs, run_id, agent, confirmed)
            if isinstance(opening, WorkflowResult):
                return turn, opening
            run = await self._store.open(turn, opening)
        if run.began == turn.id:
            turn = _signalled(turn, run, "STARTED")
        return await self._walk(turn, run)

    async def resume(self, turn: Turn, run_id: str, answer: str) -> tuple[Turn, WorkflowResult]:
        """Give ``answer`` to the question that run ``run_id`` waits for, and go on.

        An answer that is none of the accepted values: the same pause, ``reprompted``.
        """
        run = await self._store.take(turn, run_uuid(turn, run_id))
        if run is None:
            return turn, _refusal(run_id, "", Code.UNKNOWN_RUN)
        return await self._walk(turn, run, answer=answer)

    async def abandon(self, turn: Turn, run_id: str) -> tuple[Turn, WorkflowResult]:
        """End a run whose question the customer will not answer; what it did is taken back."""
        run = await self._store.take(turn, run_uuid(turn, run_id))
        if run is None:
            return turn, _refusal(run_id, "", Code.UNKNOWN_RUN)
        return await self._walk(turn, run, abandoning=True)

    async def expects(self, turn: Turn, run_id: str, text: str) -> str:
        """Return the accepted answer that ``text`` literally is to the run's open question.

        "" when it is none or nothing waits. Changes nothing. A question without accepted values
        takes any text.
        """
        pause = await self.pause_of(turn, run_id)
        return answer_of(pause, text) if pause else ""

    async def pause_of(self, turn: Turn, run_id: str) -> WorkflowPause | None:
        """Return the open question of the run, as the version it began with has it."""
        run = await self._store.peek(turn, run_uuid(turn, run_id))
        if run is None or run.status != "PAUSED":
            return None
        workflow = WorkflowConfig.model_validate_json(run.definition)
        return next((node.pause for node in workflow.nodes if node.id == run.node), None)

    async def _walk(
        self, turn: Turn, run: WorkflowRunState, *, answer: str | None = None, **more: Any
    ) -> tuple[Turn, WorkflowResult]:
        if run.busy:
            return turn, _refusal(run.id, run.workflow, Code.IN_PROGRESS)
        again = [
            row_call(row, run.release.find(ToolConfig, row.tool)) for row in happened_in(turn, run)
        ]
        turn = turn.evolve(tool_calls=(*turn.tool_calls, *again))
        if run.status in FINAL:
            return turn, result_load(run.outcome)
        walk = Walk(turn, run, self._tools, self._store, sleep=self._sleep, answer=answer, **more)
        result = await walk.go()
        await self._store.close(
            walk.turn,
            run.id,
            status=result.run_status,
            node=result.node,
            outcome=result_dump(result),
            error=result.error or result.secondary_error,
        )
        told = _signalled(walk.turn, run, result.status) if result.final else walk.turn
        return told, result

    async def _opening(
        self,
        turn: Turn,
        workflow: str,
        inputs: Mapping[str, Any],
        run_id: str,
        agent: str,
        confirmed: Confirmed | None,
    ) -> WorkflowOpening | WorkflowResult:
        """Return the run to begin, or why it does not begin."""
        config = turn.release.find(WorkflowConfig, workflow)
        if config is None or not config.enabled:
            return _refusal(run_id, workflow, Code.UNKNOWN_WORKFLOW)
        refused, covered = await self._confirm(turn, workflow, inputs, agent, confirmed)
        if refused:
            return _refusal(run_id, workflow, refused)
        definition = canonical_json(config.model_dump(mode="json"))
        return WorkflowOpening(
            id=run_id,
            workflow=workflow,
            definition=definition,
            identity=self._identity(turn, workflow, definition, inputs),
            inputs=canonical_json(dict(inputs)),
            repeat_seconds=config.repeat_seconds,
            tool=confirmed.tool if confirmed else "",
            agent=agent,
            confirmed=covered,
        )

    async def _confirm(
        self,
        turn: Turn,
        workflow: str,
        inputs: Mapping[str, Any],
        agent: str,
        confirmed: Confirmed | None,
    ) -> tuple[str, bool]:
        """Return why the run is not the confirmed call's, and whether a recorded yes covers it."""
        if confirmed is None:
            return "", False
        tool = turn.release.find(ToolConfig, confirmed.tool)
        if tool is None or (tool.execution.mode, tool.execution.workflow) != ("workflow", workflow):
            return Code.NOT_ITS_WORKFLOW, False
        if not (tool.confirmation_required or confirmed.confirmation):
            return "", False
        # As it was asked: nothing of the message that says yes is added to the inputs.
        asked = ToolRequest(
            confirmed.tool, inputs, confirmation=confirmed.confirmation, agent=agent
        )
        shown = await self._tools.check(turn, asked)
        sendable = (Reason.READY, Reason.CONFIRMATION_REQUIRED)
        if shown.metadata.get("reason") not in sendable or not self._confirmations:
            return Code.NOT_CONFIRMED, False
        grant = Grant(
            id=confirmed.confirmation,
            tool=confirmed.tool,
            contract=shown.metadata["contract"],
            arguments=shown.metadata["arguments"],
        )
        granted = await self._confirmations.use(turn, grant) == "granted"
        return ("", True) if granted else (Code.NOT_CONFIRMED, False)

    def _identity(
        self, turn: Turn, workflow: str, definition: str, inputs: Mapping[str, Any]
    ) -> str:
        """Return which request this is: whose, where, which operation, on what, which contract.

        Placeholders are of one session, so their values count, under a key: a digest of a document
        number alone is soon guessed.
        """
        customer = turn.business_context.get("customer_key")
        who = f"customer:{customer}" if customer else f"session:{turn.session.id}"
        vault = {**turn.session.vault, **turn.vault}
        real = json.loads(canonical_json(dict(inputs)))
        operation = [turn.environment, workflow, sha256_text(definition)]
        what = canonical_json([who, *operation, _unmasked(real, vault)])
        key = f"{self._tag_key}:{turn.tenant}".encode()
        return hmac.new(key, what.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def run_uuid(turn: Turn, run_id: str) -> str:
    """Return ``run_id`` as a UUID: its own, else one that follows from session and name."""
    try:
        return str(uuid.UUID(run_id))
    except ValueError:
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{turn.tenant}:{turn.session.id}:{run_id}"))


def _unmasked(value: Any, vault: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return vault.get(value, value)
    if isinstance(value, list):
        return [_unmasked(item, vault) for item in value]
    if isinstance(value, dict):
        return {name: _unmasked(item, vault) for name, item in value.items()}
    return value


def _refusal(run_id: str, workflow: str, code: str) -> WorkflowResult:
    return WorkflowResult("FAILED", run_id, workflow, code=code, error=code)


def _signalled(turn: Turn, run: WorkflowRunState, what: str) -> Turn:
    """Return the turn with the event of a run that began or ended."""
    signal = Signal(
        code=f"IC.TRANSACTIONAL_WORKFLOW_{what}",
        component=f"workflow.{run.workflow}",
        data={
            "workflow_name": run.workflow,
            "workflow_version": sha256_text(run.definition)[:12],
            "execution_id": run.id,
        },
    )
    return turn.evolve(signals=(*turn.signals, signal))
