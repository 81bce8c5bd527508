"""The review queue as its page shows it: a page of requests, in the same few queries however many."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Prefetch, Q, QuerySet
from django.utils.translation import gettext_lazy

from apps.releases.change_models import Approval, ChangePatch, ChangeRequest
from apps.releases.changes.approvals import counted, editors_of, terms_of
from apps.releases.changes.candidate import patches_on_heads
from apps.releases.changes.policy import ItemEdit, Requirement, change_policy
from apps.releases.changes.selectors import QUEUES, SUBMITTED, heads_moved_at, requests_queue
from apps.releases.changes.states import OPEN
from apps.releases.models import ConfigItem
from apps.releases.pages.change_forms import person_name
from apps.releases.pages.links import kind_label, request_link

QUEUE_TITLES: dict[str, Any] = {
    "mine": gettext_lazy("Mine"),
    "team": gettext_lazy("Team"),
    "scheduled": gettext_lazy("Scheduled"),
    "stale": gettext_lazy("Stale"),
    "break_glass": gettext_lazy("Break-glass"),
    "all": gettext_lazy("All"),
}
SHOWN_ITEMS = 3


@dataclass(frozen=True)
class QueueRow:
    """One request in the queue. ``gates``: "", "passed", "warn" or "block" when last submitted."""

    request: ChangeRequest
    url: str
    author: str
    items: list[str]
    more_items: int
    gates: str
    approvals: int
    needed: int
    conflicts: int
    is_stale: bool
    is_open: bool


def queue_tabs(actor: str) -> list[dict[str, Any]]:
    """Return the queues with how many requests are in each."""
    return [
        {
            "name": name,
            "title": QUEUE_TITLES[name],
            "count": requests_queue(name, actor).order_by().count(),
        }
        for name in QUEUES
    ]


def queue_found(queue: str, actor: str, search: str) -> QuerySet[ChangeRequest]:
    """Return the requests of ``queue`` whose number, title or author is (like) ``search``."""
    found = requests_queue(queue, actor)
    if search:
        text = search.removeprefix("#")
        match = Q(title__icontains=search) | Q(author__icontains=search)
        if text.isascii() and text.isdigit() and len(text) < 10:
            match |= Q(number=int(text))
        found = found.filter(match)
    # Small columns only: an import may hold thousands of patches.
    patches = ChangePatch.objects.only(
        "request_id", "kind", "slug", "action", "base_id", "base_archived", "labels"
    ).order_by("kind", "slug")
    return found.prefetch_related(
        Prefetch("patches", patches), Prefetch("approvals", Approval.objects.order_by("pk"))
    )


def queue_rows(requests: Iterable[ChangeRequest]) -> list[QueueRow]:
    """Return one page of ``queue_found`` as rows."""
    found = list(requests)
    waiting = [request for request in found if request.status in OPEN]
    patches = [patch for request in waiting for patch in request.patches.all()]
    moved = _moved(patches)
    conflicts = _conflicts(moved)
    asked = [(_edits(request), request.risk) for request in found]
    newest = heads_moved_at()
    stale = {patch.request_id for patch in moved} | {
        request.pk
        for request in waiting
        if request.status in SUBMITTED and newest and request.bound_at
        if request.bound_at < newest
    }
    return [
        _row(request, requirement, request.pk in stale, conflicts.get(request.pk, 0))
        for request, requirement in zip(found, change_policy().requirements(asked), strict=True)
    ]


def _row(
    request: ChangeRequest, requirement: Requirement, is_stale: bool, conflicts: int
) -> QueueRow:
    patches = list(request.patches.all())
    items = [(p.kind, p.slug, p.action, p.base_id, p.labels) for p in patches]
    count = counted(
        list(request.approvals.all()),
        editors=editors_of(request),
        sha256=request.manifest_sha256,
        terms=terms_of(request, items),
        requirement=requirement,
    )
    return QueueRow(
        request=request,
        url=request_link(request),
        author=person_name(request.author),
        items=[f"{kind_label(p.kind)} {p.slug}" for p in patches[:SHOWN_ITEMS]],
        more_items=max(0, len(patches) - SHOWN_ITEMS),
        gates=gates_level(request),
        approvals=len(count.approvals),
        needed=requirement.approvals,
        conflicts=conflicts,
        is_stale=is_stale,
        is_open=request.status in OPEN,
    )


def gates_level(request: ChangeRequest) -> str:
    """Return the gravest level of the gates' results: "" before the first submission."""
    if not request.manifest_sha256:
        return ""
    levels = {result["level"] for result in json.loads(request.gate_results)}
    return next((level for level in ("block", "warn") if level in levels), "passed")


def _edits(request: ChangeRequest) -> list[ItemEdit]:
    """Return what the policy needs to know of the patches: kinds, and what comes or goes."""
    return [
        ItemEdit(
            patch.kind,
            patch.slug,
            None if patch.action == ChangePatch.Action.CREATE else {},
            None if patch.action == ChangePatch.Action.ARCHIVE else {},
        )
        for patch in request.patches.all()
    ]


def _moved(patches: Sequence[ChangePatch]) -> list[ChangePatch]:
    """Return the patches whose item is no longer as it was when they were made."""
    rows = ConfigItem.objects.filter(
        kind__in={patch.kind for patch in patches}, slug__in={patch.slug for patch in patches}
    ).values_list("kind", "slug", "head_id", "archived_at")
    heads = {(kind, slug): (head, bool(archived)) for kind, slug, head, archived in rows}
    return [
        patch
        for patch in patches
        if heads.get((patch.kind, patch.slug), (None, False))
        != (patch.base_id, patch.base_archived)
    ]


def _conflicts(moved: Sequence[ChangePatch]) -> dict[int, int]:
    """Return request → how many places of it somebody else changed too; whole patches are read."""
    if not moved:
        return {}
    whole = ChangePatch.objects.filter(pk__in=[patch.pk for patch in moved])
    found: dict[int, int] = {}
    for patched in patches_on_heads(list(whole.select_related("base"))):
        request_id = patched.patch.request_id
        found[request_id] = found.get(request_id, 0) + len(patched.conflicts)
    return found
