"""What waits for a person: requests to decide on, emergencies to accept, bindings to approve. Reads."""

import json
from collections.abc import Callable

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.module_loading import import_string

from apps.releases.change_models import Approval, BindingProposal, ChangeRequest
from apps.releases.changes.policy import change_policy
from apps.releases.changes.states import IN_REVIEW, OPEN, PUBLISHED
from apps.releases.environments.selectors import proposals_open

SHOWN = 5


def requests_waiting(actor: str) -> QuerySet[ChangeRequest]:
    """Return the requests in review on which ``actor``, who holds a duty, has not decided yet.

    Never those they edited. Whether their duty is the one that is missing is said on its page.
    """
    found: QuerySet[ChangeRequest] = ChangeRequest.objects.filter(status=IN_REVIEW)
    found = found.order_by("-number")
    if not change_policy().duties_of(actor):
        return found.none()
    decided = Approval.objects.filter(
        person=actor, request=OuterRef("pk"), manifest_sha256=OuterRef("manifest_sha256")
    )
    mine = Q(author=actor) | Q(editors__contains=json.dumps(actor))
    return found.exclude(mine).filter(~Exists(decided))


def drafts_of(actor: str) -> QuerySet[ChangeRequest]:
    """Return the open requests that ``actor`` began or edits."""
    mine = Q(author=actor) | Q(editors__contains=json.dumps(actor))
    found: QuerySet[ChangeRequest] = ChangeRequest.objects.filter(mine, status__in=OPEN)
    return found.order_by("-number")


def emergencies_open() -> QuerySet[ChangeRequest]:
    """Return the emergency releases that no second person has ratified and nobody reverted."""
    found: QuerySet[ChangeRequest] = ChangeRequest.objects.filter(
        broken_glass_until__isnull=False, ratified_at=None, reverted_at=None
    )
    return found.order_by("broken_glass_until")


def not_in_production() -> QuerySet[ChangeRequest]:
    """Return the published requests that have not reached the environment they are aimed at."""
    found: QuerySet[ChangeRequest] = ChangeRequest.objects.filter(status=PUBLISHED)
    return found.select_related("release").defer("release__manifest").order_by("-number")


def bindings_waiting() -> QuerySet[BindingProposal]:
    """Return the bindings somebody proposed that nobody decided on."""
    return proposals_open().order_by("proposed_at")


def unread_notices(user: AbstractBaseUser | AnonymousUser) -> int:
    """Return how many notifications of ``user`` are unread; ``settings.UNREAD_NOTICES`` counts."""
    count: Callable[[object], int] = import_string(settings.UNREAD_NOTICES)
    return count(user)
