"""What the API answers when governance refuses; see ``apps/releases/api/refusals.py``."""

from apps.governance.duty_services import DutyNotHeld, SelfGrant
from apps.governance.governing import GovernanceRefused, NotAGovernor, PersonRequired
from apps.governance.readiness import NoSuchCheck, SelfExemption
from apps.governance.webhook_services import InvalidWebhook
from apps.releases.api.refusals import Refusal

FORBIDDEN = (PersonRequired, NotAGovernor, SelfGrant, DutyNotHeld, SelfExemption)


def refusal_of(error: Exception) -> Refusal | None:
    """Return how ``error`` is answered, or ``None`` for one that is not a refusal of governance."""
    if not isinstance(error, GovernanceRefused | InvalidWebhook):
        return None
    errors = _errors(error)
    status = 422 if errors else 409
    if isinstance(error, FORBIDDEN):
        status = 403
    elif isinstance(error, NoSuchCheck):
        status = 404
    return Refusal(status=status, code=error.code.upper(), detail=str(error), errors=errors)


def _errors(error: GovernanceRefused | InvalidWebhook) -> list[dict[str, str]]:
    found = getattr(error, "errors", None) or {}
    field = getattr(error, "field", "")
    if field:
        found = {field: str(error)}
    return [{"field": str(name), "message": str(said)} for name, said in found.items()]
