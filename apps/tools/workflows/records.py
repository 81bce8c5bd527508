"""A workflow's result and its nodes' results as canonical text, and back. Pure."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from apps.runtime.canonical import canonical_json
from apps.runtime.ports import WorkflowNodeRow, WorkflowRunState
from apps.runtime.turn import ToolCall, Turn
from apps.tools.config import ToolConfig
from apps.tools.workflows.interface import ErrorDetails, Items, NodeTrace, WorkflowResult


def result_dump(result: WorkflowResult) -> str:
    """Return ``result`` as canonical text."""
    return canonical_json(asdict(result))


def result_load(text: str) -> WorkflowResult:
    """Return what ``result_dump`` wrote, marked as replayed."""
    kept: dict[str, Any] = json.loads(text)
    details, items = kept["error_details"], kept["items"]
    kept["trace"] = tuple(NodeTrace(**entry) for entry in kept["trace"])
    kept["error_details"] = ErrorDetails(**details) if details else None
    kept["items"] = Items(**{**items, "items": tuple(items["items"])}) if items else None
    for name in ("allowed_values", "compensated", "uncompensated"):
        kept[name] = tuple(kept[name])
    return replace(WorkflowResult(**kept), replayed=True)


def call_dump(call: ToolCall) -> str:
    """Return what is recorded of a node's tool call."""
    return canonical_json(
        {
            "result": call.result,
            "error": call.error,
            "server": call.server,
            "status_code": status_code(call),
            "field_errors": [dict(error) for error in call.field_errors],
        }
    )


def row_call(row: WorkflowNodeRow, tool: ToolConfig | None) -> ToolCall:
    """Return the call that ``row`` records, as one that was not made again."""
    kept = json.loads(row.result)
    status = "error" if row.status == "failed" else row.status
    return ToolCall(
        tool=row.tool,
        server=kept["server"],
        arguments=json.loads(row.arguments),
        status=status,  # type: ignore[arg-type]
        result=kept["result"],
        error=kept["error"],
        field_errors=tuple(kept["field_errors"]),
        action=tool is not None and tool.transactional,
        replayed=True,
    )


def status_code(call: ToolCall) -> int | None:
    """Return the status code that came with ``call``, ``None`` when its transport has none."""
    found = call.metadata.get("status_code")
    if found is None and isinstance(call.result, Mapping):
        found = call.result.get("status_code")
    return found if isinstance(found, int) else None


def happened_in(turn: Turn, run: WorkflowRunState) -> list[WorkflowNodeRow]:
    """Return the ended tool calls of ``run`` that an earlier try of this turn made."""
    return [row for row in run.nodes if row.turn == turn.id and row.kind != "pause" and row.result]
