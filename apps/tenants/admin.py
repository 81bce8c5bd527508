"""Admin pages of tenants, people, memberships, keys and the audit trail.

Every change goes through ``services``. Tenants and people belong to the platform's admins; the
rest is shown for the tenant that is picked in the header.
"""

from typing import Any, cast

from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.decorators import action
from unfold.enums import ActionVariant
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from apps.tenants import services
from apps.tenants.forms import ApiKeyForm, MembershipForm, TenantForm
from apps.tenants.models import ApiKey, AuditEntry, Membership, Role, Tenant, User
from apps.tenants.scope import has_tenant
from apps.tenants.tenant_admin import AuditedAdmin, TenantAdmin, actor_of

# Roles in a tenant take the place of Django's groups.
admin.site.unregister(Group)


@admin.register(Tenant)
class TenantsAdmin(AuditedAdmin):
    """For platform admins: no role has a permission on tenants."""

    form = TenantForm
    list_display = ("slug", "name", "demo_keyless", "created_at")
    search_fields = ("slug", "name")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("slug", "created_at") if obj else ()

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        made: Tenant
        if change:
            made = services.tenant_update(
                tenant=obj,
                name=obj.name,
                demo_keyless=obj.demo_keyless,
                actor=actor_of(request),
            )
        else:
            made = services.tenant_create(
                slug=obj.slug,
                name=obj.name,
                demo_keyless=obj.demo_keyless,
                actor=actor_of(request),
            )
        obj.pk = made.pk


