"""What was brought as evidence about a manifest, as the record of its release keeps it."""

from typing import Any

from apps.governance.approval_models import Evidence


def evidence_rows(manifest_sha256: str) -> list[dict[str, Any]]:
    """Return the evidence about a manifest, oldest first, as JSON values. In a tenant's scope."""
    return [
        {
            "what": row.what,
            "passed": row.passed,
            "result_sha256": row.result_sha256,
            "summary": row.summary,
            "link": row.link,
            "recorded_by": row.recorded_by,
            "recorded_at": row.recorded_at.isoformat(),
        }
        for row in Evidence.objects.filter(manifest_sha256=manifest_sha256).order_by("recorded_at")
    ]
