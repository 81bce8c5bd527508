"""What every write of a change request does: lock, change the state, bind, tell. For its services only."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from apps.releases.change_models import ChangeRequest
from apps.releases.changes.approvals import (
    Counted,
    approvals_counted,
    editors_of,
    terms_digest,
)
from apps.releases.changes.candidate import (
    Candidate,
    Choices,
    candidate_make,
    candidate_release,
    heads_release,
    items_patched,
    labels_of,
)
from apps.releases.changes.events import ChangeEvent, change_told
from apps.releases.changes.policy import RISKS, ItemEdit, Requirement, change_policy
from apps.releases.changes.refusals import (
    ApprovalsMissing,
    MergeConflict,
    RiskUnderstated,
    StaleRequest,
    WrongState,
)
from apps.releases.changes.states import ACTS, DRAFT, OPEN, state_after
from apps.releases.content import InvalidContent
from apps.releases.gates import (
    GateContext,
    ItemLabels,
    Problem,
    blocking,
    gate_results,
    gates_run,
    item_labels,
)
from apps.releases.services import GateRefused, configuration_locked
from apps.runtime.canonical import canonical_json
from apps.tenants.issuing import with_issuer
from apps.tenants.scope import current_tenant_id
from apps.tenants.services import audit_append

Key = tuple[str, str]
_many_edits: ContextVar[bool] = ContextVar("many_edits", default=False)


def request_locked(request: ChangeRequest) -> ChangeRequest:
    """Take the tenant's configuration lock and return the request as it is under it."""
    configuration_locked()
    found: ChangeRequest = ChangeRequest.objects.get(pk=request.pk)
    return found


def state_check(request: ChangeRequest, act: str) -> str:
    """Return the state that ``act`` leads to; raise ``WrongState`` when it is not possible now."""
    after = state_after(act, request.status)
    if after is None:
        possible = ", ".join(str(ChangeRequest.Status(state).label) for state in ACTS[act])
        raise WrongState(
            _(
                "Request #%(number)s is “%(status)s”; this is possible only while it is: %(possible)s."
            )
            % {
                "number": request.number,
                "status": request.get_status_display(),
                "possible": possible,
            }
        )
    return after


def open_check(request: ChangeRequest) -> None:
    """Raise ``WrongState`` when the request can no longer be edited."""
    if request.status not in OPEN:
        state_check(request, "withdraw")


def told(request: ChangeRequest, event: str, actor: str, subject: str = "", **detail: Any) -> None:
    """Write the audit entry of ``event`` and tell the listeners."""
    facts = {"status": request.status, "sha256": request.manifest_sha256, **detail}
    audit_append(actor=actor, action=event, entity=f"change:{request.number}", detail=facts)
    change_told(
        ChangeEvent(
            event=event,
            actor=actor,
            subject=subject or str(request),
            request=request,
            environment=request.environment,
            detail=facts,
        )
    )


def editor_add(request: ChangeRequest, actor: str) -> None:
    """Note that ``actor`` changed a patch or the terms: they no longer may approve.

    Nor may who issued the key that ``actor`` is: else a person would edit with a key of the tenant
    and approve it themselves.
    """
    editors = editors_of(request)
    new = [maker for maker in with_issuer(actor) if maker not in editors]
    if new:
        request.editors = canonical_json([*editors, *new])


# -- binding to a manifest -----------------------------------------------------------------------
def candidate_whole(
    request: ChangeRequest, choices: Mapping[str, Choices] | None = None
) -> Candidate:
    """Return the candidate; raise ``MergeConflict`` or ``InvalidContent`` when there is none.

    ``choices`` as in ``request_rebase``.
    """
    candidate = candidate_make(request, choices)
    if candidate.conflicts:
        raise MergeConflict(candidate.conflicts)
    if candidate.errors:
        raise InvalidContent(candidate.errors)
    return candidate


def candidate_fresh(request: ChangeRequest) -> Candidate:
    """Return the candidate of a request that is bound to it; raise ``StaleRequest`` when it is not.

    Also when every head is another one but the manifest came out the same: a patch is then made
    against what is no longer there.
    """
    candidate = candidate_make(request)
    if candidate.conflicts:
        raise MergeConflict(candidate.conflicts)
    stale = any(found.is_stale for found in candidate.items)
    if stale or candidate.sha256 != request.manifest_sha256:
        raise StaleRequest(seen=request.manifest_sha256, now=candidate.sha256)
    return candidate


def risk_update(request: ChangeRequest) -> None:
    """Set the request's risk class and findings from its patches as they are now."""
    _risk_set(request, [found.edit for found in items_patched(request)])


def _risk_set(request: ChangeRequest, edits: Sequence[ItemEdit]) -> None:
    policy = change_policy()
    request.risk = policy.risk_class(edits) if edits else RISKS[0]
    request.risks = canonical_json([asdict(risk) for risk in policy.risks(edits)])


