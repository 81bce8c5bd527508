"""The admin's side menu, made from the registered kinds. Its first page: ``overview``."""

from collections.abc import Callable, Iterator
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext_lazy as _

from apps.releases.kinds import proxies
from apps.releases.models import ConfigItem
from apps.releases.pages.waiting import requests_waiting, unread_notices
from apps.tenants.scope import has_tenant
from apps.tenants.tenant_admin import actor_of

# A kind that no group names is shown in the last one.
KIND_GROUPS: list[tuple[Any, tuple[str, ...]]] = [
    (_("Who answers"), ("agent", "prompt", "model_profile", "memory_policy")),
    (_("Who is asked"), ("intent", "routing_policy", "state_policy")),
    (_("Tools"), ("tool", "tool_server", "parameter_mapping", "workflow", "identity_key")),
    (_("What may pass"), ("rail_policy", "judge_policy")),
    (_("More"), ()),
]
# Title, icon, page of the admin, permission. A page that is not there is left out.
OTHER_GROUPS: list[tuple[Any, list[tuple[Any, str, str, str]]]] = [
    (
        _("Going live"),
        [
            (_("Review queue"), "rule", "releases_changerequest", "changes.view"),
            (_("Releases"), "rocket_launch", "releases_release", "release.view"),
            (_("Environments"), "cloud_done", "releases_deployment", "release.view"),
            (_("Bindings"), "link", "releases_binding", "bindings.view"),
        ],
    ),
    (
        _("What happened"),
        [
            (_("Workflow runs"), "account_tree", "tools_workflowrun", "conversations.view"),
            (_("Calls from outside"), "api", "tools_toolinvocation", "conversations.view"),
        ],
    ),
    (
        _("Governance"),
        [
            (_("Who approves what"), "account_tree", "governance_racientry", "governance.view"),
            (_("Duties"), "badge", "governance_dutyassignment", "governance.view"),
            (_("Gates"), "checklist", "governance_gatelevel", "governance.view"),
            (_("Evidence"), "verified", "governance_evidence", "evidence.view"),
            (_("Readiness"), "task_alt", "governance_readinesscheck", "evidence.view"),
            (_("Contracts"), "contract", "governance_contractversion", "governance.view"),
            (_("Versions"), "grid_on", "governance_compatibilityrow", "governance.view"),
            (_("Webhooks"), "webhook", "governance_webhookendpoint", "webhooks.view"),
        ],
    ),
    (
        _("Access"),
        [
            (_("Connections"), "vpn_key", "tools_toolconnection", "bindings.view"),
            (_("Members"), "group", "tenants_membership", "members.view"),
            # Whoever acts may have a key of their own.
            (_("API keys"), "key", "tenants_apikey", "keys.view config.change changes.review"),
            (_("Audit trail"), "history_edu", "tenants_auditentry", "audit.view"),
        ],
    ),
]
QUEUE, NOTICES = "releases_changerequest", "governance_notification"
MOST_COUNTED = 99
PLATFORM_PAGES = [
    (_("Tenants"), "apartment", "tenants_tenant"),
    (_("People"), "person", "tenants_user"),
]


def keyboard_script(request: HttpRequest) -> str:
    """Return the script that makes the theme's mouse-only controls usable from the keyboard."""
    return static("releases/keyboard.js")


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the side menu: every kind in its group, then what makes it live, who governs it, access."""
    home = {"title": _("Overview"), "icon": "home", "link": reverse("admin:index")}
    notices = _link(_("Notifications"), "notifications", NOTICES, "notifications.view")
    first = [home, *([_badged(notices, _unread(request))] if notices else [])]
    groups: list[dict[str, Any]] = [{"title": "", "items": first}]
    for title, entries in kind_groups():
        items = [
            {"title": entry["title"], "icon": entry["icon"], "link": entry["url"]}
            for entry in entries
        ]
        groups.append(_group(title, items, "config.view"))
    for title, pages in OTHER_GROUPS:
        links = [_link(*page) for page in pages]
        if pages[0][2] == QUEUE and links[0]:
            links[0] = _badged(links[0], _reviews(request))
        groups.append({"title": title, "separator": True, "items": [x for x in links if x]})
    platform = [_link(*page, permission=None) for page in PLATFORM_PAGES]
    groups.append({"title": _("Platform"), "separator": True, "items": [x for x in platform if x]})
    return groups


def kind_groups() -> Iterator[tuple[Any, list[dict[str, Any]]]]:
    """Yield the groups of kinds with the title, icon and address of each."""
    entries = {model.config_class.kind: _entry(model) for model in proxies() if model.config_class}
    for title, kinds in KIND_GROUPS:
        named = kinds or tuple(entries)
        group = [entries.pop(kind) for kind in named if kind in entries]
        if group:
            yield title, [entry for entry in group if entry["url"]]


def _entry(model: type[ConfigItem]) -> dict[str, Any]:
    page = admin.site._registry.get(model)
    return {
        "kind": model.config_class.kind if model.config_class else "",
        "title": model._meta.verbose_name_plural,
        "icon": getattr(page, "icon", "settings"),
        "url": _url(f"{model._meta.app_label}_{model._meta.model_name}"),
    }


def _badged(link: dict[str, Any], count: int) -> dict[str, Any]:
    """Return ``link`` with a number beside it, none for nothing."""
    return {**link, "badge": count, "badge_variant": "warning"} if count else link


def _reviews(request: HttpRequest) -> int:
    if not has_tenant() or not request.user.has_perm("changes.review"):
        return 0
    return requests_waiting(actor_of(request)).order_by()[:MOST_COUNTED].count()


def _unread(request: HttpRequest) -> int:
    if not has_tenant() or not request.user.has_perm("notifications.view"):
        return 0
    return unread_notices(request.user)


def _group(title: Any, items: list[dict[str, Any]], permission: str) -> dict[str, Any]:
    allowed = _permission(permission)
    return {"title": title, "items": [{**item, "permission": allowed} for item in items]}


def _link(title: Any, icon: str, page: str, permission: str | None) -> dict[str, Any] | None:
    url = _url(page)
    allowed = _permission(permission)
    return {"title": title, "icon": icon, "link": url, "permission": allowed} if url else None


def _permission(name: str | None) -> Callable[[HttpRequest], bool]:
    """Return whether a person may see a page: with a tenant and one of the permissions in
    ``name``, or (no name) as a platform admin."""
    if name is None:
        return lambda request: bool(getattr(request.user, "is_superuser", False))
    return lambda request: has_tenant() and any(map(request.user.has_perm, name.split()))


def _url(page: str) -> str:
    try:
        return reverse(f"admin:{page}_changelist")
    except NoReverseMatch:
        return ""
