"""What a request would make: its patches on today's heads, and the manifest of that. Reads only."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from apps.releases.change_models import ChangePatch, ChangeRequest
from apps.releases.changes.policy import ItemEdit
from apps.releases.content import InvalidContent, ValidContent, content_validate
from apps.releases.freezing import HeadRow, head_rows, manifest_of_rows, manifest_parsed
from apps.releases.models import ConfigItem, Release, Revision
from apps.releases.patches.patching import Conflict, Operation, patch_apply, patch_resolve
from apps.releases.selectors import content_today, release_load
from apps.runtime import release as runtime_release
from apps.runtime.canonical import sha256_text
from apps.runtime.config import KindConfig
from apps.tenants.scope import current_tenant_id

ARCHIVE = ChangePatch.Action.ARCHIVE
Key = tuple[str, str]
Choices = Mapping[str, Any]


@dataclass(frozen=True)
class PatchedItem:
    """One patch on today's head.

    ``before`` is what the next release has without it, ``after`` with it; ``None`` for not there.
    ``base`` is what its editor began with. ``valid`` is ``after`` checked; ``error`` says why it is
    not valid. A conflict about the whole item (archived here, changed there) has the path "".
    """

    patch: ChangePatch
    item: ConfigItem | None
    base: dict[str, Any] | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    conflicts: tuple[Conflict, ...] = ()
    valid: ValidContent | None = None
    error: InvalidContent | None = None

    @property
    def key(self) -> Key:
        return self.patch.kind, self.patch.slug

    @property
    def head(self) -> Revision | None:
        return self.item.head if self.item else None

    @property
    def is_stale(self) -> bool:
        """Whether the item is not as it was when the patch was made or last rebased."""
        head_id = self.item.head_id if self.item else None
        return self.patch.base_id != head_id or self.patch.base_archived != self.is_archived

    @property
    def is_archived(self) -> bool:
        return bool(self.item and self.item.archived_at)

    @property
    def edit(self) -> ItemEdit:
        return ItemEdit(self.patch.kind, self.patch.slug, self.before, self.after)


@dataclass(frozen=True)
class Candidate:
    """All of a request on today's heads. ``manifest`` is "" while something conflicts or is invalid."""

    items: tuple[PatchedItem, ...]
    heads_sha256: str
    manifest: str = ""
    sha256: str = ""

    @property
    def conflicts(self) -> dict[str, tuple[Conflict, ...]]:
        return {str(found.patch): found.conflicts for found in self.items if found.conflicts}

    @property
    def errors(self) -> list[Any]:
        return [
            {**error, "field": f"{found.patch}.{error['field']}"}
            for found in self.items
            if found.error
            for error in found.error.errors
        ]

    @property
    def edits(self) -> list[ItemEdit]:
        return [found.edit for found in self.items]


def items_patched(
    request: ChangeRequest, choices: Mapping[str, Choices] | None = None
) -> tuple[PatchedItem, ...]:
    """Put the request's patches onto today's heads; ``choices`` as in ``request_rebase``."""
    patches = list(request.patches.select_related("base").order_by("kind", "slug"))
    return patches_on_heads(patches, choices)


def patches_on_heads(
    patches: Sequence[ChangePatch], choices: Mapping[str, Choices] | None = None
) -> tuple[PatchedItem, ...]:
    """Put ``patches``, of whatever requests, onto today's heads: one query for all."""
    items = _items_of(patches)
    return tuple(
        patch_on_head(patch, items.get((patch.kind, patch.slug)), (choices or {}).get(str(patch)))
        for patch in patches
    )


def candidate_make(
    request: ChangeRequest, choices: Mapping[str, Choices] | None = None
) -> Candidate:
    """Return what ``request`` would make now; ``choices`` as in ``request_rebase``."""
    patched = items_patched(request, choices)
    rows = head_rows()
    heads_sha256 = sha256_text(manifest_of_rows(rows))
    if any(found.conflicts or found.error for found in patched):
        return Candidate(patched, heads_sha256)
    manifest = _manifest(patched, rows)
    return Candidate(patched, heads_sha256, manifest, sha256_text(manifest))


