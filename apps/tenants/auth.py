"""Who is calling: a key, a signed session token, a login, or the demo's keyless caller.

``principal_of`` answers for every door. What a client writes in a body never takes part, except
that a tenant named there must be the credential's own: another one is answered as absent.
"""

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from importlib import import_module
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from rest_framework import exceptions
from rest_framework.authentication import BaseAuthentication, CSRFCheck

from apps.tenants import lookups, tokens
from apps.tenants.keyless import keyless_allowed
from apps.tenants.models import User
from apps.tenants.roles import EVERY_PERMISSION, KEY_SCOPES, permissions_of, scopes_of
from apps.tenants.services import key_digest
from apps.tenants.threads import in_thread

if TYPE_CHECKING:
    from rest_framework.request import Request

KEY_SHAPE = re.compile(r"ak_([0-9a-f]{8})_[A-Za-z0-9_-]+")
DEMO_TENANT = "default"
# What the documented calls need. Full records stay for keys and logins: an answer is readable.
DEMO_SCOPES = frozenset(
    {"message:write", "session:read", "debug", "identity:assert", "config:read"}
)


class CallerRefused(exceptions.AuthenticationFailed):
    """401: no credential, or one that does not count. ``code`` says which."""


class TenantAbsent(exceptions.NotFound):
    """404: the tenant is not there for this caller; the same answer whether or not it exists."""

    default_detail = _("There is no such tenant.")
    default_code = "tenant_absent"


class MissingScope(exceptions.PermissionDenied):
    """403: the credential is good and does not cover this."""

    default_code = "missing_scope"


@dataclass(frozen=True)
class Principal:
    """The caller, as every door knows it.

    ``name``: ``key:ab12cd34``, ``user:alice``, ``visitor:…`` or ``demo``. ``session``: the one
    session (full key) a token is limited to, or "". ``customer``: canonical keys a token's issuer
    vouched for. ``key``: the prefix of the personal key that ``user:…`` sent, or "".
    ``permissions``: what a person's roles allow, for logins and personal keys; none for a system.
    ``agent``: the one agent a key is bound to, or "".
    """

    tenant_id: int
    tenant_slug: str
    name: str
    scopes: frozenset[str]
    environment: str
    customer: Mapping[str, str] = field(default_factory=dict)
    session: str = ""
    demo: bool = False
    user: User | None = field(default=None, compare=False)
    key: str = ""
    permissions: frozenset[str] = frozenset()
    agent: str = ""

    is_authenticated = True
    is_anonymous = False

    def has(self, scope: str) -> bool:
        return scope in self.scopes

    def require(self, scope: str) -> None:
        """Raise ``MissingScope`` (403) unless the caller holds ``scope``."""
        if scope not in self.scopes:
            raise MissingScope(_("This needs the scope %(scope)s.") % {"scope": scope})


def principal_of(request: HttpRequest, *, tenant: str = "", query_token: bool = False) -> Principal:
    """Return who sent ``request``. ``tenant``: the slug named in body, query or path, if any.
    ``query_token``: whether ``?token=`` counts (event streams and websockets only, whose browser
    interfaces cannot send a header).

    Raises ``CallerRefused`` (401) and ``TenantAbsent`` (404).
    """
    credential = _credential(request, query_token=query_token)
    if credential is None:
        principal = _by_login(request, tenant) or _by_demo(request, tenant)
    elif credential.startswith(tokens.PREFIX):
        principal = _by_token(credential)
    else:
        principal = _by_key(credential)
    if tenant and tenant != principal.tenant_slug:
        raise TenantAbsent
    return principal


async def aprincipal_of(
    request: HttpRequest, *, tenant: str = "", query_token: bool = False
) -> Principal:
    """``principal_of`` for async views."""
    return await in_thread(principal_of, request, tenant=tenant, query_token=query_token)


async def aprincipal_of_scope(scope: Mapping[str, Any], *, tenant: str = "") -> Principal:
    """``principal_of`` for a websocket's connection scope; ``?token=`` counts."""
    return await in_thread(_principal_of_scope, scope, tenant)


