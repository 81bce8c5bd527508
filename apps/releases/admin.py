"""Admin of releases, deployments and bindings; kinds have theirs beside their proxies."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.decorators import display

from apps.releases.authority import authority_held
from apps.releases.environments.binding_services import needs_approval
from apps.releases.environments.binding_values import InvalidBinding, binding_check
from apps.releases.environments.services import (
    BindingInUse,
    BindingNeedsApproval,
    binding_remove,
    binding_set,
)
from apps.releases.models import Binding, Deployment, Release
from apps.releases.pages import change_admin as change_admin
from apps.releases.pages import environment_views, history_views, transfer_views, views
from apps.releases.pages.config_admin import ConfigAdmin
from apps.tenants.tenant_admin import actor_of


class ReadOnlyAdmin(ConfigAdmin):
    """Rows that services make and nobody edits; a row has a page of its own."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def _changeform_view(
        self, request: HttpRequest, object_id: str | None, form_url: str, extra_context: Any
    ) -> HttpResponse:
        if object_id is None or request.method not in ("GET", "HEAD"):
            raise PermissionDenied
        return self.row_page(request, self.row_or_404(request, object_id))

    def row_page(self, request: HttpRequest, row: Any) -> HttpResponse:
        """Return the page of one row."""
        raise NotImplementedError


