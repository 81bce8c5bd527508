"""Writes of change requests: edit, submit, decide, merge. All inside a tenant scope.

An edit lands in a request and never in what runs. Every door (admin, API, import, command) comes
through here, so the rules hold for all of them. ``actor`` is a principal's name: ``user:ana``,
``key:ab12cd34``, ``command:config_apply``; only a person's can approve. Going live is in
``changes.publishing``. Every function is one transaction: the change, its audit entry, its event.
"""

# ``X as X``: callers find the refusals beside the functions.
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.releases.change_models import Approval, ChangeComment, ChangePatch, ChangeRequest
from apps.releases.changes import core
from apps.releases.changes.approvals import approvals_counted, editors_of, terms_digest
from apps.releases.changes.candidate import PatchedItem
from apps.releases.changes.emergency import break_glass_ratify as break_glass_ratify
from apps.releases.changes.emergency import break_glass_revert as break_glass_revert
from apps.releases.changes.emergency import request_break_glass as request_break_glass
from apps.releases.changes.policy import change_policy
from apps.releases.changes.publishing import request_publish as request_publish
from apps.releases.changes.publishing import request_schedule as request_schedule
from apps.releases.changes.publishing import request_unschedule as request_unschedule
from apps.releases.changes.refusals import ApprovalsMissing as ApprovalsMissing
from apps.releases.changes.refusals import ChangeRefused as ChangeRefused
from apps.releases.changes.refusals import IncompleteRequest as IncompleteRequest
from apps.releases.changes.refusals import MergeConflict as MergeConflict
from apps.releases.changes.refusals import NotAnApprover as NotAnApprover
from apps.releases.changes.refusals import RiskUnderstated as RiskUnderstated
from apps.releases.changes.refusals import SelfApproval as SelfApproval
from apps.releases.changes.refusals import StaleRequest as StaleRequest
from apps.releases.changes.refusals import WrongState as WrongState
from apps.releases.changes.states import APPROVED, DRAFT
from apps.releases.content import (
    FieldError,
    InvalidContent,
    content_validate,
    labels_validate,
)
from apps.releases.models import ConfigItem, Revision
from apps.releases.patches.patching import patch_make
from apps.releases.selectors import content_today
from apps.releases.services import ForeignRevision, StaleBase, configuration_locked
from apps.runtime.canonical import canonical_json
from apps.tenants.issuing import issuer_of
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import audit_append

TERMS = ("environment", "in_flight", "max_pin_hours", "bump")
LONGEST_PIN_HOURS = 24 * 90
LONGEST_TEXT = 20_000


@dataclass(frozen=True)
class Saved:
    """What an edit did. ``patch`` is None when the content is that of its base: nothing to change."""

    request: ChangeRequest
    patch: ChangePatch | None
    changed: bool


# -- the request itself ------------------------------------------------------------------------
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
    facts = _facts_checked(
        {
            "title": title,
            "reason": reason,
            "bump": bump,
            "declared_risk": declared_risk,
            "environment": environment,
            "in_flight": in_flight,
            "max_pin_hours": max_pin_hours,
            "reviewers": reviewers,
        }
    )
    with tenant_transaction():
        configuration_locked()
        newest = ChangeRequest.objects.aggregate(Max("number"))["number__max"] or 0
        request: ChangeRequest = ChangeRequest.objects.create(
            number=newest + 1,
            author=actor,
            # Who issued the key that opens it is its author as well.
            editors=canonical_json([issuer] if (issuer := issuer_of(actor)) else []),
            **facts,
        )
        audit_append(
            actor=actor,
            action="change.opened",
            entity=f"change:{request.number}",
            detail={"title": title, "environment": environment},
        )
        return request


