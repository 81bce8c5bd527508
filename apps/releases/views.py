"""Pages of releases in the admin: publish, read, deploy and roll back, search for references.

Each takes the admin whose frame it is shown in, checks the permission, calls one service or
selector and renders.
"""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.releases import widgets
from apps.releases.choices import options_search
from apps.releases.comparing import items_changed, manifest_items
from apps.releases.config_admin import ConfigAdmin
from apps.releases.content import InvalidContent
from apps.releases.diff_view import field_title, shown_difference, value_text
from apps.releases.environment_services import UnboundBindings, UnknownEnvironment, release_deploy
from apps.releases.freezing import CorruptRelease, manifest_of_heads, manifest_stored
from apps.releases.gates import gate_results_read
from apps.releases.links import kind_label, slug_link
from apps.releases.models import Deployment, Release
from apps.releases.selectors import deployed_release
from apps.releases.services import GateRefused, release_publish
from apps.runtime.canonical import sha256_text
from apps.runtime.config import KINDS
from apps.tenants.scope import has_tenant
from apps.tenants.tenant_admin import actor_of

ITEMS_PAGE = 100


class PublishForm(forms.Form):
    """Why a release is made."""

    note = forms.CharField(
        label=gettext_lazy("Note"),
        max_length=500,
        required=False,
        widget=widgets.Line(),
        help_text=gettext_lazy("Kept with the release."),
    )


class DeployForm(forms.Form):
    """Where a release is to run."""

    environment = forms.ChoiceField(label=gettext_lazy("Environment"), widget=widgets.Choice())

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = settings.RELEASE_ENVIRONMENTS
        self.fields["environment"].choices = [(name, name) for name in names]  # type: ignore[attr-defined]


def require(request: HttpRequest, permission: str) -> None:
    """Raise ``PermissionDenied`` unless the person has ``permission`` in the current tenant."""
    if not has_tenant() or not request.user.has_perm(permission):
        raise PermissionDenied


def release_publish_view(admin: ConfigAdmin, request: HttpRequest) -> HttpResponse:
    """Show what a release would change, and publish it (POST)."""
    require(request, "release.publish")
    form = PublishForm(request.POST if request.method == "POST" else None)
    problems: list[dict[str, str]] = []
    if request.method == "POST" and form.is_valid():
        newest = Release.objects.order_by("-number").values_list("number", flat=True).first() or 0
        try:
            release = release_publish(actor=actor_of(request), note=form.cleaned_data["note"])
        except GateRefused as refusal:
            problems = [
                {"message": p.message, "url": slug_link(p.kind, p.slug) if p.kind else ""}
                for p in refusal.problems
            ]
        except InvalidContent as invalid:
            problems = [
                {"message": f"{e['field']}: {e['message']}", "url": ""} for e in invalid.errors
            ]
        else:
            text = (
                _("Release #%(number)s is published. Deploy it to make it run.")
                if release.number > newest
                else _("This is what release #%(number)s already holds; no new one was made.")
            )
            messages.success(request, text % {"number": release.number})
            return HttpResponseRedirect(_release_url(release))
    latest = Release.objects.order_by("-number").first()
    manifest = manifest_of_heads()
    changed = items_changed(
        manifest_items(latest.manifest if latest else ""), manifest_items(manifest)
    )
    context = {
        "form": form,
        "latest": latest,
        "same": Release.objects.filter(sha256=sha256_text(manifest)).defer("manifest").first(),
        "difference": shown_difference(changed),
        "problems": problems,
    }
    return admin.page(request, "releases/release_publish.html", _("Publish a release"), context)


