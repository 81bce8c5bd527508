"""What is said to authorisation servers: where they are (RFC 9728, 8414), and for a token.

Everything goes through the guarded client. Nothing here knows the database.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2

from apps.runtime.addresses import AllowList
from apps.runtime.i18n import gettext_noop as _
from apps.tools.results import NotJson, json_parse
from apps.tools.transports.connections import AnswerTooLong, read_limited
from apps.tools.transports.guarding import AddressForbidden, client_create

SECONDS = 15.0
"""For one request to an authorisation server."""


class Unreachable(Exception):
    """The authorisation server, or what describes it, cannot be reached or read. May pass."""


class Refused(Exception):
    """The authorisation server says no: ``error`` is its code (RFC 6749 5.2). Does not pass by itself."""

    def __init__(self, error: str, description: str = "") -> None:
        super().__init__(f"{error}: {description}" if description else error)
        self.error = error
        self.description = description


@dataclass(frozen=True)
class AuthorisationServer:
    """What an authorisation server says of itself, and for what it gives tokens.

    ``resource``: the audience to ask for. ``names_issuer``: it sends ``iss`` back with a code.
    """

    issuer: str
    resource: str
    token_endpoint: str
    authorization_endpoint: str = ""
    registration_endpoint: str = ""
    scopes: tuple[str, ...] = ()
    auth_methods: tuple[str, ...] = ()
    names_issuer: bool = False


@dataclass(frozen=True)
class Client:
    """Who we are there: ``secret`` is empty for a public client."""

    id: str
    secret: str = ""


@dataclass(frozen=True)
class Token:
    """An answer of the token endpoint. ``expires_in``: seconds, None when it does not say."""

    access: str
    refresh: str = ""
    expires_in: int | None = None
    scope: str = ""


class Asking:
    """Speaks to authorisation servers; ``allowed`` are the addresses inside that an operator lets."""

    def __init__(self, allowed: AllowList) -> None:
        self._allowed = allowed

    async def discover(self, address: str) -> AuthorisationServer:
        """Return who gives tokens for the tool server at ``address``.

        Raises ``Unreachable``; ``Refused`` when what is said there cannot be trusted: another
        resource, another issuer, an endpoint without TLS behind a server with it.
        """
        from mcp.client.auth.utils import (
            build_protected_resource_metadata_discovery_urls,
            extract_field_from_www_auth,
        )

        async with client_create(self._allowed) as http:
            challenge = await self._challenge(http, address)
            named = extract_field_from_www_auth(challenge, "resource_metadata")
            wanted = (extract_field_from_www_auth(challenge, "scope") or "").split()
            urls = build_protected_resource_metadata_discovery_urls(named, address)
            described = await self._first(http, urls)
            issuer, resource = _resource_of(described, address)
            found = await self._metadata(http, issuer, address)
        scopes = wanted or _texts(described.get("scopes_supported"))
        return _server(found, resource, scopes, address)

    async def _challenge(self, http: httpx2.AsyncClient, address: str) -> httpx2.Response:
        """Ask the tool server without a token: its 401 says where its metadata is."""
        try:
            async with http.stream("POST", address, json={}, timeout=SECONDS) as response:
                return response
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise _unreachable(error) from error

    async def _metadata(
        self, http: httpx2.AsyncClient, issuer: str, address: str
    ) -> Mapping[str, Any]:
        from mcp.client.auth.utils import (
            build_oauth_authorization_server_metadata_discovery_urls,
            issuers_match,
        )

        urls = build_oauth_authorization_server_metadata_discovery_urls(issuer or None, address)
        found = await self._first(http, urls)
        if not found:
            raise Unreachable(_("The authorisation server does not describe itself."))
        said = str(found.get("issuer") or "")
        if not issuers_match(said, issuer or _origin(address)):
            raise Refused("issuer_mismatch", _("the authorisation server names another issuer"))
        return found

    async def _first(self, http: httpx2.AsyncClient, urls: list[str]) -> Mapping[str, Any]:
        """Return the first JSON object that one of ``urls`` answers with, empty for none."""
        for url in urls:
            status, body = await self._ask(http, "GET", url)
            if status == httpx2.codes.OK and isinstance(body, dict):
                return body
        return {}

    async def token(
        self, server: AuthorisationServer, client: Client, form: Mapping[str, str]
    ) -> Token:
        """Return the answer to a token request. Raises ``Unreachable`` and ``Refused``."""
        headers, more = _client_said(client, server.auth_methods)
        fields = {**form, **more, "resource": server.resource}
        async with client_create(self._allowed) as http:
            status, body = await self._ask(
                http, "POST", server.token_endpoint, data=fields, headers=headers
            )
        said = body if isinstance(body, dict) else {}
        if 400 <= status < 500 and status != httpx2.codes.TOO_MANY_REQUESTS:
            raise Refused(
                str(said.get("error") or f"http_{status}")[:60],
                str(said.get("error_description") or "")[:200],
            )
        if status != httpx2.codes.OK or not isinstance(said.get("access_token"), str):
            raise Unreachable(f"The authorisation server answered with HTTP {status}.")
        if str(said.get("token_type", "bearer")).lower() != "bearer":
            raise Refused("token_type", _("the authorisation server gives no bearer tokens"))
        return Token(
            access=said["access_token"],
            refresh=str(said.get("refresh_token") or ""),
            expires_in=_seconds(said.get("expires_in")),
            scope=str(said.get("scope") or "")[:2000],
        )

    async def register(
        self, server: AuthorisationServer, *, redirect_uri: str, scope: str
    ) -> Client:
        """Return the client that the server registers for us (RFC 7591).

        Raises ``Unreachable``; ``Refused`` when it registers nobody.
        """
        if not server.registration_endpoint:
            raise Refused(
                "no_client", _("no OAuth client is configured and none can be registered")
            )
        wanted = {
            "client_name": "AgentOps",
            "redirect_uris": [redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            **({"scope": scope} if scope else {}),
        }
        async with client_create(self._allowed) as http:
            status, body = await self._ask(http, "POST", server.registration_endpoint, json=wanted)
        said = body if isinstance(body, dict) else {}
        if status not in (200, 201) or not isinstance(said.get("client_id"), str):
            raise Refused(str(said.get("error") or f"http_{status}")[:60], _("registration failed"))
        return Client(said["client_id"][:500], str(said.get("client_secret") or ""))

    async def _ask(
        self, http: httpx2.AsyncClient, method: str, url: str, **request: Any
    ) -> tuple[int, Any]:
        headers = {"accept": "application/json", **request.pop("headers", {})}
        try:
            async with http.stream(
                method, url, headers=headers, timeout=SECONDS, **request
            ) as response:
                text = await read_limited(response)
                status = response.status_code
        except (httpx2.HTTPError, httpx2.InvalidURL, AnswerTooLong) as error:
            raise _unreachable(error) from error
        try:
            return status, json_parse(text) if text else None
        except NotJson:
            return status, None


def is_about(resource: str, address: str) -> bool:
    """Return whether a token for ``resource`` may be shown to the tool server at ``address``."""
    from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url

    own = resource_url_from_server_url(address)
    return bool(resource) and check_resource_allowed(own, resource)


def _resource_of(described: Mapping[str, Any], address: str) -> tuple[str, str]:
    """Return issuer ("" for the older rule: the server's own origin) and resource."""
    from mcp.shared.auth_utils import resource_url_from_server_url

    if not described:
        return "", resource_url_from_server_url(address)
    resource = str(described.get("resource") or "")
    if not is_about(resource, address):
        raise Refused("resource_mismatch", _("the tool server's metadata is about another address"))
    issuers = _texts(described.get("authorization_servers"))
    return (issuers[0] if issuers else ""), resource


def _server(
    found: Mapping[str, Any], resource: str, scopes: list[str], address: str
) -> AuthorisationServer:
    def endpoint(name: str) -> str:
        url = str(found.get(name) or "")
        if url and urlsplit(url).scheme != "https" and urlsplit(address).scheme == "https":
            raise Refused("insecure_endpoint", f"{name} is not https")
        return url[:2000]

    server = AuthorisationServer(
        issuer=str(found.get("issuer") or "")[:500],
        resource=resource,
        token_endpoint=endpoint("token_endpoint"),
        authorization_endpoint=endpoint("authorization_endpoint"),
        registration_endpoint=endpoint("registration_endpoint"),
        scopes=tuple(scopes),
        auth_methods=tuple(_texts(found.get("token_endpoint_auth_methods_supported"))),
        names_issuer=found.get("authorization_response_iss_parameter_supported") is True,
    )
    if not server.token_endpoint:
        raise Refused("no_token_endpoint", _("the authorisation server names none"))
    methods = found.get("code_challenge_methods_supported")
    if server.authorization_endpoint and isinstance(methods, list) and "S256" not in methods:
        raise Refused("no_pkce", _("the authorisation server does not take S256"))
    return server


def _client_said(client: Client, methods: tuple[str, ...]) -> tuple[dict[str, str], dict[str, str]]:
    """Return headers and fields that say who we are: the secret in a header unless it is not taken."""
    if not client.secret:
        return {}, {"client_id": client.id}
    if methods and "client_secret_basic" not in methods and "client_secret_post" in methods:
        return {}, {"client_id": client.id, "client_secret": client.secret}
    pair = f"{quote(client.id, safe='')}:{quote(client.secret, safe='')}"
    return {"authorization": "Basic " + base64.b64encode(pair.encode()).decode()}, {}


def _texts(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _seconds(value: Any) -> int | None:
    text = str(value)
    return min(int(text), 10 * 365 * 86_400) if text.isdigit() and len(text) < 12 else None


def _origin(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"


def _unreachable(error: Exception) -> Unreachable:
    if isinstance(error, AddressForbidden):
        return Unreachable(
            _("The authorisation server's address is inside, and no operator allows it.")
        )
    return Unreachable(f"The authorisation server cannot be reached. ({type(error).__name__})")
