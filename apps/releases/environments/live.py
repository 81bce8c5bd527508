"""Where items run: what each environment's release, and its canary, holds of them. Reads only."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings
from pydantic import ValidationError

from apps.releases.freezing import CorruptRelease
from apps.releases.models import ConfigItem, Deployment
from apps.releases.selectors import release_load
from apps.runtime import release as runtime_release
from apps.runtime.config import KINDS, KindConfig
from apps.tenants.scope import current_tenant_id

SAME, OLDER, UNREADABLE = "same", "older", "unreadable"


@dataclass(frozen=True)
class Running:
    """A release that answers in ``environment``; ``release`` is None for one that cannot be read."""

    environment: str
    release: runtime_release.Release | None
    is_canary: bool = False


@dataclass(frozen=True)
class ItemLive:
    """Where an item runs: ``SAME``, as its head is now; ``OLDER``, with an older content;
    ``UNREADABLE``, nobody can say."""

    environment: str
    is_canary: bool
    state: str


def releases_running() -> list[Running]:
    """Return what every environment runs, the last one (production) first, a canary after it.

    One query, and one for each release that this process has not read yet.
    """
    rows = Deployment.objects.values_list("environment", "release_id", "canary_id")
    deployed = {environment: ids for environment, *ids in rows}
    return [
        Running(environment, _loaded(release_id), is_canary)
        for environment in reversed(settings.RELEASE_ENVIRONMENTS)
        for is_canary, release_id in zip((False, True), deployed.get(environment, ()), strict=False)
        if release_id is not None
    ]


def item_live(item: ConfigItem, running: Sequence[Running]) -> list[ItemLive]:
    """Return where ``item``, its head loaded, runs. Asks the database nothing.

    Both sides are read with today's class, so a field that a class gained since is no difference.
    """
    head = _head(item)
    states = [(found, _state(found.release, (item.kind, item.slug), head)) for found in running]
    return [ItemLive(found.environment, found.is_canary, state) for found, state in states if state]


def _state(
    release: runtime_release.Release | None, key: tuple[str, str], head: KindConfig | None
) -> str:
    if release is None:
        return UNREADABLE
    if key not in release.items:
        return ""
    return SAME if release.items[key] == head else OLDER


def _loaded(release_id: object) -> runtime_release.Release | None:
    """Return the parsed release, None for one whose bytes changed or no longer fit: a list of items
    is shown all the same."""
    try:
        return release_load(current_tenant_id(), str(release_id))
    except (CorruptRelease, ValueError):
        return None


def _head(item: ConfigItem) -> KindConfig | None:
    if item.head is None or item.kind not in KINDS:
        return None
    try:
        return KINDS[item.kind].model_validate(json.loads(item.head.content))
    except ValidationError:
        return None
