"""Operations on change requests: what is in them, and what is said about them."""

from typing import Any, ClassVar

from django.http import Http404
from django.shortcuts import get_object_or_404
from rest_framework import serializers

from apps.releases.api.inputs import EnvironmentField, Given, Nothing, Paging
from apps.releases.api.items import ItemContent, item_or_404, name_or_404
from apps.releases.api.operations import Operation, Page, page_of
from apps.releases.api.shapes import ChangeRow, ChangeShape, CommentShape
from apps.releases.change_models import ChangeComment, ChangePatch, ChangeRequest
from apps.releases.changes import services as change_services
from apps.releases.changes.selectors import QUEUES, RequestView, request_view, requests_queue


def change_or_404(number: int) -> ChangeRequest:
    """Return the tenant's request ``number``."""
    found: ChangeRequest = get_object_or_404(ChangeRequest, number=number)
    return found


class ChangeTerms(Given):
    """What is said of a request as a whole."""

    title = serializers.CharField(max_length=200, required=False, allow_blank=True)
    reason = serializers.CharField(max_length=10_000, required=False, allow_blank=True)
    bump = serializers.ChoiceField(ChangeRequest.Bump.choices, required=False)
    declared_risk = serializers.ChoiceField(ChangeRequest.Risk.choices, required=False)
    environment = EnvironmentField(required=False)
    in_flight = serializers.ChoiceField(ChangeRequest.InFlight.choices, required=False)
    max_pin_hours = serializers.IntegerField(min_value=0, max_value=8760, required=False)
    reviewers = serializers.ListField(
        child=serializers.CharField(max_length=200), max_length=50, required=False
    )


class ChangeOperation(Operation):
    """Base of what is done with one request: it is looked up, and shown afterwards."""

    scope = "config:write"
    tag = "changes"
    Input: ClassVar[Any] = Nothing
    Output = ChangeShape

    def answer(self, **given: Any) -> RequestView:
        request = change_or_404(self.named["number"])
        self.act(request, **given)
        request.refresh_from_db()
        return request_view(request)

    def act(self, request: ChangeRequest, **given: Any) -> None:
        """Do it."""
        raise NotImplementedError


class ChangeList(Operation):
    """The change requests of a queue, newest first.

    `mine`: those the caller edits or has to decide on; `team`: every open one; `stale`: open ones
    whose base moved; `break_glass`: every emergency, for ever.
    """

    tag = "changes"
    many = True
    Output = ChangeRow

    class Query(Paging):
        queue = serializers.ChoiceField(list(QUEUES), default="all")

    def answer(self, **given: Any) -> Page:
        rows = requests_queue(given["queue"], self.actor)
        return page_of(rows.select_related("release").defer("release__manifest"), given)


class ChangeOpen(Operation):
    """Open a change request: a draft."""

    scope = "config:write"
    tag = "changes"
    status = 201
    Input = ChangeTerms
    Output = ChangeShape

    def answer(self, **given: Any) -> RequestView:
        return request_view(change_services.request_open(actor=self.actor, **given))


class ChangeGet(Operation):
    """A change request: its changes, conflicts, risk, gates, who approved and who still must."""

    tag = "changes"
    Output = ChangeShape

    def answer(self, **given: Any) -> RequestView:
        return request_view(change_or_404(self.named["number"]))


class ChangeDescribe(ChangeOperation):
    """Change what is said of a request; other terms than title, reason, reviewers void approvals."""

    Input = ChangeTerms

    def act(self, request: ChangeRequest, **given: Any) -> None:
        change_services.request_describe(request=request, actor=self.actor, **given)


# -- items of a request --------------------------------------------------------------------------
class ChangeItemPut(ChangeOperation):
    """Put an item's edited content into a request; an edit of something else voids approvals."""

    Input = ItemContent

    def act(self, request: ChangeRequest, **given: Any) -> None:
        kind, slug = self.named["kind"], self.named["slug"]
        name_or_404(kind, slug)
        change_services.patch_save(actor=self.actor, request=request, kind=kind, slug=slug, **given)


class ChangeItemDrop(ChangeOperation):
    """Take an item's changes out of a request."""

    Input = None

    def act(self, request: ChangeRequest, **given: Any) -> None:
        patch = get_object_or_404(
            ChangePatch, request=request, kind=self.named["kind"], slug=self.named["slug"]
        )
        change_services.patch_drop(actor=self.actor, patch=patch)


class ChangeItemArchive(ChangeOperation):
    """Ask for an item to leave the next release."""

    class Input(Given):
        note = serializers.CharField(default="", allow_blank=True, max_length=500)

    def act(self, request: ChangeRequest, **given: Any) -> None:
        item = item_or_404(self.named["kind"], self.named["slug"])
        change_services.patch_archive(actor=self.actor, item=item, request=request, **given)


class ChangeItemRestore(ChangeOperation):
    """Ask for the content of an older revision to be accepted again."""

    class Input(Given):
        revision = serializers.IntegerField(min_value=1)

    def act(self, request: ChangeRequest, **given: Any) -> None:
        item = item_or_404(self.named["kind"], self.named["slug"])
        revision = item.revisions.filter(number=given["revision"]).first()
        if revision is None:
            raise Http404
        change_services.patch_restore(
            actor=self.actor, item=item, revision=revision, request=request
        )


# -- discussion ----------------------------------------------------------------------------------
class ChangeCommentAdd(Operation):
    """Say something about a request, or about one field of it (`kind`, `slug`, `path`)."""

    scope = "config:read"
    tag = "changes"
    status = 201
    Output = CommentShape

    class Input(Given):
        text = serializers.CharField(max_length=10_000)
        kind = serializers.CharField(default="", allow_blank=True, max_length=40)
        slug = serializers.CharField(default="", allow_blank=True, max_length=120)
        path = serializers.CharField(default="", allow_blank=True, max_length=300)

    def answer(self, **given: Any) -> ChangeComment:
        discussing(self)
        request = change_or_404(self.named["number"])
        return change_services.comment_add(request=request, actor=self.actor, **given)


class ChangeCommentResolve(Operation):
    """Mark a comment as settled."""

    scope = "config:read"
    tag = "changes"
    Input = Nothing
    Output = CommentShape

    def answer(self, **given: Any) -> ChangeComment:
        discussing(self)
        comment = get_object_or_404(
            ChangeComment, request__number=self.named["number"], pk=self.named["comment"]
        )
        return change_services.comment_resolve(comment=comment, actor=self.actor)


def discussing(operation: Operation) -> None:
    """Who edits or reviews takes part in the discussion."""
    if not operation.principal.has("change:review"):
        operation.principal.require("config:write")
