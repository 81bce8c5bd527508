"""Files into a change request: what they would change, and one request that says exactly that.

Nothing accepted and nothing that runs is changed: the request is reviewed and published like any
other. Inside a tenant scope.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from apps.releases.change_models import BindingProposal, ChangePatch, ChangeRequest
from apps.releases.changes import core
from apps.releases.changes.approvals import terms_digest
from apps.releases.changes.candidate import candidate_make
from apps.releases.changes.selectors import RequestView, request_view
from apps.releases.changes.services import (
    patch_archive,
    patch_drop,
    patch_save,
    request_describe,
    request_open,
    request_withdraw,
)
from apps.releases.changes.states import OPEN
from apps.releases.content import InvalidContent, content_same, content_validate
from apps.releases.environments.binding_values import InvalidBinding
from apps.releases.environments.services import (
    UnknownEnvironment,
    binding_propose,
    binding_set,
)
from apps.releases.gates import Problem as Finding
from apps.releases.models import Binding, ConfigItem
from apps.releases.patches.patching import patch_make
from apps.releases.portable.native import Portable, PortableBinding, PortableItem
from apps.releases.portable.transfer import Change
from apps.releases.portable.yaml_source import Problem, SourceRefused
from apps.releases.selectors import content_today, item_heads
from apps.releases.services import configuration_locked
from apps.runtime.canonical import canonical_json
from apps.tenants.scope import tenant_transaction

Key = tuple[str, str]
Heads = Mapping[Key, ConfigItem]


@dataclass(frozen=True)
class Proposed:
    """What files change: item → change, the request that says so, and how the gates find it.

    ``request`` is ``None`` when nothing changes; ``was_withdrawn`` is the number of the open request
    that there was nothing left for. After a dry run the request is gone again, its view is not.
    ``bound`` counts bindings that were set or proposed.
    """

    changes: dict[Key, Change]
    heads: Heads
    request: ChangeRequest | None = None
    view: RequestView | None = None
    findings: list[Finding] = field(default_factory=list)
    bound: int = 0
    was_withdrawn: int = 0

    def counts(self) -> dict[str, int]:
        """Return how many items are created, changed, left unchanged, archived."""
        counted = Counter(self.changes.values())
        return {name: counted[name] for name in ("created", "changed", "unchanged", "archived")}

    def dangling(self) -> list[str]:
        """Return what is named and not there, as ``kind slug: path → kind:slug``."""
        return [
            f"{found.kind} {found.slug}: {found.path} → {found.missing}"
            for found in self.findings
            if found.missing
        ]

    @property
    def is_empty(self) -> bool:
        return self.request is None and not self.bound


def terms_of_import(name: str, note: str) -> dict[str, Any]:
    """Return title and reason of a request for the imported files ``name``."""
    return {
        "title": (_("Import of %(name)s") % {"name": name})[:200],
        "reason": note or _("Imported files."),
    }


def request_of_files(
    *,
    portable: Portable,
    actor: str,
    reference: str = "",
    terms: Mapping[str, Any] | None = None,
    unless_said: Mapping[str, Any] | None = None,
    note: str = "",
    replace: bool = False,
    dry_run: bool = False,
) -> Proposed:
    """Make the open request ``reference`` ("": a new one) exactly what ``portable`` changes.

    Compared is with what is accepted today: an item that somebody else changed meanwhile is shown as
    a change back. Items that are not named stay as they are, or are archived with ``replace``.
    ``terms`` are those of ``request_open``; ``unless_said`` those of a request that is new. Bindings with values are set, or (in production)
    proposed. All or nothing; ``dry_run`` does everything and takes it back. Raises
    ``SourceRefused``, ``InvalidContent``, ``WrongState``.
    """
    with tenant_transaction():
        configuration_locked()
        heads = {(item.kind, item.slug): item for item in item_heads(archived=True)}
        changes = _changes(portable, heads, replace=replace)
        wanted = {key for key, change in changes.items() if change != "unchanged"}
        found = _open_request(reference)
        request, withdrawn = None, 0
        if wanted:
            request = found or _opened(actor, reference, {**(unless_said or {}), **(terms or {})})
            if found is not None and terms:
                request = request_describe(request=request, actor=actor, **terms)
            request = _patched(request, portable, changes, heads, actor=actor, note=note)
        elif found is not None:
            withdrawn = request_withdraw(request=found, actor=actor).number
        bound = sum(_bind(binding, actor) for binding in portable.bindings)
        proposed = Proposed(
            changes=changes,
            heads=heads,
            request=request,
            view=request_view(request) if request else None,
            findings=_findings(request, actor) if request else [],
            bound=bound,
            was_withdrawn=withdrawn,
        )
        if dry_run:
            transaction.set_rollback(True)
    return proposed


def _open_request(reference: str) -> ChangeRequest | None:
    if not reference:
        return None
    found: ChangeRequest | None = ChangeRequest.objects.filter(
        reference=reference, status__in=OPEN
    ).first()
    return found


def _opened(actor: str, reference: str, terms: Mapping[str, Any]) -> ChangeRequest:
    request = request_open(actor=actor, **terms)
    request.reference = reference
    request.save(update_fields=["reference"])
    return request


# -- what differs ----------------------------------------------------------------------------------
def _changes(portable: Portable, heads: Heads, *, replace: bool) -> dict[Key, Change]:
    changes: dict[Key, Change] = {
        (item.kind, item.slug): _change(item, heads.get((item.kind, item.slug)))
        for item in portable.items
    }
    if replace:
        for key, item in heads.items():
            if key not in changes and not item.archived_at:
                changes[key] = "archived"
    return changes


def _change(item: PortableItem, there: ConfigItem | None) -> Change:
    try:
        valid = content_validate(kind=item.kind, slug=item.slug, content=item.content)
    except InvalidContent as error:
        where = f"{item.kind}.{item.slug}"
        raise SourceRefused(
            [
                Problem(item.file, item.line, f"{where}.{found['field']}", found["message"])
                for found in error.errors
            ]
        ) from None
    if there is None or there.head is None:
        return "created"
    same = content_same(item.kind, there.head.content, valid) and not there.archived_at
    labelled = all(getattr(there, name) == text for name, text in item.labels.items())
    return "unchanged" if same and labelled else "changed"


# -- the request -----------------------------------------------------------------------------------
def _patched(
    request: ChangeRequest,
    portable: Portable,
    changes: Mapping[Key, Change],
    heads: Heads,
    *,
    actor: str,
    note: str,
) -> ChangeRequest:
    """Make the patches of ``request`` those of ``changes``, each against today's head."""
    terms = terms_digest(request)
    items = {(item.kind, item.slug): item for item in portable.items}
    as_wanted: set[Key] = set()
    with core.many_edits():
        for patch in request.patches.select_related("base"):
            key = patch.kind, patch.slug
            there = heads.get(key)
            change = changes.get(key, "unchanged")
            if change == "unchanged" or patch.base_id != (there.head_id if there else None):
                patch_drop(actor=actor, patch=patch)
            elif key in items and _says(patch, items[key], there):
                as_wanted.add(key)
        for key, change in changes.items():
            if key in as_wanted:
                continue
            if change == "archived":
                patch_archive(actor=actor, item=heads[key], request=request, note=note)
            elif change != "unchanged":
                _saved(request, items[key], actor, note)
    request.refresh_from_db()
    # Also when no file changed: what others published since makes another manifest.
    core.rebind(request, actor, _("the files or what they are compared with changed"), terms=terms)
    request.save()
    return request


