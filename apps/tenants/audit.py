"""The audit trail's chain: what is hashed, and whether it still holds."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from apps.runtime.canonical import canonical_json, sha256_text
from apps.tenants.models import AuditEntry, Tenant
from apps.tenants.scope import tenant_transaction

_SECRET_NAME = re.compile(r"secret|password|passwd|token|digest|authorization|api_?key$", re.I)
_SECRET_VALUE = re.compile(r"\b(ak_[0-9a-f]{4,16}_|st_|sk-|Bearer\s+)[\w.:~+/=-]{6,}", re.I)
HIDDEN = "***"


@dataclass(frozen=True)
class TrailState:
    """A verified trail: how many entries, and the first sequence that does not hold (0: none)."""

    tenant: str
    entries: int
    broken_at: int = 0
    reason: str = ""


def entry_hash(
    *,
    sequence: int,
    at: datetime,
    actor: str,
    action: str,
    entity: str,
    detail: str,
    previous_hash: str,
) -> str:
    """Return the hash of one entry: sha256 over the canonical text of its seven fields."""
    fields = {
        "sequence": sequence,
        "at": at.astimezone(UTC).isoformat(timespec="microseconds"),
        "actor": actor,
        "action": action,
        "entity": entity,
        "detail": detail,
        "previous_hash": previous_hash,
    }
    return sha256_text(canonical_json(fields))


def without_secrets(value: Any) -> Any:
    """Return ``value`` (JSON types) with everything that is or is called a secret masked."""
    if isinstance(value, Mapping):
        return {
            str(key): HIDDEN if _SECRET_NAME.search(str(key)) and item else without_secrets(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [without_secrets(item) for item in value]
    if isinstance(value, str):
        return _SECRET_VALUE.sub(HIDDEN, value)
    return value


def trail_verify(tenant: Tenant) -> TrailState:
    """Walk ``tenant``'s trail from the first entry and say where it first breaks, if it does.

    The tenant's own row knows where the trail ends: an end that was cut off, exchanged or added is
    found too. Entries appended meanwhile do no harm.
    """
    with tenant_transaction(tenant):
        ends_at, ends_with = _end(tenant)
        count, previous = 0, ""
        for entry in AuditEntry.objects.order_by("sequence").iterator(chunk_size=1000):
            reason = _fault(entry, expected=count + 1, previous=previous)
            if not reason and entry.sequence == ends_at and entry.hash != ends_with:
                reason = "it is not what the trail ended with"
            if reason:
                return TrailState(tenant.slug, count, count + 1, reason)
            count, previous = entry.sequence, entry.hash
        if count < ends_at:
            return TrailState(tenant.slug, count, count + 1, "the trail's end is missing")
        ends_at, _hash = _end(tenant)
        if count > ends_at:
            return TrailState(tenant.slug, ends_at, ends_at + 1, "it was added past the end")
        return TrailState(tenant.slug, count)


def _end(tenant: Tenant) -> tuple[int, str]:
    row: tuple[int, str] = Tenant.objects.values_list("audit_sequence", "audit_hash").get(
        pk=tenant.pk
    )
    return row


def _fault(entry: AuditEntry, *, expected: int, previous: str) -> str:
    if entry.sequence != expected:
        return f"entry {expected} is missing"
    if entry.previous_hash != previous:
        return "it does not follow the entry before"
    computed = entry_hash(
        sequence=entry.sequence,
        at=entry.at,
        actor=entry.actor,
        action=entry.action,
        entity=entry.entity,
        detail=entry.detail,
        previous_hash=entry.previous_hash,
    )
    return "" if entry.hash == computed else "its content was changed"
