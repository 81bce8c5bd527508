"""What every page of the console asks first: signed in, in a tenant, allowed. And how it refuses."""

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render, resolve_url
from django_htmx.http import HttpResponseClientRedirect

from apps.tenants.switching import current_access

P = ParamSpec("P")
ResponseT = TypeVar("ResponseT", bound=HttpResponseBase)
Page = Callable[Concatenate[HttpRequest, P], HttpResponse]

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
"""Console pages load and run nothing but this server's own files; no page has inline code."""


def console_page(permission: str) -> Callable[[Page[P]], Page[P]]:
    """Make a sync view a page of the console.

    Nobody signed in: to the sign-in page. No tenant, or ``permission`` not held in it: a 403 page.
    ``Http404`` from the view: a page that is the same, byte for byte, for a foreign and an absent
    thing.
    """

    def decorate(view: Page[P]) -> Page[P]:
        @functools.wraps(view)
        def answer(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            return console_headers(_answered(request, permission, view, args, kwargs))

        return answer

    return decorate


def console_headers(response: ResponseT) -> ResponseT:
    """Add the headers of every console page: what it may load, and that no cache keeps it."""
    response.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
    response.headers["Cache-Control"] = "private, no-store"
    return response


def _answered(
    request: HttpRequest, permission: str, view: Callable[..., HttpResponse], args: Any, kwargs: Any
) -> HttpResponse:
    if not request.user.is_authenticated:
        return _to_login(request)
    if current_access(request) is None:
        return render(request, "console/no_tenant.html", status=403)
    if not request.user.has_perm(permission):
        return render(request, "console/refused.html", status=403)
    try:
        return view(request, *args, **kwargs)
    except Http404:
        return render(request, "console/not_found.html", status=404)


def _to_login(request: HttpRequest) -> HttpResponse:
    if getattr(request, "htmx", False):
        # A fragment's request would follow an ordinary redirect and show the form inside the page.
        return HttpResponseClientRedirect(resolve_url(settings.LOGIN_URL))
    return redirect_to_login(request.get_full_path())
