"""Reads. Those that turns use ask the database nothing once they are warm."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError as DjangoValidationError
from django.db.models import F, QuerySet
from pydantic import ValidationError

from apps.releases.cache import BoundedCache
from apps.releases.environments.pointers import Pointer, pointer_read
from apps.releases.freezing import CorruptRelease
from apps.releases.models import Binding, ConfigItem, Deployment, Reference, Release, Revision
from apps.releases.patches.diff import FieldChange, content_diff
from apps.runtime import release as runtime_release
from apps.runtime.canonical import sha256_text
from apps.runtime.config import KINDS, references
from apps.tenants.scope import current_tenant_id, tenant_transaction


@dataclass(frozen=True)
class Usage:
    """Who names an item: an item's head, or (``environment`` given) a deployed release."""

    kind: str
    slug: str
    path: str
    environment: str = ""


# -- items -------------------------------------------------------------------------------------
def item_heads(kind: str = "", *, archived: bool = False) -> QuerySet[ConfigItem]:
    """Return the items of ``kind`` (empty: of all kinds) that have a head, the head included.

    Archived items are left out unless ``archived`` is true.
    """
    items: QuerySet[ConfigItem] = ConfigItem.objects.filter(head__isnull=False)
    items = items.select_related("head")
    if kind:
        items = items.filter(kind=kind)
    return items if archived else items.filter(archived_at=None)


def item_history(item: ConfigItem) -> QuerySet[Revision]:
    """Return the revisions of ``item``, newest first."""
    revisions: QuerySet[Revision] = Revision.objects.filter(item_id=item.pk)
    return revisions.order_by("-number")


def item_head_users(item: ConfigItem) -> list[Usage]:
    """Return who names ``item`` in the next release: heads of items that are not archived."""
    found = (
        Reference.objects.filter(
            kind=item.kind,
            slug=item.slug,
            revision__item__head=F("revision"),
            revision__item__archived_at=None,
        )
        .exclude(revision__item=item.pk)
        .order_by("revision__item__kind", "revision__item__slug", "path")
        .values_list("revision__item__kind", "revision__item__slug", "path")
    )
    return [Usage(kind=kind, slug=slug, path=path) for kind, slug, path in found]


def item_used_by(item: ConfigItem) -> list[Usage]:
    """Return who names ``item``: heads first, then what each environment runs."""
    usages = item_head_users(item)
    for environment, release_id in deployed_releases().items():
        release = release_load(current_tenant_id(), release_id)
        usages += [
            Usage(kind=kind, slug=slug, path=path, environment=environment)
            for kind, slug, path in _users(release).get((item.kind, item.slug), ())
            if (kind, slug) != (item.kind, item.slug)
        ]
    return usages


def revision_diff(old: Revision | None, new: Revision | None) -> list[FieldChange]:
    """Return what changed from ``old`` to ``new``, field by field, nested ones included.

    ``None`` stands for "not there": every field is then added or removed. Both sides are read with
    today's class, so a field that a class gained since is no change.
    """
    return content_diff(revision_content(old), revision_content(new))


def revision_content(revision: Revision | None) -> dict[str, Any]:
    """Return the content as today's class writes it; as stored when it no longer validates."""
    return content_today(revision.item.kind, revision.content) if revision else {}


def content_today(kind: str, text: str) -> dict[str, Any]:
    """Return canonical ``text`` as today's class of ``kind`` writes it; as it is when it no longer
    validates."""
    stored: dict[str, Any] = json.loads(text)
    config_class = KINDS.get(kind)
    if config_class is None:
        return stored
    try:
        return config_class.model_validate(stored).model_dump(mode="json")
    except ValidationError:
        return stored


# -- releases ----------------------------------------------------------------------------------
_shas: BoundedCache[tuple[int, str], str] = BoundedCache(lambda: settings.RELEASE_CACHE_SIZE * 8)
_releases: BoundedCache[tuple[int, str], runtime_release.Release] = BoundedCache(
    lambda: settings.RELEASE_CACHE_SIZE
)
_bindings: BoundedCache[tuple[int, str, int], dict[str, str]] = BoundedCache(
    lambda: settings.RELEASE_CACHE_SIZE * 4
)
_seen: BoundedCache[tuple[int, str], Pointer] = BoundedCache(lambda: 10_000)


def caches_clear() -> None:
    """Forget what this process has loaded. For tests, whose rollbacks give numbers out again."""
    for cache in (_shas, _releases, _bindings, _seen):
        cache.clear()


def deployed_seen(tenant_id: int, environment: str) -> Pointer | None:
    """Return what ``environment`` was last seen to run by this process: a guess that saves a query,
    for who checks it."""
    return _seen.get((tenant_id, environment))


