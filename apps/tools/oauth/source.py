"""The ``TokenSource``: a token that holds, fetched by one process at a time and kept sealed."""

import asyncio
import time
from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from apps.runtime.addresses import AllowList
from apps.runtime.i18n import gettext_noop as _
from apps.runtime.ports import RemoteTool, ToolUnavailable
from apps.tenants.threads import in_thread
from apps.tools.oauth import services
from apps.tools.oauth.asking import Asking, Client, Refused, Token, Unreachable
from apps.tools.oauth.services import Held, Owner, State
from apps.tools.transports.tokens import BoundTokens, TokenSource, needs_sign_in

LEEWAY = timedelta(seconds=30)
"""A token that ends so soon is renewed before it is used; at most half of its time."""

FRESH_SECONDS = 60.0
"""A second token refused so soon after the first: the tool server does not take what it names."""

PAUSE_SECONDS = 60.0
"""After a refusal the client's credentials are not tried again for so long."""

MEMORY_SECONDS = 5.0
"""How long a tenant's own token is used without looking whether it still counts."""

WAIT_SECONDS = 30.0
LOOK_SECONDS = 0.05


@dataclass(frozen=True)
class _Kept:
    access: str
    until: float


class OAuthTokens:
    """Tokens of every kind of server: bound ones as they are, OAuth ones by their connections."""

    def __init__(self, allowed: AllowList, bound: TokenSource | None = None) -> None:
        self._asking = Asking(allowed)
        self._bound = bound or BoundTokens()
        self._memory: dict[tuple[object, ...], _Kept] = {}

    async def token(self, remote: RemoteTool, *, rejected: str = "") -> str:
        """See ``TokenSource``."""
        if remote.auth == "bearer":
            return await self._bound.token(remote, rejected=rejected)
        own = remote.auth == "oauth_client"
        if not own and not remote.principal:
            raise needs_sign_in()
        name = (Owner.of(remote), remote.address, remote.client_id, remote.scopes)
        kept = self._memory.get(name) if own else None
        if kept and kept.access != rejected and kept.until > time.monotonic():
            return kept.access
        held = await self._valid(remote, rejected)
        if own:
            self._remember(name, held)
        return held.access

    def _remember(self, name: tuple[object, ...], held: Held) -> None:
        now = time.monotonic()
        seconds = MEMORY_SECONDS
        if held.expires_at is not None:
            seconds = min(seconds, (held.expires_at - timezone.now() - LEEWAY).total_seconds())
        self._memory = {key: kept for key, kept in self._memory.items() if kept.until > now}
        self._memory[name] = _Kept(held.access, now + seconds)

    async def _valid(self, remote: RemoteTool, rejected: str) -> Held:
        """Return the connection with a token that is not ``rejected``.

        Whoever claims it fetches; the others look until there is another one.
        """
        owner, create = Owner.of(remote), remote.auth == "oauth_client"
        until = time.monotonic() + WAIT_SECONDS
        while True:
            held = await in_thread(
                services.connection_read, owner, resource=remote.address, create=create
            )
            if held is None:
                raise needs_sign_in()
            if _holds(held, remote) and held.access != rejected:
                return held
            await self._hopeless_check(owner, held, remote, rejected)
            if await in_thread(services.connection_claim, owner, held):
                refused = bool(rejected) and held.access == rejected
                return await self._fetched(owner, held, remote, refused)
            if time.monotonic() > until:
                raise ToolUnavailable(
                    "Another process is still waiting for a token.", sent=False, code="unreachable"
                )
            await asyncio.sleep(LOOK_SECONDS)

    async def _hopeless_check(
        self, owner: Owner, held: Held, remote: RemoteTool, rejected: str
    ) -> None:
        """Raise ``needs_sign_in`` where asking for another token would lead nowhere."""
        now = timezone.now()
        failed = held.state == State.NEEDS_SIGN_IN and held.failed_at is not None
        if failed and (
            remote.auth == "oauth_user"
            or now - (held.failed_at or now) < timedelta(seconds=PAUSE_SECONDS)
        ):
            raise needs_sign_in()
        fresh = held.fetched_at is not None and now - held.fetched_at < timedelta(
            seconds=FRESH_SECONDS
        )
        if rejected and held.access == rejected and held.after_rejection and fresh:
            reason = _(
                "The tool server does not take the token that its authorisation server gives."
            )
            await in_thread(services.connection_failed, owner, held, reason)
            raise needs_sign_in()
        if remote.auth == "oauth_user" and not held.refresh:
            await in_thread(services.connection_failed, owner, held, "The sign-in has expired.")
            raise needs_sign_in()

    async def _fetched(self, owner: Owner, held: Held, remote: RemoteTool, refused: bool) -> Held:
        """Fetch, keep and return. The claim is given back however it ends."""
        try:
            token, issuer, client = await self._ask(held, remote)
        except Refused as error:
            await in_thread(services.connection_failed, owner, held, str(error))
            raise needs_sign_in() from None
        except Unreachable as error:
            await in_thread(services.connection_release, owner, held)
            raise ToolUnavailable(str(error), sent=False, code="unreachable") from None
        except BaseException:
            await asyncio.shield(in_thread(services.connection_release, owner, held))
            raise
        stored = await in_thread(
            services.token_store, owner, held, token,
            issuer=issuer, client=client, after_rejection=refused,
        )  # fmt: skip
        if not stored:
            raise needs_sign_in()
        again = await in_thread(
            services.connection_read, owner, resource=remote.address, create=False
        )
        if again is None:
            raise needs_sign_in()
        return again

    async def _ask(self, held: Held, remote: RemoteTool) -> tuple[Token, str, Client]:
        server = await self._asking.discover(remote.address)
        scope = " ".join(remote.scopes or server.scopes)
        if remote.auth == "oauth_client":
            if not remote.client_id or not remote.credential:
                raise Refused("no_client", "the server's OAuth client and its secret must be set")
            client = Client(remote.client_id, remote.credential)
            form = {"grant_type": "client_credentials", **({"scope": scope} if scope else {})}
        else:
            client = _person_client(held, remote)
            form = {"grant_type": "refresh_token", "refresh_token": held.refresh}
        return await self._asking.token(server, client, form), server.issuer, client


def _person_client(held: Held, remote: RemoteTool) -> Client:
    """Return the client a refresh token was given to: with another one it is worth nothing."""
    if remote.client_id and remote.client_id == held.client_id:
        return Client(held.client_id, remote.credential)
    return Client(held.client_id, held.client_secret)


def _holds(held: Held, remote: RemoteTool) -> bool:
    """Return whether the token can be used for a while, and is the configured client's."""
    if not held.access or held.state != State.VALID:
        return False
    if remote.client_id and held.client_id != remote.client_id:
        return False
    if held.expires_at is None:
        return True
    life = held.expires_at - (held.fetched_at or held.expires_at)
    return held.expires_at - min(LEEWAY, life / 2) > timezone.now()
