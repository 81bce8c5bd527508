"""How far a change of one item reaches: agents, releases, environments, conversations, requests."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.conf import settings
from django.db.models import F

from apps.releases.change_models import ChangePatch
from apps.releases.changes.states import OPEN
from apps.releases.environments.in_flight import OpenConversation, open_conversations
from apps.releases.evidence.history import item_spans
from apps.releases.models import ConfigItem, Deployment, Reference, Release
from apps.releases.selectors import release_load
from apps.runtime import release as runtime_release
from apps.runtime.config import references
from apps.tenants.scope import current_tenant_id

Key = tuple[str, str]
SHOWN_CONVERSATIONS = 20
SHOWN_RELEASES = 50


@dataclass(frozen=True)
class EnvironmentReach:
    """An environment that runs the item: in which release, for which agents, who is talking now."""

    environment: str
    release: Release
    agents: tuple[str, ...]
    is_canary: bool = False
    open_conversations: int = 0
    conversations: tuple[OpenConversation, ...] = ()


@dataclass(frozen=True)
class BlastRadius:
    """Everything that a change of one item can touch.

    ``agents``: those of the next release that use it, themselves or through what they use.
    ``users``: (kind, slug) of everything that does. ``releases``: the newest that contain it, of
    ``release_count``. ``requests``: open ones that change it.
    """

    kind: str
    slug: str
    agents: tuple[str, ...] = ()
    users: tuple[Key, ...] = ()
    environments: tuple[EnvironmentReach, ...] = ()
    releases: tuple[Release, ...] = ()
    release_count: int = 0
    requests: tuple[ChangePatch, ...] = ()
    channels: tuple[str, ...] = field(default_factory=tuple)


def blast_radius(kind: str, slug: str) -> BlastRadius:
    """Return how far a change of the item (kind, slug) reaches now. In a tenant's scope."""
    users = reaching((kind, slug), _head_users())
    environments = tuple(_environments(kind, slug))
    releases, count = releases_containing(kind, slug)
    return BlastRadius(
        kind=kind,
        slug=slug,
        agents=_agents((kind, slug), users),
        users=tuple(sorted(users)),
        environments=environments,
        releases=tuple(releases),
        release_count=count,
        requests=tuple(
            ChangePatch.objects.filter(kind=kind, slug=slug, request__status__in=OPEN)
            .select_related("request")
            .order_by("request__number")
        ),
        channels=tuple(settings.GATEWAY_CHANNELS) if environments else (),
    )


def reaching(key: Key, users: Mapping[Key, set[Key]]) -> set[Key]:
    """Return everything that names ``key``, or names something that does, and so on. Pure."""
    found: set[Key] = set()
    waiting = [key]
    while waiting:
        for user in users.get(waiting.pop(), ()):
            if user not in found and user != key:
                found.add(user)
                waiting.append(user)
    return found


def users_of(release: runtime_release.Release) -> Mapping[Key, set[Key]]:
    """Return item → who names it in ``release``; made once per parsed release."""
    key = "releases:who_names"
    if key not in release.derived:
        users: dict[Key, set[Key]] = {}
        for user, config in release.items.items():
            for found in references(config):
                users.setdefault((found.kind, found.slug), set()).add(user)
        release.derived[key] = users
    made: Mapping[Key, set[Key]] = release.derived[key]
    return made


def releases_containing(kind: str, slug: str) -> tuple[list[Release], int]:
    """Return the newest releases that contain the item, and how many do.

    A release holds the heads of its moment, so the item's own history tells; no manifest is read.
    """
    item = ConfigItem.objects.filter(kind=kind, slug=slug).first()
    if item is None:
        return [], 0
    spans = item_spans(item)
    rows = Release.objects.defer("manifest").order_by("-number")
    containing = [row for row in rows if any(a <= row.published_at < b for a, b in spans)]
    return containing[:SHOWN_RELEASES], len(containing)


def _head_users() -> Mapping[Key, set[Key]]:
    users: dict[Key, set[Key]] = {}
    rows = Reference.objects.filter(
        revision__item__head=F("revision"), revision__item__archived_at=None
    ).order_by()
    for kind, slug, user_kind, user_slug in rows.values_list(
        "kind", "slug", "revision__item__kind", "revision__item__slug"
    ):
        users.setdefault((kind, slug), set()).add((user_kind, user_slug))
    return users


def _environments(kind: str, slug: str) -> list[EnvironmentReach]:
    rows = Deployment.objects.select_related("release", "canary").order_by("environment")
    found = []
    for row in rows.defer("release__manifest", "canary__manifest"):
        for release, is_canary in ((row.release, False), (row.canary, True)):
            if release is not None:
                reach = _environment(row.environment, release, (kind, slug), is_canary=is_canary)
                found += [reach] if reach else []
    return found


def _environment(
    environment: str, release: Release, key: Key, *, is_canary: bool
) -> EnvironmentReach | None:
    parsed = release_load(current_tenant_id(), release.pk)
    if key not in parsed.items:
        return None
    count, conversations = open_conversations(
        environment=environment, using=[key], limit=SHOWN_CONVERSATIONS
    )
    return EnvironmentReach(
        environment=environment,
        release=release,
        agents=_agents(key, reaching(key, users_of(parsed))),
        is_canary=is_canary,
        open_conversations=0 if is_canary else count,
        conversations=() if is_canary else tuple(conversations),
    )


def _agents(key: Key, users: set[Key]) -> tuple[str, ...]:
    return tuple(sorted(slug for kind, slug in {key, *users} if kind == "agent"))
