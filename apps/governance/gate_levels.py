"""What a gate's findings do in a tenant: block, warn, or the gate does not run. ``GATE_LEVELS``."""

from apps.governance.approval_models import GateLevel


class LockedGate(ValueError):
    """The gate blocks in every tenant, or there is no such gate or level."""


def levels() -> dict[str, str]:
    """Return the tenant's own levels as gate code → level; gates without one keep theirs."""
    return dict(GateLevel.objects.order_by("gate").values_list("gate", "level"))
