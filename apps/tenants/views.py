"""Signing in and out of the console, and picking the tenant one works in."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import LoginView, LogoutView
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import resolve_url
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from apps.tenants.console import console_headers
from apps.tenants.forms import SignInForm
from apps.tenants.switching import choices

SESSION_KEY = "tenant"


class SignIn(LoginView):
    """The console's door: user name and password, then home or where one came from."""

    template_name = "console/login.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return console_headers(super().dispatch(request, *args, **kwargs))


class SignOut(LogoutView):
    """Ends the login (POST only) and forgets the tenant picked in it."""


@require_POST
@login_required
def tenant_pick(request: HttpRequest) -> HttpResponse:
    """Enter the tenant in ``slug`` and go to ``next``; 404 for one the person may not enter."""
    slug = request.POST.get("slug", "")
    if slug not in {access.slug for access in choices(request)}:
        raise Http404
    request.session[SESSION_KEY] = slug
    target = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(target, allowed_hosts={request.get_host()}):
        target = resolve_url("admin:index")
    return HttpResponseRedirect(target)
