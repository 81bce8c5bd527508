"""Whether a release still has what an emergency brought and nobody else ever accepted. Reads only.

An emergency goes live past everybody; until a second person ratifies it, only the environment it was
made for runs it. What was published on top of it has it too, and is no way round.
"""

import json
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from apps.releases.authority import authority_held
from apps.releases.change_models import ChangePatch, ChangeRequest
from apps.releases.environments.rules import EnvironmentRefused, ancestry
from apps.releases.models import Release
from apps.releases.patches.patching import patch_apply, patch_make
from apps.releases.selectors import content_today

Content = dict[str, Any]


class EmergencyNotAccepted(EnvironmentRefused):
    """The release has changes of an emergency that was not ratified."""

    code = "emergency_not_accepted"

    def __init__(self, release: Release, emergency: ChangeRequest) -> None:
        text = (
            _(
                "Release #%(release)s has the changes of emergency #%(number)s, which was taken back: "
                "it does not run again. Bring them as a request that is approved."
            )
            if emergency.reverted_at
            else _(
                "Release #%(release)s has the changes of emergency #%(number)s, which no second "
                "person has ratified: ratify or revert it first."
            )
        )
        super().__init__(text % {"release": release.number, "number": emergency.number})


def emergency_check(release: Release, *, open_ones: bool = True) -> None:
    """Raise ``EmergencyNotAccepted`` when ``release`` has an emergency that was taken back, or
    (``open_ones``) one that waits for a second person."""
    if authority_held():
        return
    for emergency in emergencies_in(release):
        if open_ones or emergency.reverted_at:
            raise EmergencyNotAccepted(release, emergency)


def emergencies_in(release: Release) -> list[ChangeRequest]:
    """Return the emergencies that nobody ratified and whose changes ``release`` has, oldest first."""
    made = ChangeRequest.objects.exclude(broken_glass_by="").filter(ratified_at=None)
    if not made.exists():
        return []
    found = made.filter(release_id__in=ancestry(release.pk)).order_by("number")
    return [emergency for emergency in found if has_emergency(release, emergency)]


def has_emergency(release: Release, emergency: ChangeRequest) -> bool:
    """Return whether ``release``, which descends from that of ``emergency``, has its changes from it.

    Not when the release was made, or approved by its hash, after the emergency was taken back: then
    people who knew better brought the same again.
    """
    taken_back = emergency.reverted_at
    if taken_back is not None:
        approved = ChangeRequest.objects.filter(release_id=release.pk, broken_glass_by="")
        if release.published_at >= taken_back or approved.filter(published_at__gte=taken_back):
            return False
    manifest = Release.objects.values_list("manifest", flat=True).get(pk=release.pk)
    items: Mapping[str, Mapping[str, Content]] = json.loads(manifest)["items"]
    for patch in emergency.patches.select_related("base"):
        now = items.get(patch.kind, {}).get(patch.slug)
        now = None if now is None else content_today(patch.kind, json.dumps(now))
        if content_without(patch, now) != now:
            return True
    return False


def content_without(patch: ChangePatch, now: Content | None) -> Content | None:
    """Return the content ``now`` (None: not there) of an item without what ``patch`` did to it.

    A place that somebody changed again stays as they made it; an item that somebody archived or
    brought back since stays so.
    """
    before = content_today(patch.kind, patch.base.content) if patch.base else None
    if before is None or patch.base_archived:
        return None
    if patch.action == ChangePatch.Action.ARCHIVE:
        return before if now is None else now
    if now is None:
        return None
    after = patch_apply(before, json.loads(patch.operations)).content
    return patch_apply(now, patch_make(after, before)).content