@admin.register(User)
class UsersAdmin(DjangoUserAdmin, AuditedAdmin):  # type: ignore[misc, type-arg]
    """For platform admins. A person who leaves is made inactive; what they did keeps its name."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "email", "is_active", "is_superuser", "last_login")
    list_filter = ("is_active", "is_superuser")
    filter_horizontal = ()
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        (gettext_lazy("Person"), {"fields": ("first_name", "last_name", "email")}),
        (gettext_lazy("Access"), {"fields": ("is_active", "is_staff", "is_superuser")}),
        (gettext_lazy("Dates"), {"fields": ("last_login", "date_joined")}),
    )
    readonly_fields = ("last_login", "date_joined")


@admin.register(Membership)
class MembershipAdmin(TenantAdmin):
    form = MembershipForm
    list_display = ("user", "role", "created_at")
    list_select_related = ("user",)
    list_filter = ("role",)
    search_fields = ("user__username", "user__email")
    fields = ("username", "role")
    readonly_fields = ()

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ("user", "role", "created_at") if obj else ("username", "role")

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        form: Any = super().get_form(request, obj, change, **kwargs)
        form.actor = actor_of(request)  # a class of this request's own
        return form

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False  # a role is taken away and another given: two lines in the trail

    def has_delete_permission(self, request: HttpRequest, obj: Membership | None = None) -> bool:
        allowed = request.user.has_perm("members.change")
        if obj is None or obj.role != Role.TENANT_ADMIN:
            return allowed
        others = Membership.objects.filter(role=Role.TENANT_ADMIN).exclude(pk=obj.pk)
        return allowed and others.exists()

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        cleaned = form.cleaned_data
        made = services.membership_grant(
            user=cleaned["username"], role=cleaned["role"], actor=actor_of(request)
        )
        obj.pk, obj.user = made.pk, made.user

    def delete_model(self, request: HttpRequest, obj: Membership) -> None:
        services.membership_revoke(membership=obj, actor=actor_of(request))


@admin.register(ApiKey)
class ApiKeyAdmin(TenantAdmin):
    form = ApiKeyForm
    list_display = (
        "name", "shown_prefix", "person", "agent", "environment", "state", "expires_at",
        "last_used_at",
    )  # fmt: skip
    list_select_related = ("person",)
    search_fields = ("name", "prefix")
    actions_detail = ["revoke"]  # type: ignore[assignment]
    shown = (
        "name", "shown_prefix", "person", "agent", "shown_scopes", "environment", "state",
        "expires_at", "last_used_at", "created_by", "created_at",
    )  # fmt: skip

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.shown if obj else ApiKeyForm.Meta.fields

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.shown if obj else ()

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiKey]:
        """Everybody's keys for whom may see keys, else one's own."""
        keys: QuerySet[ApiKey] = super().get_queryset(request)
        return keys if request.user.has_perm("keys.view") else keys.filter(person=request.user.pk)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_view_permission(request, obj) or _may_act(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return super().has_add_permission(request) or _may_act(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.display(description=gettext_lazy("prefix"), ordering="prefix")
    def shown_prefix(self, key: ApiKey) -> str:
        return f"ak_{key.prefix}…"

    @admin.display(description=gettext_lazy("scopes"))
    def shown_scopes(self, key: ApiKey) -> str:
        return ", ".join(key.scopes)

    @admin.display(description=gettext_lazy("state"))
    def state(self, key: ApiKey) -> str:
        if key.revoked_at is not None:
            return _("revoked")
        if key.expires_at is not None and key.expires_at <= timezone.now():
            return _("expired")
        return _("valid")

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        cleaned = form.cleaned_data
        personal = cleaned["personal"] or not request.user.has_perm("keys.change")
        key, text = services.api_key_issue(
            name=cleaned["name"],
            scopes=cleaned["scopes"],
            environment=cleaned["environment"],
            expires_at=cleaned["expires_at"],
            actor=actor_of(request),
            person=cast("User", request.user) if personal else None,
            agent=cleaned["agent"],
        )
        obj.pk, obj.prefix = key.pk, key.prefix
        # For the one page that shows it; neither a message (a cookie) nor an address carries it.
        request.issued_key = text  # type: ignore[attr-defined]

    def response_add(
        self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None
    ) -> HttpResponse:
        response = self.page(
            request,
            "tenants/key_issued.html",
            _("Key issued"),
            {"key": obj, "text": request.issued_key, "list_url": _list_url(self)},  # type: ignore[attr-defined]
        )
        response.headers["Cache-Control"] = "no-store"
        return response

    def has_revoke_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        if request.user.has_perm("keys.change"):
            return True
        own = ApiKey.objects.filter(person=request.user.pk) if _may_act(request) else None
        return own is not None and (object_id is None or own.filter(pk=object_id).exists())

    @action(  # type: ignore[operator]
        description=gettext_lazy("Revoke"),  # type: ignore[arg-type]
        url_path="revoke",
        # By a method's name: a dotted one makes the admin's system check ask a database that a
        # fresh machine does not have yet.
        permissions=["revoke"],
        variant=ActionVariant.DANGER,
    )
    def revoke(self, request: HttpRequest, object_id: str) -> HttpResponse:
        key = self.row_or_404(request, object_id)
        if not self.has_revoke_permission(request, key.pk):
            raise PermissionDenied
        if request.method == "POST":
            services.api_key_revoke(key=key, actor=actor_of(request))
            messages.success(request, _("The key “%(name)s” is revoked.") % {"name": key.name})
            return HttpResponseRedirect(_list_url(self))
        return self.page(
            request,
            "tenants/key_revoke.html",
            _("Revoke a key"),
            {"key": key, "list_url": _list_url(self)},
        )


@admin.register(AuditEntry)
class AuditEntryAdmin(TenantAdmin):
    """Read only."""

    list_display = ("sequence", "at", "actor", "action", "entity")
    list_filter = ("action",)
    search_fields = ("actor", "action", "entity", "detail")
    ordering = ("-sequence",)
    date_hierarchy = "at"
    shown = ("sequence", "at", "actor", "action", "entity", "detail", "previous_hash", "hash")
    fields = shown
    readonly_fields = shown

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


def _may_act(request: HttpRequest) -> bool:
    """Whether a person has anything to do by a key of their own beyond reading."""
    acts = ("config.change", "changes.review", "release.publish", "release.deploy")
    return has_tenant() and any(request.user.has_perm(act) for act in acts)


def _list_url(page: TenantAdmin) -> str:
    name = f"{page.opts.app_label}_{page.opts.model_name}_changelist"
    return reverse(f"{page.admin_site.name}:{name}")
