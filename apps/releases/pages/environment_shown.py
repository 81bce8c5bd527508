"""What a page says of an environment: what runs, how it can move, who is talking to it. Reads only."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.releases.change_models import BindingProposal, DeploymentEvent, FreezeWindow
from apps.releases.environments.deploying import pointer_of
from apps.releases.environments.in_flight import (
    OpenConversation,
    TurnRates,
    open_conversations,
    turn_rates,
)
from apps.releases.environments.rules import environment_before, frozen_until
from apps.releases.environments.selectors import proposals_open
from apps.releases.evidence.history import environment_events
from apps.releases.freezing import bindings_needed
from apps.releases.models import Binding, Deployment, Release
from apps.releases.patches.comparing import Items
from apps.releases.selectors import release_load
from apps.tenants.scope import current_tenant_id

Verb = Literal["runs", "deploy", "promote", "roll_back", "unreachable"]
SHOWN_EVENTS = 10
SHOWN_CONVERSATIONS = 10


@dataclass(frozen=True)
class Way:
    """How a release gets to an environment now, or why it does not (``unreachable``)."""

    verb: Verb
    before: str = ""


def way_of(
    release: Release, environment: str, running: Deployment | None, *, ran: Iterable[UUID], hop: Any
) -> Way:
    """Return how ``release`` gets to ``environment``. Pure.

    ``ran``: the releases that ran there before. ``hop``: the id of the release that the environment
    before runs. The services check all of it again.
    """
    before = environment_before(environment)
    if running is not None and running.release_id == release.pk:
        return Way("runs", before)
    was_here = release.pk in set(ran)
    if was_here and running is not None and release.number < running.release.number:
        return Way("roll_back", before)
    if environment in settings.RELEASE_ENTRY_ENVIRONMENTS:
        return Way("deploy", before)
    if hop == release.pk:
        return Way("promote", before)
    return Way("roll_back" if was_here else "unreachable", before)


def releases_ran(environment: str) -> set[UUID]:
    """Return the ids of the releases that ``environment`` ever ran."""
    rows = DeploymentEvent.objects.filter(environment=environment).order_by()
    pairs = rows.values_list("release_id", "previous_id").distinct()
    return {pk for pair in pairs for pk in pair if pk is not None}


@dataclass(frozen=True)
class Removed:
    """What a release no longer has, and who is talking to it now."""

    items: list[tuple[str, str]] = field(default_factory=list)
    open_count: int = 0
    using_count: int = 0
    conversations: list[OpenConversation] = field(default_factory=list)


def removed_there(environment: str, before: Items, after: Items) -> Removed:
    """Return what ``after`` lacks of ``before``, and the open conversations that stand on it."""
    items = sorted(set(before) - set(after))
    count, _some = open_conversations(environment=environment, limit=1)
    if not items:
        return Removed(open_count=count)
    using, conversations = open_conversations(
        environment=environment, using=items, limit=SHOWN_CONVERSATIONS
    )
    return Removed(items, count, using, conversations)


@dataclass(frozen=True)
class ShownCanary:
    """A canary beside what runs: since when, by which rules, and how both fare since then."""

    release: Release
    share: int
    since: datetime | None
    rules: list[tuple[str, str]]
    rates: TurnRates
    others: TurnRates


def canary_shown(deployment: Deployment | None) -> ShownCanary | None:
    """Return the canary of an environment, or None."""
    if deployment is None or deployment.canary is None:
        return None
    since, environment = deployment.canary_started_at, deployment.environment
    return ShownCanary(
        release=deployment.canary,
        share=deployment.canary_share,
        since=since,
        rules=rules_shown(json.loads(deployment.canary_rules)),
        rates=turn_rates(release_id=deployment.canary.pk, environment=environment, since=since),
        others=turn_rates(release_id=deployment.release_id, environment=environment, since=since),
    )


def rules_shown(rules: dict[str, Any]) -> list[tuple[str, str]]:
    """Return a canary's rules as (name, limit) in words; those that stop nothing are left out."""
    names = {
        "min_turns": _("Counted from turns"),
        "max_error_rate": _("Stops above error rate"),
        "max_block_rate": _("Stops above block rate"),
        "max_cost_per_turn": _("Stops above cost per turn in USD"),
    }
    return [
        (names.get(key, key), percent(value) if key.endswith("rate") else f"{value:g}")
        for key, value in rules.items()
        if value is not None
    ]


