"""Writes: items, their revisions, releases. All inside a tenant scope.

These are what ``changes.services`` does once a request is approved; each asks ``authority``. Every
function is one transaction: the change, then its audit entry. ``actor`` is a principal's name.
Writers of one tenant's configuration queue (see ``configuration_locked``).
"""

# ``X as X``: callers find the exceptions beside the functions.
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Max
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from pydantic import ValidationError

from apps.releases.authority import authority_required
from apps.releases.change_models import HeadMove
from apps.releases.content import InvalidContent as InvalidContent
from apps.releases.content import (
    ValidContent,
    content_same,
    content_validate,
    field_errors,
    labels_validate,
)
from apps.releases.freezing import CorruptRelease as CorruptRelease
from apps.releases.freezing import (
    manifest_of_heads,
    manifest_parsed,
    manifest_stored,
)
from apps.releases.gates import GateContext, Problem, blocking, gate_results, gates_run
from apps.releases.models import ConfigItem, Reference, Release, Revision
from apps.releases.selectors import Usage, item_head_users, item_heads
from apps.runtime.canonical import canonical_json, sha256_text
from apps.runtime.config import KINDS, KindConfig, references
from apps.tenants.scope import current_tenant_id, tenant_transaction
from apps.tenants.services import audit_append


def configuration_locked() -> None:
    """Let one transaction at a time change this tenant's configuration, to its end.

    One lock taken first by everyone: revision and release numbers have no gaps or clashes, what was
    checked still holds when it is written, and a transaction of many saves (an import) cannot
    deadlock with another. PostgreSQL: an advisory lock, so that accepting messages (which
    references the tenant's row) is not held up. SQLite: the transaction is IMMEDIATE, hence already
    the only writer.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))",
                [f"agentops.configuration:{current_tenant_id()}"],
            )


# -- items -------------------------------------------------------------------------------------
class StaleBase(RuntimeError):
    """The head moved while somebody edited: what they saw is no longer what is there."""

    def __init__(self, *, item: ConfigItem, head: Revision | None) -> None:
        self.item = item
        self.author: str = head.author if head else ""
        self.number: int = head.number if head else 0
        self.saved_at: datetime | None = head.created_at if head else None
        super().__init__(
            _("%(author)s saved revision %(number)s of this item at %(time)s, after you opened it.")
            % {"author": head.author, "number": head.number, "time": _moment(head.created_at)}
            if head
            else _("This item has no revision yet.")
        )


class ItemInUse(RuntimeError):
    """An item cannot be archived: others name it. ``users`` says who and where."""

    def __init__(self, users: Sequence[Usage]) -> None:
        self.users = list(users)
        super().__init__(
            _("Still named by %(users)s.")
            % {"users": ", ".join(f"{u.kind}:{u.slug} ({u.path})" for u in self.users)}
        )


class ForeignRevision(ValueError):
    """A revision of one item was to become the head of another."""


def item_save(
    *,
    kind: str,
    slug: str,
    content: Mapping[str, Any] | KindConfig,
    actor: str,
    name: str | None = None,
    owner: str | None = None,
    technical_owner: str | None = None,
    note: str = "",
    base: Revision | int | None = None,
) -> Revision:
    """Make ``content`` the head of the item (kind, slug), which is created when there is none.

    Returns the new revision, or the head when nothing changed (then nothing is written). ``None``
    for ``name``, ``owner`` and ``technical_owner`` keeps what is there. ``base`` is the revision
    (or its number; 0 for "no such item yet") that the editor saw. Saving brings an archived item
    back. Raises ``InvalidContent`` and, when ``base`` is no longer the head, ``StaleBase``.
    """
    authority_required()
    valid = content_validate(kind=kind, slug=slug, content=content)
    labels = labels_validate(name=name, owner=owner, technical_owner=technical_owner, note=note)
    note = labels.pop("note")
    with tenant_transaction():
        configuration_locked()
        item, created = _item_found_or_created(kind, slug)
        head = item.head
        if head and not item.archived_at and content_same(kind, head.content, valid):
            _item_describe(item, labels, actor)
            return head
        _base_checked(item, base)
        return _head_write(item, created, valid, labels, actor=actor, note=note, bump="minor")


def item_write(
    *,
    kind: str,
    slug: str,
    valid: ValidContent,
    labels: Mapping[str, str],
    actor: str,
    note: str,
    bump: str,
) -> Revision:
    """Make ``valid`` the head of (kind, slug): what a published request does to an item.

    ``bump``: which part of the revision's version rises (``major``, ``minor``, ``patch``). The head
    is returned when the content is the same; ``labels`` are set in any case.
    """
    authority_required()
    with tenant_transaction():
        configuration_locked()
        item, created = _item_found_or_created(kind, slug)
        if item.head and not item.archived_at and item.head.content == valid.text:
            _item_describe(item, labels, actor)
            return item.head
        return _head_write(item, created, valid, labels, actor=actor, note=note, bump=bump)


def _head_write(
    item: ConfigItem,
    created: bool,
    valid: ValidContent,
    labels: Mapping[str, str],
    *,
    actor: str,
    note: str,
    bump: str,
) -> Revision:
    revision = _revision_create(item, valid, actor, note, bump)
    _item_describe(item, labels, actor, audited=False)
    return revision_accept(
        revision=revision, actor=actor, action="item.created" if created else "item.saved"
    )


def revision_accept(
    *, revision: Revision, actor: str, action: str = "item.revision_accepted"
) -> Revision:
    """Make ``revision`` the head of its item: the only place that moves a head.

    An archived item is brought back: whoever accepts a revision wants it in the next release.
    """
    authority_required()
    with tenant_transaction():
        configuration_locked()
        item = ConfigItem.objects.get(pk=revision.item_id)
        previous = Revision.objects.filter(pk=item.head_id).values_list("number", flat=True).first()
        item.head, item.archived_at = revision, None
        item.save(update_fields=["head", "archived_at", "updated_at"])
        HeadMove.objects.create(item=item, revision=revision, actor=actor)
        audit_append(
            actor=actor,
            action=action,
            entity=_entity(item),
            detail={
                "revision": revision.number,
                "sha256": revision.digest,
                "previous": previous,
                "note": revision.note,
            },
        )
        revision.item = item
        return revision


def item_restore_head(*, item: ConfigItem, revision: Revision, actor: str) -> Revision:
    """Set the head back to an older ``revision`` of the same item; nothing when it is the head.

    Raises ``ForeignRevision`` for another item's and ``InvalidContent`` when today's class no
    longer accepts the content.
    """
    authority_required()
    if revision.item_id != item.pk:
        raise ForeignRevision(f"revision {revision.pk} is not one of {item.kind}:{item.slug}")
    try:
        KINDS[item.kind].model_validate_json(revision.content)
    except ValidationError as error:
        raise InvalidContent(field_errors(error)) from None
    with tenant_transaction():
        configuration_locked()
        item = ConfigItem.objects.get(pk=item.pk)
        if item.head_id == revision.pk and item.archived_at is None:
            return revision
        return revision_accept(revision=revision, actor=actor, action="item.head_restored")


def item_archive(*, item: ConfigItem, actor: str) -> ConfigItem:
    """Leave ``item`` out of the next release. Nothing is deleted; saving it brings it back.

    Raises ``ItemInUse`` while heads of other items name it.
    """
    authority_required()
    with tenant_transaction():
        configuration_locked()
        item = ConfigItem.objects.get(pk=item.pk)
        if item.archived_at is not None:
            return item
        users = item_head_users(item)
        if users:
            raise ItemInUse(users)
        return item_leave(item=item, actor=actor)


def item_leave(*, item: ConfigItem, actor: str) -> ConfigItem:
    """Archive ``item``; that nobody names it any more is the gates' to find."""
    authority_required()
    with tenant_transaction():
        configuration_locked()
        item.archived_at = timezone.now()
        item.save(update_fields=["archived_at", "updated_at"])
        HeadMove.objects.create(item=item, revision=None, actor=actor)
        audit_append(actor=actor, action="item.archived", entity=_entity(item), detail={})
        return item


