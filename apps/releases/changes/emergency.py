"""Writes that take a change request live before it was approved, and back: break glass.

Inside a tenant scope. The only way past approvals; who uses it is named for ever, and what it did is
taken back unless a second person ratifies it.
"""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.releases.authority import authority
from apps.releases.change_models import (
    Approval,
    ChangePatch,
    ChangeRequest,
    DeploymentEvent,
)
from apps.releases.changes import core
from apps.releases.changes.approvals import editors_of, terms_digest
from apps.releases.changes.candidate import Candidate, labels_of
from apps.releases.changes.policy import RISKS, change_policy
from apps.releases.changes.publishing import candidate_freeze, request_live
from apps.releases.changes.refusals import (
    IncompleteRequest,
    NotAnApprover,
    SelfApproval,
    WrongState,
)
from apps.releases.changes.selectors import request_view
from apps.releases.content import content_validate
from apps.releases.environments.deploying import deployment_find, requests_arrived
from apps.releases.environments.emergencies import content_without, emergencies_in
from apps.releases.environments.services import release_deploy
from apps.releases.freezing import manifest_of_heads, manifest_parsed
from apps.releases.gates import GateContext, gates_run
from apps.releases.models import ConfigItem, Deployment, Release
from apps.releases.selectors import content_today, item_head_users
from apps.releases.services import (
    item_leave,
    item_write,
    release_freeze,
    release_same,
)
from apps.runtime.canonical import canonical_json, sha256_text
from apps.tenants.scope import current_tenant_id, tenant_transaction
from apps.tenants.services import UnknownEnvironment

PERSON = "user:"


def request_break_glass(
    *, request: ChangeRequest, actor: str, reason: str, environment: str = "production"
) -> Release:
    """Publish an open request at once and deploy it to ``environment`` without approvals.

    Needs a person who holds a duty, and a reason. Gates that block still block; frozen windows do
    not. A second person ratifies within ``settings.BREAK_GLASS_HOURS`` or ``changes_due`` reverts it.
    """
    if not reason.strip():
        raise IncompleteRequest({"reason": _("Say why this cannot wait for approval.")})
    if environment not in settings.RELEASE_ENVIRONMENTS:
        known = ", ".join(settings.RELEASE_ENVIRONMENTS)
        raise UnknownEnvironment(_("Choose one of: %(known)s.") % {"known": known})
    _person_check(actor)
    with tenant_transaction():
        request = core.request_locked(request)
        after = core.state_check(request, "break_glass")
        if not request.patches.exists():
            raise IncompleteRequest({"patches": _("The request changes nothing.")})
        candidate = core.candidate_whole(request)
        _unlabelled_check(candidate)
        problems = core.bind(request, candidate, actor)
        core.gates_passed(problems)
        until = timezone.now() + timedelta(hours=settings.BREAK_GLASS_HOURS)
        with authority(f"emergency {request.number}"):
            release = candidate_freeze(request, candidate, problems, actor)
            request.status = after
            request.broken_glass_by, request.broken_glass_reason = actor, reason
            request.broken_glass_until, request.environment = until, environment
            request_live(request, release)
            core.told(
                request, "change.broken_glass", actor,
                release=release.number, reason=reason, until=until.isoformat(),
            )  # fmt: skip
            release_deploy(
                release=release,
                environment=environment,
                actor=actor,
                in_flight=request.in_flight,
                max_pin_hours=request.max_pin_hours,
                reason=reason[:500],
                verb="break_glass",
            )
            requests_arrived(release=release, environment=environment, actor=actor)
        core.others_stale(request, actor)
        request.refresh_from_db()
        return release


def _unlabelled_check(candidate: Candidate) -> None:
    """Raise ``IncompleteRequest`` when an item that is there gets another name or owner: that is in
    no manifest, so nothing would take it back."""
    named = [str(found.patch) for found in candidate.items if found.head and labels_of(found.patch)]
    if named:
        text = _("Names and owners are no emergency: take them out of %(items)s.")
        raise IncompleteRequest({"patches": text % {"items": ", ".join(named[:10])}})


def _person_check(actor: str) -> None:
    if not actor.startswith(PERSON) or not change_policy().duties_of(actor):
        raise NotAnApprover(_("Only a person who holds a duty in this tenant may do this."))


def break_glass_ratify(*, request: ChangeRequest, actor: str, comment: str = "") -> ChangeRequest:
    """Accept an emergency release afterwards: a second person who could have approved it.

    Raises ``SelfApproval``, ``NotAnApprover``, ``WrongState``.
    """
    with tenant_transaction():
        request = core.request_locked(request)
        _emergency_open(request)
        first = {request.author, request.broken_glass_by, *editors_of(request)}
        if actor in first:
            raise SelfApproval
        _person_check(actor)
        # Who only stands in for one of them is no second person.
        held = [duty for duty in change_policy().duties_of(actor) if duty.on_behalf_of not in first]
        if not held:
            raise NotAnApprover(_("You hold a duty only on behalf of who made this release."))
        # An emergency is no way to weaken safety past the roles that answer for it. For anything
        # else a second pair of eyes is enough: at night it is the only one there is.
        weakens = request.risk == RISKS[-1]
        needed = request_view(request).requirement.duties if weakens else ()
        if needed and not {found.duty for found in held}.intersection(needed):
            raise NotAnApprover(
                _("What weakens safety is ratified by one of the duties: %(duties)s.")
                % {"duties": ", ".join(needed)}
            )
        Approval.objects.create(
            request=request,
            person=actor,
            decision=Approval.Decision.RATIFY,
            manifest_sha256=request.manifest_sha256,
            terms=terms_digest(request),
            duties=canonical_json(sorted({found.duty for found in held})),
            comment=comment,
        )
        request.ratified_by, request.ratified_at = actor, timezone.now()
        request.save()
        core.told(request, "change.ratified", actor)
        return request


