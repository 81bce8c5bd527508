"""Pages of releases in the admin: read, download, let an environment run one, search for references.

Each takes the admin whose frame it is shown in, checks the permission, calls one service or
selector and renders. Releases are made by publishing a change request; nothing edits one.
"""

from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from apps.releases.environments.rules import environment_before
from apps.releases.environments.services import UnboundBindings
from apps.releases.evidence.history import environments_now, release_environments_at
from apps.releases.evidence.notes import notes_drafted
from apps.releases.evidence.record import (
    record_name,
    record_sign,
    release_deployments,
    release_evidence,
    release_record,
    release_risks,
    turns_answered,
)
from apps.releases.freezing import CorruptRelease, manifest_stored
from apps.releases.gates import gate_results_read
from apps.releases.models import Deployment, Release
from apps.releases.pages.change_acts import refusal_lines
from apps.releases.pages.choices import options_search
from apps.releases.pages.config_admin import ConfigAdmin
from apps.releases.pages.diff_view import field_title, shown_difference, value_text
from apps.releases.pages.environment_acts import REFUSALS, Acting, act_do
from apps.releases.pages.environment_forms import ArriveForm, CanaryForm, MomentForm, RollBackForm
from apps.releases.pages.environment_shown import Way, releases_ran, removed_there, way_of
from apps.releases.pages.links import kind_label, release_link, slug_link
from apps.releases.pages.release_shown import requests_shown
from apps.releases.patches.comparing import Items, items_changed, manifest_items
from apps.runtime.config import KINDS
from apps.tenants.scope import has_tenant

ITEMS_PAGE = 100


def require(request: HttpRequest, permission: str) -> None:
    """Raise ``PermissionDenied`` unless the person has ``permission`` in the current tenant."""
    if not has_tenant() or not request.user.has_perm(permission):
        raise PermissionDenied


def release_detail_view(admin: ConfigAdmin, request: HttpRequest, release: Release) -> HttpResponse:
    """Show one release: facts, requests and approvals, difference to its parent, contents."""
    items, before = _items(release), _items(release.parent)
    changes = items_changed(before, items)
    risks = release_risks(changes, before, items)
    gates = gate_results_read(release.gates)
    kind = request.GET.get("kind", "")
    counts: dict[str, int] = {}
    for found, _slug in items:
        counts[found] = counts.get(found, 0) + 1
    context = {
        "release": release,
        "original": release,
        "parent_url": release_link(release.parent) if release.parent else "",
        "intact": _is_intact(release),
        "gates": gates,
        "passed": [found["gate"] for found in gates if found["level"] == "passed"],
        "environments": list(release.deployments.order_by("environment")),
        "requests": requests_shown(release),
        "notes": notes_drafted(changes, risks),
        "difference": shown_difference(changes, risks),
        "deployments": release_deployments(release),
        "turns": turns_answered(release),
        "evidence": release_evidence(release),
        **_then(request, release),
        "kinds": [{"kind": k, "label": kind_label(k), "count": n} for k, n in counts.items()],
        "kind": kind,
        "rows": _page_of([key for key in items if kind in ("", key[0])], request, release),
        "targets": settings.RELEASE_ENVIRONMENTS,
        "may_deploy": request.user.has_perm("release.deploy"),
    }
    return admin.page(request, "releases/release_detail.html", str(release), context)


def release_item_view(
    admin: ConfigAdmin, request: HttpRequest, release: Release, kind: str, slug: str
) -> HttpResponse:
    """Show one item as a release holds it."""
    content = _items(release).get((kind, slug))
    if content is None:
        raise Http404
    config_class = KINDS.get(kind)
    context = {
        "release": release,
        "original": release,
        "release_url": release_link(release),
        "url": slug_link(kind, slug),
        "kind": kind_label(kind),
        "slug": slug,
        "fields": [
            (field_title(config_class, name) if config_class else name, value_text(value))
            for name, value in content.items()
        ],
    }
    return admin.page(request, "releases/release_item.html", slug, context)


def release_manifest_view(request: HttpRequest, release: Release) -> HttpResponse:
    """Return the stored bytes: their sha256 is the release's."""
    name = f"release-{release.number}-{release.sha256[:12]}.json"
    return _file(release.manifest.encode("utf-8", "surrogatepass"), name)


def release_record_view(request: HttpRequest, release: Release) -> HttpResponse:
    """Return the signed record: everything known of the release, in one file."""
    try:
        text = record_sign(release_record(release))
    except CorruptRelease as corrupt:
        messages.error(request, str(corrupt))
        return HttpResponseRedirect(release_link(release))
    return _file(text.encode("utf-8", "surrogatepass"), record_name(release))


