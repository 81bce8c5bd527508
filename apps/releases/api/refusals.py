"""What the API answers when a service refuses: one table of exception → status, code and details."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import ObjectDoesNotExist

from apps.releases import services
from apps.releases.authority import ChangeRequestRequired
from apps.releases.changes import refusals as changes
from apps.releases.content import InvalidContent
from apps.releases.environments import services as environments
from apps.releases.gates import findings_shown


@dataclass(frozen=True)
class Refusal:
    """A refusal as a door tells it. ``errors``: {field, message} each; ``extra``: more members."""

    status: int
    code: str
    detail: str
    errors: list[dict[str, str]] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)


Extra = Callable[[Any], Mapping[str, Any]]


def _conflicts(error: changes.MergeConflict) -> dict[str, Any]:
    found = {key: [vars(place) for place in places] for key, places in error.conflicts.items()}
    return {"conflicts": found}


def _users(error: services.ItemInUse) -> dict[str, Any]:
    return {"users": [f"{user.kind}:{user.slug} ({user.path})" for user in error.users]}


def _nothing(_error: Any) -> dict[str, Any]:
    return {}


# What is not here by its own name is answered as its base: a frozen environment as a refused change.
TABLE: dict[type[Exception], tuple[int, Extra]] = {
    changes.WrongState: (409, _nothing),
    changes.StaleRequest: (409, lambda e: {"seen": e.seen, "now": e.now}),
    changes.MergeConflict: (409, _conflicts),
    changes.SelfApproval: (403, _nothing),
    changes.NotAnApprover: (403, _nothing),
    changes.ApprovalsMissing: (409, lambda e: {"missing": list(e.missing), "more": e.more}),
    changes.RiskUnderstated: (422, lambda e: {"risks": [vars(risk) for risk in e.risks]}),
    changes.IncompleteRequest: (422, _nothing),
    changes.ChangeRefused: (409, _nothing),
    ChangeRequestRequired: (403, _nothing),
    InvalidContent: (422, _nothing),
    services.StaleBase: (409, lambda e: {"head": e.number, "author": e.author}),
    services.ItemInUse: (409, _users),
    services.GateRefused: (422, lambda e: {"problems": findings_shown(e.problems)}),
    environments.UnboundBindings: (409, lambda e: {"missing": e.missing}),
    environments.BindingInUse: (409, lambda e: {"needed_by": e.needed_by}),
    environments.InvalidBinding: (422, _nothing),
    environments.NotResponsible: (403, _nothing),
    environments.UnknownEnvironment: (404, _nothing),
    services.ForeignRevision: (404, _nothing),
    ObjectDoesNotExist: (404, _nothing),
}


def refusal_of(error: Exception) -> Refusal | None:
    """Return how ``error`` is answered, or ``None`` for one that is not a refusal."""
    for known in type(error).__mro__:
        if known in TABLE:
            status, extra = TABLE[known]
            return Refusal(
                status=status,
                code=_code(error),
                detail=str(error),
                errors=_errors(error),
                extra=dict(extra(error)),
            )
    return None


def _code(error: Exception) -> str:
    given = getattr(error, "code", "")
    if isinstance(given, str) and given:
        return given.upper()
    words = type(error).__name__
    return "".join(f"_{c}" if c.isupper() and i else c for i, c in enumerate(words)).upper()


def _errors(error: Exception) -> list[dict[str, str]]:
    """Return what is wrong field by field, however the exception keeps it."""
    found = getattr(error, "errors", None)
    if isinstance(found, Mapping):
        return [{"field": str(name), "message": str(said)} for name, said in found.items()]
    if isinstance(found, list):
        return [{"field": str(e["field"]), "message": str(e["message"])} for e in found]
    return []
