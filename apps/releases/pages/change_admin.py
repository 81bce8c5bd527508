"""Admin of change requests: the review queue is its list, a request's page its change page."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from apps.releases.change_models import ChangeRequest
from apps.releases.pages import change_views as views
from apps.releases.pages.config_admin import ConfigAdmin
from apps.releases.pages.rebase_view import rebase_view

View = Callable[..., HttpResponse]


@admin.register(ChangeRequest)
class ChangeRequestAdmin(ConfigAdmin):
    """Requests are changed by their acts only; there is no form of the row."""

    ordering = ("-number",)
    search_fields = ("title", "author")

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> TemplateResponse:
        return views.queue_view(self, request)

    def _changeform_view(
        self, request: HttpRequest, object_id: str | None, form_url: str, extra_context: Any
    ) -> HttpResponse:
        if object_id is None:
            if not self.has_add_permission(request):
                raise PermissionDenied
            return views.facts_view(self, request, None)
        return views.request_page(self, request, self.row_or_404(request, object_id))

    def get_urls(self) -> list[URLPattern]:
        pages: list[tuple[str, View, str]] = [
            # First: "5/act" would be an id to the others.
            ("act/<str:act>", views.act_view, "act"),
            ("facts", views.facts_view, "facts"),
            ("rebase", rebase_view, "rebase"),
            ("publish", views.publish_page, "publish"),
            ("break-glass", views.break_glass_view, "break_glass"),
        ]
        wrap = self.admin_site.admin_view
        return [
            *[
                path(
                    f"<path:object_id>/{route}/",
                    wrap(self._of_request(view)),
                    name=f"releases_changerequest_{name}",
                )
                for route, view, name in pages
            ],
            *super().get_urls(),
        ]

    def _of_request(self, view: View) -> View:
        return lambda request, object_id, **rest: view(
            self, request, self.row_or_404(request, object_id), **rest
        )
