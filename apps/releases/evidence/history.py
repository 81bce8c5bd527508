"""Time travel: any item, the whole configuration, or an environment as it stood at a moment. Reads.

Moments are aware datetimes. A head's moves are rows (``HeadMove``), an environment's acts are rows
(``DeploymentEvent``); of the time before those rows were kept, revisions and the audit trail tell.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.db.models import Max, Min, QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from apps.releases.change_models import DeploymentEvent, HeadMove
from apps.releases.models import ConfigItem, Deployment, Release, Revision
from apps.tenants.models import AuditEntry


class NoMoment(ValueError):
    """What was typed is no moment. The sentence is for who typed it."""


@dataclass(frozen=True)
class ItemThen:
    """An item at a moment: the revision that was its head (None: not there yet), or archived."""

    revision: Revision | None
    is_archived: bool = False


@dataclass(frozen=True)
class EnvironmentThen:
    """What an environment ran at a moment, since when and by whom; ``release`` None: nothing."""

    environment: str
    release: Release | None
    canary: Release | None = None
    canary_share: int = 0
    since: datetime | None = None
    actor: str = ""
    verb: str = ""


def moment_parse(text: str, zone: str = "", *, ahead: bool = False) -> datetime:
    """Return the moment that ``text`` (ISO; a local time of ``zone`` unless it has an offset) names.

    Raises ``NoMoment``: also for a local time that the zone's clocks skipped or showed twice, and
    unless ``ahead`` for one that lies ahead.
    """
    try:
        typed = parse_datetime(text.strip())
    except ValueError:
        typed = None
    if typed is None:
        raise NoMoment(_("Give a date and a time, like 2026-03-03 14:00."))
    try:
        moment = typed if timezone.is_aware(typed) else _localised(typed, zone_named(zone))
        moment = moment.astimezone(UTC)
    except OverflowError:  # The first or the last hours that can be written at all.
        raise NoMoment(_("Give a date and a time, like 2026-03-03 14:00.")) from None
    if not ahead and moment > timezone.now() + timedelta(minutes=1):
        raise NoMoment(_("That moment lies ahead; what was can be shown, what will be cannot."))
    return moment


def zone_named(name: str) -> ZoneInfo:
    """Return the time zone ``name`` (empty: the product's). Raises ``NoMoment``."""
    try:
        return ZoneInfo(name or timezone.get_default_timezone_name())
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise NoMoment(
            _("There is no time zone %(name)s; write it like America/Sao_Paulo.")
            % {"name": name[:60]}
        ) from None


def item_at(item: ConfigItem, moment: datetime) -> ItemThen:
    """Return ``item`` as it stood at ``moment``."""
    move = (
        HeadMove.objects.filter(item=item, at__lte=moment)
        .select_related("revision__item")
        .order_by("-pk")
        .first()
    )
    if move is not None:
        return _of_move(move)
    first = HeadMove.objects.filter(item=item).aggregate(Min("at"))["at__min"]
    older = Revision.objects.filter(item=item, created_at__lte=moment).select_related("item")
    return ItemThen(
        older.order_by("-number").first(),
        is_archived=first is None and bool(item.archived_at and item.archived_at <= moment),
    )


def item_spans(item: ConfigItem) -> list[tuple[datetime, datetime]]:
    """Return from when until when ``item`` had a head and was not archived; the last may be open."""
    made = Revision.objects.filter(item=item).aggregate(Min("created_at"))["created_at__min"]
    if made is None:
        return []
    moves = list(HeadMove.objects.filter(item=item).order_by("pk"))
    spans: list[tuple[datetime, datetime]] = []
    begun: datetime | None = made
    for move in moves:
        if move.revision_id is None and begun is not None:
            spans.append((begun, move.at))
            begun = None
        elif move.revision_id is not None and begun is None:
            begun = move.at
    if begun is not None:
        archived = None if moves else item.archived_at
        spans.append((begun, archived or datetime.max.replace(tzinfo=UTC)))
    return spans


def configuration_at(moment: datetime) -> dict[tuple[str, str], Any]:
    """Return (kind, slug) → content of every head at ``moment``, archived items left out.

    Two queries, however many items and revisions there are. Keys rise with time: writers of one
    tenant's configuration queue.
    """
    last = HeadMove.objects.filter(at__lte=moment).order_by().values("item").annotate(Max("pk"))
    moved = HeadMove.objects.filter(pk__in=last.values("pk__max"), revision__isnull=False)
    rows = moved.order_by().values_list(
        "revision__item__kind", "revision__item__slug", "revision__content"
    )
    older = _heads_before_moves(moment).values_list("item__kind", "item__slug", "content")
    return {
        (kind, slug): json.loads(content)
        for found in (rows, older)
        for kind, slug, content in found.iterator()
    }


def environment_at(environment: str, moment: datetime) -> EnvironmentThen:
    """Return what ``environment`` ran at ``moment``."""
    event = (
        DeploymentEvent.objects.filter(environment=environment, at__lte=moment)
        .select_related("release", "canary")
        .defer("release__manifest", "canary__manifest")
        .order_by("-at")
        .first()
    )
    if event is None:
        return _from_trail(environment, moment)
    return EnvironmentThen(
        environment=environment,
        release=event.release,
        canary=event.canary if event.canary_share else None,
        canary_share=event.canary_share,
        since=event.at,
        actor=event.actor,
        verb=str(DeploymentEvent.Verb(event.verb).label),
    )


def environment_events(environment: str) -> Any:
    """Return what ``environment`` did, newest first, as a query set."""
    return (
        DeploymentEvent.objects.filter(environment=environment)
        .select_related("release", "previous", "canary")
        .defer("release__manifest", "previous__manifest", "canary__manifest")
        .order_by("-at")
    )


def release_environments_at(
    release: Release, moment: datetime, environments: Iterable[str]
) -> list[EnvironmentThen]:
    """Return the environments that ran ``release``, alone or as a canary, at ``moment``."""
    then = [environment_at(environment, moment) for environment in environments]
    return [
        found
        for found in then
        if release.pk in {r.pk for r in (found.release, found.canary) if r is not None}
    ]


def release_newest_at(moment: datetime) -> Release | None:
    """Return the release that was the newest one at ``moment``, without its manifest."""
    releases = Release.objects.filter(published_at__lte=moment).defer("manifest")
    newest: Release | None = releases.order_by("-number").first()
    return newest


def _localised(typed: datetime, zone: ZoneInfo) -> datetime:
    """Return the local time ``typed`` of ``zone``; refuse one that never was, or was twice."""
    first, second = typed.replace(tzinfo=zone), typed.replace(tzinfo=zone, fold=1)
    if first.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != typed:
        raise NoMoment(_("The clocks of %(zone)s skipped that time.") % {"zone": zone.key})
    if first.utcoffset() != second.utcoffset():
        raise NoMoment(
            _("The clocks of %(zone)s showed that time twice; add the offset, like -03:00.")
            % {"zone": zone.key}
        )
    return first


# -- before there were rows --------------------------------------------------------------------
def _of_move(move: HeadMove) -> ItemThen:
    if move.revision is not None:
        return ItemThen(move.revision)
    before = HeadMove.objects.filter(item=move.item_id, pk__lt=move.pk, revision__isnull=False)
    last = before.select_related("revision__item").order_by("-pk").first()
    if last is not None:
        return ItemThen(last.revision, is_archived=True)
    made = Revision.objects.filter(item=move.item_id, created_at__lte=move.at)
    return ItemThen(made.select_related("item").order_by("-number").first(), is_archived=True)


def _heads_before_moves(moment: datetime) -> QuerySet[Revision]:
    """Return the heads of items of which no move is known yet at ``moment``.

    Their newest revision of then was the head: only restoring an older one was different, and that
    is in the audit trail.
    """
    newest = (
        Revision.objects.filter(created_at__lte=moment)
        .exclude(item__in=HeadMove.objects.filter(at__lte=moment).order_by().values("item"))
        .exclude(item__in=ConfigItem.objects.filter(archived_at__lte=moment, moves=None))
        .order_by()
        .values("item")
        .annotate(Max("pk"))
    )
    heads: QuerySet[Revision] = Revision.objects.filter(pk__in=newest.values("pk__max"))
    return heads.order_by()


def _from_trail(environment: str, moment: datetime) -> EnvironmentThen:
    entry = (
        AuditEntry.objects.filter(
            entity=f"environment:{environment}",
            action__in=("release.deployed", "release.rolled_back"),
            at__lte=moment,
        )
        .order_by("-sequence")
        .first()
    )
    number = json.loads(entry.detail).get("release") if entry else None
    found = Release.objects.filter(number=number).defer("manifest").first() if number else None
    if entry is None or found is None:
        return EnvironmentThen(environment, None)
    return EnvironmentThen(environment, found, since=entry.at, actor=entry.actor)


def environments_now() -> dict[str, Deployment]:
    """Return environment → what it runs now, with both releases, without manifests."""
    rows = Deployment.objects.select_related("release", "canary")
    return {
        row.environment: row for row in rows.defer("release__manifest", "canary__manifest").all()
    }
