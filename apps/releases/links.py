"""Addresses of items in the admin, and usages as pages show them."""

from collections.abc import Iterable
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext

from apps.releases.kinds import proxy_of
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
