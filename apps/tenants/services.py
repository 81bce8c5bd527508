"""Writes of tenants, members, keys and the audit trail.

Except for ``tenant_create`` each runs in the current tenant and opens its own transaction.
"""

import hashlib
import secrets
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from pydantic import TypeAdapter, ValidationError

from apps.runtime.canonical import canonical_json
from apps.runtime.config import Slug
from apps.tenants.acting import acting_key
from apps.tenants.audit import entry_hash, without_secrets
from apps.tenants.models import TENANT_SLUG, ApiKey, AuditEntry, Membership, Role, Tenant, User
from apps.tenants.roles import KEY_SCOPES
from apps.tenants.scope import current_tenant_id, tenant_transaction

_SLUG: TypeAdapter[str] = TypeAdapter(Slug)


class TenantExists(ValueError):
    """A tenant with this slug is already there."""


class InvalidSlug(ValueError):
    """A tenant's slug is lower-case letters, digits, ``-`` and ``_``, 63 at most."""


class UnknownRole(ValueError):
    """The role is none of ``models.Role``."""


class UnknownScope(ValueError):
    """A key was asked for with a scope that does not exist, or with none."""


class UnknownEnvironment(ValueError):
    """The environment is none of ``settings.RELEASE_ENVIRONMENTS``."""


class InvalidAgent(ValueError):
    """A key is bound to an agent by its slug; this is none."""


class ForeignPerson(ValueError):
    """A personal key is issued by the person it acts as, who must be a member, and nobody else."""


class OwnRole(ValueError):
    """Somebody would give a role to themselves in a tenant that has others to ask."""


class LastTenantAdmin(ValueError):
    """A tenant keeps at least one tenant admin."""


class OutsideTransaction(RuntimeError):
    """An audit entry was written outside the transaction of the change it tells of."""


def tenant_create(
    *, slug: str, name: str, demo_keyless: bool = False, actor: str = "system"
) -> Tenant:
    """Create a tenant. Raises ``InvalidSlug`` and ``TenantExists``."""
    if not TENANT_SLUG.fullmatch(slug):
        raise InvalidSlug(slug)
    with transaction.atomic():
        try:
            with transaction.atomic():
                tenant = Tenant.objects.create(slug=slug, name=name, demo_keyless=demo_keyless)
        except IntegrityError as error:
            raise TenantExists(slug) from error
        with tenant_transaction(tenant):
            audit_append(
                actor=actor,
                action="tenant.created",
                entity=f"tenant:{slug}",
                detail={"name": name, "demo_keyless": demo_keyless},
            )
    return tenant


def tenant_update(*, tenant: Tenant, name: str, demo_keyless: bool, actor: str) -> Tenant:
    """Change a tenant's name or its keyless demo calls; nothing is written when neither changed."""
    with tenant_transaction(tenant):
        row = Tenant.objects.select_for_update(no_key=True).get(pk=tenant.pk)
        before = {"name": row.name, "demo_keyless": row.demo_keyless}
        after = {"name": name, "demo_keyless": demo_keyless}
        if before == after:
            return row
        row.name, row.demo_keyless = name, demo_keyless
        row.save(update_fields=["name", "demo_keyless"])
        audit_append(
            actor=actor,
            action="tenant.updated",
            entity=f"tenant:{row.slug}",
            detail={"before": before, "after": after},
        )
        row.refresh_from_db()
    return row


def membership_grant(*, user: User, role: str, actor: str) -> Membership:
    """Give ``user`` a role in the current tenant; granting it twice changes nothing.

    Raises ``UnknownRole``, and ``OwnRole``: a role brings duties of approval, and nobody gives
    themselves one, except in a tenant that has nobody else yet. The user may sign in to the admin
    from now on.
    """
    if role not in Role.values:
        raise UnknownRole(role)
    with tenant_transaction():
        if is_own_role(user=user, actor=actor):
            raise OwnRole(role)
        membership: Membership
        membership, created = Membership.objects.get_or_create(user=user, role=role)
        if not created:
            return membership
        if not user.is_staff:
            user.is_staff = True
            user.save(update_fields=["is_staff"])
        audit_append(
            actor=actor,
            action="membership.granted",
            entity=f"user:{user.get_username()}",
            detail={"role": role},
        )
    return membership


def is_own_role(*, user: User, actor: str) -> bool:
    """Return whether ``actor`` would give ``user``, themselves, a role that somebody else should."""
    if actor != f"user:{user.get_username()}":
        return False
    others = Membership.objects.filter(user__is_active=True).exclude(user=user)
    return bool(others.exists())