def _principal_of_scope(scope: Mapping[str, Any], tenant: str) -> Principal:
    return principal_of(request_of_scope(scope), tenant=tenant, query_token=True)


def request_of_scope(scope: Mapping[str, Any]) -> HttpRequest:
    """Return the connection ``scope`` of a websocket as the request that opened it."""
    request = HttpRequest()
    request.method = "GET"
    request.path = request.path_info = str(scope.get("path", ""))
    for name, value in scope.get("headers", ()):
        key = "HTTP_" + name.decode("latin-1").upper().replace("-", "_")
        request.META[key] = value.decode("latin-1")
    if scope.get("client"):
        request.META["REMOTE_ADDR"] = scope["client"][0]
    request.META["QUERY_STRING"] = scope.get("query_string", b"").decode("latin-1")
    request.GET = request.GET.__class__(request.META["QUERY_STRING"])
    try:
        cookies = SimpleCookie(request.META.get("HTTP_COOKIE", ""))
    except CookieError:
        cookies = SimpleCookie()
    request.COOKIES = {name: morsel.value for name, morsel in cookies.items()}
    store = import_module(settings.SESSION_ENGINE).SessionStore
    request.session = store(request.COOKIES.get(settings.SESSION_COOKIE_NAME))
    # Without a cookie nobody is asked for: no query.
    signed_in = settings.SESSION_COOKIE_NAME in request.COOKIES
    request.user = get_user(request) if signed_in else AnonymousUser()
    return request


class CallerAuthentication(BaseAuthentication):
    """Tells DRF who is calling: ``request.user`` and ``request.auth`` are the ``Principal``.

    Without any credential it tells nothing, so that a view open to everybody stays open and any
    other answers 401.
    """

    def authenticate(self, request: "Request") -> tuple[Any, Any] | None:
        plain = request._request
        try:
            principal = principal_of(plain, tenant=_named_tenant(request))
        except CallerRefused as refusal:
            if refusal.get_codes() == "missing_credential":
                return None
            raise
        return principal, principal

    def authenticate_header(self, request: "Request") -> str:
        return 'Bearer realm="agentops"'


def _named_tenant(request: "Request") -> str:
    named: Any = request.query_params.get("tenant_id", "")
    if not named and request.method not in ("GET", "HEAD", "OPTIONS"):
        body = request.data
        named = body.get("tenant_id") if isinstance(body, Mapping) else ""
    return named if isinstance(named, str) else ""


def _credential(request: HttpRequest, *, query_token: bool) -> str | None:
    header = request.META.get("HTTP_AUTHORIZATION", "")
    if header:
        scheme, _space, value = header.partition(" ")
        if scheme.lower() != "bearer" or not value.strip():
            raise CallerRefused(_("Send the key as “Authorization: Bearer …”."), "bad_credential")
        return str(value.strip())
    key = request.META.get("HTTP_X_API_KEY", "")
    if key:
        return str(key)
    token = request.GET.get("token", "") if query_token else ""
    if token and not token.startswith(tokens.PREFIX):
        # A key in an address ends up in logs and histories.
        raise CallerRefused(_("Only a session token may be sent as ?token=."), "bad_credential")
    return token or None


def _by_key(text: str) -> Principal:
    shape = KEY_SHAPE.fullmatch(text)
    found = lookups.key_find(shape[1]) if shape else None
    if found is None or not hmac.compare_digest(found.digest, key_digest(text)):
        raise CallerRefused(_("This key is not known."), "unknown_key")
    if found.revoked_at is not None:
        raise CallerRefused(_("This key was revoked."), "revoked_key")
    if found.expires_at is not None and found.expires_at <= timezone.now():
        raise CallerRefused(_("This key has expired."), "expired_key")
    if found.person is not None:
        return _by_personal_key(found)
    lookups.key_used(found)
    return Principal(
        tenant_id=found.tenant_id,
        tenant_slug=found.tenant_slug,
        name=f"key:{found.prefix}",
        scopes=found.scopes.intersection(KEY_SCOPES),
        environment=found.environment,
        agent=found.agent,
    )


