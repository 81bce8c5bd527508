"""What the API answers when governance refuses; see ``apps/releases/refusals.py``."""

from apps.governance.duty_services import DutyNotHeld, InvalidDuty, SelfGrant
from apps.governance.governing import GovernanceRefused, NotAGovernor, PersonRequired
from apps.governance.responsibility_services import InvalidQuorum, InvalidResponsibility
from apps.releases.refusals import Refusal

FORBIDDEN = (PersonRequired, NotAGovernor, SelfGrant, DutyNotHeld)
INVALID = (InvalidDuty, InvalidResponsibility, InvalidQuorum)


def refusal_of(error: Exception) -> Refusal | None:
    """Return how ``error`` is answered, or ``None`` for one that is not a refusal of governance."""
    if not isinstance(error, GovernanceRefused):
        return None
    errors = []
    status = 403 if isinstance(error, FORBIDDEN) else 409
    if isinstance(error, INVALID):
        status, errors = 422, [{"field": error.field, "message": str(error)}]
    return Refusal(status=status, code=error.code.upper(), detail=str(error), errors=errors)
