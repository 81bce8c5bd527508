"""Writes of change requests: edit, submit, decide, merge, publish. All inside a tenant scope.

An edit lands in a request and never in what runs. Publishing is one transaction under the tenant's
configuration lock that checks again: nothing is stale, the gates pass, and everybody who must has
approved exactly this manifest. Every door (admin, API, import, command) comes through here, so the
rules hold for all of them. ``actor`` is a principal's name: ``user:ana``, ``key:ab12cd34``,
``command:config_apply``; only a person's can approve.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from apps.releases.change_models import Approval, ChangeComment, ChangePatch, ChangeRequest
from apps.releases.gates import Problem
from apps.releases.models import ConfigItem, Release, Revision
from apps.releases.patching import Conflict


class ChangeRefused(RuntimeError):
    """Base of every refusal below: the sentence is for the person who tried. ``code`` for machines."""

    code = "change_refused"


class WrongState(ChangeRefused):
    """The request is not in a state in which this can be done."""

    code = "wrong_state"


class IncompleteRequest(ChangeRefused):
    """The request lacks something to be submitted. ``errors``: field → sentence."""

    code = "incomplete_request"

    def __init__(self, errors: Mapping[str, str]) -> None:
        self.errors = dict(errors)
        super().__init__(" ".join(self.errors.values()))


class RiskUnderstated(ChangeRefused):
    """The request says it is milder than what its changes do. ``risks`` are the findings above it."""

    code = "risk_understated"


class StaleRequest(ChangeRefused):
    """Something was published since: what was seen is not what would go live. Rebase it."""

    code = "stale_request"


class MergeConflict(ChangeRefused):
    """The same places were changed by somebody else. ``conflicts``: "kind:slug" → its conflicts."""

    code = "merge_conflict"

    def __init__(self, conflicts: Mapping[str, Sequence[Conflict]]) -> None:
        self.conflicts = {key: list(found) for key, found in conflicts.items()}
        super().__init__()


class SelfApproval(ChangeRefused):
    """Who edited a request does not approve it."""

    code = "self_approval"


class NotAnApprover(ChangeRefused):
    """The actor is no person of the tenant or holds none of the duties that must approve."""

    code = "not_an_approver"


class ApprovalsMissing(ChangeRefused):
    """Not everybody who must has approved this manifest. ``missing``: duties; ``more``: people."""

    code = "approvals_missing"


@dataclass(frozen=True)
class Saved:
    """What an edit did. ``patch`` is None when the content is that of its base: nothing to change."""

    request: ChangeRequest
    patch: ChangePatch | None
    changed: bool


# -- editing -----------------------------------------------------------------------------------
def request_open(
    *,
    actor: str,
    title: str = "",
    reason: str = "",
    bump: str = "minor",
    declared_risk: str = "behaviour",
    environment: str = "staging",
    in_flight: str = "follow",
    max_pin_hours: int = 72,
    reviewers: Sequence[str] = (),
) -> ChangeRequest:
    """Open a new draft. Raises ``InvalidContent`` for values that do not fit."""
    raise NotImplementedError


def request_describe(*, request: ChangeRequest, actor: str, **fields: Any) -> ChangeRequest:
    """Change what ``request_open`` takes. A change of environment, in-flight policy, pin age or
    version step voids approvals; one of title, reason or reviewers does not."""
    raise NotImplementedError


def patch_save(
    *,
    actor: str,
    kind: str,
    slug: str,
    content: Mapping[str, Any],
    request: ChangeRequest | None = None,
    name: str | None = None,
    owner: str | None = None,
    technical_owner: str | None = None,
    note: str = "",
    base: Revision | int | None = None,
) -> Saved:
    """Put the edited ``content`` of an item into ``request``, or into the actor's newest own draft,
    or into a new draft (in this order).

    Operations are made against ``base`` (what the editor saw: the request's own patch when it has
    one, else the head). Content like the base's takes the patch out again. Content as it already is
    in the request changes nothing, approvals included; anything else voids them. Raises
    ``InvalidContent``, ``WrongState``, and ``StaleBase`` when ``base`` is no longer the head and the
    request has no patch of the item.
    """
    raise NotImplementedError


def patch_archive(
    *, actor: str, item: ConfigItem, request: ChangeRequest | None = None, note: str = ""
) -> Saved:
    """Ask for ``item`` to leave the next release. ``ItemInUse`` is found when the request is submitted."""
    raise NotImplementedError


def patch_restore(
    *, actor: str, item: ConfigItem, revision: Revision, request: ChangeRequest | None = None
) -> Saved:
    """Ask for the content of an older ``revision`` to be the head again (an ordinary edit)."""
    raise NotImplementedError


def patch_drop(*, actor: str, patch: ChangePatch) -> ChangeRequest:
    """Take one item's changes out of its request; voids approvals."""
    raise NotImplementedError


