"""Which tenant a person is in, and which others they may enter: for the admin's header and the console."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from apps.tenants.lookups import TenantAccess, access_of
from apps.tenants.models import User

# More would not fit a menu; a platform admin finds the rest by search in the list of tenants.
MENU_LENGTH = 20


def current_access(request: HttpRequest) -> TenantAccess | None:
    """Return the tenant the request is in."""
    return getattr(request, "tenant", None)


def current_name(request: HttpRequest) -> str:
    """Return its name for the header (Unfold's SITE_SUBHEADER)."""
    access = current_access(request)
    return access.name if access else _("No tenant")


def choices(request: HttpRequest) -> list[TenantAccess]:
    """Return the tenants the person may enter, the current one first."""
    if not isinstance(request.user, User):
        return []
    current = current_access(request)
    return sorted(access_of(request.user), key=lambda access: (access != current, access.slug))


def dropdown(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the entries of the header's menu (Unfold's SITE_DROPDOWN); picked by POST, see
    ``templates/unfold/helpers/site_dropdown.html``."""
    current = current_access(request)
    return [
        {
            "title": access.name,
            "link": reverse("tenant-pick"),
            "icon": "check" if access == current else "apartment",
            "attrs": {"slug": access.slug},
        }
        for access in choices(request)[:MENU_LENGTH]
    ]
