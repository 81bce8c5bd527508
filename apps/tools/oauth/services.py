"""Writes of connections to tool servers. Each opens its own transaction of the tenant it is given."""

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from cryptography.fernet import InvalidToken
from django.conf import settings
from django.utils import timezone
from django.utils.module_loading import import_string

from apps.runtime.ports import RemoteTool
from apps.tenants.scope import tenant_transaction
from apps.tenants.sealing import seal, unseal
from apps.tenants.services import audit_append
from apps.tools.oauth.asking import AuthorisationServer, Client, Token
from apps.tools.oauth_models import ToolClient, ToolConnection, ToolSignIn

State = ToolConnection.State
CLAIM_SECONDS = 45.0
"""How long one process may take to fetch a token before another may try."""

SIGN_IN_MINUTES = 15


class NoSuchSignIn(LookupError):
    """The state that came back is none we gave out, was used, is too old, or is another person's."""


@dataclass(frozen=True)
class Owner:
    """Whose connection: of a tenant, in an environment, at a server; ``principal`` "" for its own."""

    tenant_id: int
    environment: str
    server: str
    principal: str = ""

    @classmethod
    def of(cls, remote: RemoteTool) -> "Owner":
        return cls(int(remote.tenant), remote.environment, remote.server, remote.principal)

    def where(self) -> dict[str, str]:
        return {
            "environment": self.environment,
            "server": self.server,
            "principal": self.principal,
        }


@dataclass(frozen=True)
class Held:
    """A connection as it is now. ``access`` and ``refresh`` are empty when there is none;
    ``after_rejection``: its token was fetched because the one before was not taken."""

    pk: int
    version: int
    state: str
    resource: str
    client_id: str
    access: str = ""
    refresh: str = ""
    expires_at: datetime | None = None
    fetched_at: datetime | None = None
    claimed_until: datetime | None = None
    failed_at: datetime | None = None
    client_secret: str = ""
    scope: str = ""
    after_rejection: bool = False


# -- reading and claiming ----------------------------------------------------------------------
def connection_read(owner: Owner, *, resource: str, create: bool) -> Held | None:
    """Return the connection of ``owner`` for ``resource``; ``create`` makes an empty one.

    One that was made for another address is emptied: its token is never sent there.
    """
    with tenant_transaction(owner.tenant_id):
        row = ToolConnection.objects.filter(**owner.where()).first()
        if row is None and create:
            row, _created = ToolConnection.objects.get_or_create(
                **owner.where(), defaults={"resource": resource}
            )
        if row is None:
            return None
        if row.resource != resource:
            if not create:
                return None
            _emptied(row, resource)
        return _held(row)


def _emptied(row: ToolConnection, resource: str) -> None:
    row.resource, row.token, row.state, row.error = resource, "", State.EMPTY, ""
    row.expires_at = row.refreshing_until = None
    row.version += 1
    row.save()


def _held(row: ToolConnection) -> Held:
    try:
        kept = unseal(row.token)
    except InvalidToken:
        kept = {}  # the key it was sealed with is gone
    fetched = kept.get("fetched_at")
    return Held(
        pk=row.pk,
        version=row.version,
        state=row.state,
        resource=row.resource,
        client_id=row.client_id,
        access=str(kept.get("access", "")),
        refresh=str(kept.get("refresh", "")),
        client_secret=str(kept.get("client_secret", "")),
        after_rejection=kept.get("after_rejection") is True,
        expires_at=row.expires_at,
        fetched_at=datetime.fromisoformat(fetched) if isinstance(fetched, str) else None,
        claimed_until=row.refreshing_until,
        failed_at=row.updated_at if row.state == State.NEEDS_SIGN_IN else None,
        scope=row.scope,
    )


def connection_claim(owner: Owner, held: Held) -> bool:
    """Return whether this process is the one that fetches the next token; compare-and-set."""
    now = timezone.now()
    with tenant_transaction(owner.tenant_id):
        free = ToolConnection.objects.filter(pk=held.pk, version=held.version).exclude(
            refreshing_until__gt=now
        )
        return bool(free.update(refreshing_until=now + timedelta(seconds=CLAIM_SECONDS)))


