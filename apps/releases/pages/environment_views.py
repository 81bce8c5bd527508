"""Pages of environments in the admin: what runs, the acts on it, its history.

An environment has a page before anything runs there. Whether an act may be done is the services' to
say; a refusal is shown on the page it was tried from.
"""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _

from apps.releases.environments.rules import environment_before
from apps.releases.environments.selectors import bindings_at
from apps.releases.evidence.history import environment_at, environment_events, environments_now
from apps.releases.models import Deployment, Release
from apps.releases.pages.config_admin import ConfigAdmin
from apps.releases.pages.environment_acts import REFUSALS, Acting, act_do
from apps.releases.pages.environment_forms import (
    DecideForm,
    FreezeForm,
    MomentForm,
    OptionalReasonForm,
    ProposalForm,
    ReasonForm,
    ShareForm,
)
from apps.releases.pages.environment_shown import (
    environment_shown,
    rates_shown,
    releases_ran,
    way_of,
)
from apps.releases.pages.views import refusal_shown, require
from apps.tenants.tenant_admin import actor_of

RELEASES_PAGE = 20
EVENTS_PAGE = 50
HERE = ("canary_change", "canary_finish", "canary_stop", "freeze_add", "freeze_end",
        "binding_propose", "binding_approve", "binding_reject", "binding_withdraw")  # fmt: skip
"""Acts of this page; those that bring a release are on the page of release and environment."""

FORMS: dict[str, Any] = {
    "canary_change": ShareForm,
    "canary_finish": OptionalReasonForm,
    "canary_stop": ReasonForm,
    "freeze_add": FreezeForm,
    "binding_propose": ProposalForm,
    "binding_decide": DecideForm,
}


def deployment_view(
    admin: ConfigAdmin, request: HttpRequest, deployment: Deployment
) -> HttpResponse:
    """Send the reader of a deployment to the page of its environment."""
    return HttpResponseRedirect(environment_link(deployment.environment))


def environment_link(name: str) -> str:
    """Return the page of environment ``name``."""
    return reverse("admin:releases_environment", args=[name])


def environment_view(admin: ConfigAdmin, request: HttpRequest, name: str) -> HttpResponse:
    """Show what an environment runs, and do an act on it (POST ``act``)."""
    require(request, "release.view")
    _known(name)
    act = request.POST.get("act", "") if request.method == "POST" else ""
    refusal: Exception | None = None
    if request.method == "POST":
        if act not in HERE:
            raise Http404
        try:
            told = act_do(act, Acting(request, name))
        except REFUSALS as refused:
            refusal = refused
        else:
            messages.success(request, told)
            return HttpResponseRedirect(environment_link(name))
    running = environments_now()
    shown = environment_shown(name, running)
    context = {
        "shown": shown,
        "deployment": shown.deployment,
        "environments": settings.RELEASE_ENVIRONMENTS,
        "entries": settings.RELEASE_ENTRY_ENVIRONMENTS,
        "name": name,
        "refusal": refusal and refusal_shown(refusal),
        "refused": act,
        "canary_rates": _canary_rates(shown.canary),
        "releases": _releases(request, name, running),
        "actor": actor_of(request),
        "may_deploy": request.user.has_perm("release.deploy"),
        "may_bind": request.user.has_perm("bindings.change"),
        "may_decide": request.user.has_perm("bindings.change")
        or request.user.has_perm("changes.review"),
        "forms": _forms(request, act if refusal else "", shown.canary),
    }
    return admin.page(request, "releases/environment.html", name, context)


def environment_history_view(admin: ConfigAdmin, request: HttpRequest, name: str) -> HttpResponse:
    """Show everything an environment did, and (``at``) what it ran at a moment."""
    require(request, "release.view")
    _known(name)
    form = MomentForm(request.GET if "at" in request.GET else None)
    moment = form.cleaned_data["moment"] if form.is_bound and form.is_valid() else None
    context = {
        "name": name,
        "environments": settings.RELEASE_ENVIRONMENTS,
        "form": form,
        "moment": moment,
        "then": environment_at(name, moment) if moment else None,
        "bindings": sorted(bindings_at(name, moment).items()) if moment else [],
        "events": Paginator(environment_events(name), EVENTS_PAGE).get_page(request.GET.get("p")),
    }
    title = _("History of %(environment)s") % {"environment": name}
    return admin.page(request, "releases/environment_history.html", title, context)


def _known(name: str) -> None:
    if name not in settings.RELEASE_ENVIRONMENTS:
        raise Http404


def _canary_rates(canary: Any) -> list[tuple[Any, Any]]:
    if canary is None:
        return []
    return [
        (_("Canary"), rates_shown(canary.rates)),
        (_("The others"), rates_shown(canary.others)),
    ]


def _releases(request: HttpRequest, name: str, running: dict[str, Deployment]) -> Any:
    """Return a page of releases, each with the way it could get here now."""
    releases = Release.objects.defer("manifest").order_by("-number")
    page: Any = Paginator(releases, RELEASES_PAGE).get_page(request.GET.get("p"))
    ran = releases_ran(name)
    before = running.get(environment_before(name))
    hop = before.release_id if before else None
    page.object_list = [
        {"release": release, "way": way_of(release, name, running.get(name), ran=ran, hop=hop)}
        for release in page.object_list
    ]
    return page


def _forms(request: HttpRequest, refused: str, canary: Any) -> dict[str, Any]:
    """Return the forms of the page; the one that was refused keeps what was typed."""
    made = {}
    for name, form_class in FORMS.items():
        initial: dict[str, Any] = {"share": canary.share} if canary else {}
        if name == "binding_propose":
            initial = {key: request.GET[key] for key in ("what", "name") if key in request.GET}
        is_refused = refused == name
        made[name] = form_class(
            request.POST if is_refused else None, initial=initial, auto_id=f"id_{name}_%s"
        )
    return made
