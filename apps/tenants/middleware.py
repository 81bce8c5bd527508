"""Opens the tenant scope of a signed-in person's request.

Callers with a key or a token are resolved by their view (``auth.principal_of``), which opens
the scope itself; requests without a session cookie pass through here without a query.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from apps.tenants.auth import access_chosen
from apps.tenants.lookups import TenantAccess
from apps.tenants.models import User
from apps.tenants.scope import has_tenant, tenant_scope, tenant_transaction

Respond = Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]


class TenantMiddleware:
    """Sets ``request.tenant`` (a ``TenantAccess`` or None) and opens its scope.

    A sync view runs, and its template is rendered, in one ``tenant_transaction``, rolled back when
    it raises. An async view gets the scope only: a transaction held while a stream waits would
    hold its connection too, so it opens short ones itself (``scope.in_tenant``), and a streaming
    generator opens the scope again, because it runs after this returned.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Respond) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        if iscoroutinefunction(self):
            return self._respond(request)
        request.tenant = _resolve(request)  # type: ignore[attr-defined]
        with _scope(request):
            return self.get_response(request)

    async def _respond(self, request: HttpRequest) -> Any:
        request.tenant = None  # type: ignore[attr-defined]
        if settings.SESSION_COOKIE_NAME in request.COOKIES:
            request.tenant = await sync_to_async(_resolve)(request)  # type: ignore[attr-defined]
        with _scope(request):
            return await self.get_response(request)  # type: ignore[misc]

    def process_view(
        self,
        request: HttpRequest,
        view: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> HttpResponse | None:
        if not has_tenant() or iscoroutinefunction(view):
            return None
        # Last in MIDDLEWARE, so every other view middleware has had its say.
        with tenant_transaction():
            response: HttpResponse = view(request, *args, **kwargs)
            render = getattr(response, "render", None)
            # An admin list reads its rows while it is rendered: inside, or it would see none.
            return render() if callable(render) else response


def _resolve(request: HttpRequest) -> TenantAccess | None:
    if settings.SESSION_COOKIE_NAME not in request.COOKIES:
        return None
    user = request.user
    return access_chosen(request, user) if isinstance(user, User) else None


def _scope(request: HttpRequest) -> AbstractContextManager[None]:
    access: TenantAccess | None = request.tenant  # type: ignore[attr-defined]
    return nullcontext() if access is None else tenant_scope(access.tenant_id)
