"""Which versions work together. A tenant without rows has the one of this product: ``BUILT_IN``.

Framework, runtime and agent gateway are one product here, so one version is asked about all three.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings
from django.utils.translation import gettext as _

from apps.governance.approval_models import CompatibilityRow
from apps.governance.governing import GovernanceRefused, governor_required
from apps.releases.services import configuration_locked
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import audit_append

PARTS = ("framework", "runtime", "agent_gateway")
# No "latest": a version that moves by itself says nothing.
_PATTERN = re.compile(r"(0|[1-9][0-9]{0,5})\.(x|(0|[1-9][0-9]{0,5})(\.(x|0|[1-9][0-9]{0,5}))?)")
MAX_NOTE = 500


class InvalidCompatibility(GovernanceRefused):
    """A row cannot be saved. ``errors``: field → sentence."""

    code = "invalid_compatibility"

    def __init__(self, errors: Mapping[str, str]) -> None:
        self.errors = dict(errors)
        super().__init__(" ".join(self.errors.values()))


@dataclass(frozen=True)
class Versions:
    """Versions or patterns of what works together."""

    framework: str
    runtime: str
    agent_gateway: str


def built_in() -> Versions:
    """Return the row that holds where a tenant has none: this version, whatever its correction."""
    pattern = settings.VERSION.rpartition(".")[0] + ".x"
    return Versions(pattern, pattern, pattern)


def version_fits(version: str, pattern: str) -> bool:
    """Return whether ``version`` (N.N.N) is what ``pattern`` (N.N.N, N.N.x, N.x) means."""
    given, wanted = version.split("."), pattern.split(".")
    for index, part in enumerate(wanted):
        if part == "x":
            return True
        if index >= len(given) or given[index] != part:
            return False
    return True


def is_supported(version: str) -> bool:
    """Return whether a supported row holds ``version`` of all three parts and no other row that
    fits says it is not."""
    rows = list(CompatibilityRow.objects.values_list(*PARTS, "supported"))
    rows = rows or [(built_in().framework, built_in().runtime, built_in().agent_gateway, True)]
    fitting = [
        supported
        for *patterns, supported in rows
        if all(version_fits(version, pattern) for pattern in patterns)
    ]
    return bool(fitting) and all(fitting)


def compatibility_save(
    *,
    framework: str,
    runtime: str,
    agent_gateway: str,
    supported: bool,
    actor: str,
    note: str = "",
    row: CompatibilityRow | None = None,
) -> CompatibilityRow:
    """Add a row, or change ``row``. Raises ``InvalidCompatibility`` and what ``governor_required``
    raises."""
    governor_required(actor)
    versions = Versions(framework.strip(), runtime.strip(), agent_gateway.strip())
    with tenant_transaction():
        configuration_locked()
        _checked(versions, note, row)
        row = row or CompatibilityRow()
        for part in PARTS:
            setattr(row, part, getattr(versions, part))
        row.supported, row.note, row.updated_by = supported, note, actor
        row.save()
        audit_append(
            actor=actor,
            action="compatibility.changed",
            entity=f"compatibility:{row.pk}",
            detail={**vars(versions), "supported": supported},
        )
    return row


def _checked(versions: Versions, note: str, row: CompatibilityRow | None) -> None:
    errors = {
        part: _("Give a version like 2.1.0, or a pattern like 2.1.x or 2.x.")
        for part in PARTS
        if not _PATTERN.fullmatch(getattr(versions, part))
    }
    if len(note) > MAX_NOTE:
        errors["note"] = _("At most %(limit)s characters.") % {"limit": MAX_NOTE}
    others = CompatibilityRow.objects.exclude(pk=row.pk if row else None)
    if not errors and others.filter(**vars(versions)).exists():
        errors["framework"] = _("There is a row for these versions; change that one.")
    if errors:
        raise InvalidCompatibility(errors)