def connection_release(owner: Owner, held: Held) -> None:
    """Give the claim back without a token: somebody else may try at once."""
    with tenant_transaction(owner.tenant_id):
        mine = ToolConnection.objects.filter(pk=held.pk, version=held.version)
        mine.update(refreshing_until=None)


# -- what came of it ---------------------------------------------------------------------------
def token_store(
    owner: Owner,
    held: Held,
    token: Token,
    *,
    issuer: str,
    client: Client,
    after_rejection: bool = False,
) -> bool:
    """Keep a fetched token; False when the connection was ended or changed meanwhile."""
    kept = _sealed(token, held.refresh, client, after_rejection=after_rejection)
    with tenant_transaction(owner.tenant_id):
        stored = ToolConnection.objects.filter(pk=held.pk, version=held.version).update(
            token=kept,
            expires_at=_expiry(token),
            state=State.VALID,
            error="",
            issuer=issuer,
            client_id=client.id,
            scope=token.scope or held.scope,
            version=held.version + 1,
            refreshing_until=None,
            updated_at=timezone.now(),
        )
    return bool(stored)


def connection_failed(owner: Owner, held: Held, reason: str) -> None:
    """Note that a sign-in is needed, and tell who can do it; told once until it works again."""
    with tenant_transaction(owner.tenant_id):
        row = (
            ToolConnection.objects.select_for_update()
            .filter(pk=held.pk, version=held.version)
            .first()
        )
        if row is None:
            return
        told = row.state == State.NEEDS_SIGN_IN
        row.state, row.error = State.NEEDS_SIGN_IN, reason[:500]
        row.token, row.expires_at, row.refreshing_until = "", None, None
        row.version += 1
        row.save()
        if told:
            return
        audit_append(
            actor="system",
            action="tool_connection.needs_sign_in",
            entity=f"tool_server:{owner.server}",
            detail={**owner.where(), "reason": reason[:200]},
        )
        for name in settings.TOOL_SIGN_IN_LISTENERS:
            import_string(name)(server=owner.server, principal=owner.principal)


def connection_end(owner: Owner, *, actor: str) -> bool:
    """Forget a connection and its token; return whether there was one."""
    with tenant_transaction(owner.tenant_id):
        ended, _rows = ToolConnection.objects.filter(**owner.where()).delete()
        if ended:
            audit_append(
                actor=actor,
                action="tool_connection.ended",
                entity=f"tool_server:{owner.server}",
                detail=owner.where(),
            )
    return bool(ended)


# -- signing in --------------------------------------------------------------------------------
@dataclass(frozen=True)
class Begun:
    """A sign-in on its way: what comes back is compared with this."""

    owner: Owner
    server: AuthorisationServer
    client: Client
    redirect_uri: str
    verifier: str
    state: str


@dataclass(frozen=True)
class Returned:
    """A sign-in whose state came back, used up: what the code is exchanged with."""

    owner: Owner
    server: AuthorisationServer
    client: Client
    redirect_uri: str
    verifier: str


def sign_in_begin(
    owner: Owner, server: AuthorisationServer, client: Client, *, redirect_uri: str
) -> Begun:
    """Remember a sign-in for a while; its state names the tenant and cannot be guessed."""
    verifier = secrets.token_urlsafe(64)[:96]
    state = f"{owner.tenant_id}.{secrets.token_urlsafe(32)}"
    now = timezone.now()
    with tenant_transaction(owner.tenant_id):
        ToolSignIn.objects.filter(expires_at__lt=now - timedelta(days=1)).delete()
        ToolSignIn.objects.create(
            **owner.where(),
            state_digest=_digest(state),
            resource=server.resource,
            issuer=server.issuer,
            issuer_named=server.names_issuer,
            token_endpoint=server.token_endpoint,
            redirect_uri=redirect_uri,
            client_id=client.id,
            secrets=seal(
                {
                    "verifier": verifier,
                    "client_secret": client.secret,
                    "auth_methods": list(server.auth_methods),
                }
            ),
            expires_at=now + timedelta(minutes=SIGN_IN_MINUTES),
        )
    return Begun(owner, server, client, redirect_uri, verifier, state)