def release_deploy_view(admin: ConfigAdmin, request: HttpRequest, release: Release) -> HttpResponse:
    """Show what a release would change in an environment; deploy, promote or roll back (POST)."""
    require(request, "release.deploy")
    environment = _environment(request)
    refusal: Exception | None = None
    way = _way(release, environment)
    if request.method == "POST":
        act = request.POST.get("act") or _act_of(way)
        try:
            told = act_do(act, Acting(request, environment, release))
        except REFUSALS as refused:
            refusal = refused
        else:
            messages.success(request, told)
            return HttpResponseRedirect(reverse("admin:releases_environment", args=[environment]))
    current = environments_now().get(environment)
    before, after = _items(current.release if current else None), _items(release)
    changes = items_changed(before, after)
    context = {
        "release": release,
        "original": release,
        "release_url": release_link(release),
        "environments": settings.RELEASE_ENVIRONMENTS,
        "target": environment,
        "way": way,
        "current": current.release if current else None,
        "difference": shown_difference(changes, release_risks(changes, before, after)),
        "removed": removed_there(environment, before, after),
        "refusal": refusal and refusal_shown(refusal),
        **_forms(request, way, current),
    }
    title = _("Release #%(number)s to %(environment)s") % {
        "number": release.number,
        "environment": environment,
    }
    return admin.page(request, "releases/release_deploy.html", title, context)


def options_view(request: HttpRequest, kind: str) -> JsonResponse:
    """Answer a reference field's search: ``?term=`` and ``?page=``, in Select2's form."""
    require(request, "config.view")
    if kind not in KINDS:
        raise Http404
    page = request.GET.get("page", "1")
    found, more = options_search(
        kind=kind,
        term=request.GET.get("term", "").replace("\x00", ""),
        page=int(page) if page.isascii() and page.isdigit() and len(page) < 7 else 1,
    )
    return JsonResponse(
        {
            "results": [{"id": slug, "text": label} for slug, label in found],
            "pagination": {"more": more},
        }
    )


def _then(request: HttpRequest, release: Release) -> dict[str, Any]:
    """Return where ``release`` ran at the moment that was asked for, if one was."""
    form = MomentForm(request.GET if "at" in request.GET else None)
    moment = form.cleaned_data["moment"] if form.is_bound and form.is_valid() else None
    names = settings.RELEASE_ENVIRONMENTS
    return {
        "moment_form": form,
        "moment": moment,
        "is_later": bool(moment and moment < release.published_at),
        "ran_then": release_environments_at(release, moment, names) if moment else [],
    }


def _environment(request: HttpRequest) -> str:
    given = request.POST.get("environment") if request.method == "POST" else None
    name = given or request.GET.get("environment") or settings.RELEASE_ENTRY_ENVIRONMENTS[0]
    if name not in settings.RELEASE_ENVIRONMENTS:
        raise Http404
    return str(name)


def _way(release: Release, environment: str) -> Way:
    running = environments_now()
    here = running.get(environment)
    before = running.get(environment_before(environment))
    hop = before.release_id if before else None
    return way_of(release, environment, here, ran=releases_ran(environment), hop=hop)


def _act_of(way: Way) -> str:
    # Promotion refuses what cannot arrive, with the reason.
    return way.verb if way.verb in ("deploy", "promote", "roll_back") else "promote"


def _forms(request: HttpRequest, way: Way, current: Deployment | None) -> dict[str, Any]:
    initial = {
        "in_flight": current.in_flight if current else "follow",
        "max_pin_hours": current.max_pin_hours if current else 72,
        "share": 10,
    }
    typed = request.POST if request.method == "POST" else None
    is_canary = request.POST.get("act") == "canary_start"
    whole = RollBackForm if way.verb == "roll_back" else ArriveForm
    return {
        "form": whole(None if is_canary else typed, initial=initial),
        "canary_form": CanaryForm(typed if is_canary else None, initial=initial, prefix=None)
        if way.verb in ("deploy", "promote") and current is not None
        else None,
    }


def _items(release: Release | None) -> Items:
    """Return what ``release`` holds; nothing of none, or of one whose stored bytes have changed."""
    try:
        return manifest_items(manifest_stored(release)) if release else {}
    except CorruptRelease:
        return {}


def _page_of(rows: list[tuple[str, str]], request: HttpRequest, release: Release) -> Any:
    page: Any = Paginator(rows, ITEMS_PAGE).get_page(request.GET.get("p"))
    page.object_list = [
        {
            "kind": kind_label(kind),
            "slug": slug,
            "url": reverse("admin:releases_release_item", args=[release.pk, kind, slug]),
        }
        for kind, slug in page.object_list
    ]
    return page


def refusal_shown(refusal: Exception) -> dict[str, Any]:
    """Return a refusal as a page shows it: sentences, and what has to be bound first."""
    if not isinstance(refusal, UnboundBindings):
        return {"lines": refusal_lines(refusal), "missing": []}
    add = reverse("admin:releases_environment", args=[refusal.environment])
    return {
        "lines": [
            _("Not done: %(environment)s has no value for what the release names.")
            % {"environment": refusal.environment}
        ],
        "missing": [
            {
                **entry,
                "kind": kind_label(entry["kind"]),
                "url": slug_link(entry["kind"], entry["slug"]),
                "bind_url": f"{add}?{urlencode({'what': entry['what'], 'name': entry['name']})}#propose",
            }
            for entry in refusal.missing
        ],
    }


def _file(data: bytes, name: str) -> HttpResponse:
    return HttpResponse(
        data,
        content_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _is_intact(release: Release) -> bool:
    try:
        manifest_stored(release)
    except CorruptRelease:
        return False
    return True