def _item_found_or_created(kind: str, slug: str) -> tuple[ConfigItem, bool]:
    item = ConfigItem.objects.select_related("head").filter(kind=kind, slug=slug).first()
    return (item, False) if item else (ConfigItem.objects.create(kind=kind, slug=slug), True)


def _base_checked(item: ConfigItem, base: Revision | int | None) -> None:
    if base is None:
        return
    number = base if isinstance(base, int) else base.number
    if number != (item.head.number if item.head else 0):
        raise StaleBase(item=item, head=item.head)


def _revision_create(
    item: ConfigItem, valid: ValidContent, actor: str, note: str, bump: str
) -> Revision:
    newest = Revision.objects.filter(item=item).aggregate(Max("number"))["number__max"] or 0
    revision: Revision = Revision.objects.create(
        item=item,
        number=newest + 1,
        version=version_after(item.head.version if item.head else "", bump),
        content=valid.text,
        digest=valid.digest,
        author=actor,
        note=note,
        base=item.head,
    )
    Reference.objects.bulk_create(
        Reference(revision=revision, path=found.path[:200], kind=found.kind, slug=found.slug)
        for found in references(valid.config)
    )
    return revision


def version_after(version: str, bump: str) -> str:
    """Return the SemVer that follows ``version``; the first one of an item is 1.0.0."""
    parts = version.split(".")
    if len(parts) != 3 or not all(part.isdigit() for part in parts):
        return "1.0.0"
    major, minor, patch = map(int, parts)
    if bump == "major":
        return f"{major + 1}.0.0"
    return f"{major}.{minor + 1}.0" if bump == "minor" else f"{major}.{minor}.{patch + 1}"


