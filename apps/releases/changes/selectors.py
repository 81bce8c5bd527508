"""Reads of change requests: the queue, one request as a page or the API shows it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Exists, Max, OuterRef, Q, QuerySet

from apps.releases.change_models import Approval, ChangePatch, ChangeRequest
from apps.releases.changes.approvals import Fillers, approvals_counted, editors_of, may_fill
from apps.releases.changes.candidate import (
    Candidate,
    PatchedItem,
    candidate_make,
)
from apps.releases.changes.policy import ItemEdit, Requirement, Risk, change_policy
from apps.releases.changes.states import IN_REVIEW, LIVE, OPEN
from apps.releases.gates import gate_results_read
from apps.releases.patches.diff import FieldChange, content_diff
from apps.releases.patches.patching import Conflict, patch_apply
from apps.releases.selectors import content_today

QUEUES = ("mine", "team", "scheduled", "stale", "break_glass", "all")
SUBMITTED = ("in_review", "approved", "scheduled")


# -- queues ------------------------------------------------------------------------------------
def requests_queue(queue: str, actor: str) -> QuerySet[ChangeRequest]:
    """Return the requests of one queue, newest first.

    ``mine``: open ones the actor edits, and those in review on which somebody with a duty of theirs
    has to decide and they have not. ``team``: every open one. ``scheduled``. ``stale``: submitted
    ones since which something was published. ``break_glass``: every emergency, for ever. ``all``.
    """
    found: QuerySet[ChangeRequest] = ChangeRequest.objects.order_by("-number")
    if queue == "mine":
        return found.filter(_mine(actor))
    if queue == "team":
        return found.filter(status__in=OPEN)
    if queue == "scheduled":
        return found.filter(status="scheduled")
    if queue == "stale":
        moved = heads_moved_at()
        return found.filter(status__in=SUBMITTED, bound_at__lt=moved) if moved else found.none()
    if queue == "break_glass":
        return found.filter(broken_glass_until__isnull=False)
    return found


def _mine(actor: str) -> Q:
    edited = Q(status__in=OPEN) & _edited_by(actor)
    if not change_policy().duties_of(actor):
        return edited
    decided = Approval.objects.filter(
        person=actor, request=OuterRef("pk"), manifest_sha256=OuterRef("manifest_sha256")
    )
    waiting = Q(status=IN_REVIEW) & ~_edited_by(actor)
    return edited | (waiting & Q(~Exists(decided)))


def heads_moved_at() -> Any:
    """Return when something was last published or reverted by a request, or None."""
    moments = ChangeRequest.objects.aggregate(
        published=Max("published_at"), reverted=Max("reverted_at")
    )
    return max((at for at in moments.values() if at), default=None)


def editable_requests(actor: str) -> QuerySet[ChangeRequest]:
    """Return the open requests ``actor`` edits, newest first."""
    found: QuerySet[ChangeRequest] = ChangeRequest.objects.filter(status__in=OPEN)
    return found.filter(_edited_by(actor))


def _edited_by(actor: str) -> Q:
    return Q(author=actor) | Q(editors__contains=json.dumps(actor))


def patched_content(request: ChangeRequest, kind: str, slug: str) -> dict[str, Any] | None:
    """Return the item's content as the request has it, as its editor left it (on the base it was
    made against), or None when it has no patch of it or archives it."""
    patch = request.patches.select_related("base").filter(kind=kind, slug=slug).first()
    if patch is None or patch.action == ChangePatch.Action.ARCHIVE:
        return None
    base = content_today(kind, patch.base.content) if patch.base else {}
    return patch_apply(base, json.loads(patch.operations)).content


# -- one request -------------------------------------------------------------------------------
@dataclass(frozen=True)
class PatchView:
    """One item of a request: contents before and after, what the author changed, what was carried.

    ``before`` is the head's content (None: not there), ``after`` with the patch put onto it (None:
    archived); of a published request, as it was then. ``changes`` are the author's edits,
    ``carried`` what others had changed since they began, which a rebase brought in.
    """

    patch: ChangePatch
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    changes: list[FieldChange]
    carried: list[FieldChange] = field(default_factory=list)
    conflicts: tuple[Conflict, ...] = ()
    errors: tuple[Mapping[str, Any], ...] = ()
    is_stale: bool = False


@dataclass(frozen=True)
class RequestView:
    """A request with everything a reviewer needs.

    ``sha256`` is the manifest it would make now ("" with conflicts); ``is_stale``: not the one it is
    bound to. ``missing`` duties and ``more`` people are still to approve; ``fillers``: of an open
    one, who may, by duty.
    """

    request: ChangeRequest
    patches: list[PatchView]
    sha256: str
    is_stale: bool
    risk: str
    risks: list[Risk]
    requirement: Requirement
    approvals: list[Approval]
    missing: tuple[str, ...]
    more: int
    gate_results: list[dict[str, Any]]
    fillers: list[Fillers] = field(default_factory=list)

    @property
    def conflicts(self) -> dict[str, tuple[Conflict, ...]]:
        return {str(view.patch): view.conflicts for view in self.patches if view.conflicts}


def request_view(request: ChangeRequest) -> RequestView:
    """Return ``request`` as it stands against today's heads. One that is closed: as it was."""
    return _open_view(request) if request.status in OPEN else _closed_view(request)


