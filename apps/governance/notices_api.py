"""Operations on one's own notifications: a person's, by login or personal key."""

from typing import Any

from django.http import Http404
from django.shortcuts import get_object_or_404
from rest_framework import serializers

from apps.governance.duties import person_of
from apps.governance.notices import notices_of, notices_read
from apps.releases.api.inputs import Given, Paging
from apps.releases.api.operations import Operation, Page, page_of
from apps.releases.api.shapes import Shape
from apps.tenants.models import User


def person_or_404(operation: Operation) -> User:
    """Return the person who calls; a system has no notifications."""
    found: User = get_object_or_404(User, username=person_of(operation.actor), is_active=True)
    return found


class NotificationList(Operation):
    """The caller's notifications, newest first."""

    tag = "notifications"
    many = True

    class Query(Paging):
        unread = serializers.BooleanField(default=False)

    class Output(Shape):
        id = serializers.IntegerField(source="pk")
        event = serializers.CharField()
        subject = serializers.CharField()
        link = serializers.CharField()
        created_at = serializers.DateTimeField()
        read_at = serializers.DateTimeField(allow_null=True)

    def answer(self, **given: Any) -> Page:
        rows = notices_of(person_or_404(self))
        return page_of(rows.filter(read_at=None) if given["unread"] else rows, given)


class NotificationRead(Operation):
    """Mark one's own notifications as read: all of them, or the one with `id`."""

    tag = "notifications"

    class Input(Given):
        id = serializers.IntegerField(required=False, min_value=1)

    class Output(Shape):
        read = serializers.IntegerField()

    def answer(self, **given: Any) -> dict[str, int]:
        user = person_or_404(self)
        if "id" in given and not notices_of(user).filter(pk=given["id"]).exists():
            raise Http404
        return {"read": notices_read(user=user, pk=given.get("id"))}
