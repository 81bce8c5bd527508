"""What a gate's findings do in a tenant: block, warn, or the gate does not run. ``GATE_LEVELS``."""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from apps.governance.approval_models import GateLevel
from apps.governance.governing import GovernanceRefused, governor_required
from apps.releases.gates import GateInfo, gate_level, gates_known
from apps.releases.services import configuration_locked
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import audit_append

# From what lets everything pass to what lets nothing pass.
STRENGTH = ("off", "warn", "block")


class InvalidGateLevel(GovernanceRefused):
    """There is no such gate or level, or the gate blocks in every tenant. ``field`` says which."""

    code = "invalid_gate_level"

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(message)


@dataclass(frozen=True)
class ShownGate:
    """A gate with the level that holds in this tenant; ``own`` is what the tenant set ("" for none)."""

    info: GateInfo
    level: str
    own: str
    updated_by: str


def levels() -> dict[str, str]:
    """Return the tenant's own levels as gate code → level; gates without one keep theirs."""
    return dict(GateLevel.objects.order_by("gate").values_list("gate", "level"))


def gates_shown() -> list[ShownGate]:
    """Return every gate in its order, as it holds in this tenant."""
    rows = {row.gate: row for row in GateLevel.objects.all()}
    own = {gate: row.level for gate, row in rows.items()}
    return [
        ShownGate(
            info=info,
            level=gate_level(info, own),
            own="" if info.locked else own.get(info.code, ""),
            updated_by=rows[info.code].updated_by if info.code in rows else "",
        )
        for info in gates_known()
    ]


def gate_level_set(*, gate: str, level: str, actor: str) -> str:
    """Let ``gate`` block, warn or be off in this tenant; "" gives it back its own level.

    Returns the level that holds now. Raises ``InvalidGateLevel``, ``PersonRequired`` and
    ``NotAGovernor``.
    """
    governor_required(actor)
    info = _gate_checked(gate, level)
    with tenant_transaction():
        configuration_locked()
        before = gate_level(info, levels())
        if level:
            GateLevel.objects.update_or_create(
                gate=gate, defaults={"level": level, "updated_by": actor}
            )
        else:
            GateLevel.objects.filter(gate=gate).delete()
        after = gate_level(info, levels())
        if after != before:
            weaker = STRENGTH.index(after) < STRENGTH.index(before)
            audit_append(
                actor=actor,
                action="gate_level.changed",
                entity=f"gate:{gate}",
                detail={"before": before, "after": after, "weaker": weaker},
            )
    return after


def _gate_checked(gate: str, level: str) -> GateInfo:
    info = next((known for known in gates_known() if known.code == gate), None)
    if info is None:
        raise InvalidGateLevel("gate", _("There is no gate “%s”.") % gate)
    if level and level not in STRENGTH:
        known = ", ".join(STRENGTH)
        raise InvalidGateLevel("level", _("Use one of %(known)s, or nothing.") % {"known": known})
    if info.locked and level not in ("", "block"):
        text = _("“%(gate)s” blocks in every tenant: without it a release could not be loaded.")
        raise InvalidGateLevel("level", text % {"gate": info.title})
    return info