def _open_view(request: ChangeRequest) -> RequestView:
    candidate = candidate_make(request)
    policy = change_policy()
    edits = candidate.edits
    risk = policy.risk_class(edits) if edits else "cosmetic"
    requirement = policy.requirement(edits=edits, risk=risk)
    count = approvals_counted(request, requirement)
    return RequestView(
        request=request,
        patches=[_patch_view(found) for found in candidate.items],
        sha256=candidate.sha256,
        is_stale=_is_stale(request, candidate),
        risk=risk,
        risks=policy.risks(edits),
        requirement=requirement,
        approvals=list(request.approvals.order_by("pk")),
        missing=count.missing,
        more=count.more,
        gate_results=gate_results_read(request.gate_results),
        fillers=may_fill(
            count.missing,
            requirement=requirement,
            approvals=count.approvals,
            barred={request.author, *editors_of(request)},
            holders=policy.holders(requirement.duties) if count.missing else {},
        ),
    )


def _is_stale(request: ChangeRequest, candidate: Candidate) -> bool:
    if any(found.is_stale for found in candidate.items):
        return True
    return request.status in SUBMITTED and candidate.sha256 != request.manifest_sha256


def _patch_view(found: PatchedItem) -> PatchView:
    return PatchView(
        patch=found.patch,
        before=found.before,
        after=found.after,
        changes=content_diff(found.before or {}, found.after or {}),
        carried=carried_changes(found.patch),
        conflicts=found.conflicts,
        errors=tuple(found.error.errors) if found.error else (),
        is_stale=found.is_stale,
    )


def carried_changes(patch: ChangePatch) -> list[FieldChange]:
    """Return what a rebase brought in of others' changes, as differences."""
    return [
        FieldChange(
            path=found["path"],
            before=found["before"],
            after=found["after"],
            change="moved" if found["op"] == "order" else "changed",
        )
        for found in json.loads(patch.carried)
    ]


def _closed_view(request: ChangeRequest) -> RequestView:
    views = [_then_view(patch) for patch in request.patches.select_related("base")]
    policy = change_policy()
    edits = [ItemEdit(v.patch.kind, v.patch.slug, v.before, v.after) for v in views]
    requirement = policy.requirement(edits=edits, risk=request.risk)
    count = approvals_counted(request, requirement)
    return RequestView(
        request=request,
        patches=views,
        sha256=request.manifest_sha256,
        is_stale=False,
        risk=request.risk,
        risks=[Risk(**found) for found in json.loads(request.risks)],
        requirement=requirement,
        approvals=list(request.approvals.order_by("pk")),
        missing=() if request.status in LIVE else count.missing,
        more=0 if request.status in LIVE else count.more,
        gate_results=gate_results_read(request.gate_results),
    )


def _then_view(patch: ChangePatch) -> PatchView:
    """Return the patch on the base it was published on."""
    base = content_today(patch.kind, patch.base.content) if patch.base else None
    before = None if patch.base_archived else base
    after = (
        None
        if patch.action == ChangePatch.Action.ARCHIVE
        else patch_apply(base or {}, json.loads(patch.operations)).content
    )
    return PatchView(
        patch=patch,
        before=before,
        after=after,
        changes=content_diff(before or {}, after or {}),
        carried=carried_changes(patch),
    )
