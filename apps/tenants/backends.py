"""Signing in, and what a person may do in the current tenant."""

from typing import Any

from django.apps import apps
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AnonymousUser
from django.db.models import Model

from apps.tenants.lookups import access_of
from apps.tenants.models import User
from apps.tenants.roles import EVERY_PERMISSION, permission_for, permissions_of
from apps.tenants.scope import current_tenant_id, has_tenant


class MembershipBackend(ModelBackend):
    """Permissions come from the memberships in the current tenant; outside a tenant there are
    none. Answers both our own codes (``config.change``) and Django's (``releases.change_release``).
    """

    def has_perm(self, user_obj: User | AnonymousUser, perm: str, obj: Model | None = None) -> bool:
        if not isinstance(user_obj, User) or not user_obj.is_active or not has_tenant():
            return False
        if obj is not None and getattr(obj, "tenant_id", current_tenant_id()) != (
            current_tenant_id()
        ):
            return False
        wanted = perm if perm in EVERY_PERMISSION else _translate(perm)
        return wanted is not None and wanted in permissions_here(user_obj)

    def has_module_perms(self, user_obj: User | AnonymousUser, app_label: str) -> bool:
        if not isinstance(user_obj, User) or not user_obj.is_active or not has_tenant():
            return False
        held = permissions_here(user_obj)
        models = apps.get_app_config(app_label).get_models()
        return any(permission_for(_table(model), "view") in held for model in models)

    def get_all_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        if obj is not None or not isinstance(user_obj, User) or not has_tenant():
            return set()
        return set(permissions_here(user_obj))


def permissions_here(user: User) -> frozenset[str]:
    """Return ``user``'s permissions in the current tenant; none without one."""
    if not has_tenant() or not user.is_active:
        return frozenset()
    if user.is_superuser:
        return EVERY_PERMISSION
    tenant_id = current_tenant_id()
    for access in access_of(user):
        if access.tenant_id == tenant_id:
            return permissions_of(access.roles)
    return frozenset()


def _translate(perm: str) -> str | None:
    app_label, _dot, codename = perm.partition(".")
    action, _underscore, model_name = codename.partition("_")
    try:
        model = apps.get_model(app_label, model_name)
    except (LookupError, ValueError):
        return None
    return permission_for(_table(model), action)


def _table(model: type[Model]) -> str:
    concrete = model._meta.concrete_model
    return (concrete or model)._meta.label_lower
