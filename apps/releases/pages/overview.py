"""The admin's first page: what waits for the reader, what runs where, what is not live yet."""

import json
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import Count
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.releases.change_models import ChangeRequest, FreezeWindow
from apps.releases.models import ConfigItem, Deployment, Release
from apps.releases.pages.navigation import kind_groups
from apps.releases.pages.waiting import (
    SHOWN,
    bindings_waiting,
    drafts_of,
    emergencies_open,
    not_in_production,
    requests_waiting,
    unread_notices,
)
from apps.releases.patches.comparing import items_changed, manifest_items
from apps.tenants.scope import has_tenant
from apps.tenants.tenant_admin import actor_of

TOUCH_MARGIN = timedelta(minutes=5)


def overview(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Add to the first page's ``context`` what its reader may see."""
    if not has_tenant() or not request.user.has_perm("config.view"):
        return {**context, "no_tenant": not has_tenant()}
    found = ConfigItem.objects.filter(archived_at=None, head__isnull=False).order_by()
    counts = dict(found.values_list("kind").annotate(Count("id")))
    latest = Release.objects.defer("manifest").order_by("-number").first()
    running = {
        deployment.environment: deployment
        for deployment in Deployment.objects.select_related("release", "canary").defer(
            "release__manifest", "canary__manifest"
        )
    }
    changed = _unpublished(latest) if latest else sum(counts.values())
    shown = {
        "groups": [
            (title, [{**entry, "count": counts.get(entry["kind"], 0)} for entry in entries])
            for title, entries in kind_groups()
        ],
        "title": _("Overview"),
        "latest": latest,
        "changed": changed,
        "same": _running_same(running.values()) if changed else None,
        "environments": _environments(running),
        "is_empty": not counts,
    }
    return {**context, **shown, **_waiting(request)}


def _waiting(request: HttpRequest) -> dict[str, Any]:
    """What somebody has to do, and what everybody should know."""
    actor = actor_of(request)
    if not request.user.has_perm("changes.view"):
        return {}
    reviewing = request.user.has_perm("changes.review")
    waiting = _some(requests_waiting(actor))
    # An editor decides too, once they were given a duty: shown when there is something.
    asked = reviewing or (waiting["count"] and request.user.has_perm("config.change"))
    bindings = bindings_waiting().exclude(proposed_by=actor)
    deciding = reviewing or request.user.has_perm("bindings.change")
    return {
        "waiting": waiting if asked else None,
        "mine": _some(drafts_of(actor)),
        "behind": _some(not_in_production()),
        "emergencies": list(emergencies_open()),
        # Shown for ever, ratified or not.
        "emergencies_ever": ChangeRequest.objects.filter(broken_glass_until__isnull=False).count(),
        "bindings_open": bindings.count() if deciding else 0,
        "binding": bindings.first() if deciding else None,
        "unread": unread_notices(request.user),
        "now": timezone.now(),
    }


def _some(found: Any) -> dict[str, Any]:
    """Return the newest few and how many there are."""
    return {"count": found.order_by().count(), "rows": list(found[:SHOWN])}


def _environments(running: dict[str, Deployment]) -> list[dict[str, Any]]:
    now = timezone.now()
    windows = FreezeWindow.objects.filter(starts_at__lte=now, ends_at__gt=now).order_by("ends_at")
    frozen = {window.environment: window for window in windows}
    return [
        {"name": name, "deployment": running.get(name), "frozen": frozen.get(name)}
        for name in settings.RELEASE_ENVIRONMENTS
    ]


def _running_same(running: Iterable[Deployment]) -> Release | None:
    """Return a release that runs and holds exactly what is saved now, or None.

    Publishing would make none then: a release is known by its contents.
    """
    releases = {deployment.release_id: deployment.release for deployment in running}
    return next((found for found in releases.values() if not _unpublished(found)), None)


def _unpublished(latest: Release) -> int:
    """Return how many items are not as in ``latest``: set up by an operator's command, not published.

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
