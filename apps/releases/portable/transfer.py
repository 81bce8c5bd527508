"""Moves a whole tenant out of and into the database. Inside a tenant scope."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from apps.releases.content import InvalidContent
from apps.releases.environments.binding_values import InvalidBinding
from apps.releases.environments.services import UnknownEnvironment, binding_set
from apps.releases.models import Binding, ConfigItem, Reference
from apps.releases.portable.native import (
    Portable,
    PortableBinding,
    PortableItem,
    portable_content,
)
from apps.releases.portable.yaml_source import Problem, SourceRefused
from apps.releases.selectors import item_heads
from apps.releases.services import ItemInUse, item_archive, item_save
from apps.runtime.config import KINDS, bindings
from apps.tenants.scope import tenant_transaction

Change = Literal["created", "changed", "unchanged", "archived"]


@dataclass(frozen=True)
class Imported:
    """What an import did (or, dry, would do): item → change, and what publishing would refuse."""

    changes: dict[tuple[str, str], Change]
    dangling: list[str]
    bindings: int = 0

    def counts(self) -> dict[str, int]:
        """Return how many items were created, changed, left unchanged, archived."""
        counted = Counter(self.changes.values())
        return {name: counted[name] for name in ("created", "changed", "unchanged", "archived")}


def tenant_export(*, binding_values: bool = False) -> Portable:
    """Return every item of the current tenant that is not archived, and the bindings they name.

    Values of bindings are left out unless asked for: they belong to an environment.
    """
    with tenant_transaction():
        items = [_portable(item) for item in item_heads().order_by("kind", "slug")]
        names = sorted({name for item in items for name in _binding_names(item)})
        rows = Binding.objects.order_by("environment") if binding_values else []
        values = [
            PortableBinding(row.what, row.name, row.environment, row.value)
            for row in rows
            if (row.what, row.name) in set(names)
        ]
    return Portable(items=items, binding_names=names, bindings=values)


def tenant_import(
    *,
    portable: Portable,
    actor: str,
    note: str = "",
    replace: bool = False,
    dry_run: bool = False,
) -> Imported:
    """Make ``portable`` the heads of the current tenant's items, all or nothing.

    Items that it does not name stay as they are, or are archived with ``replace``. ``dry_run`` does
    everything and takes it back. Raises ``SourceRefused``.
    """
    with tenant_transaction():
        before = {(i.kind, i.slug): i for i in item_heads(archived=True)}
        changes = {(i.kind, i.slug): _save(i, before, actor, note) for i in portable.items}
        for binding in portable.bindings:
            _bind(binding, actor)
        if replace:
            stale = [i for key, i in before.items() if key not in changes and not i.archived_at]
            changes |= _archive(stale, actor)
        dangling = _dangling()
        if dry_run:
            transaction.set_rollback(True)
    return Imported(changes=changes, dangling=dangling, bindings=len(portable.bindings))


def _portable(item: ConfigItem) -> PortableItem:
    assert item.head is not None
    return PortableItem(
        kind=item.kind,
        slug=item.slug,
        content=portable_content(item.head.content),
        labels={
            "name": item.name,
            "owner": item.owner,
            "technical_owner": item.technical_owner,
        },
    )


def _binding_names(item: PortableItem) -> Iterable[tuple[str, str]]:
    config = KINDS[item.kind].model_validate(dict(item.content))
    return [(found.what, found.name) for found in bindings(config)]


def _save(
    item: PortableItem, before: dict[tuple[str, str], ConfigItem], actor: str, note: str
) -> Change:
    existing = before.get((item.kind, item.slug))
    try:
        revision = item_save(
            kind=item.kind,
            slug=item.slug,
            content=item.content,
            actor=actor,
            note=note,
            name=item.labels.get("name"),
            owner=item.labels.get("owner"),
            technical_owner=item.labels.get("technical_owner"),
        )
    except InvalidContent as error:
        where = f"{item.kind}.{item.slug}"
        raise SourceRefused(
            [
                Problem(item.file, item.line, f"{where}.{found['field']}", found["message"])
                for found in error.errors
            ]
        ) from None
    if existing is None:
        return "created"
    return (
        "unchanged" if revision.pk == existing.head_id and not existing.archived_at else "changed"
    )


def _bind(binding: PortableBinding, actor: str) -> None:
    path = f"bindings.{binding.what}.{binding.name}.{binding.environment}"
    try:
        binding_set(
            environment=binding.environment,
            what=binding.what,
            name=binding.name,
            value=binding.value,
            actor=actor,
        )
    except UnknownEnvironment:
        raise SourceRefused([Problem("", 0, path, _("Unknown environment."))]) from None
    except InvalidBinding as error:
        raise SourceRefused([Problem("", 0, path, str(error))]) from None


def _archive(items: list[ConfigItem], actor: str) -> dict[tuple[str, str], Change]:
    """Archive ``items``, those that others of them name after those others."""
    changes: dict[tuple[str, str], Change] = {}
    while items:
        waiting: list[ConfigItem] = []
        problems: list[Problem] = []
        for item in items:
            try:
                item_archive(item=item, actor=actor)
                changes[(item.kind, item.slug)] = "archived"
            except ItemInUse as error:
                waiting.append(item)
                problems.append(Problem("", 0, f"items.{item.kind}.{item.slug}", str(error)))
        if len(waiting) == len(items):
            raise SourceRefused(problems)
        items = waiting
    return changes


def _dangling() -> list[str]:
    """Return what publishing would refuse, as ``kind slug: path → kind:slug``."""
    heads = set(item_heads().values_list("kind", "slug"))
    named = Reference.objects.filter(
        revision__item__head=F("revision"), revision__item__archived_at=None
    ).values_list("revision__item__kind", "revision__item__slug", "path", "kind", "slug")
    return [
        f"{kind} {slug}: {path} → {other_kind}:{other}"
        for kind, slug, path, other_kind, other in sorted(named)
        if (other_kind, other) not in heads
    ]