def _says(patch: ChangePatch, item: PortableItem, there: ConfigItem | None) -> bool:
    """Return whether ``patch``, made against today's head, already says what the file says."""
    if patch.action == ChangePatch.Action.ARCHIVE:
        return False
    before = content_today(patch.kind, patch.base.content) if patch.base else {}
    after = content_validate(kind=item.kind, slug=item.slug, content=item.content).text
    labels: dict[str, str] = json.loads(patch.labels)
    return canonical_json(patch_make(before, json.loads(after))) == patch.operations and all(
        labels.get(name, getattr(there, name, "")) == text for name, text in item.labels.items()
    )


def _saved(request: ChangeRequest, item: PortableItem, actor: str, note: str) -> None:
    patch_save(
        actor=actor,
        kind=item.kind,
        slug=item.slug,
        content=item.content,
        request=request,
        name=item.labels.get("name"),
        owner=item.labels.get("owner"),
        technical_owner=item.labels.get("technical_owner"),
        note=note,
    )


def _findings(request: ChangeRequest, actor: str) -> list[Finding]:
    """Return what the gates would say now."""
    candidate = candidate_make(request)
    if not candidate.manifest:
        return []
    return core.gates_checked(request, candidate, actor)


# -- bindings --------------------------------------------------------------------------------------
def _bind(binding: PortableBinding, actor: str) -> int:
    """Set a binding, or propose it where a second person is asked; return whether it differs."""
    key = {"environment": binding.environment, "what": binding.what, "name": binding.name}
    if Binding.objects.filter(**key, value=binding.value).exists():
        return 0
    path = f"bindings.{binding.what}.{binding.name}.{binding.environment}"
    try:
        if binding.environment != settings.RELEASE_ENVIRONMENTS[-1]:
            binding_set(**key, value=binding.value, actor=actor)
        elif not BindingProposal.objects.filter(**key, status="open").exists():
            reason = _("From imported files.")
            binding_propose(
                environment=binding.environment,
                what=binding.what,
                name=binding.name,
                value=binding.value,
                reason=reason,
                actor=actor,
            )
        else:
            return 0
    except UnknownEnvironment:
        raise SourceRefused([Problem("", 0, path, _("Unknown environment."))]) from None
    except InvalidBinding as error:
        raise SourceRefused([Problem("", 0, path, str(error))]) from None
    return 1
