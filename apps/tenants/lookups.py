"""What must be read before the tenant is known: a key, a login's memberships, a tenant's name.

On PostgreSQL a tenant's rows are invisible without one, so these go through the narrow SECURITY
DEFINER functions of migrations 0002, 0004 and 0005; on SQLite they are ordinary unscoped queries.
"""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Q
from django.utils import timezone

from apps.tenants.models import TENANT_SLUG, ApiKey, Membership, Tenant, User
from apps.tenants.scope import unscoped

# A key in steady use writes its row at most this often.
USE_IS_NOTED_EVERY = timedelta(minutes=1)


@dataclass(frozen=True)
class FoundKey:
    """A key's row, with its tenant's slug, and its person with the roles they hold there now."""

    id: Any
    tenant_id: int
    tenant_slug: str
    prefix: str
    digest: str
    scopes: frozenset[str]
    environment: str
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    # Whom a personal key acts as; None for a system's.
    person: str | None = None
    person_active: bool | None = None
    person_platform: bool | None = None
    person_roles: frozenset[str] = frozenset()
    # The one agent it is bound to, or "".
    agent: str = ""


@dataclass(frozen=True)
class TenantAccess:
    """A tenant a person may enter, and with which roles. A platform admin needs none."""

    tenant_id: int
    slug: str
    name: str
    roles: frozenset[str] = frozenset()


def key_find(prefix: str) -> FoundKey | None:
    """Return the key with ``prefix``, expired and revoked ones included. One query (SQLite: one
    more for a personal key)."""
    if connection.vendor == "postgresql":
        rows = _call("agentops_key_sender(%s)", prefix)
    else:
        with unscoped():
            found = ApiKey.objects.filter(prefix=prefix).values_list(
                "id", "tenant_id", "tenant__slug", "prefix", "digest", "scopes",
                "environment", "expires_at", "revoked_at", "last_used_at",
                "person__username", "person__is_active", "person__is_superuser", "agent",
            )  # fmt: skip
            rows = [
                (*row[:13], _roles_of(tenant_id=row[1], username=row[10]), row[13]) for row in found
            ]
    for row in rows:
        before, scopes, after, (roles, agent) = row[:5], row[5], row[6:13], row[13:]
        held = frozenset(roles or ())
        return FoundKey(*(*before, frozenset(_scopes(scopes)), *after, held, agent))
    return None


def _roles_of(*, tenant_id: int, username: str | None) -> list[str]:
    if username is None:
        return []
    held = Membership.objects.filter(tenant_id=tenant_id, user__username=username)
    return list(held.values_list("role", flat=True))


def key_used(key: FoundKey) -> None:
    """Note that ``key`` was used, at most once in ``USE_IS_NOTED_EVERY``."""
    now = timezone.now()
    if key.last_used_at is not None and now - key.last_used_at < USE_IS_NOTED_EVERY:
        return
    if connection.vendor == "postgresql":
        _call("agentops_key_used(%s)", key.id)
        return
    with unscoped():
        ApiKey.objects.filter(
            Q(last_used_at=None) | Q(last_used_at__lt=now - USE_IS_NOTED_EVERY), pk=key.id
        ).update(last_used_at=now)


def access_of(user: User) -> list[TenantAccess]:
    """Return the tenants ``user`` may enter, by slug: their memberships', or all for a platform
    admin. Asked once per user object, which Django makes anew for every request."""
    known: list[TenantAccess] | None = getattr(user, "_tenant_access", None)
    if known is None:
        known = _access_of(user)
        user._tenant_access = known  # type: ignore[attr-defined]
    return known


def tenant_find(slug: str) -> Tenant | None:
    """Return the tenant called ``slug``, which may be anything a client sent."""
    if not TENANT_SLUG.fullmatch(slug):
        return None
    return Tenant.objects.filter(slug=slug).first()


def _access_of(user: User) -> list[TenantAccess]:
    if not user.is_active:
        return []
    if user.is_superuser:
        return [TenantAccess(*row) for row in Tenant.objects.values_list("id", "slug", "name")]
    if connection.vendor == "postgresql":
        rows = _call("agentops_memberships_of(%s)", user.pk)
    else:
        with unscoped():
            rows = list(
                Membership.objects.filter(user_id=user.pk).values_list(
                    "tenant_id", "tenant__slug", "tenant__name", "role"
                )
            )
    roles: dict[tuple[int, str, str], set[str]] = {}
    for tenant_id, slug, name, role in rows:
        roles.setdefault((tenant_id, slug, name), set()).add(role)
    found = [TenantAccess(*tenant, frozenset(held)) for tenant, held in roles.items()]
    return sorted(found, key=lambda access: access.slug)


def _scopes(stored: Any) -> list[str]:
    if isinstance(stored, str):  # jsonb outside the ORM
        stored = json.loads(stored)
    if not isinstance(stored, list):
        return []
    return [scope for scope in stored if isinstance(scope, str)]


def _call(function: str, argument: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {function}", [argument])  # noqa: S608  # a literal above
        return list(cursor.fetchall())
