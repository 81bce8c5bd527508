"""Admin pages of one's own notifications and of webhooks."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.governance.approval_models import Notification, WebhookEndpoint
from apps.governance.notices import TITLES, notices_of, notices_read
from apps.governance.webhook_selectors import deliveries_of, webhooks_counted
from apps.governance.webhook_services import FAMILIES, InvalidWebhook, webhook_check, webhook_save
from apps.governance.webhooks import delivery_test
from apps.releases.pages.config_admin import ConfigAdmin
from apps.tenants.tenant_admin import actor_of

PAGE = 50


@admin.register(Notification)
class NotificationAdmin(ConfigAdmin):
    """One's own notifications. Opening one marks it as read and leads to what it tells of."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Notification]:
        found: QuerySet[Notification] = super().get_queryset(request)
        return found.filter(user=request.user.pk)

    def changelist_view(  # type: ignore[override]  # a page, or the way back to it
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """List them, unread ones marked; POST marks all of them as read."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        user: Any = request.user
        if request.method == "POST":
            notices_read(user=user)
            return HttpResponseRedirect(reverse("admin:governance_notification_changelist"))
        page = Paginator(notices_of(user), PAGE).get_page(request.GET.get("p"))
        rows = [(row, TITLES.get(row.event, row.event)) for row in page.object_list]
        unread = notices_of(user).filter(read_at=None).count()
        context = {"rows": rows, "page": page, "unread": unread}
        return self.page(request, "governance/notification_list.html", _("Notifications"), context)

    def _changeform_view(
        self, request: HttpRequest, object_id: str | None, form_url: str, extra_context: Any
    ) -> HttpResponse:
        if object_id is None:
            raise PermissionDenied
        notice = self.row_or_404(request, object_id)
        notices_read(user=notice.user, pk=notice.pk)
        context = {"notice": notice, "heading": TITLES.get(notice.event, notice.event)}
        if notice.link:
            return HttpResponseRedirect(notice.link)
        return self.page(request, "governance/notification.html", context["heading"], context)


class WebhookForm(forms.ModelForm):  # type: ignore[type-arg]
    """Checks a webhook before it is saved."""

    class Meta:
        model = WebhookEndpoint
        fields = ("name", "url", "secret_name", "events", "enabled")
        # The service says what an address may be; Django's field would put a scheme before some.
        field_classes = {"url": forms.CharField}  # Django reads it
        help_texts = {
            "url": gettext_lazy("Each event is one signed POST to this https address."),
            "secret_name": gettext_lazy(
                "The name of the secret that signs, as bindings have it, never the secret itself."
            ),
            "events": gettext_lazy("Events or families with blanks between: %(names)s; * for all.")
            % {"names": ", ".join(FAMILIES)},
        }

    def clean(self) -> dict[str, Any]:
        typed = super().clean() or {}
        if self.errors:
            return typed
        try:
            webhook_check(
                **{name: typed[name] for name in ("name", "url", "secret_name", "events")}
            )
        except InvalidWebhook as error:
            for name, message in error.errors.items():
                self.add_error(name, message)
        others = WebhookEndpoint.objects.filter(name=typed["name"]).exclude(pk=self.instance.pk)
        if others.exists():
            self.add_error("name", _("There is a webhook of this name."))
        return typed


@admin.register(WebhookEndpoint)
class WebhookEndpointAdmin(ConfigAdmin):
    form = WebhookForm
    list_display = ("name", "url", "events", "enabled", "waiting", "given_up", "created_by")
    list_filter = ("enabled",)
    search_fields = ("name", "url")
    change_form_outer_after_template = "governance/_webhook_deliveries.html"  # type: ignore[assignment]

    def get_queryset(self, request: HttpRequest) -> QuerySet[WebhookEndpoint]:
        return webhooks_counted(super().get_queryset(request))

    @admin.display(description=gettext_lazy("waiting"), ordering="waiting_count")
    def waiting(self, endpoint: Any) -> int:
        return int(endpoint.waiting_count)

    @admin.display(description=gettext_lazy("given up"), ordering="given_up_count")
    def given_up(self, endpoint: Any) -> int:
        return int(endpoint.given_up_count)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        stored = WebhookEndpoint.objects.get(pk=obj.pk) if change else None
        saved = webhook_save(
            actor=actor_of(request), **form.cleaned_data, **({"endpoint": stored} if stored else {})
        )
        obj.pk = saved.pk

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        endpoint = self.row_or_404(request, object_id)
        extra = {"deliveries": deliveries_of(endpoint)[:20], "endpoint": endpoint}
        response: HttpResponse = super().change_view(
            request, object_id, form_url, {**(extra_context or {}), **extra}
        )
        return response

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.test_view)
        return [
            path("<path:object_id>/test/", view, name="governance_webhook_test"),
            *super().get_urls(),
        ]

    def test_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Send a test message (POST only)."""
        endpoint = self.row_or_404(request, object_id)
        if not self.has_change_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            raise Http404
        delivery_test(endpoint=endpoint, actor=actor_of(request))
        messages.success(request, _("A test message is on its way."))
        page = reverse("admin:governance_webhookendpoint_change", args=[endpoint.pk])
        return HttpResponseRedirect(page)