def _item_describe(
    item: ConfigItem, labels: Mapping[str, str], actor: str, audited: bool = True
) -> None:
    changed = {field: value for field, value in labels.items() if getattr(item, field) != value}
    if not changed:
        return
    for field, value in changed.items():
        setattr(item, field, value)
    item.save(update_fields=[*changed, "updated_at"])
    if audited:
        audit_append(
            actor=actor, action="item.described", entity=_entity(item), detail=dict(changed)
        )


def _moment(at: datetime) -> str:
    return date_format(timezone.localtime(at), "SHORT_DATETIME_FORMAT")


def _entity(item: ConfigItem) -> str:
    return f"{item.kind}:{item.slug}"


# -- releases ----------------------------------------------------------------------------------
class GateRefused(RuntimeError):
    """A gate has something against publishing. ``problems`` lists it all."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        super().__init__(" ".join(problem.message for problem in self.problems))


class DanglingReferences(GateRefused):
    """Items name items that are not there. ``references`` lists those problems."""

    @property
    def references(self) -> list[Problem]:
        return [problem for problem in self.problems if problem.missing]


def release_publish(*, actor: str, note: str = "") -> Release:
    """Freeze the heads of all items that are not archived into a release.

    The same content as an existing release returns that one. One publisher at a time per tenant.
    Raises ``DanglingReferences`` or ``GateRefused``, and ``InvalidContent`` when a head no longer
    fits its class or the note is too long.
    """
    authority_required()
    note = labels_validate(note=note)["note"]
    with tenant_transaction():
        configuration_locked()
        if not item_heads().exists():
            raise GateRefused([Problem(message=_("There is nothing to publish."))])
        manifest = manifest_of_heads()
        existing = release_same(sha256_text(manifest))
        if existing is not None:
            return existing
        parent = Release.objects.defer("manifest").order_by("-number").first()
        problems = _gates_passed(
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


def release_same(sha256: str) -> Release | None:
    """Return the release with this manifest, without its text, or None."""
    found: Release | None = Release.objects.defer("manifest").filter(sha256=sha256).first()
    return found


def release_freeze(
    *,
    manifest: str,
    parent: Release | None,
    problems: Sequence[Problem],
    actor: str,
    note: str,
) -> Release:
    """Store ``manifest``, which the gates passed with ``problems``, as the tenant's next release."""
    authority_required()
    with tenant_transaction():
        configuration_locked()
        sha256 = sha256_text(manifest)
        newest = Release.objects.aggregate(Max("number"))["number__max"] or 0
        published: Release = Release.objects.create(
            number=newest + 1,
            manifest=manifest,
            sha256=sha256,
            parent=parent,
            note=note,
            published_by=actor,
            gates=canonical_json(gate_results(problems)),
        )
        manifest_stored(published)
        audit_append(
            actor=actor,
            action="release.published",
            entity=f"release:{published.number}",
            detail={"sha256": sha256, "parent": parent.number if parent else None, "note": note},
        )
        return published


def _gates_passed(context: GateContext) -> list[Problem]:
    """Return the findings, none of which blocks; raise ``GateRefused`` when one does."""
    problems = gates_run(context)
    against = blocking(problems)
    if any(problem.missing for problem in against):
        raise DanglingReferences(against)
    if against:
        raise GateRefused(against)
    return problems
