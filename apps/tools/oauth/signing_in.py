"""A person's sign-in at a tool server: there with a challenge, back with a code (OAuth 2.1, PKCE)."""

import base64
import hashlib
from urllib.parse import urlencode

from apps.runtime.addresses import AllowList
from apps.runtime.i18n import gettext_noop as _
from apps.runtime.ports import RemoteTool
from apps.tenants.threads import in_thread
from apps.tools.oauth import services
from apps.tools.oauth.asking import Asking, AuthorisationServer, Client, Refused, is_about
from apps.tools.oauth.services import Owner, Returned


async def sign_in_start(remote: RemoteTool, *, redirect_uri: str, allowed: AllowList) -> str:
    """Return where the person's browser goes to sign in at ``remote``'s authorisation server.

    Raises ``asking.Unreachable`` and ``asking.Refused``.
    """
    asking, owner = Asking(allowed), Owner.of(remote)
    server = await asking.discover(remote.address)
    if not server.authorization_endpoint:
        raise Refused("no_authorization_endpoint", _("nobody can sign in there"))
    scope = " ".join(remote.scopes or server.scopes)
    client = await _client(asking, owner, remote, server, redirect_uri, scope)
    begun = await in_thread(
        services.sign_in_begin, owner, server, client, redirect_uri=redirect_uri
    )
    query = {
        "response_type": "code",
        "client_id": client.id,
        "redirect_uri": redirect_uri,
        "state": begun.state,
        "code_challenge": challenge_of(begun.verifier),
        "code_challenge_method": "S256",
        "resource": server.resource,
        **({"scope": scope} if scope else {}),
    }
    joint = "&" if "?" in server.authorization_endpoint else "?"
    return f"{server.authorization_endpoint}{joint}{urlencode(query)}"


async def _client(
    asking: Asking,
    owner: Owner,
    remote: RemoteTool,
    server: AuthorisationServer,
    redirect_uri: str,
    scope: str,
) -> Client:
    if remote.client_id:
        return Client(remote.client_id, remote.credential)
    where = {"issuer": server.issuer, "redirect_uri": redirect_uri}
    known = await in_thread(services.client_known, owner, **where)
    if known is not None:
        return known
    made = await asking.register(server, redirect_uri=redirect_uri, scope=scope)
    await in_thread(services.client_keep, owner, made, **where)
    return made


async def sign_in_finish(
    back: Returned, *, code: str, issuer: str, address: str, actor: str, allowed: AllowList
) -> None:
    """Exchange ``code`` and keep the token. Raises ``asking.Unreachable`` and ``asking.Refused``.

    ``issuer``: who the answer says it is from (RFC 9207); it must be who was asked. ``address``:
    where the server is now; a token that was asked for another address is never sent there.
    """
    if not is_about(back.server.resource, address):
        raise Refused("resource_mismatch", _("the tool server's metadata is about another address"))
    if (issuer and issuer != back.server.issuer) or (back.server.names_issuer and not issuer):
        raise Refused("issuer_mismatch", _("the answer is from another authorisation server"))
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": back.redirect_uri,
        "code_verifier": back.verifier,
    }
    token = await Asking(allowed).token(back.server, back.client, form)
    await in_thread(services.connection_make, back, token, address=address, actor=actor)


def challenge_of(verifier: str) -> str:
    """Return the S256 challenge of a verifier."""
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