def request_describe(*, request: ChangeRequest, actor: str, **fields: Any) -> ChangeRequest:
    """Change what ``request_open`` takes. A change of environment, in-flight policy, pin age or
    version step voids approvals and makes ``actor`` an editor; one of title, reason, reviewers or
    declared risk does not.

    Raises ``InvalidContent`` and ``WrongState``.
    """
    facts = _facts_checked(fields)
    with tenant_transaction():
        request = core.request_locked(request)
        core.open_check(request)
        terms = terms_digest(request)
        changed = {name: value for name, value in facts.items() if getattr(request, name) != value}
        if not changed:
            return request
        for name, value in changed.items():
            setattr(request, name, value)
        if set(changed) & set(TERMS):
            # Terms are approved with the rest, so who sets them is not who approves them.
            core.editor_add(request, actor)
            core.rebind(request, actor, _("what was approved with it was changed"), terms=terms)
        request.save()
        audit_append(
            actor=actor,
            action="change.described",
            entity=f"change:{request.number}",
            detail=changed,
        )
        return request


def _facts_checked(fields: Mapping[str, Any]) -> dict[str, Any]:
    facts = dict(fields)
    errors: list[FieldError] = []
    choices = {
        "bump": ChangeRequest.Bump.values,
        "declared_risk": ChangeRequest.Risk.values,
        "in_flight": ChangeRequest.InFlight.values,
        "environment": settings.RELEASE_ENVIRONMENTS,
    }
    for name, value in facts.items():
        if name in choices and value not in choices[name]:
            known = ", ".join(choices[name])
            errors.append(_error(name, _("Choose one of: %(known)s.") % {"known": known}))
        elif name == "max_pin_hours" and not _is_hours(value):
            text = _("A whole number of hours from 1 to %(most)s.")
            errors.append(_error(name, text % {"most": LONGEST_PIN_HOURS}))
        elif name == "reviewers" and not _is_names(value):
            errors.append(_error(name, _("A list of names, e.g. user:ana.")))
        elif name in ("title", "reason") and not isinstance(value, str):
            errors.append(_error(name, _("Text is expected.")))
        elif name == "reason" and len(value) > LONGEST_TEXT:
            errors.append(_error(name, _("At most %(most)s characters.") % {"most": LONGEST_TEXT}))
        elif name not in (*choices, "max_pin_hours", "reviewers", "title", "reason"):
            errors.append(_error(name, _("This field is not known here.")))
    if errors:
        raise InvalidContent(errors)
    labels_validate(title=facts.get("title"))
    _text_checked("reason", facts.get("reason") or "")
    if "reviewers" in facts:
        facts["reviewers"] = canonical_json(sorted(set(facts["reviewers"])))
    return facts


def _is_hours(value: Any) -> bool:
    return (
        isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= LONGEST_PIN_HOURS
    )


def _is_names(value: Any) -> bool:
    return (
        isinstance(value, list | tuple | set)
        and len(value) <= 50
        and all(isinstance(name, str) and 0 < len(name) <= 200 for name in value)
    )


def _text_checked(field: str, text: str) -> None:
    if len(text) > LONGEST_TEXT:
        raise InvalidContent(
            [_error(field, _("At most %(most)s characters.") % {"most": LONGEST_TEXT})]
        )
    if "\x00" in text or any("\ud800" <= char <= "\udfff" for char in text):
        text = _("The text holds a NUL or characters that are not valid Unicode.")
        raise InvalidContent([_error(field, text)])


def _error(field: str, message: str) -> FieldError:
    return FieldError(field=field, message=message)


