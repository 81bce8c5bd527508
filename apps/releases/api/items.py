"""Operations on items: what is accepted now or was at a moment. Writing one makes a draft."""

from typing import Any

from django.http import Http404
from django.utils import timezone
from rest_framework import serializers

from apps.releases.api.inputs import Given, JsonObject, Moment, Paging
from apps.releases.api.operations import Operation, Page, page_of
from apps.releases.api.shapes import (
    AnyJson,
    ChangeShape,
    ItemRow,
    ItemShape,
    Names,
    RevisionRow,
    Shape,
)
from apps.releases.changes import services as change_services
from apps.releases.changes.selectors import request_view
from apps.releases.content import slug_is_valid
from apps.releases.evidence.blast_radius import BlastRadius, blast_radius
from apps.releases.evidence.history import configuration_at, item_at, release_newest_at
from apps.releases.models import ConfigItem
from apps.releases.selectors import item_heads, item_history, item_used_by
from apps.runtime.config import KINDS


def item_or_404(kind: str, slug: str) -> ConfigItem:
    """Return the item with its head, or raise what an absent and a foreign one share."""
    name_or_404(kind, slug)
    found: ConfigItem | None = item_heads(kind, archived=True).filter(slug=slug).first()
    if found is None:
        raise Http404
    return found


def name_or_404(kind: str, slug: str) -> None:
    """Raise ``Http404`` when no item could have that kind and slug."""
    if kind not in KINDS or not slug_is_valid(slug):
        raise Http404


class ItemList(Operation):
    """The items, without their contents."""

    many = True
    Output = ItemRow

    class Query(Paging):
        kind = serializers.CharField(default="", max_length=40)
        archived = serializers.BooleanField(default=False)

    def answer(self, **given: Any) -> Page:
        rows = item_heads(given["kind"], archived=given["archived"]).order_by("kind", "slug")
        return page_of(rows, given)


class ItemGet(Operation):
    """An item and the content that is accepted, or was at the moment ``at``.

    It is what the next release has; what runs is in the environments' releases.
    """

    Query = Moment
    Output = ItemShape

    def answer(self, **given: Any) -> ConfigItem:
        item = item_or_404(**self.named)
        if "at" in given:
            then = item_at(item, given["at"])
            if then.revision is None:
                raise Http404
            # A value of that moment; it is not saved.
            item.head, item.archived_at = then.revision, given["at"] if then.is_archived else None
        return item


class ItemRevisions(Operation):
    """The revisions of an item, newest first."""

    many = True
    Query = Paging
    Output = RevisionRow

    def answer(self, **given: Any) -> Page:
        return page_of(item_history(item_or_404(**self.named)), given)


class ItemUses(Operation):
    """Who names an item: accepted items, and those of releases that run somewhere."""

    class Output(Shape):
        class Use(Shape):
            kind = serializers.CharField()
            slug = serializers.CharField()
            path = serializers.CharField()
            environment = serializers.CharField()

        uses = Use(many=True)

    def answer(self, **given: Any) -> dict[str, Any]:
        return {"uses": item_used_by(item_or_404(**self.named))}


class ItemReach(Operation):
    """How far a change of an item reaches: agents, releases, environments, open conversations."""

    class Output(Shape):
        class Environment(Shape):
            class Conversation(Shape):
                session = serializers.CharField(source="key")
                pending = serializers.BooleanField()
                updated_at = serializers.DateTimeField()

            environment = serializers.CharField()
            release = serializers.IntegerField(source="release.number")
            agents = Names()
            is_canary = serializers.BooleanField()
            open_conversations = serializers.IntegerField()
            conversations = Conversation(many=True)

        agents = Names()
        users = serializers.SerializerMethodField()
        environments = Environment(many=True)
        channels = Names()
        releases = serializers.SerializerMethodField()
        release_count = serializers.IntegerField()
        changes = serializers.SerializerMethodField()

        def get_users(self, reach: BlastRadius) -> list[str]:
            return [f"{kind}:{slug}" for kind, slug in reach.users]

        def get_releases(self, reach: BlastRadius) -> list[int]:
            return [release.number for release in reach.releases]

        def get_changes(self, reach: BlastRadius) -> list[int]:
            return [patch.request.number for patch in reach.requests]

    def answer(self, **given: Any) -> BlastRadius:
        item = item_or_404(**self.named)
        return blast_radius(item.kind, item.slug)


class ConfigurationThen(Operation):
    """Everything that was accepted at the moment `at` (now when it is left out)."""

    Query = Moment

    class Output(Shape):
        at = serializers.DateTimeField()
        release = serializers.IntegerField(allow_null=True)
        items = AnyJson()

    def answer(self, **given: Any) -> dict[str, Any]:
        at = given.get("at") or timezone.now()
        items: dict[str, dict[str, Any]] = {}
        for (kind, slug), content in sorted(configuration_at(at).items()):
            items.setdefault(kind, {})[slug] = content
        newest = release_newest_at(at)
        return {"at": at, "release": newest.number if newest else None, "items": items}


class ItemContent(Given):
    """An item's content with its labels. ``base``: the revision number it was edited from."""

    content = JsonObject()
    name = serializers.CharField(required=False, allow_blank=True)
    owner = serializers.CharField(required=False, allow_blank=True)
    technical_owner = serializers.CharField(required=False, allow_blank=True)
    note = serializers.CharField(default="", allow_blank=True, max_length=500)
    base = serializers.IntegerField(required=False, min_value=0)


class ItemDraft(Operation):
    """Write an item: into the caller's newest draft, or a new one.

    Nothing accepted and nothing that runs is changed. `base` refuses an edit of what somebody
    changed meanwhile. `change` is the draft; null when the content is what is accepted and there is
    no draft.
    """

    scope = "config:write"
    Input = ItemContent

    class Output(Shape):
        changed = serializers.BooleanField()
        change = ChangeShape(allow_null=True)

    def answer(self, **given: Any) -> dict[str, Any]:
        name_or_404(**self.named)
        saved = change_services.patch_save(actor=self.actor, **self.named, **given)
        shown = request_view(saved.request) if saved.request.pk else None
        return {"changed": saved.changed, "change": shown}
