"""What goes out, where several operations show the same thing."""

import json
from typing import Any, ClassVar

from rest_framework import serializers

from apps.releases.models import ConfigItem, Release
from apps.releases.selectors import revision_content

Text, Number, Moment = serializers.CharField, serializers.IntegerField, serializers.DateTimeField


class Shape(serializers.Serializer[Any]):
    """Base of outputs. A nested one is called in the document after what it is part of."""

    _spectacular_annotation: ClassVar[dict[str, str]]

    def __init_subclass__(cls) -> None:
        cls._spectacular_annotation = {"component_name": cls.__qualname__.replace(".", "")}


class JsonText(serializers.JSONField):
    """Canonical text of a column as the JSON value it is."""

    def to_representation(self, value: Any) -> Any:
        return json.loads(value)


class AnyJson(serializers.JSONField):
    """A JSON value as it is."""


class Names(serializers.ListField):
    child = serializers.CharField()


# -- items ---------------------------------------------------------------------------------------
class ItemRow(Shape):
    """An item and its head, without the content."""

    kind = Text()
    slug = Text()
    name = Text()
    owner = Text()
    technical_owner = Text()
    archived = serializers.SerializerMethodField()
    revision = Number(source="head.number", allow_null=True)
    version = Text(source="head.version")
    digest = Text(source="head.digest")
    author = Text(source="head.author")
    updated_at = Moment(source="head.created_at")

    def get_archived(self, item: ConfigItem) -> bool:
        return item.archived_at is not None


class ItemShape(ItemRow):
    """An item with its head's content."""

    content = serializers.SerializerMethodField()

    def get_content(self, item: ConfigItem) -> dict[str, Any]:
        return revision_content(item.head)


class RevisionRow(Shape):
    number = Number()
    version = Text()
    digest = Text()
    author = Text()
    note = Text()
    created_at = Moment()


# -- changes -------------------------------------------------------------------------------------
class ChangeRow(Shape):
    """A change request without its patches."""

    number = Number()
    title = Text()
    reason = Text()
    status = Text()
    author = Text()
    editors = JsonText()
    reviewers = JsonText()
    bump = Text()
    declared_risk = Text()
    risk = Text()
    environment = Text()
    in_flight = Text()
    max_pin_hours = Number()
    manifest_sha256 = Text()
    scheduled_for = Moment(allow_null=True)
    schedule_zone = Text()
    release = serializers.SerializerMethodField()
    broken_glass_by = Text()
    broken_glass_until = Moment(allow_null=True)
    ratified_by = Text()
    reverted_at = Moment(allow_null=True)
    created_at = Moment()
    submitted_at = Moment(allow_null=True)
    closed_at = Moment(allow_null=True)
    updated_at = Moment()

    def get_release(self, request: Any) -> int | None:
        return request.release.number if request.release_id else None


class FieldChangeShape(Shape):
    path = Text()
    before = AnyJson()
    after = AnyJson()
    change = Text()


class ConflictShape(Shape):
    """``base``: what both began with; null for not there."""

    path = Text()
    base = AnyJson()
    theirs = AnyJson()
    mine = AnyJson()


class PatchShape(Shape):
    """One item of a request: before and after on today's heads, the author's edits, carried ones."""

    kind = Text(source="patch.kind")
    slug = Text(source="patch.slug")
    action = Text(source="patch.action")
    note = Text(source="patch.note")
    edited_by = Text(source="patch.edited_by")
    labels = JsonText(source="patch.labels")
    before = AnyJson()
    after = AnyJson()
    changes = FieldChangeShape(many=True)
    carried = FieldChangeShape(many=True)
    conflicts = ConflictShape(many=True)
    is_stale = serializers.BooleanField()


class RiskShape(Shape):
    kind = Text()
    slug = Text()
    path = Text()
    risk = Text()
    rule = Text()
    message = Text()


class RequirementShape(Shape):
    """How many people, and which duties, each by a person of its own."""

    approvals = Number()
    duties = Names()
    activities = Names()
    problems = Names()


class DecisionShape(Shape):
    person = Text()
    decision = Text()
    manifest_sha256 = Text()
    duties = JsonText()
    on_behalf_of = Text()
    comment = Text()
    decided_at = Moment()


class CommentShape(Shape):
    id = Number(source="pk")
    author = Text()
    kind = Text()
    slug = Text()
    path = Text()
    text = Text()
    resolved_by = Text()
    created_at = Moment()


class FillersShape(Shape):
    """Whose approval would fill a missing duty: some of them, and how many more there are."""

    duty = Text()
    people = Names()
    more = Number()


class ReviewShape(Shape):
    """What ``request_view`` tells beside the request itself."""

    risk = Text()
    sha256 = Text()
    is_stale = serializers.BooleanField()
    patches = PatchShape(many=True)
    risks = RiskShape(many=True)
    requirement = RequirementShape()
    approvals = DecisionShape(many=True)
    missing = Names()
    more = Number()
    may_approve = FillersShape(many=True, source="fillers")
    gate_results = AnyJson()
    comments = CommentShape(many=True, source="request.comments")


class ChangeShape(ChangeRow, ReviewShape):
    """A request with everything a reviewer needs. ``sha256``: the manifest it would make now."""

    def to_representation(self, view: Any) -> dict[str, Any]:
        return {**ChangeRow(view.request).data, **ReviewShape(view).data}


# -- releases and environments -------------------------------------------------------------------
class ReleaseRow(Shape):
    number = Number()
    sha256 = Text()
    parent = serializers.SerializerMethodField()  # type: ignore[assignment]  # DRF takes it out
    note = Text()
    published_by = Text()
    published_at = Moment()

    def get_parent(self, release: Release) -> int | None:
        return release.parent.number if release.parent else None


class EventShape(Shape):
    """What an environment did: the release it then ran, and the canary beside it."""

    verb = Text()
    release = Number(source="release.number")
    previous = serializers.SerializerMethodField()
    canary = serializers.SerializerMethodField()
    canary_share = Number()
    terms = JsonText()
    reason = Text()
    actor = Text()
    at = Moment()

    def get_previous(self, event: Any) -> int | None:
        return event.previous.number if event.previous_id else None

    def get_canary(self, event: Any) -> int | None:
        return event.canary.number if event.canary_id else None


class FreezeShape(Shape):
    id = Number(source="pk")
    environment = Text()
    starts_at = Moment()
    ends_at = Moment()
    reason = Text()
    created_by = Text()


class BindingShape(Shape):
    """A value of one environment: an address, or the name of a secret, never a secret."""

    environment = Text()
    what = Text()
    name = Text()
    value = Text()
    updated_by = Text()
    updated_at = Moment()


class ProposalShape(Shape):
    id = Number(source="pk")
    environment = Text()
    what = Text()
    name = Text()
    value = Text()
    previous = Text()
    remove = serializers.BooleanField()
    reason = Text()
    status = Text()
    proposed_by = Text()
    proposed_at = Moment()
    decided_by = Text()
    decided_at = Moment(allow_null=True)
    comment = Text()


class EnvironmentShape(Shape):
    """What an environment runs. ``next``: where a release is promoted to from here."""

    name = Text()
    is_entry = serializers.BooleanField()
    next = Text(allow_null=True)
    release = ReleaseRow(allow_null=True)
    since = Moment(allow_null=True)
    deployed_by = Text()
    in_flight = Text()
    max_pin_hours = Number()
    canary = ReleaseRow(allow_null=True)
    canary_share = Number()
    canary_rules = AnyJson()
    frozen_until = Moment(allow_null=True)
