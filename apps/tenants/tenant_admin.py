"""Base of admin pages over a tenant's rows. May be imported by every app's ``admin.py``."""

from collections.abc import Mapping
from typing import Any

from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from unfold.admin import ModelAdmin

from apps.tenants.scope import has_tenant


def actor_of(request: HttpRequest) -> str:
    """Return the signed-in person's name as revisions and audit entries keep it."""
    return f"user:{request.user.get_username()}"


class AuditedAdmin(ModelAdmin):
    """Deletes and bulk edits nothing, answers 404 for an id it does not show.

    Django's own log of admin actions belongs to no tenant; the audit trail stands in its place.
    """

    actions = None
    list_per_page = 50
    show_full_result_count = False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def row_or_404(self, request: HttpRequest, object_id: str) -> Any:
        """Return the row. Raises ``PermissionDenied``, and ``Http404`` for a foreign id."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        found = self.get_object(request, unquote(object_id))
        if found is None:
            raise Http404
        return found

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Django's page, but whoever may not look does not learn whether the id exists."""
        self.row_or_404(request, object_id)
        response: HttpResponse = super().history_view(request, object_id, extra_context)
        return response

    def page(
        self, request: HttpRequest, template: str, title: Any, context: Mapping[str, Any]
    ) -> TemplateResponse:
        """Return a page of our own in the admin's frame."""
        request.current_app = self.admin_site.name
        frame = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": title,
            "media": self.media,
            "model_admin": self,
        }
        return TemplateResponse(request, template, {**frame, **context})

    def _get_obj_does_not_exist_redirect(
        self, request: HttpRequest, opts: Any, object_id: str
    ) -> HttpResponseRedirect:
        raise Http404

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        return None

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        return None

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        return None


class TenantAdmin(AuditedAdmin):
    """Shows the rows of the tenant that the person is in, and nothing without one."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return has_tenant() and self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return has_tenant() and bool(super().has_view_permission(request, obj))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return has_tenant() and bool(super().has_add_permission(request))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return has_tenant() and bool(super().has_change_permission(request, obj))
