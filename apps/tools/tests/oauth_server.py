"""A small authorisation server, and an MCP server that takes its tokens: both real, by HTTP."""

import base64
import hashlib
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

HOST = "127.0.0.1"


@dataclass
class Grant:
    """What a token stands for."""

    subject: str
    audience: str
    expires_at: float
    scope: str = ""
    client: str = ""


@dataclass
class Authority:
    """The authorisation server's state, open for a test to look at and to change."""

    port: int
    clients: dict[str, str] = field(default_factory=lambda: {"agentops": "s3cret"})
    tokens: dict[str, Grant] = field(default_factory=dict)
    refresh: dict[str, Grant] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    asked: list[dict[str, str]] = field(default_factory=list)
    lifetime: int = 3600
    # Who sits at the browser; which issuer is said; answers to force.
    person: str = "ana"
    says_issuer: str = ""
    audience: str = ""
    delay: float = 0.0
    down: bool = False

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def grants(self, kind: str) -> int:
        """Return how many requests for ``kind`` the token endpoint has got."""
        return sum(form.get("grant_type") == kind for form in self.asked)

    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "registration_endpoint": f"{self.url}/register",
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
        }

    async def described(self, request: Request) -> Response:
        return JSONResponse(self.metadata())

    async def authorize(self, request: Request) -> Response:
        """The person says yes at once."""
        asked = dict(request.query_params)
        code = secrets.token_urlsafe(16)
        self.codes[code] = {**asked, "subject": self.person}
        back = {"code": code, "state": asked["state"], "iss": self.says_issuer or self.url}
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode(back)}", 302)

    async def register(self, request: Request) -> Response:
        body = await request.json()
        client = f"registered-{len(self.clients)}"
        self.clients[client] = ""
        return JSONResponse({**body, "client_id": client}, 201)

    async def token(self, request: Request) -> Response:
        form = {key: str(value) for key, value in (await request.form()).items()}
        self.asked.append(form)
        if self.delay:
            import asyncio

            await asyncio.sleep(self.delay)
        if self.down:
            return JSONResponse({}, 503)
        client = _client_of(request, form)
        if client is None or self.clients.get(client[0]) != client[1]:
            return JSONResponse({"error": "invalid_client"}, 401)
        grant = self._grant(form, client[0])
        if grant is None:
            return JSONResponse({"error": "invalid_grant"}, 400)
        return JSONResponse(self.issue(grant, refresh=form["grant_type"] != "client_credentials"))

    def _grant(self, form: dict[str, str], client: str) -> Grant | None:
        audience = self.audience or form.get("resource", "")
        expires_at = time.time() + self.lifetime
        match form.get("grant_type"):
            case "client_credentials":
                return Grant(f"client:{client}", audience, expires_at, client=client)
            case "authorization_code":
                asked = self.codes.pop(form.get("code", ""), None)
                verifier = form.get("code_verifier", "").encode()
                digest = base64.urlsafe_b64encode(hashlib.sha256(verifier).digest()).rstrip(b"=")
                if asked is None or asked["code_challenge"] != digest.decode():
                    return None
                if asked["redirect_uri"] != form.get("redirect_uri"):
                    return None
                return Grant(asked["subject"], audience, expires_at, client=client)
            case "refresh_token":
                known = self.refresh.pop(form.get("refresh_token", ""), None)
                if known is None or known.client != client:
                    return None
                return Grant(known.subject, audience, expires_at, client=client)
        return None

    def issue(self, grant: Grant, *, refresh: bool) -> dict[str, Any]:
        access = secrets.token_urlsafe(24)
        self.tokens[access] = grant
        answer: dict[str, Any] = {
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": self.lifetime,
        }
        if refresh:
            answer["refresh_token"] = secrets.token_urlsafe(24)
            self.refresh[answer["refresh_token"]] = grant
        return answer

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/.well-known/oauth-authorization-server", self.described),
                Route("/authorize", self.authorize),
                Route("/register", self.register, methods=["POST"]),
                Route("/token", self.token, methods=["POST"]),
            ]
        )


def _client_of(request: Request, form: dict[str, str]) -> tuple[str, str] | None:
    header = request.headers.get("authorization", "")
    if header.startswith("Basic "):
        name, _colon, secret = base64.b64decode(header[6:]).decode().partition(":")
        return name, secret
    return (form["client_id"], form.get("client_secret", "")) if "client_id" in form else None


class Verifier(TokenVerifier):
    """Takes tokens of ``authority`` that were asked for ``audience`` and have not expired."""

    def __init__(self, authority: Authority, audience: str) -> None:
        self.authority = authority
        self.audience = audience
        self.refused = 0

    async def verify_token(self, token: str) -> AccessToken | None:
        grant = self.authority.tokens.get(token)
        if grant is None or grant.audience != self.audience or grant.expires_at < time.time():
            self.refused += 1
            return None
        return AccessToken(token=token, client_id=grant.client, scopes=[], subject=grant.subject)


@dataclass
class Protected:
    """The MCP server: its one tool says whose token it was called with."""

    url: str
    verifier: Verifier


@dataclass
class OAuthWorld:
    authority: Authority
    server: Protected


@contextmanager
def oauth_world() -> Iterator[OAuthWorld]:
    """Run both; stop them in the end."""
    authority = Authority(_port())
    port = _port()
    url = f"http://{HOST}:{port}/mcp"
    verifier = Verifier(authority, url)
    server: MCPServer[Any] = MCPServer(
        "protected",
        token_verifier=verifier,
        auth=AuthSettings(
            issuer_url=AnyHttpUrl(authority.url),
            resource_server_url=AnyHttpUrl(url),
            required_scopes=[],
            validate_token_resource=False,
        ),
    )

    @server.tool()
    async def whoami() -> dict[str, str]:
        """Says who is asking."""
        token = get_access_token()
        assert token is not None
        return {"subject": token.subject or ""}

    hosts = TransportSecuritySettings(allowed_hosts=[f"{HOST}:{port}"])
    app = server.streamable_http_app(transport_security=hosts)
    with _served(authority.app(), authority.port), _served(app, port):
        yield OAuthWorld(authority, Protected(url, verifier))


@contextmanager
def _served(app: Any, port: int) -> Iterator[None]:
    server = uvicorn.Server(uvicorn.Config(app, host=HOST, port=port, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until = time.monotonic() + 20
    while not server.started:
        assert time.monotonic() < until, "the server does not start"
        time.sleep(0.01)
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(10)


def _port() -> int:
    with socket.socket() as free:
        free.bind((HOST, 0))
        return int(free.getsockname()[1])
