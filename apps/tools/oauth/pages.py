"""Admin pages of connections: where a person signs in at tool servers, and ends it."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from apps.releases.pages.config_admin import ConfigAdmin
from apps.runtime.addresses import AllowList
from apps.runtime.ports import RemoteTool
from apps.tenants import lookups
from apps.tenants.models import User
from apps.tenants.scope import tenant_transaction
from apps.tenants.tenant_admin import actor_of
from apps.tenants.threads import in_thread
from apps.tools.contracts.asynchronous import async_page, in_transaction
from apps.tools.contracts.selectors import UnknownServer, server_remote
from apps.tools.oauth import services
from apps.tools.oauth.asking import Refused, Unreachable
from apps.tools.oauth.selectors import connections_of, connections_of_others, owner_in
from apps.tools.oauth.signing_in import sign_in_finish, sign_in_start
from apps.tools.oauth_models import ToolConnection

BADGES = {"valid": "ok", "needs_sign_in": "error", "empty": ""}
END_OTHERS = "bindings.change"


class ConnectionPages(ConfigAdmin):
    """One's own connections; who may change bindings also sees, and ends, those of others."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_urls(self) -> list[URLPattern]:
        site, name = self.admin_site, "tools_toolconnection"
        return [
            path("connect/", async_page(site, self.connect_view), name=f"{name}_connect"),
            path("callback/", async_page(site, self.callback_view), name=f"{name}_callback"),
            path("end/", site.admin_view(self.end_view), name=f"{name}_end"),
            *super().get_urls(),
        ]

    def changelist_view(  # type: ignore[override]  # a page of our own
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        environment = _environment(request.GET.get("environment"))
        me = actor_of(request)
        ends_others = request.user.has_perm(END_OTHERS)
        others = connections_of_others(me, environment) if ends_others else []
        context = {
            "environment": environment,
            "environments": settings.RELEASE_ENVIRONMENTS,
            "rows": [
                {"connection": each, "badge": BADGES[each.state]}
                for each in connections_of(me, environment)
            ],
            "others": [{"row": row, "badge": BADGES[row.state]} for row in others],
            "ends_others": ends_others,
        }
        title = _("Connections to tool servers")
        return self.page(request, "tools/connections.html", title, context)

    def _changeform_view(
        self, request: HttpRequest, object_id: str | None, form_url: str, extra_context: Any
    ) -> HttpResponse:
        if object_id is None:
            raise PermissionDenied
        row: ToolConnection = self.row_or_404(request, object_id)
        if row.principal not in ("", actor_of(request)) and not request.user.has_perm(END_OTHERS):
            raise Http404
        context = {"row": row, "badge": BADGES[row.state], "back": _list(row.environment)}
        return self.page(request, "tools/connection.html", row.server, context)

    async def connect_view(self, request: HttpRequest) -> HttpResponse:
        """Send the person to the server's authorisation server (POST ``environment``, ``server``)."""
        remote = await in_transaction(self._asked, request)
        if isinstance(remote, HttpResponse):
            return remote
        try:
            address = await sign_in_start(
                remote, redirect_uri=_callback(request), allowed=_allowed()
            )
        except (Refused, Unreachable) as error:
            text = _("Signing in there is not possible: %(why)s") % {"why": _why(error)}
            return await in_transaction(_told, request, messages.ERROR, text, remote.environment)  # type: ignore[no-any-return]
        return HttpResponseRedirect(address)

    def _asked(self, request: HttpRequest) -> Any:
        """Return the server as the person signs in there, or the refusal."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_view_permission(request):
            raise PermissionDenied
        environment = _environment(request.POST.get("environment"))
        server = str(request.POST.get("server", ""))
        remote = _remote(server, environment, actor_of(request))
        if remote is None or remote.auth != "oauth_user":
            text = _("The server has no address in this environment, or nobody signs in there.")
            return _told(request, messages.ERROR, text, environment)
        return remote

    async def callback_view(self, request: HttpRequest) -> HttpResponse:
        """Take the person back from the authorisation server (``state``, ``code``, ``iss``)."""
        level, text, environment = await self._returned(request)
        return await in_transaction(_told, request, level, text, environment)  # type: ignore[no-any-return]

    async def _returned(self, request: HttpRequest) -> tuple[int, str, str]:
        state = request.GET.get("state", "")
        tenant_id = await in_thread(_tenant_of, request, state)
        try:
            if tenant_id is None:
                raise services.NoSuchSignIn
            back = await in_thread(
                services.sign_in_return,
                tenant_id=tenant_id,
                principal=actor_of(request),
                state=state,
            )
        except services.NoSuchSignIn:
            text = _("This sign-in is not known, was used already, or is too old. Begin again.")
            return messages.ERROR, text, ""
        environment = back.owner.environment
        try:
            address = await in_thread(_address, back.owner)
            if error := request.GET.get("error", ""):
                raise Refused(error[:60], request.GET.get("error_description", "")[:200])
            await sign_in_finish(
                back,
                code=request.GET.get("code", ""),
                issuer=request.GET.get("iss", ""),
                address=address,
                actor=actor_of(request),
                allowed=_allowed(),
            )
        except (Refused, Unreachable) as error:
            return messages.ERROR, _("Not connected: %(why)s") % {"why": _why(error)}, environment
        text = _("Connected to %(server)s.") % {"server": back.owner.server}
        return messages.SUCCESS, text, environment

    def end_view(self, request: HttpRequest) -> HttpResponse:
        """End a connection: one's own, or with the right to another's (POST)."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_view_permission(request):
            raise PermissionDenied
        me = actor_of(request)
        environment = _environment(request.POST.get("environment"))
        principal = request.POST.get("principal", me)
        if principal != me and not request.user.has_perm(END_OTHERS):
            raise PermissionDenied
        owner = owner_in(environment, str(request.POST.get("server", "")), str(principal))
        ended = services.connection_end(owner, actor=me)
        text = _("The connection was ended.") if ended else _("There is no such connection.")
        level = messages.SUCCESS if ended else messages.WARNING
        return _told(request, level, text, environment)


def _why(error: Refused | Unreachable) -> str:
    """Return what went wrong in the reader's language: the server's code, and our words on it."""
    if isinstance(error, Unreachable):
        return _(str(error))
    return f"{error.error}: {_(error.description)}" if error.description else error.error


def _remote(server: str, environment: str, principal: str) -> RemoteTool | None:
    try:
        return server_remote(server, environment, principal)
    except UnknownServer:
        return None


def _address(owner: services.Owner) -> str:
    """Return where the server is now. Raises ``Refused`` when it is nowhere."""
    with tenant_transaction(owner.tenant_id):
        remote = _remote(owner.server, owner.environment, owner.principal)
    if remote is None:
        raise Refused("unbound", _("the server has no address any more"))
    return remote.address


def _tenant_of(request: HttpRequest, state: str) -> int | None:
    """Return the tenant that ``state`` names, if the person may enter it."""
    named = state.partition(".")[0]
    user = request.user
    if not (named.isascii() and named.isdigit() and len(named) < 19 and isinstance(user, User)):
        return None
    reachable = {access.tenant_id for access in lookups.access_of(user)}
    return int(named) if int(named) in reachable else None


def _environment(name: str | None) -> str:
    environment = name or settings.DEFAULT_ENVIRONMENT
    if environment not in settings.RELEASE_ENVIRONMENTS:
        raise Http404
    return environment


def _callback(request: HttpRequest) -> str:
    where = reverse("admin:tools_toolconnection_callback")
    return (
        f"{settings.PUBLIC_URL}{where}"
        if settings.PUBLIC_URL
        else request.build_absolute_uri(where)
    )


def _allowed() -> AllowList:
    return AllowList.of(settings.TOOL_ALLOW_PRIVATE)


def _told(request: HttpRequest, level: int, text: str, environment: str) -> HttpResponse:
    messages.add_message(request, level, text)
    return HttpResponseRedirect(_list(environment))


def _list(environment: str) -> str:
    where = reverse("admin:tools_toolconnection_changelist")
    return f"{where}?environment={environment}" if environment else where
