"""The only writes of workflow runs: short transactions that first make sure who holds the run."""

import uuid
from collections.abc import Iterable
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.releases.selectors import release_load
from apps.runtime.ports import LeaseLost, WorkflowNodeRow, WorkflowOpening, WorkflowRunState
from apps.runtime.turn import Turn
from apps.tenants.scope import tenant_transaction
from apps.tenants.sealing import seal, unseal
from apps.tools.config import WorkflowConfig
from apps.tools.workflow_models import WorkflowNodeRun, WorkflowRun

STALE_SECONDS = 900
"""A run of another conversation that was not touched for so long is nobody's any more."""


def run_open(*, tenant_id: int, turn: Turn, opening: WorkflowOpening) -> WorkflowRunState:
    """Begin a run, or return the one that is the same request. See ``WorkflowStore.open``."""
    for last in (False, True):
        try:
            with tenant_transaction(tenant_id):
                run = _same_request(turn, opening) or _create(turn, opening)
                status = run.status
                holder = _adopt(run, turn)
                nodes = _nodes(run)
            break
        except IntegrityError:
            # Another worker began the same request between our look and our insert.
            if last:
                raise
    return _state(tenant_id, run, nodes, status, holder)


def run_take(*, tenant_id: int, turn: Turn, run_id: str) -> WorkflowRunState | None:
    """Hold a run of the turn's session and return it; ``None`` when there is none.

    Raises ``LeaseLost`` when a later turn, or a later holder of this one, has it.
    """
    with tenant_transaction(tenant_id):
        run = _locked(id=uuid.UUID(run_id), session_id=uuid.UUID(turn.session.id))
        if run is None:
            return None
        status, holder = run.status, str(run.turn)
        if status in WorkflowRun.OPEN:
            _hold(run, turn)
        nodes = _nodes(run)
    return _state(tenant_id, run, nodes, status, holder)


def run_peek(*, tenant_id: int, turn: Turn, run_id: str) -> WorkflowRunState | None:
    """Return a run of the turn's session as it stands."""
    with tenant_transaction(tenant_id):
        mine = WorkflowRun.objects.filter(session_id=uuid.UUID(turn.session.id))
        run = mine.filter(pk=uuid.UUID(run_id)).first()
        if run is None:
            return None
        nodes = _nodes(run)
    return _state(tenant_id, run, nodes, run.status, str(run.turn))


def run_covers(*, tenant_id: int, turn: Turn, run_id: str, tool: str) -> bool:
    """Return whether the customer's yes to a run that ``turn`` carries out covers ``tool``."""
    with tenant_transaction(tenant_id):
        run = WorkflowRun.objects.filter(pk=uuid.UUID(run_id), confirmed=True).first()
    if run is None or run.status != WorkflowRun.Status.RUNNING:
        return False
    if (str(run.turn), run.fence) != (turn.id, turn.fence):
        return False
    nodes = WorkflowConfig.model_validate_json(run.definition).nodes
    return any(tool in (node.tool, node.compensate_tool) for node in nodes)


def node_note(*, tenant_id: int, turn: Turn, run_id: str, row: WorkflowNodeRow) -> None:
    """Write how a node stands. Raises ``LeaseLost``."""
    ended = None if row.status == "begun" else timezone.now()
    with tenant_transaction(tenant_id):
        run = _held(turn, run_id)
        WorkflowNodeRun.objects.update_or_create(
            run=run,
            kind=row.kind,
            node=row.node,
            visit=row.visit,
            defaults={
                "status": row.status,
                "key": row.key,
                "tool": row.tool,
                "attempts": row.attempts,
                "arguments": row.arguments,
                "result": seal({"text": row.result}) if row.result else "",
                "turn": uuid.UUID(turn.id),
                "ended_at": ended,
            },
        )
        run.save(update_fields=["touched_at"])


def run_close(
    *, tenant_id: int, turn: Turn, run_id: str, status: str, node: str, outcome: str, error: str
) -> None:
    """Write that a run waits or how it ended. Raises ``LeaseLost``."""
    with tenant_transaction(tenant_id):
        run = _held(turn, run_id)
        run.status, run.node = status, node
        run.outcome = seal({"text": outcome})
        run.error = error
        run.ended_at = None if status == WorkflowRun.Status.PAUSED else timezone.now()
        run.save(update_fields=["status", "node", "outcome", "error", "ended_at", "touched_at"])


