"""Finds what the matrix must cover: routes, websocket routes, models, tasks, builders of names."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.urls import URLResolver, get_resolver

from apps.tenants.row_security import owned_models


def routes() -> list[str]:
    """Return every HTTP route as Django writes it, parameters in angle brackets."""
    return sorted(set(_walk(get_resolver().url_patterns, "")))


def _walk(patterns: Any, prefix: str) -> Iterator[str]:
    for entry in patterns:
        route = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from _walk(entry.url_patterns, route)
        else:
            # The admin names its apps in a pattern; a new app is no new route.
            yield re.sub(r"\^\(\?P<app_label>[^)]*\)/\$$", "<app_label>/", route)


def websocket_routes() -> list[str]:
    """Return every websocket route."""
    from apps.gateway.routing import websocket_urlpatterns

    return sorted(_walk(websocket_urlpatterns, ""))


def models() -> list[str]:
    """Return every tenant-owned table's model, as ``app.model``."""
    return sorted(model._meta.label_lower for model in owned_models())


def tasks() -> list[str]:
    """Return every Celery task of ours."""
    from agentops.celery import app

    app.loader.import_default_modules()
    return sorted(name for name in app.tasks if not name.startswith("celery."))


# Where a name outside the database is made or used: groups, caches, files by tenant.
_NAMES = re.compile(
    r"\bscoped_key\(|\bgroup_add\(|\bgroup_send\(|django\.core\.cache|channel_layer\(|default_storage"
)


def name_builders() -> list[str]:
    """Return every source file that names something outside the database."""
    base = Path(settings.BASE_DIR)
    found = []
    for root in ("apps", "agentops"):
        for path in sorted((base / root).rglob("*.py")):
            if "tests" in path.parts or "migrations" in path.parts:
                continue
            if _NAMES.search(path.read_text(encoding="utf-8")):
                found.append(str(path.relative_to(base)))
    return found
