"""Reads of workflow runs for pages."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from apps.tenants.sealing import unseal
from apps.tools.workflow_models import WorkflowNodeRun, WorkflowRun

LONGEST_SHOWN = 20_000
"""Characters of one value on a page."""

Mask = Callable[[Any], Any]


@dataclass(frozen=True)
class NodeShown:
    """What a page says of one thing a run did. ``arguments``, ``result``: JSON to read."""

    row: WorkflowNodeRun
    arguments: str
    result: str
    error: str


@dataclass(frozen=True)
class RunShown:
    """A run with everything it did, in order; every value has been through the mask."""

    row: WorkflowRun
    inputs: str
    nodes: tuple[NodeShown, ...]
    outcome: Mapping[str, Any]
    error: str


def runs_recent(*, status: str = "", workflow: str = "", search: str = "") -> QuerySet[WorkflowRun]:
    """Return the tenant's runs, newest first, without the texts no list shows."""
    found: QuerySet[WorkflowRun] = WorkflowRun.objects.defer("definition", "inputs", "outcome")
    if status in WorkflowRun.Status.values:
        found = found.filter(status=status)
    if workflow:
        found = found.filter(workflow=workflow)
    if search:
        found = found.filter(workflow__icontains=search)
    return found.order_by("-started_at", "-pk")


def run_shown(run: WorkflowRun, mask: Mask) -> RunShown:
    """Return ``run`` as a page shows it. ``mask`` takes personal data out of a JSON value."""
    nodes = WorkflowNodeRun.objects.filter(run=run).order_by("pk")
    outcome = json.loads(unseal(run.outcome)["text"]) if run.outcome else {}
    return RunShown(
        row=run,
        inputs=_readable(unseal(run.inputs)["text"], mask),
        nodes=tuple(_node(node, mask) for node in nodes),
        outcome=mask(outcome),
        error=mask(run.error),
    )


def _node(row: WorkflowNodeRun, mask: Mask) -> NodeShown:
    kept = json.loads(unseal(row.result)["text"]) if row.result else None
    error = kept.get("error", "") if isinstance(kept, dict) else ""
    result = kept.get("result") if isinstance(kept, dict) else kept
    return NodeShown(
        row=row,
        arguments=_readable(row.arguments, mask),
        result="" if result is None else _text(mask(result)),
        error=mask(error),
    )


def _readable(text: str, mask: Mask) -> str:
    value = json.loads(text)
    return _text(mask(value)) if value else ""


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)[:LONGEST_SHOWN]


def run_seconds(run: WorkflowRun) -> float | None:
    """Return how long it took, ``None`` while it has not ended."""
    ended: datetime | None = run.ended_at
    return None if ended is None else round((ended - run.started_at).total_seconds(), 1)