def deployed_note(tenant_id: int, environment: str, pointer: Pointer) -> None:
    """Keep what ``deployed_seen`` returns."""
    _seen.put((tenant_id, environment), pointer)


def deployed_pointer(environment: str) -> Pointer | None:
    """Return what ``environment`` runs, as turns read it, or ``None``."""
    deployment = Deployment.objects.filter(environment=environment).first()
    return pointer_of(deployment) if deployment else None


def pointer_of(deployment: Deployment) -> Pointer:
    """Return what turns read of ``deployment``. One from before the column was there has run one
    release, which everybody followed."""
    if deployment.pointer not in ("", "{}"):
        return pointer_read(deployment.pointer)
    return Pointer(release=deployment.release_id)


def deployed_release(environment: str) -> Release | None:
    """Return the release that ``environment`` runs, without its manifest, or ``None``."""
    releases: QuerySet[Release] = Release.objects.defer("manifest")
    return releases.filter(deployments__environment=environment).first()


def deployed_releases() -> dict[str, UUID]:
    """Return environment → id of the release it runs."""
    return dict(Deployment.objects.order_by("environment").values_list("environment", "release_id"))


def release_load(tenant_id: int, release_id: UUID | str) -> runtime_release.Release:
    """Return the parsed release; a warm call asks the database nothing.

    Parsed once per process and (tenant, sha256), also when many threads ask at once. Raises
    ``Release.DoesNotExist`` for an id that is absent or another tenant's, ``CorruptRelease`` when
    the stored bytes have changed.
    """
    key = (tenant_id, str(release_id))
    sha256 = _shas.get(key)
    release = _releases.get((tenant_id, sha256)) if sha256 else None
    if release is not None and release.id == key[1]:
        return release
    # The text is read before the parser's turnstile, see BoundedCache.
    with tenant_transaction(tenant_id):
        try:
            row = Release.objects.get(pk=release_id)
        except DjangoValidationError:  # Not even the form of an id.
            raise Release.DoesNotExist(key[1]) from None
    release = _releases.get_or_make((tenant_id, row.sha256), lambda: _parsed(row))
    if release.id != str(row.pk):
        # The same content under another id: the row it was first read from was rolled back.
        release = replace(release, id=str(row.pk), number=row.number)
        _releases.put((tenant_id, row.sha256), release)
    _shas.put((tenant_id, release.id), row.sha256)
    return release


def release_keep(tenant_id: int, release: runtime_release.Release) -> None:
    """Keep a release that was just made of parts this process has parsed and checked: it is not parsed
    here again. When its row is rolled back, nobody has its id; the content gets its new one when it is
    published again."""
    _releases.put((tenant_id, release.sha256), release)


def _parsed(row: Release) -> runtime_release.Release:
    if sha256_text(row.manifest) != row.sha256:
        raise CorruptRelease(
            f"release #{row.number} does not have the sha256 it was published with"
        )
    return runtime_release.release_parse(manifest=row.manifest, id=str(row.pk), number=row.number)


def bindings_load(tenant_id: int, environment: str, version: int) -> dict[str, str]:
    """Return the bindings of ``environment`` as ``"address:name"`` / ``"credential:name"`` → value.

    Kept per (tenant, environment, version): a warm call asks the database nothing. The answer is
    shared, so callers must not change it. A version that is not the current one gets the current
    values, which are then not kept.
    """
    key = (tenant_id, environment, version)
    kept = _bindings.get(key)
    if kept is not None:
        return kept
    with tenant_transaction(tenant_id):
        # The version first: rows that are newer than it do no harm, older ones would.
        current = (
            Deployment.objects.filter(environment=environment)
            .values_list("bindings_version", flat=True)
            .first()
        )
        found = {
            f"{what}:{name}": value
            for what, name, value in Binding.objects.filter(environment=environment).values_list(
                "what", "name", "value"
            )
        }
    if current == version:
        _bindings.put(key, found)
    return found


def _users(release: runtime_release.Release) -> dict[tuple[str, str], list[tuple[str, str, str]]]:
    """Return (kind, slug) → who names it (kind, slug, path); made once per parsed release."""
    key = "releases:users"
    if key not in release.derived:
        users: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
        for target, usage in _namings(release):
            users.setdefault(target, []).append(usage)
        release.derived[key] = users
    found: dict[tuple[str, str], list[tuple[str, str, str]]] = release.derived[key]
    return found


def _namings(
    release: runtime_release.Release,
) -> Iterator[tuple[tuple[str, str], tuple[str, str, str]]]:
    for (kind, slug), config in sorted(release.items.items(), key=lambda entry: entry[0]):
        for found in references(config):
            yield (found.kind, found.slug), (kind, slug, found.path)