def _emergency_open(request: ChangeRequest) -> None:
    if not request.broken_glass_by:
        raise WrongState(_("This request was no emergency."))
    if request.ratified_at or request.reverted_at:
        raise WrongState(_("This emergency was ratified or reverted already."))


def break_glass_revert(*, request: ChangeRequest, actor: str, reason: str) -> Release | None:
    """Take an emergency release back: its changes out of the heads, what ran before runs again.

    What others published since stays: the changes are taken out field by field, and a field that
    somebody changed again stays as they made it. Returns the release that now runs, or None when the
    environment runs one without the emergency. Raises ``WrongState``, ``IncompleteRequest``.
    """
    if not reason.strip():
        raise IncompleteRequest({"reason": _("Say why it is taken back.")})
    with tenant_transaction():
        request = core.request_locked(request)
        _emergency_open(request)
        # Before: what the heads become is made after it, and so is without the emergency.
        moment = timezone.now()
        with authority(f"revert of emergency {request.number}"):
            reverted = _heads_revert(request, actor)
            running = _environment_revert(request, reverted, actor, reason)
        request.refresh_from_db()
        request.reverted_at = moment
        request.save()
        core.told(
            request, "change.reverted", actor,
            reason=reason, release=running.number if running else None,
        )  # fmt: skip
        return running


def _heads_revert(request: ChangeRequest, actor: str) -> Release:
    """Take the request's changes out of today's heads and freeze that."""
    parent = release_same(sha256_text(manifest_of_heads()))
    note = _("Emergency #%(number)s taken back") % {"number": request.number}
    patches = request.patches.select_related("base").order_by("kind", "slug")
    leaving = [item for patch in patches if (item := _item_revert(patch, actor, note))]
    _items_leave(leaving, actor)
    manifest = manifest_of_heads()
    known = release_same(sha256_text(manifest))
    if known is not None:
        return known
    # What gates find does not keep an emergency live; it stands in the record, and what blocks
    # keeps the release from being promoted.
    problems = gates_run(
        GateContext(
            tenant_id=current_tenant_id(),
            actor=actor,
            note=note,
            release=manifest_parsed(manifest),
            parent_id=str(parent.pk) if parent else "",
        )
    )
    return release_freeze(
        manifest=manifest, parent=parent, problems=problems, actor=actor, note=note
    )


def _item_revert(patch: ChangePatch, actor: str, note: str) -> ConfigItem | None:
    """Take one item's change back; return the item when nothing of it is to be left."""
    item = ConfigItem.objects.select_related("head").get(kind=patch.kind, slug=patch.slug)
    there = item.head is not None and not item.archived_at
    now = content_today(patch.kind, item.head.content) if there and item.head else None
    content = content_without(patch, now)
    if content is None:
        return item if there else None
    item_write(
        kind=patch.kind,
        slug=patch.slug,
        valid=content_validate(kind=patch.kind, slug=patch.slug, content=content),
        labels={},
        actor=actor,
        note=note,
        bump="patch",
    )
    return None


def _items_leave(items: Sequence[ConfigItem], actor: str) -> None:
    """Archive ``items``, those that others of them name after those others.

    What accepted items of other people name by now stays: without it nothing could be published.
    """
    waiting = list(items)
    while free := [item for item in waiting if not item_head_users(item)]:
        for item in free:
            item_leave(item=item, actor=actor)
        waiting = [item for item in waiting if item not in free]


def _environment_revert(
    request: ChangeRequest, reverted: Release, actor: str, reason: str
) -> Release | None:
    """Let the environment run what it ran before the emergency, unless what it runs is without it.

    Also when another emergency was made on top: the newest release counts that has neither this one
    nor one that was taken back.
    """
    deployment = deployment_find(request.environment)
    if deployment is None or not _runs_emergency(deployment, request):
        return None
    target = _ran_without(request) or reverted
    release_deploy(
        release=target,
        environment=request.environment,
        actor=actor,
        in_flight="force",
        reason=reason[:500],
        verb="revert",
    )
    return target


def _runs_emergency(deployment: Deployment, request: ChangeRequest) -> bool:
    if deployment.release_id == request.release_id:
        return True
    # An entry environment moves on with every publication; customers are answered elsewhere.
    if request.environment in settings.RELEASE_ENTRY_ENVIRONMENTS:
        return False
    return request.pk in {found.pk for found in emergencies_in(deployment.release)}


def _ran_without(request: ChangeRequest) -> Release | None:
    """Return the newest release that the environment ran and that may run there again, or None."""
    events = DeploymentEvent.objects.filter(environment=request.environment).order_by("-at", "-pk")
    ran = [pk for row in events.values_list("release_id", "previous_id") for pk in row if pk]
    known: dict[UUID, Release] = Release.objects.defer("manifest").in_bulk(set(ran))
    for release in (known[pk] for pk in dict.fromkeys(ran)):
        if release.pk != request.release_id and not any(
            found.pk == request.pk or found.reverted_at for found in emergencies_in(release)
        ):
            return release
    return None