def sign_in_return(*, tenant_id: int, principal: str, state: str) -> Returned:
    """Use up the sign-in of ``state``, once, by the person who began it. Raises ``NoSuchSignIn``."""
    now = timezone.now()
    with tenant_transaction(tenant_id):
        row = ToolSignIn.objects.filter(state_digest=_digest(state), principal=principal).first()
        if row is None or row.expires_at <= now:
            raise NoSuchSignIn
        if not ToolSignIn.objects.filter(pk=row.pk, used_at=None).update(used_at=now):
            raise NoSuchSignIn
        try:
            kept = unseal(row.secrets)
        except InvalidToken:
            raise NoSuchSignIn from None
        return Returned(
            owner=Owner(tenant_id, row.environment, row.server, row.principal),
            server=AuthorisationServer(
                issuer=row.issuer,
                resource=row.resource,
                token_endpoint=row.token_endpoint,
                auth_methods=tuple(kept.get("auth_methods", ())),
                names_issuer=row.issuer_named,
            ),
            client=Client(row.client_id, str(kept.get("client_secret", ""))),
            redirect_uri=row.redirect_uri,
            verifier=str(kept.get("verifier", "")),
        )


def connection_make(back: Returned, token: Token, *, address: str, actor: str) -> None:
    """Keep the token of a finished sign-in, in the place of any other of the same owner."""
    owner = back.owner
    values = {
        "resource": address,
        "issuer": back.server.issuer,
        "client_id": back.client.id,
        "scope": token.scope,
        "token": _sealed(token, "", back.client),
        "expires_at": _expiry(token),
        "state": State.VALID,
        "error": "",
        "refreshing_until": None,
        "connected_at": timezone.now(),
    }
    with tenant_transaction(owner.tenant_id):
        row, _created = ToolConnection.objects.select_for_update().get_or_create(
            **owner.where(), defaults={"resource": address}
        )
        for name, value in values.items():
            setattr(row, name, value)
        row.version += 1
        row.save()
        audit_append(
            actor=actor,
            action="tool_connection.made",
            entity=f"tool_server:{owner.server}",
            detail={**owner.where(), "issuer": back.server.issuer},
        )


def client_known(owner: Owner, *, issuer: str, redirect_uri: str) -> Client | None:
    """Return the client that was registered for this tenant at ``issuer``."""
    with tenant_transaction(owner.tenant_id):
        row = ToolClient.objects.filter(
            environment=owner.environment,
            server=owner.server,
            issuer=issuer,
            redirect_uri=redirect_uri,
        ).first()
        if row is None:
            return None
        try:
            return Client(row.client_id, str(unseal(row.secret).get("secret", "")))
        except InvalidToken:
            return None


def client_keep(owner: Owner, client: Client, *, issuer: str, redirect_uri: str) -> None:
    """Keep a registered client."""
    with tenant_transaction(owner.tenant_id):
        ToolClient.objects.update_or_create(
            environment=owner.environment,
            server=owner.server,
            issuer=issuer,
            redirect_uri=redirect_uri,
            defaults={
                "client_id": client.id,
                "secret": seal({"secret": client.secret}) if client.secret else "",
            },
        )


def _sealed(token: Token, refresh: str, client: Client, *, after_rejection: bool = False) -> str:
    kept: Mapping[str, Any] = {
        "access": token.access,
        # A server that gives no new one means the old one to stay.
        "refresh": token.refresh or refresh,
        "client_secret": client.secret,
        "after_rejection": after_rejection,
        "fetched_at": timezone.now().isoformat(),
    }
    return seal(kept)


def _expiry(token: Token) -> datetime | None:
    if token.expires_in is None:
        return None
    return timezone.now() + timedelta(seconds=token.expires_in)


def _digest(state: str) -> str:
    return hashlib.sha256(state.encode("utf-8", "surrogatepass")).hexdigest()