# -- editing -----------------------------------------------------------------------------------
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

    ``base`` is what the editor saw (a revision or its number; 0: no such item yet). Operations are
    made against the base of the request's own patch when it has one, else against the head. Content
    like the base's takes the patch out again. Content as it already is in the request changes
    nothing, approvals included; anything else voids them. Raises ``InvalidContent``, ``WrongState``,
    and ``StaleBase`` when ``base`` is no longer the head.
    """
    valid = content_validate(kind=kind, slug=slug, content=content)
    labels = labels_validate(name=name, owner=owner, technical_owner=technical_owner, note=note)
    note = labels.pop("note")
    with tenant_transaction():
        configuration_locked()
        item = _item(kind, slug)
        patch = _patch_of(request, kind, slug, actor)
        if patch is None or patch.base_id != (item.head_id if item else None):
            _base_checked(item, base)
        draft = _Draft(actor=actor, kind=kind, slug=slug, item=item, request=request, note=note)
        return draft.save(patch, json.loads(valid.text), _labels_changed(item, labels))


def patch_archive(
    *, actor: str, item: ConfigItem, request: ChangeRequest | None = None, note: str = ""
) -> Saved:
    """Ask for ``item`` to leave the next release.

    That others still name it is found by the gates when the request is submitted.
    """
    note = labels_validate(note=note)["note"]
    with tenant_transaction():
        configuration_locked()
        item = ConfigItem.objects.select_related("head").get(pk=item.pk)
        patch = _patch_of(request, item.kind, item.slug, actor)
        draft = _Draft(
            actor=actor, kind=item.kind, slug=item.slug, item=item, request=request, note=note
        )
        if item.archived_at is not None or item.head is None:
            return draft.nothing(patch)
        return draft.archive(patch)


def patch_restore(
    *, actor: str, item: ConfigItem, revision: Revision, request: ChangeRequest | None = None
) -> Saved:
    """Ask for the content of an older ``revision`` to be the head again: an ordinary edit.

    Raises ``ForeignRevision`` for another item's and ``InvalidContent`` when today's class no
    longer accepts the content.
    """
    if revision.item_id != item.pk:
        raise ForeignRevision(f"revision {revision.pk} is not one of {item.kind}:{item.slug}")
    return patch_save(
        actor=actor,
        kind=item.kind,
        slug=item.slug,
        content=json.loads(revision.content),
        request=request,
        note=_("as in revision %(number)s") % {"number": revision.number},
    )


def patch_drop(*, actor: str, patch: ChangePatch) -> ChangeRequest:
    """Take one item's changes out of its request; voids approvals. Raises ``WrongState``."""
    with tenant_transaction():
        request = core.request_locked(patch.request)
        core.open_check(request)
        terms = core.terms_before(request)
        if request.patches.filter(pk=patch.pk).delete()[0]:
            _patched(request, actor, str(patch), terms, dropped=True)
        return request


def _item(kind: str, slug: str) -> ConfigItem | None:
    found: ConfigItem | None = (
        ConfigItem.objects.select_related("head").filter(kind=kind, slug=slug).first()
    )
    return found


def _patch_of(
    request: ChangeRequest | None, kind: str, slug: str, actor: str
) -> ChangePatch | None:
    request = request or _own_draft(actor)
    if request is None:
        return None
    found: ChangePatch | None = (
        request.patches.select_related("base").filter(kind=kind, slug=slug).first()
    )
    return found


def _own_draft(actor: str) -> ChangeRequest | None:
    drafts = ChangeRequest.objects.filter(author=actor, status=DRAFT)
    found: ChangeRequest | None = drafts.order_by("-number").first()
    return found


def _base_checked(item: ConfigItem | None, base: Revision | int | None) -> None:
    if base is None:
        return
    number = base if isinstance(base, int) else base.number
    head = item.head if item else None
    if number != (head.number if head else 0):
        raise StaleBase(item=item or ConfigItem(), head=head)


def _labels_changed(item: ConfigItem | None, labels: Mapping[str, str]) -> dict[str, str]:
    return {
        field: value
        for field, value in labels.items()
        if value != (getattr(item, field) if item else "")
    }


