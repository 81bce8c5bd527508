"""A policy for tests of this app, which does not know governance: duties by name."""

from collections.abc import Sequence

from apps.releases.changes.policy import HeldDuty, ItemEdit, Requirement, Risk

DUTIES: dict[str, tuple[HeldDuty, ...]] = {
    "user:otto": (HeldDuty("sre"),),
    "user:ana": (HeldDuty("sre"), HeldDuty("security")),
    "user:alice": (HeldDuty("platform"),),
    "user:proxy": (HeldDuty("sre", on_behalf_of="user:otto"),),
}
"""otto and ana deploy; alice holds another duty; proxy stands in for otto; nobody else holds any."""


class NamedDuties:
    """``ChangePolicy``: production needs ``sre``, elsewhere any duty does; bindings ``sre`` too."""

    def risks(self, edits: Sequence[ItemEdit]) -> list[Risk]:
        return []

    def risk_class(self, edits: Sequence[ItemEdit]) -> str:
        return "behaviour"

    def requirement(self, *, edits: Sequence[ItemEdit], risk: str) -> Requirement:
        return Requirement(approvals=1, duties=())

    def deployment_requirement(self, environment: str) -> Requirement:
        duties = ("sre",) if environment == "production" else ("sre", "platform", "security")
        return Requirement(approvals=1, duties=duties)

    def binding_requirement(self, environment: str) -> Requirement:
        return Requirement(approvals=1, duties=("sre", "security"))

    def duties_of(self, actor: str) -> list[HeldDuty]:
        return list(DUTIES.get(actor, ()))

    def holders(self, duties: Sequence[str]) -> dict[str, list[HeldDuty]]:
        found = {
            actor: [duty for duty in held if duty.duty in duties] for actor, held in DUTIES.items()
        }
        return {actor: held for actor, held in found.items() if held}


POLICY = NamedDuties()
