"""The console's menu of tenants."""

from typing import Any

from django import template
from django.template.context import Context

from apps.tenants import switching

register = template.Library()


@register.inclusion_tag("console/_tenant_menu.html", takes_context=True)
def tenant_menu(context: Context) -> dict[str, Any]:
    """Return the current tenant and those the person may enter instead, a menu's length of them."""
    request = context["request"]
    return {
        "request": request,
        "csrf_token": context.get("csrf_token"),
        "current": switching.current_access(request),
        "others": [
            access
            for access in switching.choices(request)[: switching.MENU_LENGTH + 1]
            if access != switching.current_access(request)
        ],
    }