@dataclass
class _Draft:
    """One edit of one item on its way into a request."""

    actor: str
    kind: str
    slug: str
    item: ConfigItem | None
    request: ChangeRequest | None
    note: str

    def save(
        self, patch: ChangePatch | None, after: dict[str, Any], labels: dict[str, str]
    ) -> Saved:
        base = patch.base if patch else (self.item.head if self.item else None)
        gone = patch.base_archived if patch else bool(self.item and self.item.archived_at)
        before = content_today(self.kind, base.content) if base else {}
        operations = patch_make(before, after)
        if patch is not None:
            labels = {**json.loads(patch.labels), **labels}
            labels = _labels_changed(self.item, labels)
        if not operations and not labels and base is not None and not gone:
            return self.nothing(patch)
        values = {
            "action": "create" if base is None or gone else "change",
            "operations": canonical_json(operations),
            "labels": canonical_json(labels),
        }
        return self._store(patch, base, gone, values)

    def archive(self, patch: ChangePatch | None) -> Saved:
        assert self.item is not None
        values = {"action": "archive", "operations": "[]", "labels": "{}"}
        return self._store(patch, self.item.head, False, values)

    def nothing(self, patch: ChangePatch | None) -> Saved:
        """The item is as its base: take out what the request had of it."""
        if patch is None:
            request = self.request or _own_draft(self.actor) or ChangeRequest(author=self.actor)
            return Saved(request, None, changed=False)
        return Saved(patch_drop(actor=self.actor, patch=patch), None, changed=True)

    def _store(
        self,
        patch: ChangePatch | None,
        base: Revision | None,
        gone: bool,
        values: dict[str, str],
    ) -> Saved:
        request = core.request_locked(self._request())
        core.open_check(request)
        if patch is not None and all(getattr(patch, f) == v for f, v in values.items()):
            return Saved(request, patch, changed=False)
        terms = core.terms_before(request)
        if patch is None:
            patch = ChangePatch(
                request=request, kind=self.kind, slug=self.slug, base=base, base_archived=gone
            )
        for field, value in values.items():
            setattr(patch, field, value)
        patch.note, patch.edited_by, patch.request = self.note, self.actor, request
        patch.save()
        _patched(request, self.actor, str(patch), terms, action=values["action"])
        return Saved(request, patch, changed=True)

    def _request(self) -> ChangeRequest:
        return self.request or _own_draft(self.actor) or request_open(actor=self.actor)


def _patched(request: ChangeRequest, actor: str, item: str, terms: str, **detail: Any) -> None:
    """After a change of patches: note the editor, bind anew, tell."""
    core.editor_add(request, actor)
    core.rebind(request, actor, _("%(item)s was edited") % {"item": item}, terms=terms)
    request.save()
    audit_append(
        actor=actor,
        action="change.edited",
        entity=f"change:{request.number}",
        detail={"item": item, **detail},
    )


# -- review ------------------------------------------------------------------------------------
def request_submit(*, request: ChangeRequest, actor: str) -> ChangeRequest:
    """Ask for review: draft → in review, bound to the manifest it would make now.

    Raises ``IncompleteRequest`` (title, reason, no changes), ``RiskUnderstated``, ``MergeConflict``,
    ``StaleRequest``, ``InvalidContent``, and ``GateRefused`` when a gate blocks.
    """
    with tenant_transaction():
        request = core.request_locked(request)
        after = core.state_check(request, "submit")
        _complete_check(request)
        candidate = core.candidate_whole(request)
        if any(found.is_stale for found in candidate.items):
            raise StaleRequest
        problems = core.bind(request, candidate, actor, submitting=True)
        core.risk_declared(request)
        core.gates_passed(problems)
        request.status, request.submitted_at = after, timezone.now()
        request.save()
        duties = core.requirement_of(request, candidate).duties
        core.told(request, "change.submitted", actor, risk=request.risk, missing=list(duties))
        return request


def _complete_check(request: ChangeRequest) -> None:
    errors = {
        field: message
        for field, message, given in (
            ("title", _("Give the request a title."), request.title.strip()),
            ("reason", _("Say why the change is made."), request.reason.strip()),
            ("patches", _("The request changes nothing."), request.patches.exists()),
        )
        if not given
    }
    if errors:
        raise IncompleteRequest(errors)


def request_decide(
    *, request: ChangeRequest, actor: str, decision: str, sha256: str, comment: str = ""
) -> Approval:
    """Record ``approve``, ``request_changes`` or ``reject`` (the last two need a comment) about
    ``sha256``, the manifest the person was shown.

    The approval that was missing last makes the request approved. Raises ``SelfApproval``,
    ``NotAnApprover``, ``StaleRequest`` when what was shown is not what it is now, ``WrongState``,
    ``IncompleteRequest`` without a comment, ``RiskUnderstated`` and ``GateRefused``.
    """
    _text_checked("comment", comment)
    with tenant_transaction():
        request = core.request_locked(request)
        if decision == Approval.Decision.APPROVE:
            return _approve(request, actor, sha256, comment)
        if decision not in ("request_changes", "reject"):
            raise IncompleteRequest({"decision": _("Choose approve, request_changes or reject.")})
        return _turn_down(request, actor, decision, sha256, comment)


