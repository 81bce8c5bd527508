"""Admin pages that wait for a server: async, so that no transaction is open meanwhile."""

from collections.abc import Awaitable, Callable
from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.cache import add_never_cache_headers

from apps.tenants.scope import has_tenant, tenant_transaction
from apps.tenants.threads import in_thread

AsyncView = Callable[..., Awaitable[HttpResponse]]


def async_page(site: AdminSite, view: AsyncView) -> Any:
    """Return ``view`` for who is let into the admin, as ``AdminSite.admin_view`` does for others."""

    async def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not await in_thread(site.has_permission, request):
            login = reverse(f"{site.name}:login")
            return redirect_to_login(request.get_full_path(), login)
        response = await view(request, *args, **kwargs)
        add_never_cache_headers(response)
        return response

    return checked


async def in_transaction(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run a synchronous part of a page as synchronous pages run: in one transaction of the tenant."""

    def run() -> Any:
        if not has_tenant():
            return function(*args, **kwargs)
        with tenant_transaction():
            return function(*args, **kwargs)

    return await in_thread(run)
