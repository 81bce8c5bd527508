"""Operations on releases: reads only. A release is made by publishing a change request."""

import json
from typing import Any

from django.shortcuts import get_object_or_404
from rest_framework import serializers

from apps.releases.api.inputs import Given, Paging
from apps.releases.api.operations import Operation, Page, page_of
from apps.releases.api.shapes import AnyJson, FieldChangeShape, ReleaseRow, Shape
from apps.releases.evidence.record import record_sign, release_record
from apps.releases.freezing import manifest_stored
from apps.releases.models import Release
from apps.releases.patches.comparing import items_changed, manifest_items

EVERY_ITEM = 1_000_000


def release_or_404(number: int) -> Release:
    """Return the tenant's release ``number``, without its manifest."""
    found: Release = get_object_or_404(
        Release.objects.select_related("parent").defer("manifest", "parent__manifest"),
        number=number,
    )
    return found


class ReleaseList(Operation):
    """The releases, newest first."""

    tag = "releases"
    many = True
    Query = Paging
    Output = ReleaseRow

    def answer(self, **given: Any) -> Page:
        rows = Release.objects.select_related("parent").defer("manifest", "parent__manifest")
        return page_of(rows.order_by("-number"), given)


class ReleaseGet(Operation):
    """A release: what it is, which gates it passed, which requests it came from, where it runs."""

    tag = "releases"

    class Output(ReleaseRow):
        gates = AnyJson()
        requests = serializers.SerializerMethodField()
        environments = serializers.SerializerMethodField()

        def to_representation(self, release: Release) -> dict[str, Any]:
            shown: dict[str, Any] = super().to_representation(release)
            return {**shown, "gates": json.loads(release.gates)}

        def get_requests(self, release: Release) -> list[int]:
            return list(release.requests.order_by("number").values_list("number", flat=True))

        def get_environments(self, release: Release) -> list[str]:
            return list(
                release.deployments.order_by("environment").values_list("environment", flat=True)
            )

    def answer(self, **given: Any) -> Release:
        return release_or_404(**self.named)


class ReleaseManifest(Operation):
    """What a release holds: every item's content. Its canonical text has the release's sha256."""

    tag = "releases"

    class Output(Shape):
        sha256 = serializers.CharField()
        manifest = AnyJson()

    def answer(self, **given: Any) -> dict[str, Any]:
        release = release_or_404(**self.named)
        return {"sha256": release.sha256, "manifest": json.loads(manifest_stored(release))}


class ReleaseRecord(Operation):
    """The signed record of a release: everything known of it, as a text to keep and verify."""

    tag = "releases"

    class Output(Shape):
        record = serializers.CharField(trim_whitespace=False)

    def answer(self, **given: Any) -> dict[str, Any]:
        return {"record": record_sign(release_record(release_or_404(**self.named)))}


class ReleaseDiff(Operation):
    """What a release changed, field by field: against its parent, or the release `since`."""

    tag = "releases"

    class Query(Given):
        since = serializers.IntegerField(required=False, min_value=1)

    class Output(Shape):
        class Item(Shape):
            kind = serializers.CharField()
            slug = serializers.CharField()
            change = serializers.CharField()
            fields_changed = FieldChangeShape(many=True, source="fields")

        since = serializers.IntegerField(allow_null=True)
        items = Item(many=True)

    def answer(self, **given: Any) -> dict[str, Any]:
        release = release_or_404(**self.named)
        older = release_or_404(given["since"]) if "since" in given else release.parent
        before = manifest_items(manifest_stored(older)) if older else {}
        after = manifest_items(manifest_stored(release))
        return {
            "since": older.number if older else None,
            "items": items_changed(before, after, detailed=EVERY_ITEM),
        }
