"""The record of a release: everything that is known of it, in one signed file.

Whoever keeps the file can show later what was published, what it changed, who approved exactly that
and on what grounds, and where it ran. It holds names of people, but no conversation and no secret.
"""

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils import timezone, translation
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from apps.releases.change_models import ChangeRequest, DeploymentEvent
from apps.releases.changes.policy import ItemEdit, Risk, change_policy
from apps.releases.environments.in_flight import turn_rates
from apps.releases.evidence.notes import NoteGroup, notes_drafted
from apps.releases.evidence.signing import SignatureRefused, signed_read, signed_text
from apps.releases.freezing import manifest_stored
from apps.releases.gates import gate_results_read
from apps.releases.models import Release
from apps.releases.patches.comparing import ItemChange, Items, items_changed, manifest_items
from apps.runtime.canonical import sha256_text
from apps.tenants.models import AuditEntry, Tenant
from apps.tenants.scope import current_tenant_id, tenant_transaction

FORMAT = "agentops-release-record-v1"
EVERY_ITEM = 1_000_000


class RecordRefused(ValueError):
    """A file is not an unchanged record of a release. The sentence says what is wrong."""


def release_record(release: Release) -> dict[str, Any]:
    """Return everything known of ``release`` now, as JSON values. In a tenant's scope.

    Raises ``CorruptRelease`` when the stored bytes have changed.
    """
    with tenant_transaction():
        manifest = manifest_stored(release)
        before, after = _parent_items(release), manifest_items(manifest)
        changes = items_changed(before, after, detailed=EVERY_ITEM)
        risks = release_risks(changes, before, after)
        requests = release_requests(release)
        tenant = Tenant.objects.get(pk=current_tenant_id())
        return {
            "format": FORMAT,
            "made_at": _moment(timezone.now()),
            "tenant": tenant.slug,
            # Where the trail stood: it cannot be rewritten later without contradicting this.
            "audit_trail": {"sequence": tenant.audit_sequence, "hash": tenant.audit_hash},
            "release": {
                "number": release.number,
                "sha256": release.sha256,
                "note": release.note,
                "published_by": release.published_by,
                "published_at": _moment(release.published_at),
            },
            "manifest": manifest,
            "parent": _parent(release),
            "changes": [_change(change) for change in changes],
            "risks": [vars(risk) for risk in risks],
            "notes": _notes(changes, risks),
            "gates": gate_results_read(release.gates),
            "requests": [_request(request, release) for request in requests],
            "break_glass": [_broken_glass(r) for r in requests if r.broken_glass_by],
            "evidence": release_evidence(release),
            "deployments": [_deployment(event) for event in release_deployments(release)],
            "turns": turns_answered(release),
        }


def release_notes(release: Release) -> list[NoteGroup]:
    """Return the notes drafted from the difference to the parent, in the current language."""
    before, after = _parent_items(release), manifest_items(manifest_stored(release))
    changes = items_changed(before, after)
    return notes_drafted(changes, release_risks(changes, before, after))


def release_risks(changes: Sequence[ItemChange], before: Items, after: Items) -> list[Risk]:
    """Return what ``changes`` risk, by the tenant's policy."""
    edits = [
        ItemEdit(
            kind=change.kind,
            slug=change.slug,
            before=before.get((change.kind, change.slug)),
            after=after.get((change.kind, change.slug)),
        )
        for change in changes
    ]
    return change_policy().risks(edits)


def release_requests(release: Release) -> list[ChangeRequest]:
    """Return the change requests published as ``release``, with patches and decisions."""
    requests = ChangeRequest.objects.filter(release=release).order_by("number")
    return list(requests.prefetch_related("patches__base", "approvals"))


def release_deployments(release: Release) -> Sequence[DeploymentEvent]:
    """Return what the environments did with ``release``, oldest first."""
    events = DeploymentEvent.objects.filter(release=release) | DeploymentEvent.objects.filter(
        canary=release
    )
    return list(events.select_related("previous").defer("previous__manifest").order_by("at"))


def turns_answered(release: Release) -> list[dict[str, Any]]:
    """Return what became of the turns that ``release`` answered, for each environment."""
    found = []
    for environment in settings.RELEASE_ENVIRONMENTS:
        rates = turn_rates(release_id=release.pk, environment=environment)
        if rates.turns:
            found.append({"environment": environment, **vars(rates)})
    return found


def release_evidence(release: Release) -> list[dict[str, Any]]:
    """Return what was brought as evidence about exactly what ``release`` holds."""
    return evidence_about(release.sha256)


def evidence_about(manifest_sha256: str) -> list[dict[str, Any]]:
    """Return what was brought as evidence about a manifest, released or not."""
    rows: Callable[[str], list[dict[str, Any]]] = import_string(settings.RELEASE_EVIDENCE)
    return rows(manifest_sha256) if manifest_sha256 else []