def release_detail_view(admin: ConfigAdmin, request: HttpRequest, release: Release) -> HttpResponse:
    """Show one release: facts, difference to its parent, contents."""
    items = manifest_items(release.manifest)
    parent = release.parent
    kind = request.GET.get("kind", "")
    rows = [key for key in items if not kind or key[0] == kind]
    counts: dict[str, int] = {}
    for found, _slug in items:
        counts[found] = counts.get(found, 0) + 1
    context = {
        "release": release,
        "original": release,
        "parent_url": _release_url(parent) if parent else "",
        "intact": _is_intact(release),
        "gates": [r["gate"] for r in gate_results_read(release.gates) if r["level"] == "passed"],
        "environments": [d.environment for d in release.deployments.order_by("environment")],
        "difference": shown_difference(
            items_changed(manifest_items(parent.manifest if parent else ""), items)
        ),
        "kinds": [{"kind": k, "label": kind_label(k), "count": n} for k, n in counts.items()],
        "kind": kind,
        "rows": _page_of(rows, request, release),
        "may_deploy": request.user.has_perm("release.deploy"),
    }
    return admin.page(request, "releases/release_detail.html", str(release), context)


def release_item_view(
    admin: ConfigAdmin, request: HttpRequest, release: Release, kind: str, slug: str
) -> HttpResponse:
    """Show one item as a release holds it."""
    content = manifest_items(release.manifest).get((kind, slug))
    if content is None:
        raise Http404
    config_class = KINDS.get(kind)
    context = {
        "release": release,
        "original": release,
        "release_url": _release_url(release),
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
    return HttpResponse(
        release.manifest.encode(),
        content_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def release_deploy_view(admin: ConfigAdmin, request: HttpRequest, release: Release) -> HttpResponse:
    """Show what a deployment would change in an environment, and deploy (POST)."""
    require(request, "release.deploy")
    initial = {"environment": request.GET.get("environment", settings.DEFAULT_ENVIRONMENT)}
    form = DeployForm(request.POST if request.method == "POST" else None, initial=initial)
    refusal: UnboundBindings | None = None
    if request.method == "POST" and form.is_valid():
        environment = form.cleaned_data["environment"]
        try:
            release_deploy(release=release, environment=environment, actor=actor_of(request))
        except UnboundBindings as unbound:
            refusal = unbound
        except (CorruptRelease, UnknownEnvironment) as problem:
            form.add_error(None, str(problem))
        else:
            text = _("Release #%(number)s runs in %(environment)s from the next message on.")
            found = {"number": release.number, "environment": environment}
            messages.success(request, text % found)
            return HttpResponseRedirect(_release_url(release))
    chosen = form.data.get("environment") if form.is_bound else initial["environment"]
    current = deployed_release(chosen) if chosen in settings.RELEASE_ENVIRONMENTS else None
    before = manifest_items(manifest_stored(current) if current and _is_intact(current) else "")
    context = {
        "form": form,
        "release": release,
        "original": release,
        "release_url": _release_url(release),
        "current": current,
        "target": chosen,
        "is_rollback": bool(current and release.number < current.number),
        "is_running": bool(current and release.pk == current.pk),
        "difference": shown_difference(items_changed(before, manifest_items(release.manifest))),
        "refusal": refusal and _missing(refusal),
    }
    title = _("Deploy release #%(number)s") % {"number": release.number}
    return admin.page(request, "releases/release_deploy.html", title, context)


def deployment_view(
    admin: ConfigAdmin, request: HttpRequest, deployment: Deployment
) -> HttpResponse:
    """Show what an environment runs, and the releases it could go to or back to."""
    releases = Release.objects.defer("manifest").order_by("-number")
    context = {
        "deployment": deployment,
        "original": deployment,
        "releases": Paginator(releases, 50).get_page(request.GET.get("p")),
        "may_deploy": request.user.has_perm("release.deploy"),
    }
    return admin.page(request, "releases/deployment_detail.html", deployment.environment, context)


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


def _missing(refusal: UnboundBindings) -> dict[str, Any]:
    add = reverse("admin:releases_binding_add")
    return {
        "environment": refusal.environment,
        "missing": [
            {
                **entry,
                "kind": kind_label(entry["kind"]),
                "url": slug_link(entry["kind"], entry["slug"]),
                "bind_url": f"{add}?environment={refusal.environment}&what={entry['what']}&name={entry['name']}",
            }
            for entry in refusal.missing
        ],
    }


def _is_intact(release: Release) -> bool:
    try:
        manifest_stored(release)
    except CorruptRelease:
        return False
    return True


def _release_url(release: Release) -> str:
    return reverse("admin:releases_release_change", args=[release.pk])
