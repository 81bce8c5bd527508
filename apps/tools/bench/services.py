"""Writes of the bench: mocks, and the trace that something was tried. Inside a tenant scope."""

from collections.abc import Mapping
from typing import Any

from apps.tenants.scope import tenant_transaction
from apps.tenants.services import audit_append
from apps.tools.bench.mocking import MockStep, steps_check, steps_read, steps_write
from apps.tools.bench.running import Plan, Tried
from apps.tools.contract_models import ToolMock


def mock_load(tool: str) -> list[MockStep]:
    """Return the steps of a tool's mock, none when it has none."""
    found = ToolMock.objects.filter(tool=tool).values_list("steps", flat=True).first()
    return steps_read(found) if found else []


def mock_save(
    *, tool: str, steps: Any, output_schema: Mapping[str, Any], actor: str
) -> list[MockStep]:
    """Store what the bench answers in the tool's place; no steps take the mock away.

    Raises ``MockRefused`` for what is no mock, and for results the tool could not have.
    """
    checked = steps_check(steps, output_schema)
    with tenant_transaction():
        if checked:
            text = steps_write(checked)
            ToolMock.objects.update_or_create(
                tool=tool, defaults={"steps": text, "updated_by": actor}
            )
        else:
            ToolMock.objects.filter(tool=tool).delete()
        audit_append(
            actor=actor,
            action="tool.mocked",
            entity=f"tool:{tool}",
            detail={"steps": len(checked)},
        )
    return checked


def run_audit(*, plan: Plan, tried: Tried, actor: str) -> None:
    """Note that a tool was tried: what, where and how it ended; no value of any argument or result."""
    with tenant_transaction():
        audit_append(
            actor=actor,
            action="tool.tried",
            entity=f"tool:{plan.slug}",
            detail={
                "environment": plan.turn.environment,
                "mode": tried.mode,
                "release": plan.turn.release.number,
                "contract": plan.tool.contract.sha256,
                "changes_something": plan.tool.transactional,
                "arguments": sorted(plan.arguments),
                "sent": tried.request is not None,
                "status": tried.call.status,
                "milliseconds": tried.milliseconds,
            },
        )