def _approve(request: ChangeRequest, actor: str, sha256: str, comment: str) -> Approval:
    if request.status != APPROVED:  # One more approval than needed is no harm.
        core.state_check(request, "approve")
    if actor in editors_of(request) or actor == request.author:
        raise SelfApproval
    candidate = core.candidate_fresh(request)
    if sha256 != request.manifest_sha256:
        raise StaleRequest(seen=sha256, now=request.manifest_sha256)
    core.risk_declared(request)
    requirement = core.requirement_of(request, candidate)
    problems = core.gates_checked(request, candidate, actor)
    core.gates_passed(problems)
    approval = _decision_store(request, actor, "approve", comment, requirement.duties)
    count = approvals_counted(request, requirement)
    if count.is_complete and request.status != APPROVED:
        request.status = core.state_check(request, "approve")
        request.save()
        core.told(request, "change.approved", actor)
    else:
        core.told(request, "change.decided", actor, missing=list(count.missing), more=count.more)
    return approval


def _turn_down(
    request: ChangeRequest, actor: str, decision: str, sha256: str, comment: str
) -> Approval:
    after = core.state_check(request, decision)
    if not comment.strip():
        raise IncompleteRequest({"comment": _("Say what should change, or why not.")})
    if actor in editors_of(request) or actor == request.author:
        raise SelfApproval
    approval = _decision_store(request, actor, decision, comment, ())
    request.status = after
    request.scheduled_for, request.schedule_zone = None, ""
    if decision == "reject":
        request.closed_at = timezone.now()
    request.save()
    event = "change.rejected" if decision == "reject" else "change.changes_requested"
    core.told(request, event, actor, seen=sha256)
    return approval


def _decision_store(
    request: ChangeRequest, actor: str, decision: str, comment: str, duties: Sequence[str]
) -> Approval:
    """Store a decision of a person who holds a duty: one of ``duties``, or (none named) any.

    A duty held on behalf of an editor counts for nothing: nobody gets round a second person by
    delegating to one.
    """
    barred = {request.author, *editors_of(request)}
    barred |= {name.removeprefix("user:") for name in barred}
    held = [duty for duty in change_policy().duties_of(actor) if duty.on_behalf_of not in barred]
    counting = [found for found in held if not duties or found.duty in duties]
    if not held:
        raise NotAnApprover(
            _("Only a person who holds a duty in this tenant decides on changes; you hold none.")
        )
    chosen = counting or held
    approval: Approval = Approval.objects.create(
        request=request,
        person=actor,
        decision=decision,
        manifest_sha256=request.manifest_sha256,
        terms=terms_digest(request),
        duties=canonical_json(sorted({found.duty for found in held})),
        on_behalf_of=next((f.on_behalf_of for f in chosen if f.on_behalf_of), ""),
        comment=comment,
    )
    return approval


def request_withdraw(*, request: ChangeRequest, actor: str) -> ChangeRequest:
    """Close an open request: its author or an editor only. Raises ``NotAnApprover``, ``WrongState``."""
    with tenant_transaction():
        request = core.request_locked(request)
        after = core.state_check(request, "withdraw")
        if actor != request.author and actor not in editors_of(request):
            raise NotAnApprover(_("Only its author or an editor withdraws a request; reject it."))
        request.status, request.closed_at = after, timezone.now()
        request.save()
        core.told(request, "change.withdrawn", actor)
        return request