def _create(turn: Turn, opening: WorkflowOpening) -> WorkflowRun:
    with transaction.atomic():
        run: WorkflowRun = WorkflowRun.objects.create(
            id=uuid.UUID(opening.id),
            session_id=uuid.UUID(turn.session.id),
            workflow=opening.workflow,
            release_id=uuid.UUID(turn.release.id),
            definition=opening.definition,
            identity=opening.identity,
            tool=opening.tool,
            agent=opening.agent,
            confirmed=opening.confirmed,
            inputs=seal({"text": opening.inputs}),
            began_turn=uuid.UUID(turn.id),
            turn=uuid.UUID(turn.id),
            turn_number=turn.session.turn_number,
            fence=turn.fence,
        )
    return run


def _same_request(turn: Turn, opening: WorkflowOpening) -> WorkflowRun | None:
    """Return the run that answers the request already, locked.

    One that is open, or one of the last ``repeat_seconds`` that was not wholly in vain: whose end is
    unknown may have done it, too.
    """
    mine = _locked(id=uuid.UUID(opening.id))
    if mine is not None:
        return mine
    if (running := _locked(identity=opening.identity, status__in=WorkflowRun.OPEN)) is not None:
        return running
    since = timezone.now() - timedelta(seconds=opening.repeat_seconds)
    had_effect = (WorkflowRun.Status.COMPLETED, WorkflowRun.Status.UNKNOWN)
    return _locked(identity=opening.identity, status__in=had_effect, ended_at__gt=since)


def _adopt(run: WorkflowRun, turn: Turn) -> str | None:
    """Hold ``run`` for ``turn`` and return who held it; ``None`` when it is busy elsewhere.

    A run that waits is asked on where the customer is now.
    """
    holder = str(run.turn)
    if run.status not in WorkflowRun.OPEN:
        return holder
    if run.session_id == uuid.UUID(turn.session.id):
        _hold(run, turn)
        return holder
    stale = run.touched_at < timezone.now() - timedelta(seconds=STALE_SECONDS)
    if run.status == WorkflowRun.Status.RUNNING and not stale:
        return None
    run.session_id = uuid.UUID(turn.session.id)
    run.turn_number = 0
    _hold(run, turn)
    return holder


def _hold(run: WorkflowRun, turn: Turn) -> None:
    me = uuid.UUID(turn.id)
    later = run.turn_number > turn.session.turn_number
    if later or (run.turn == me and run.fence > turn.fence):
        raise LeaseLost(turn.id)
    run.turn, run.turn_number, run.fence = me, turn.session.turn_number, turn.fence
    WorkflowRun.objects.filter(pk=run.pk).update(
        turn=run.turn,
        turn_number=run.turn_number,
        fence=run.fence,
        session_id=run.session_id,
        status=WorkflowRun.Status.RUNNING,
        touched_at=timezone.now(),
    )


def _held(turn: Turn, run_id: str) -> WorkflowRun:
    run = _locked(id=uuid.UUID(run_id))
    if run is None or (str(run.turn), run.fence) != (turn.id, turn.fence):
        raise LeaseLost(turn.id)
    return run


def _locked(**filters: object) -> WorkflowRun | None:
    rows: Iterable[WorkflowRun] = (
        WorkflowRun.objects.select_for_update().filter(**filters).order_by("-started_at")[:1]
    )
    return next(iter(rows), None)


def _nodes(run: WorkflowRun) -> tuple[WorkflowNodeRow, ...]:
    return tuple(node_row(row) for row in WorkflowNodeRun.objects.filter(run=run).order_by("pk"))


def _state(
    tenant_id: int,
    run: WorkflowRun,
    nodes: tuple[WorkflowNodeRow, ...],
    status: str,
    holder: str | None,
) -> WorkflowRunState:
    """Return ``run``; ``status`` and ``holder`` are those before it was taken."""
    return WorkflowRunState(
        id=str(run.id),
        workflow=run.workflow,
        status=status,  # type: ignore[arg-type]
        definition=run.definition,
        inputs=unseal(run.inputs)["text"],
        release=release_load(tenant_id, str(run.release_id)),
        tool=run.tool,
        agent=run.agent,
        node=run.node,
        outcome=unseal(run.outcome)["text"] if run.outcome else "",
        nodes=nodes,
        began=str(run.began_turn),
        holder=holder or "",
        busy=holder is None,
    )


def node_row(row: WorkflowNodeRun) -> WorkflowNodeRow:
    """Return ``row`` as the engine reads it."""
    return WorkflowNodeRow(
        kind=row.kind,  # type: ignore[arg-type]
        node=row.node,
        visit=row.visit,
        status=row.status,  # type: ignore[arg-type]
        key=row.key,
        tool=row.tool,
        attempts=row.attempts,
        arguments=row.arguments,
        result=unseal(row.result)["text"] if row.result else "",
        turn=str(row.turn),
    )