def membership_revoke(*, membership: Membership, actor: str) -> None:
    """Take a role away. Raises ``LastTenantAdmin`` for the tenant's last one."""
    with tenant_transaction():
        # The tenant's row orders two admins who revoke each other at once.
        Tenant.objects.select_for_update(no_key=True).get(pk=current_tenant_id())
        admins = Membership.objects.filter(role=Role.TENANT_ADMIN)
        if membership.role == Role.TENANT_ADMIN and not admins.exclude(pk=membership.pk).exists():
            raise LastTenantAdmin(membership.role)
        username, role = membership.user.get_username(), membership.role
        membership.delete()
        audit_append(
            actor=actor,
            action="membership.revoked",
            entity=f"user:{username}",
            detail={"role": role},
        )


def api_key_issue(
    *,
    name: str,
    scopes: Iterable[str],
    environment: str,
    expires_at: datetime | None,
    actor: str,
    person: User | None = None,
    agent: str = "",
) -> tuple[ApiKey, str]:
    """Issue a key and return it with its text ``ak_<prefix>_<secret>``, which is kept nowhere.

    With ``person`` it is personal: it acts as them, within their roles; only they may issue it.
    With ``agent`` it is bound to that agent: no other is spoken to or acted for with it. Raises
    ``UnknownScope``, ``UnknownEnvironment``, ``InvalidAgent`` and ``ForeignPerson``.
    """
    if person is not None:
        _themselves(person, actor)
    chosen = sorted(set(scopes))
    if not chosen or not set(chosen) <= set(KEY_SCOPES):
        raise UnknownScope(", ".join(sorted(set(chosen) - set(KEY_SCOPES))) or "none given")
    if environment not in settings.RELEASE_ENVIRONMENTS:
        raise UnknownEnvironment(environment)
    if agent and not is_slug(agent):
        raise InvalidAgent(agent)
    prefix = secrets.token_hex(4)
    text = f"ak_{prefix}_{secrets.token_urlsafe(32)}"
    with tenant_transaction():
        key = ApiKey.objects.create(
            name=name,
            prefix=prefix,
            digest=key_digest(text),
            scopes=chosen,
            environment=environment,
            expires_at=expires_at,
            created_by=actor,
            person=person,
            agent=agent,
        )
        audit_append(
            actor=actor,
            action="api_key.issued",
            entity=f"key:{prefix}",
            detail={
                "name": name,
                "scopes": chosen,
                "environment": environment,
                "expires_at": expires_at.isoformat() if expires_at else None,
                "person": f"user:{person.get_username()}" if person else None,
                "agent": agent or None,
            },
        )
    return key, text


def is_slug(text: str) -> bool:
    """Return whether ``text`` can be the slug of a configuration item."""
    try:
        _SLUG.validate_python(text)
    except ValidationError:
        return False
    return True


def _themselves(person: User, actor: str) -> None:
    with tenant_transaction():
        member = person.is_superuser or Membership.objects.filter(user=person).exists()
    if actor != f"user:{person.get_username()}" or not person.is_active or not member:
        raise ForeignPerson(person.get_username())


def api_key_revoke(*, key: ApiKey, actor: str) -> None:
    """End a key now. Ending it twice changes nothing."""
    with tenant_transaction():
        ended = ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now())
        if ended:
            audit_append(
                actor=actor,
                action="api_key.revoked",
                entity=f"key:{key.prefix}",
                detail={"name": key.name},
            )
        key.refresh_from_db()


def key_digest(text: str) -> str:
    """Return what is kept of a key: the sha256 of its whole text (256 random bits need no salt)."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def audit_append(*, actor: str, action: str, entity: str, detail: Mapping[str, Any]) -> AuditEntry:
    """Add a line to the current tenant's trail, in the transaction of the change it tells of.

    ``detail`` holds JSON types; what is or is called a secret in it is masked. Who acts with a
    personal key is the person; the key is added to the detail. Writers of one
    tenant queue on the tenant's row (NO KEY: foreign keys to it go on). Raises
    ``OutsideTransaction``.
    """
    if not connection.in_atomic_block:
        raise OutsideTransaction(action)
    tenant_id = current_tenant_id()
    sequence, previous = (
        Tenant.objects.select_for_update(no_key=True)
        .values_list("audit_sequence", "audit_hash")
        .get(pk=tenant_id)
    )
    fields: dict[str, Any] = {
        "sequence": sequence + 1,
        "at": timezone.now(),
        "actor": actor[:200],
        "action": action,
        "entity": entity[:300],
        "detail": canonical_json(without_secrets({**detail, **_by_key()})),
        "previous_hash": previous,
    }
    entry: AuditEntry = AuditEntry.objects.create(**fields, hash=entry_hash(**fields))
    Tenant.objects.filter(pk=tenant_id).update(audit_sequence=entry.sequence, audit_hash=entry.hash)
    return entry


def _by_key() -> dict[str, str]:
    return {"by_key": acting_key()} if acting_key() else {}
