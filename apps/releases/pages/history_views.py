"""Time travel and blast radius in the admin: as it stood at a moment, and how far a change reaches."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from apps.releases.evidence.blast_radius import blast_radius
from apps.releases.evidence.history import (
    configuration_at,
    environment_at,
    item_at,
    release_newest_at,
)
from apps.releases.evidence.record import release_risks
from apps.releases.freezing import manifest_of_heads
from apps.releases.models import ConfigItem
from apps.releases.pages.config_admin import ConfigAdmin
from apps.releases.pages.diff_view import field_title, shown_changes, shown_difference, value_text
from apps.releases.pages.environment_forms import MomentForm
from apps.releases.pages.links import kind_label, request_link, slug_link
from apps.releases.pages.views import require
from apps.releases.patches.comparing import items_changed, manifest_items
from apps.releases.selectors import revision_content, revision_diff
from apps.runtime.config import KINDS, Config

SHOWN_USERS = 100


def configuration_view(admin: ConfigAdmin, request: HttpRequest) -> HttpResponse:
    """Show the whole configuration as it stood at a moment, and what is different today."""
    require(request, "config.view")
    form, moment = _moment(request)
    context: dict[str, Any] = {"form": form, "moment": moment}
    if moment:
        then = configuration_at(moment)
        now = manifest_items(manifest_of_heads())
        changes = items_changed(then, now)
        context |= {
            "count": len(then),
            "release": release_newest_at(moment),
            "environments": [environment_at(n, moment) for n in settings.RELEASE_ENVIRONMENTS],
            "difference": shown_difference(changes, release_risks(changes, then, now)),
        }
    title = _("The configuration at a moment")
    return admin.page(request, "releases/configuration_as_of.html", title, context)


def item_as_of(request: HttpRequest, item: ConfigItem) -> dict[str, Any]:
    """Return what the page of an item at a moment shows; see ``ItemPages``."""
    form, moment = _moment(request)
    context: dict[str, Any] = {"item": item, "form": form, "moment": moment}
    if moment:
        then = item_at(item, moment)
        config_class = KINDS.get(item.kind, Config)
        content = revision_content(then.revision)
        context |= {
            "then": then,
            "fields": [
                (field_title(config_class, name), value_text(value))
                for name, value in content.items()
            ],
            "changes": shown_changes(config_class, revision_diff(then.revision, item.head)),
            "environments": [environment_at(n, moment) for n in settings.RELEASE_ENVIRONMENTS],
        }
    return context


def item_reach(item: ConfigItem) -> dict[str, Any]:
    """Return what the page of an item's blast radius shows; see ``ItemPages``."""
    reach = blast_radius(item.kind, item.slug)
    return {
        "item": item,
        "reach": reach,
        "agents": [{"slug": slug, "url": slug_link("agent", slug)} for slug in reach.agents],
        "users": [
            {"kind": kind_label(kind), "slug": slug, "url": slug_link(kind, slug)}
            for kind, slug in reach.users[:SHOWN_USERS]
        ],
        "more_users": max(0, len(reach.users) - SHOWN_USERS),
        "requests": [
            {"patch": patch, "url": request_link(patch.request)} for patch in reach.requests
        ],
    }


def _moment(request: HttpRequest) -> tuple[MomentForm, datetime | None]:
    form = MomentForm(request.GET if "at" in request.GET else None)
    return form, form.cleaned_data["moment"] if form.is_bound and form.is_valid() else None