def percent(part: float) -> str:
    """Return a share as a per cent value."""
    return f"{part * 100:.3g} %"


def rates_shown(rates: TurnRates) -> list[tuple[str, str]]:
    """Return what became of turns, in words; an unknown cost is unknown, never 0."""
    if not rates.turns:
        return [(_("Turns"), "0")]
    cost = None if rates.cost_usd is None else rates.cost_usd / rates.turns
    return [
        (_("Turns"), str(rates.turns)),
        (_("Failed"), f"{rates.failed} ({percent(rates.failed / rates.turns)})"),
        (_("Blocked"), f"{rates.blocked} ({percent(rates.blocked / rates.turns)})"),
        (_("Cost per turn"), _("unknown") if cost is None else f"US$ {cost:.4f}"),
    ]


@dataclass(frozen=True)
class ShownBinding:
    """One name an environment binds, or has to (``binding`` None), and what is proposed for it."""

    what: str
    name: str
    binding: Binding | None
    is_needed: bool
    proposal: BindingProposal | None = None


def bindings_shown(environment: str, deployment: Deployment | None) -> list[ShownBinding]:
    """Return every name that is bound, needed by what runs, or proposed, missing ones first."""
    bound = {(b.what, b.name): b for b in Binding.objects.filter(environment=environment)}
    needed: set[tuple[str, str]] = set()
    if deployment is not None:
        release = release_load(current_tenant_id(), deployment.release_id)
        needed = {(entry["what"], entry["name"]) for entry in bindings_needed(release)}
    proposals = {(p.what, p.name): p for p in proposals_open(environment)}
    keys = sorted({*bound, *needed, *proposals}, key=lambda key: (key in bound, key))
    return [
        ShownBinding(what, name, bound.get((what, name)), (what, name) in needed,
                     proposals.get((what, name)))
        for what, name in keys
    ]  # fmt: skip


@dataclass(frozen=True)
class ShownEnvironment:
    """Everything the page of an environment shows."""

    name: str
    deployment: Deployment | None
    before: str
    arriving: Release | None
    canary: ShownCanary | None
    kept: list[tuple[Release, datetime]]
    frozen: FreezeWindow | None
    windows: list[FreezeWindow]
    open_count: int
    bindings: list[ShownBinding]
    events: list[DeploymentEvent]


def environment_shown(name: str, deployments: dict[str, Deployment]) -> ShownEnvironment:
    """Return environment ``name`` as its page shows it; ``deployments``: ``environments_now()``."""
    deployment = deployments.get(name)
    before = environment_before(name)
    earlier = deployments.get(before)
    now = timezone.now()
    count = open_conversations(environment=name, limit=1)[0] if deployment else 0
    return ShownEnvironment(
        name=name,
        deployment=deployment,
        before=before,
        arriving=_arriving(deployment, earlier),
        canary=canary_shown(deployment),
        kept=kept_shown(deployment),
        frozen=frozen_until(name, now),
        windows=list(
            FreezeWindow.objects.filter(environment=name, ends_at__gt=now).order_by("starts_at")
        ),
        open_count=count,
        bindings=bindings_shown(name, deployment),
        events=list(environment_events(name)[:SHOWN_EVENTS]),
    )


def kept_shown(deployment: Deployment | None) -> list[tuple[Release, datetime]]:
    """Return the releases on which conversations may still finish, each with when that ends."""
    if deployment is None:
        return []
    pointer = pointer_of(deployment)
    longest = timedelta(hours=pointer.max_pin_hours)
    until = {
        release: datetime.fromtimestamp(at, UTC) + longest for release, at in pointer.kept.items()
    }
    rows: Sequence[Release] = (
        Release.objects.filter(pk__in=list(until)).defer("manifest").order_by("-number")
        if until
        else ()
    )
    now = timezone.now()
    return [(row, until[row.pk]) for row in rows if until[row.pk] > now]


def _arriving(deployment: Deployment | None, earlier: Deployment | None) -> Release | None:
    """Return what the environment before runs, when it is newer than what runs here: an older one
    would take something back, an emergency too, and is not what the page holds out first."""
    if earlier is None or (deployment and deployment.release.number >= earlier.release.number):
        return None
    return earlier.release