def request_supersede(*, request: ChangeRequest, by: ChangeRequest, actor: str) -> ChangeRequest:
    """Close an open request in favour of another one: its author or an editor only.

    Raises ``IncompleteRequest`` when ``by`` is the request itself or is closed without going live.
    """
    with tenant_transaction():
        request = core.request_locked(request)
        after = core.state_check(request, "supersede")
        if actor != request.author and actor not in editors_of(request):
            raise NotAnApprover(_("Only its author or an editor replaces a request."))
        if by.pk == request.pk or by.status in ("rejected", "withdrawn", "superseded"):
            text = _("Name another request that is open or live.")
            raise IncompleteRequest({"superseded_by": text})
        request.status, request.superseded_by, request.closed_at = after, by, timezone.now()
        request.save()
        core.told(request, "change.superseded", actor, by=by.number)
        return request


def request_rebase(
    *,
    request: ChangeRequest,
    actor: str,
    choices: Mapping[str, Mapping[str, Any]] | None = None,
) -> ChangeRequest:
    """Put the request's changes onto today's heads; approvals of another manifest are void.

    ``choices``: "kind:slug" → path → ``mine``, ``theirs`` or ``{"value": …}``; the path "" is the
    whole item, archived by one side. A place both sides changed needs one: ``MergeConflict`` lists
    all that are missing, and nothing is changed then. Who chooses is an editor. A request of which
    nothing is left is superseded. Raises ``WrongState`` and ``InvalidContent``.
    """
    with tenant_transaction():
        request = core.request_locked(request)
        core.open_check(request)
        candidate = core.candidate_whole(request, choices)
        terms = terms_digest(request)
        moved = [found for found in candidate.items if found.is_stale]
        for found in moved:
            _patch_move(found)
        if choices and moved:
            core.editor_add(request, actor)
        if not request.patches.exists():
            request.status, request.closed_at = (
                core.state_check(request, "supersede"),
                timezone.now(),
            )
            request.save()
            core.told(request, "change.superseded", actor)
            return request
        voided = core.rebind(request, actor, _("it was put onto a newer release"), terms=terms)
        request.save()
        core.told(
            request, "change.rebased", actor, items=[str(f.patch) for f in moved], voided=voided
        )
        return request


def _patch_move(found: PatchedItem) -> None:
    """Make the patch one against today's head; take it out when it changes nothing there."""
    patch, item = found.patch, found.item
    head = item.head if item else None
    content = content_today(patch.kind, head.content) if head else {}
    gone = bool(item and item.archived_at)
    carried = patch_make(found.base or {}, content)
    patch.base, patch.base_archived = head, gone
    patch.carried = canonical_json(carried)
    if found.after is None:  # It is to be archived.
        if found.before is None:
            patch.delete()
            return
        patch.action, patch.operations = "archive", "[]"
    else:
        operations = patch_make(content, found.after)
        if not operations and not gone and head is not None and patch.labels == "{}":
            patch.delete()
            return
        patch.action = "create" if head is None or gone else "change"
        patch.operations = canonical_json(operations)
    patch.save()


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
    if not text.strip():
        raise InvalidContent([_error("text", _("Write something."))])
    _text_checked("text", text)
    place = {"kind": (kind, 40), "slug": (slug, 120), "path": (path, 300)}
    for field, (value, most) in place.items():
        _text_checked(field, value)
        if len(value) > most:
            text = _("At most %(most)s characters.") % {"most": most}
            raise InvalidContent([_error(field, text)])
    with tenant_transaction():
        request = ChangeRequest.objects.get(pk=request.pk)
        comment: ChangeComment = ChangeComment.objects.create(
            request=request, author=actor, text=text, kind=kind, slug=slug, path=path
        )
        place_named = f"{kind}:{slug} {path}".strip(" :")
        core.told(request, "change.commented", actor, place=place_named)
        return comment


def comment_resolve(*, comment: ChangeComment, actor: str) -> ChangeComment:
    """Mark a comment as settled; once is enough."""
    with tenant_transaction():
        comment = ChangeComment.objects.select_related("request").get(pk=comment.pk)
        if not comment.resolved_by:
            comment.resolved_by = actor
            comment.save(update_fields=["resolved_by"])
            audit_append(
                actor=actor,
                action="change.comment_resolved",
                entity=f"change:{comment.request.number}",
                detail={"comment": comment.pk},
            )
        return comment
