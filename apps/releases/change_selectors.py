"""Reads of change requests: the queue, one request as a page or the API shows it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import QuerySet

from apps.releases.change_models import Approval, ChangePatch, ChangeRequest
from apps.releases.change_policy import Requirement, Risk
from apps.releases.diff import FieldChange
from apps.releases.patching import Conflict

QUEUES = ("mine", "team", "scheduled", "stale", "break_glass", "all")


def requests_queue(queue: str, actor: str) -> QuerySet[ChangeRequest]:
    """Return the requests of one queue, newest first.

    ``mine``: open ones the actor edits, and those in review that wait for a duty they hold and
    have not decided on. ``team``: every open one. ``scheduled``. ``stale``: open ones whose base
    moved. ``break_glass``: every emergency, for ever. ``all``.
    """
    raise NotImplementedError


@dataclass(frozen=True)
class PatchView:
    """One item of a request: contents before and after, what the author changed, what was carried.

    ``before`` is the head's content (None: not there), ``after`` with the patch put onto it (None:
    archived). ``changes`` are the author's edits, ``carried`` those a rebase brought in.
    """

    patch: ChangePatch
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    changes: list[FieldChange]
    carried: list[FieldChange] = field(default_factory=list)
    conflicts: tuple[Conflict, ...] = ()
    is_stale: bool = False


@dataclass(frozen=True)
class RequestView:
    """A request with everything a reviewer needs.

    ``sha256`` is the manifest it would make now ("" with conflicts); ``is_stale``: not the one it is
    bound to. ``missing`` duties and ``more`` people are still to approve.
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


def request_view(request: ChangeRequest) -> RequestView:
    """Return ``request`` as it stands against today's heads. For published ones: as it was."""
    raise NotImplementedError


def candidate_manifest(request: ChangeRequest) -> str:
    """Return the canonical manifest that publishing ``request`` now would make.

    Raises ``MergeConflict``.
    """
    raise NotImplementedError


def editable_requests(actor: str) -> QuerySet[ChangeRequest]:
    """Return the open requests ``actor`` edits, newest first."""
    raise NotImplementedError


def patched_content(request: ChangeRequest, kind: str, slug: str) -> dict[str, Any] | None:
    """Return the item's content as the request has it, or None when it has no patch of it."""
    raise NotImplementedError


def open_patches(kind: str, slug: str) -> Sequence[ChangePatch]:
    """Return the patches of open requests for an item, for "also being changed in"."""
    raise NotImplementedError