def bind(
    request: ChangeRequest, candidate: Candidate, actor: str, *, submitting: bool = False
) -> list[Problem]:
    """Bind the request to ``candidate``: hash, risk, gate results. Return the gates' findings."""
    _risk_set(request, candidate.edits)
    problems = gates_checked(request, candidate, actor, submitting=submitting)
    request.manifest_sha256, request.bound_at = candidate.sha256, timezone.now()
    request.gate_results = canonical_json(gate_results(problems))
    return problems


def gates_checked(
    request: ChangeRequest, candidate: Candidate, actor: str, *, submitting: bool = False
) -> list[Problem]:
    """Run the gates on ``candidate`` and return their findings."""
    parent = heads_release(candidate)
    return gates_run(
        GateContext(
            tenant_id=current_tenant_id(),
            actor=actor,
            note=request.title,
            release=candidate_release(candidate),
            parent_id=parent.id if parent else "",
            parent=parent,
            manifest_sha256=candidate.sha256,
            risk=request.risk,
            labels=_labels(request, candidate),
            submitting=submitting,
        )
    )


def _labels(request: ChangeRequest, candidate: Candidate) -> Mapping[Key, ItemLabels]:
    labels = dict(item_labels())
    none: ItemLabels = {"name": "", "owner": "", "technical_owner": ""}
    for found in candidate.items:
        changed: Any = {**labels.get(found.key, none), **labels_of(found.patch)}
        labels[found.key] = changed
    return labels


def gates_passed(problems: Sequence[Problem]) -> None:
    """Raise ``GateRefused`` when a finding blocks."""
    against = blocking(problems)
    if against:
        raise GateRefused(against)


def risk_declared(request: ChangeRequest) -> None:
    """Raise ``RiskUnderstated`` when the changes are graver than the request says."""
    if RISKS.index(request.risk) > RISKS.index(request.declared_risk):
        policy = change_policy()
        edits = [found.edit for found in items_patched(request)]
        above = [
            risk
            for risk in policy.risks(edits)
            if RISKS.index(risk.risk) > RISKS.index(request.declared_risk)
        ]
        raise RiskUnderstated(
            declared=str(ChangeRequest.Risk(request.declared_risk).label),
            risk=str(ChangeRequest.Risk(request.risk).label),
            risks=above,
        )


@contextmanager
def many_edits() -> Iterator[None]:
    """Let the block edit many patches of one request; whoever opens it calls ``rebind`` afterwards,
    in the same transaction: binding after each of thousands would never end."""
    token = _many_edits.set(True)
    try:
        yield
    finally:
        _many_edits.reset(token)


def terms_before(request: ChangeRequest) -> str:
    """Return the terms to give to ``rebind``; inside ``many_edits`` nobody asks for them."""
    return "" if _many_edits.get() else terms_digest(request)


def rebind(request: ChangeRequest, actor: str, reason: str, *, terms: str) -> bool:
    """Bind a submitted request anew after a change; return whether what was approved is void.

    ``terms``: their digest before the change. A change without meaning leaves hash and terms, so the
    approvals, as they are. A draft is bound when it is submitted. With conflicts it is bound to
    nothing and waits for a rebase. Inside ``many_edits`` it waits for the end of that.
    """
    if _many_edits.get():
        return False
    if request.status == DRAFT:
        risk_update(request)
        return False
    candidate = candidate_make(request)
    if (
        candidate.sha256
        and candidate.sha256 == request.manifest_sha256
        and terms_digest(request) == terms
    ):
        return False
    if candidate.sha256:
        bind(request, candidate, actor)
    else:
        request.manifest_sha256, request.gate_results = "", "[]"
        risk_update(request)
    void(request, actor, reason)
    return True


def void(request: ChangeRequest, actor: str, reason: str) -> None:
    """Send a submitted request back to review: nobody has approved what it is now."""
    had = request.status
    request.status = state_check(request, "void")
    request.scheduled_for, request.schedule_zone = None, ""
    if had != request.status or request.approvals.exists():
        told(request, "change.voided", actor, reason=reason)


def others_stale(published: ChangeRequest, actor: str) -> None:
    """Tell whoever has an approved or scheduled request that it is no longer what was approved."""
    waiting = ChangeRequest.objects.filter(status__in=("approved", "scheduled"))
    for request in waiting.exclude(pk=published.pk).order_by("number")[:100]:
        told(request, "change.stale", actor, by=published.number)


def requirement_of(request: ChangeRequest, candidate: Candidate) -> Requirement:
    """Return who must approve ``request`` as it is."""
    return change_policy().requirement(edits=candidate.edits, risk=request.risk)


def approvals_of(request: ChangeRequest, candidate: Candidate) -> Counted:
    """Return the count of what was approved of ``request`` as it is."""
    return approvals_counted(request, requirement_of(request, candidate))


def approvals_required(request: ChangeRequest, candidate: Candidate) -> None:
    """Raise ``ApprovalsMissing`` unless everybody who must has approved ``request`` as it is."""
    count = approvals_of(request, candidate)
    if not count.is_complete:
        raise ApprovalsMissing(missing=count.missing, more=count.more)
