"""Addresses of items in the admin, and usages as pages show them."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext

from apps.releases.change_models import ChangePatch, ChangeRequest
from apps.releases.kinds import proxy_of
from apps.releases.models import Release
from apps.releases.selectors import Usage
from apps.runtime.config import KINDS


def kind_label(kind: str) -> str:
    """Return what a kind is called in the reader's language."""
    config_class = KINDS.get(kind)
    return gettext(config_class.label) if config_class and config_class.label else kind


def item_link(kind: str, key: int) -> str:
    """Return the edit page of the item with primary key ``key``."""
    return reverse(f"admin:{_name(kind)}_change", args=[key])


def slug_link(kind: str, slug: str) -> str:
    """Return an address that leads to the item (kind, slug), or "" for an unknown kind."""
    try:
        return reverse(f"admin:{_name(kind)}_by_slug", args=[slug])
    except LookupError:
        return ""


def list_link(kind: str) -> str:
    """Return the list of a kind."""
    return reverse(f"admin:{_name(kind)}_changelist")


def request_link(request: ChangeRequest) -> str:
    """Return the page of a change request."""
    return reverse("admin:releases_changerequest_change", args=[request.pk])


def release_link(release: Release) -> str:
    """Return the page of a release."""
    return reverse("admin:releases_release_change", args=[release.pk])


def patch_link(patch: ChangePatch) -> str:
    """Return where the item of a patch is edited in its request."""
    name, number = _name(patch.kind), patch.request.number
    if patch.base_id is None:  # Not there yet: it has no page of its own.
        query = urlencode({"request": number, "slug": patch.slug})
        return f"{reverse(f'admin:{name}_add')}?{query}"
    return f"{reverse(f'admin:{name}_by_slug', args=[patch.slug])}?request={number}"


def shown_usages(usages: Iterable[Usage]) -> list[dict[str, Any]]:
    """Return ``usages`` with the words and addresses a page shows."""
    return [
        {
            "kind": kind_label(usage.kind),
            "slug": usage.slug,
            "path": usage.path,
            "environment": usage.environment,
            "url": slug_link(usage.kind, usage.slug),
        }
        for usage in usages
    ]


def _name(kind: str) -> str:
    options = proxy_of(kind)._meta
    return f"{options.app_label}_{options.model_name}"
