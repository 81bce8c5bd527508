"""The admin's side menu and its first page, made from the registered kinds."""

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db.models import Count
from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext_lazy as _

from apps.releases.comparing import items_changed, manifest_items
from apps.releases.kinds import proxies
from apps.releases.models import ConfigItem, Deployment, Release
from apps.tenants.scope import has_tenant

# A kind that no group names is shown in the last one.
KIND_GROUPS: list[tuple[Any, tuple[str, ...]]] = [
    (_("Who answers"), ("agent", "prompt", "model_profile", "memory_policy")),
    (_("Who is asked"), ("intent", "routing_policy", "state_policy")),
    (_("Tools"), ("tool", "tool_server", "parameter_mapping", "identity_key")),
    (_("What may pass"), ("rail_policy", "judge_policy")),
    (_("More"), ()),
]
OTHER_GROUPS: list[tuple[Any, list[tuple[Any, str, str, str]]]] = [
    (
        _("Going live"),
        [
            (_("Releases"), "rocket_launch", "releases_release", "release.view"),
            (_("Deployments"), "cloud_done", "releases_deployment", "release.view"),
            (_("Bindings"), "link", "releases_binding", "bindings.view"),
        ],
    ),
    (
        _("Access"),
        [
            (_("Members"), "group", "tenants_membership", "members.view"),
            (_("API keys"), "key", "tenants_apikey", "keys.view"),
            (_("Audit trail"), "history_edu", "tenants_auditentry", "audit.view"),
        ],
    ),
]
PLATFORM_PAGES = [
    (_("Tenants"), "apartment", "tenants_tenant"),
    (_("People"), "person", "tenants_user"),
]

TOUCH_MARGIN = timedelta(minutes=5)


def keyboard_script(request: HttpRequest) -> str:
    """Return the script that makes the theme's mouse-only controls usable from the keyboard."""
    return static("releases/keyboard.js")


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the side menu: every kind in its group, then what makes it live, then access."""
    home = {"title": _("Overview"), "icon": "home", "link": reverse("admin:index")}
    groups: list[dict[str, Any]] = [{"title": "", "items": [home]}]
    for title, entries in _kind_groups():
        items = [
            {"title": entry["title"], "icon": entry["icon"], "link": entry["url"]}
            for entry in entries
        ]
        groups.append(_group(title, items, "config.view"))
    for title, pages in OTHER_GROUPS:
        links = [_link(*page) for page in pages]
        groups.append({"title": title, "separator": True, "items": [x for x in links if x]})
    platform = [_link(*page, permission=None) for page in PLATFORM_PAGES]
    groups.append({"title": _("Platform"), "separator": True, "items": [x for x in platform if x]})
    return groups


def overview(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Add to the first page's ``context``: items per kind, what is live, what is unpublished."""
    if not has_tenant() or not request.user.has_perm("config.view"):
        return {**context, "no_tenant": not has_tenant()}
    found = ConfigItem.objects.filter(archived_at=None, head__isnull=False).order_by()
    counts = dict(found.values_list("kind").annotate(Count("id")))
    latest = Release.objects.order_by("-number").first()
    running = {
        deployment.environment: deployment
        for deployment in Deployment.objects.select_related("release").defer("release__manifest")
    }
    changed = _unpublished(latest) if latest else sum(counts.values())
    return {
        **context,
        "groups": [
            (title, [{**entry, "count": counts.get(entry["kind"], 0)} for entry in entries])
            for title, entries in _kind_groups()
        ],
        "title": _("Overview"),
        "latest": latest,
        "changed": changed,
        "same": _running_same(running.values()) if changed else None,
        "environments": [(name, running.get(name)) for name in settings.RELEASE_ENVIRONMENTS],
        "is_empty": not counts,
    }


def _running_same(running: Iterable[Deployment]) -> Release | None:
    """Return a release that runs and holds exactly what is saved now, or None.

    Publishing would make none then: a release is known by its contents.
    """
    releases = {deployment.release_id: deployment.release for deployment in running}
    return next((found for found in releases.values() if not _unpublished(found)), None)


def _unpublished(latest: Release) -> int:
    """Return how many items are not as in ``latest``.

    Only items touched since then are compared, so the page costs the same with 10,000 items. The
    margin is for a save that began before the release was made and was committed after it.
    """
    touched = ConfigItem.objects.filter(updated_at__gte=latest.published_at - TOUCH_MARGIN)
    rows = list(touched.order_by().values_list("kind", "slug", "archived_at", "head__content"))
    if not rows:
        return 0
    released = manifest_items(latest.manifest)
    now = {
        (kind, slug): json.loads(content)
        for kind, slug, archived_at, content in rows
        if content and not archived_at
    }
    before = {
        key: released[key] for kind, slug, *_rest in rows if (key := (kind, slug)) in released
    }
    return len(items_changed(before, now))


def _kind_groups() -> Iterator[tuple[Any, list[dict[str, Any]]]]:
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


def _group(title: Any, items: list[dict[str, Any]], permission: str) -> dict[str, Any]:
    allowed = _permission(permission)
    return {"title": title, "items": [{**item, "permission": allowed} for item in items]}


def _link(title: Any, icon: str, page: str, permission: str | None) -> dict[str, Any] | None:
    url = _url(page)
    allowed = _permission(permission)
    return {"title": title, "icon": icon, "link": url, "permission": allowed} if url else None


def _permission(name: str | None) -> Callable[[HttpRequest], bool]:
    """Return whether a person may see a page: with a tenant and the permission, or (no name) as a
    platform admin."""
    if name is None:
        return lambda request: bool(getattr(request.user, "is_superuser", False))
    return lambda request: has_tenant() and bool(request.user.has_perm(name))


def _url(page: str) -> str:
    try:
        return reverse(f"admin:{page}_changelist")
    except NoReverseMatch:
        return ""