@admin.register(Release)
class ReleaseAdmin(ReadOnlyAdmin):
    """Read, download, let environments run them; import and export. Nothing edits a release."""

    list_display = ("name", "digest", "note", "published_by", "published_at", "runs_in")
    list_display_links = ("name",)
    search_fields = ("sha256", "note", "published_by")
    ordering = ("-number",)
    list_before_template = "releases/_release_toolbar.html"  # type: ignore[assignment]

    @display(description=gettext_lazy("release"), ordering="number")  # type: ignore[arg-type]
    def name(self, release: Release) -> str:
        return f"#{release.number}"

    @display(description=gettext_lazy("sha256"))  # type: ignore[arg-type]
    def digest(self, release: Release) -> str:
        return format_html("<code>{}</code>", release.sha256[:12])

    @display(description=gettext_lazy("runs in"))  # type: ignore[arg-type]
    def runs_in(self, release: Release) -> str:
        return ", ".join(sorted(d.environment for d in release.deployments.all())) or "–"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Release]:
        found: QuerySet[Release] = super().get_queryset(request)
        return found.defer("manifest").prefetch_related("deployments")

    def row_page(self, request: HttpRequest, row: Release) -> HttpResponse:
        return views.release_detail_view(self, request, row)

    def get_urls(self) -> list[URLPattern]:
        pages: list[tuple[str, Callable[..., HttpResponse], str]] = [
            ("as-of/", self._here(history_views.configuration_view), "releases_as_of"),
            ("import/", self._here(transfer_views.import_view), "releases_import"),
            ("export/", self._here(transfer_views.export_view), "releases_export"),
            ("options/<str:kind>/", views.options_view, "releases_options"),
            ("<uuid:key>/deploy/", self._of_release(views.release_deploy_view), "releases_deploy"),
            ("<uuid:key>/manifest.json", self.manifest_view, "releases_manifest"),
            ("<uuid:key>/record.json", self.record_view, "releases_record"),
            (
                "<uuid:key>/<str:kind>/<path:slug>/",
                self._of_release(views.release_item_view),
                "releases_release_item",
            ),
        ]
        wrap = self.admin_site.admin_view
        return [
            *[path(route, wrap(view), name=name) for route, view, name in pages],
            *super().get_urls(),
        ]

    def manifest_view(self, request: HttpRequest, key: Any) -> HttpResponse:
        return views.release_manifest_view(request, self.row_or_404(request, str(key)))

    def record_view(self, request: HttpRequest, key: Any) -> HttpResponse:
        return views.release_record_view(request, self.row_or_404(request, str(key)))

    def _here(self, view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        return lambda request: view(self, request)

    def _of_release(self, view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        return lambda request, key, **rest: view(
            self, request, self.row_or_404(request, str(key)), **rest
        )


@admin.register(Deployment)
class DeploymentAdmin(ReadOnlyAdmin):
    """What each environment runs; an environment's own page has the acts."""

    list_display = ("environment", "release", "deployed_by", "deployed_at", "bindings_version")
    ordering = ("environment",)
    list_before_template = "releases/_deployment_toolbar.html"  # type: ignore[assignment]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Deployment]:
        found: QuerySet[Deployment] = super().get_queryset(request)
        return found.select_related("release").defer("release__manifest")

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> TemplateResponse:
        context = {"environments": settings.RELEASE_ENVIRONMENTS, **(extra_context or {})}
        response: TemplateResponse = super().changelist_view(request, context)
        return response

    def row_page(self, request: HttpRequest, row: Deployment) -> HttpResponse:
        return environment_views.deployment_view(self, request, row)

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        return [
            path(
                f"environment/<str:name>/{route}",
                wrap(self._of_environment(view)),
                name=f"releases_environment{suffix}",
            )
            for route, view, suffix in (
                ("", environment_views.environment_view, ""),
                ("history/", environment_views.environment_history_view, "_history"),
            )
        ] + super().get_urls()

    def _of_environment(self, view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        return lambda request, name: view(self, request, name)


class BindingForm(forms.ModelForm):  # type: ignore[type-arg]
    """Checks a binding before it is set; the value is never repeated in an error."""

    class Meta:
        model = Binding
        fields = ("environment", "what", "name", "value")
        help_texts = {
            "name": gettext_lazy("As tool servers and model profiles call it."),
            "value": gettext_lazy(
                "A URL; or the name of the environment variable that holds the secret, never the secret itself."
            ),
        }

    def clean(self) -> dict[str, Any]:
        typed = super().clean() or {}
        key = {name: typed.get(name, getattr(self.instance, name)) for name in ("what", "name")}
        if self.errors:
            return typed
        if (
            self.instance.pk is None
            and Binding.objects.filter(**key, environment=typed["environment"]).exists()
        ):
            self.add_error("name", _("It is already bound there; change that binding."))
        environment = typed.get("environment", self.instance.environment)
        if needs_approval(environment) and not authority_held():
            self.add_error(None, str(BindingNeedsApproval(environment)))
        try:
            binding_check(**key, value=typed["value"])
        except InvalidBinding as error:
            self.add_error("value", str(error))
        return typed


@admin.register(Binding)
class BindingAdmin(ConfigAdmin):
    """Addresses and credential names of the environments."""

    form = BindingForm
    list_display = ("name", "what", "environment", "value", "updated_by", "updated_at")
    list_filter = ("environment", "what")
    search_fields = ("name", "value")
    change_form_outer_after_template = "releases/_binding_remove.html"  # type: ignore[assignment]
    warn_unsaved_form = True

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("environment", "what", "name") if obj else ()

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {
            key: request.GET[key] for key in ("environment", "what", "name") if key in request.GET
        }

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        saved = binding_set(
            environment=obj.environment,
            what=obj.what,
            name=obj.name,
            value=obj.value,
            actor=actor_of(request),
        )
        obj.pk = saved.pk

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.remove_view)
        return [
            path("<path:object_id>/remove/", view, name="releases_binding_remove"),
            *super().get_urls(),
        ]

    def remove_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask, then remove a binding; refused while a deployed release needs it."""
        binding = self.row_or_404(request, object_id)
        if not self.has_change_permission(request):
            raise PermissionDenied
        refusal: Exception | None = None
        if request.method == "POST":
            try:
                binding_remove(binding=binding, actor=actor_of(request))
            except (BindingInUse, BindingNeedsApproval) as refused:
                refusal = refused
            else:
                messages.success(request, _("The binding is removed."))
                return HttpResponseRedirect(reverse("admin:releases_binding_changelist"))
        context = {"binding": binding, "original": binding, "refusal": refusal}
        return self.page(request, "releases/binding_remove.html", str(binding), context)