# -- review ------------------------------------------------------------------------------------
def request_submit(*, request: ChangeRequest, actor: str) -> ChangeRequest:
    """Ask for review: draft → in review, bound to the manifest it would make now.

    Raises ``IncompleteRequest`` (title, reason, no changes), ``RiskUnderstated``, ``MergeConflict``
    or ``StaleRequest``, ``GateRefused`` when a gate blocks.
    """
    raise NotImplementedError


def request_decide(
    *, request: ChangeRequest, actor: str, decision: str, sha256: str, comment: str = ""
) -> Approval:
    """Record ``approve``, ``request_changes`` or ``reject`` (both need a comment) about ``sha256``,
    the manifest the person was shown.

    The last approval that was missing makes the request approved. Raises ``SelfApproval``,
    ``NotAnApprover``, ``StaleRequest`` when what was shown is not what it is now, ``WrongState``,
    ``IncompleteRequest`` without a comment.
    """
    raise NotImplementedError


def request_withdraw(*, request: ChangeRequest, actor: str) -> ChangeRequest:
    """Close an open request; its author or an editor only (``NotAnApprover`` otherwise)."""
    raise NotImplementedError


def request_supersede(*, request: ChangeRequest, by: ChangeRequest, actor: str) -> ChangeRequest:
    """Close an open request in favour of another one."""
    raise NotImplementedError


def request_rebase(
    *,
    request: ChangeRequest,
    actor: str,
    choices: Mapping[str, Mapping[str, Any]] | None = None,
) -> ChangeRequest:
    """Put the request's changes onto today's heads; approvals of the old manifest are void.

    ``choices``: "kind:slug" → path → ``mine``, ``theirs`` or ``{"value": …}``. A place both sides
    changed needs one (``MergeConflict`` lists all that are missing; nothing is changed then).
    Who chooses for a conflict is an editor. A request of which nothing is left is superseded.
    """
    raise NotImplementedError


def comment_add(
    *,
    request: ChangeRequest,
    actor: str,
    text: str,
    kind: str = "",
    slug: str = "",
    path: str = "",
) -> ChangeComment:
    """Say something about a request or one field of it. Raises ``InvalidContent`` for empty text."""
    raise NotImplementedError


def comment_resolve(*, comment: ChangeComment, actor: str) -> ChangeComment:
    """Mark a comment as settled."""
    raise NotImplementedError


# -- going live --------------------------------------------------------------------------------
def request_publish(*, request: ChangeRequest, actor: str) -> Release:
    """Freeze the approved request into a release and let its entry environment run it.

    The environment is the request's own when it is an entry environment, else the last entry
    environment before it (staging for production): promotion does the rest. Under the lock, all of
    it is checked again. Raises ``WrongState``, ``StaleRequest``, ``ApprovalsMissing``,
    ``GateRefused``, ``UnboundBindings``, ``Frozen``.
    """
    raise NotImplementedError


def request_schedule(
    *, request: ChangeRequest, actor: str, at: datetime, zone: str
) -> ChangeRequest:
    """Publish it at ``at`` (aware) of the time zone ``zone``; later than now. By ``changes_due``."""
    raise NotImplementedError


def request_unschedule(*, request: ChangeRequest, actor: str) -> ChangeRequest:
    """Take the schedule back; the approvals stay."""
    raise NotImplementedError


def request_break_glass(
    *, request: ChangeRequest, actor: str, reason: str, environment: str = "production"
) -> Release:
    """Publish an open request at once and deploy it to ``environment`` without approvals.

    Needs a person and a reason. Gates that block still block, frozen windows do not. A second
    person ratifies within ``settings.BREAK_GLASS_HOURS`` or ``changes_due`` reverts it.
    """
    raise NotImplementedError


def break_glass_ratify(*, request: ChangeRequest, actor: str, comment: str = "") -> ChangeRequest:
    """Accept an emergency release afterwards: a second person who could have approved it."""
    raise NotImplementedError


def break_glass_revert(*, request: ChangeRequest, actor: str, reason: str) -> Release | None:
    """Take an emergency release back: its changes out of the heads, what ran before runs again.

    What others published since stays. Returns the release that now runs, or None when the
    environment had moved on.
    """
    raise NotImplementedError


def problems_shown(problems: Sequence[Problem]) -> list[dict[str, str]]:
    """Return gate findings as JSON values."""
    raise NotImplementedError