def patch_on_head(
    patch: ChangePatch, item: ConfigItem | None, choices: Choices | None = None
) -> PatchedItem:
    """Put one patch onto its item's head."""
    head = item.head if item else None
    content = _content(head, patch.kind)
    before = None if item is None or item.archived_at else content
    found = PatchedItem(
        patch=patch, item=item, base=_content(patch.base, patch.kind), before=before, after=None
    )
    whole = _whole_item(found, choices)
    if whole is not None:
        return whole
    if patch.action == ARCHIVE:
        return found
    operations: list[Operation] = json.loads(patch.operations)
    start = content or {}
    merged = (
        patch_resolve(start, operations, choices, base=found.base)
        if choices
        else patch_apply(start, operations)
    )
    return _checked(replace(found, after=merged.content, conflicts=merged.conflicts))


def _whole_item(found: PatchedItem, choices: Choices | None) -> PatchedItem | None:
    """Return the answer when one side archives the item and the other changed it, else None."""
    if not found.is_stale:
        return None
    archives = found.patch.action == ARCHIVE
    theirs_gone = found.before is None and found.base is not None and not found.patch.base_archived
    if not archives and not theirs_gone:
        return None
    if archives and theirs_gone:
        return found  # Both archived it.
    mine = None if archives else _mine(found)
    choice = (choices or {}).get("")
    if choice == "theirs":
        return _checked(replace(found, after=found.before))
    if choice == "mine":
        return _checked(replace(found, after=mine))
    conflict = Conflict(path="", base=found.base, theirs=found.before, mine=mine)
    return replace(found, after=found.before, conflicts=(conflict,))


def _mine(found: PatchedItem) -> dict[str, Any]:
    return patch_apply(found.base or {}, json.loads(found.patch.operations)).content


def _checked(found: PatchedItem) -> PatchedItem:
    if found.after is None or found.conflicts:
        return found
    try:
        valid = content_validate(kind=found.patch.kind, slug=found.patch.slug, content=found.after)
    except InvalidContent as error:
        return replace(found, error=error)
    return replace(found, valid=valid, after=json.loads(valid.text))


def _content(revision: Revision | None, kind: str) -> dict[str, Any] | None:
    return None if revision is None else content_today(kind, revision.content)


def _items_of(patches: Iterable[ChangePatch]) -> dict[Key, ConfigItem]:
    wanted = {(patch.kind, patch.slug) for patch in patches}
    found = ConfigItem.objects.filter(
        kind__in={kind for kind, _slug in wanted}, slug__in={slug for _kind, slug in wanted}
    ).select_related("head")
    return {(item.kind, item.slug): item for item in found if (item.kind, item.slug) in wanted}


def _manifest(patched: Iterable[PatchedItem], heads: Iterable[HeadRow]) -> str:
    rows: dict[Key, HeadRow] = {(row[0], row[1]): row for row in heads}
    for found in patched:
        if found.valid is None:
            rows.pop(found.key, None)
        else:
            rows[found.key] = (*found.key, found.valid.text)
    return manifest_of_rows(rows.values())


def candidate_release(candidate: Candidate) -> runtime_release.Release:
    """Return the candidate parsed. What the release of the heads has as it is, is not parsed again.

    Raises ``InvalidContent``.
    """
    parent = heads_release(candidate)
    if parent is None:
        return manifest_parsed(candidate.manifest)
    items: dict[Key, KindConfig] = dict(parent.items)
    for found in candidate.items:
        if found.valid is None:
            items.pop(found.key, None)
        else:
            items[found.key] = found.valid.config
    return runtime_release.Release(sha256=candidate.sha256, items=items)


def heads_release(candidate: Candidate) -> runtime_release.Release | None:
    """Return the parsed release that the heads are today, or None when they are none's."""
    row = Release.objects.filter(sha256=candidate.heads_sha256).values_list("pk", flat=True).first()
    return release_load(current_tenant_id(), row) if row else None


def labels_of(patch: ChangePatch) -> dict[str, str]:
    """Return the labels (name, owner, technical owner) the patch sets."""
    labels: dict[str, str] = json.loads(patch.labels)
    return labels