def _by_personal_key(found: lookups.FoundKey) -> Principal:
    """Return the person: what their roles allow now, as far as the key's scopes go."""
    if not found.person_active or not (found.person_roles or found.person_platform):
        raise CallerRefused(_("The person of this key is no longer a member."), "person_gone")
    lookups.key_used(found)
    permissions = EVERY_PERMISSION if found.person_platform else permissions_of(found.person_roles)
    return Principal(
        tenant_id=found.tenant_id,
        tenant_slug=found.tenant_slug,
        name=f"user:{found.person}",
        scopes=found.scopes.intersection(KEY_SCOPES) & scopes_of(permissions),
        environment=found.environment,
        key=found.prefix,
        permissions=permissions,
        agent=found.agent,
    )


def _by_token(text: str) -> Principal:
    try:
        token = tokens.session_token_read(text)
    except tokens.ExpiredToken:
        raise CallerRefused(_("This token has expired."), "expired_token") from None
    except tokens.InvalidToken:
        raise CallerRefused(_("This token is not valid."), "invalid_token") from None
    return Principal(
        tenant_id=token.tenant_id,
        tenant_slug=token.tenant_slug,
        name=token.principal,
        scopes=token.scopes,
        environment=token.environment,
        customer=token.customer,
        session=token.session,
    )


def _by_login(request: HttpRequest, tenant: str) -> Principal | None:
    # request.user is asked only with a session cookie: without one it would cost nothing but be
    # nobody, and an API call must not touch the session.
    if settings.SESSION_COOKIE_NAME not in request.COOKIES:
        return None
    user = getattr(request, "user", None)
    if not isinstance(user, User) or not user.is_active:
        return None
    access = access_chosen(request, user, tenant)
    if access is None:
        if tenant:
            raise TenantAbsent
        raise CallerRefused(_("This login belongs to no tenant."), "no_membership")
    _check_csrf(request)
    permissions = EVERY_PERMISSION if user.is_superuser else permissions_of(access.roles)
    return Principal(
        tenant_id=access.tenant_id,
        tenant_slug=access.slug,
        name=f"user:{user.get_username()}",
        scopes=scopes_of(permissions),
        environment=settings.DEFAULT_ENVIRONMENT,
        user=user,
        permissions=permissions,
    )


def access_chosen(
    request: HttpRequest, user: User, tenant: str = ""
) -> lookups.TenantAccess | None:
    """Return the tenant ``user`` is in: the one named, else the one picked in the session, else
    the first by slug; None when they may enter none of that name."""
    reachable = lookups.access_of(user)
    wanted = tenant or request.session.get("tenant", "")
    for access in reachable:
        if access.slug == wanted:
            return access
    return None if tenant or not reachable else reachable[0]


def _check_csrf(request: HttpRequest) -> None:
    """A login travels by cookie, so another site's page can send it: views that take keys are
    exempt from Django's check and get it here."""
    check = CSRFCheck(lambda _request: HttpResponse())
    check.process_request(request)
    reason = check.process_view(request, None, (), {})  # type: ignore[arg-type]
    if reason:
        raise exceptions.PermissionDenied(_("The CSRF check failed."), "csrf_failed")


def _by_demo(request: HttpRequest, tenant: str) -> Principal:
    if not keyless_allowed(request):
        raise CallerRefused(_("A key, a session token or a login is needed."), "missing_credential")
    found = lookups.tenant_find(tenant or DEMO_TENANT)
    if found is None or not found.demo_keyless:
        raise TenantAbsent
    return Principal(
        tenant_id=found.pk,
        tenant_slug=found.slug,
        name="demo",
        scopes=DEMO_SCOPES,
        environment=settings.DEFAULT_ENVIRONMENT,
        demo=True,
    )