def record_sign(record: dict[str, Any]) -> str:
    """Return ``record`` as the text of a signed file; bytes: UTF-8 with surrogates passed."""
    return signed_text(record)


def record_verify(text: str | bytes, *, public_keys: Sequence[str] | None = None) -> dict[str, Any]:
    """Return the record in ``text``; raise ``RecordRefused`` unless it is exactly as it was signed.

    ``public_keys``: whose signature counts; without, see ``signing.signed_read``.
    """
    try:
        record = signed_read(text, public_keys=public_keys)
    except SignatureRefused as refused:
        raise RecordRefused(str(refused)) from None
    if record.get("format") != FORMAT:
        raise RecordRefused(_("It is signed, but is no record of a release."))
    if sha256_text(record["manifest"]) != record["release"]["sha256"]:
        raise RecordRefused(_("Its manifest does not have the sha256 that the release has."))
    return record


def record_trail_holds(record: dict[str, Any]) -> bool:
    """Return whether the current tenant's audit trail still goes through the entry that ``record``
    names. A trail that was written anew from some entry on, all hashes included, does not."""
    anchor = record["audit_trail"]
    return bool(
        AuditEntry.objects.filter(sequence=anchor["sequence"], hash=anchor["hash"]).exists()
    )


def record_name(release: Release) -> str:
    """Return the file's name: which release, and of which content."""
    return f"release-{release.number}-{release.sha256[:12]}.record.json"


# -- parts -------------------------------------------------------------------------------------
def _parent_items(release: Release) -> Items:
    return manifest_items(manifest_stored(release.parent) if release.parent else "")


def _parent(release: Release) -> dict[str, Any] | None:
    parent = release.parent
    return {"number": parent.number, "sha256": parent.sha256} if parent else None


def _request(request: ChangeRequest, release: Release) -> dict[str, Any]:
    plain = (
        "number", "title", "reason", "status", "author", "bump", "declared_risk", "risk",
        "environment", "in_flight", "max_pin_hours", "manifest_sha256",
    )  # fmt: skip
    texts = ("editors", "reviewers", "risks", "gate_results")
    times = ("created_at", "submitted_at", "scheduled_for", "closed_at")
    return {
        **{name: getattr(request, name) for name in plain},
        **{name: json.loads(getattr(request, name)) for name in texts},
        **{name: _moment(getattr(request, name)) for name in times},
        "patches": [
            {
                "kind": patch.kind,
                "slug": patch.slug,
                "action": patch.action,
                "base_revision": patch.base.number if patch.base else None,
                "operations": json.loads(patch.operations),
                "labels": json.loads(patch.labels),
                "carried": json.loads(patch.carried),
                "note": patch.note,
                "edited_by": patch.edited_by,
            }
            for patch in request.patches.all()
        ],
        "approvals": [
            {
                "person": approval.person,
                "decision": approval.decision,
                "manifest_sha256": approval.manifest_sha256,
                "is_of_this_manifest": approval.manifest_sha256 == release.sha256,
                "terms": approval.terms,
                "duties": json.loads(approval.duties),
                "on_behalf_of": approval.on_behalf_of,
                "comment": approval.comment,
                "decided_at": _moment(approval.decided_at),
            }
            for approval in request.approvals.all()
        ],
    }


def _broken_glass(request: ChangeRequest) -> dict[str, Any]:
    return {
        "request": request.number,
        "by": request.broken_glass_by,
        "reason": request.broken_glass_reason,
        "until": _moment(request.broken_glass_until),
        "ratified_by": request.ratified_by,
        "ratified_at": _moment(request.ratified_at),
        "reverted_at": _moment(request.reverted_at),
    }


def _change(change: ItemChange) -> dict[str, Any]:
    return {
        "kind": change.kind,
        "slug": change.slug,
        "change": change.change,
        "fields": [dict(found) for found in change.fields or []],
    }


def _notes(changes: Sequence[ItemChange], risks: Sequence[Risk]) -> dict[str, Any]:
    """Return the notes in every language of the product."""
    notes = {}
    for code, _name in settings.LANGUAGES:
        with translation.override(code):
            notes[code] = [
                {"title": group.title, "sentences": group.sentences}
                for group in notes_drafted(changes, risks)
            ]
    return notes


def _deployment(event: DeploymentEvent) -> dict[str, Any]:
    return {
        "environment": event.environment,
        "verb": event.verb,
        "previous": event.previous.number if event.previous else None,
        "canary_share": event.canary_share,
        "terms": json.loads(event.terms),
        "reason": event.reason,
        "actor": event.actor,
        "at": _moment(event.at),
    }


def _moment(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
