"""Operations that lead a change request on: review, decision, publication, emergency."""

from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers

from apps.releases.api.changes import ChangeOperation, change_or_404
from apps.releases.api.inputs import EnvironmentField, Given, JsonObject
from apps.releases.change_models import Approval, ChangeRequest
from apps.releases.changes import services as change_services

DECISIONS = [
    choice for choice in Approval.Decision.choices if choice[0] != Approval.Decision.RATIFY
]


class ChangeSubmit(ChangeOperation):
    """Ask for review: gates run, and the request is bound to the manifest it would make."""

    def act(self, request: ChangeRequest, **given: Any) -> None:
        change_services.request_submit(request=request, actor=self.actor)


class ChangeDecide(ChangeOperation):
    """Approve, ask for changes, or reject.

    `sha256` is the manifest the person was shown; the decision counts for nothing else. Only a
    person's credential decides, never one of those who edited the request.
    """

    scope = "change:review"

    class Input(Given):
        decision = serializers.ChoiceField(DECISIONS)
        sha256 = serializers.RegexField(r"^[0-9a-f]{64}$")
        comment = serializers.CharField(default="", allow_blank=True, max_length=10_000)

    def act(self, request: ChangeRequest, **given: Any) -> None:
        change_services.request_decide(request=request, actor=self.actor, **given)


class ChangeWithdraw(ChangeOperation):
    """Close one's own open request."""

    def act(self, request: ChangeRequest, **given: Any) -> None:
        change_services.request_withdraw(request=request, actor=self.actor)


class ChangeSupersede(ChangeOperation):
    """Close an open request in favour of another one (`by`: its number)."""

    class Input(Given):
        by = serializers.IntegerField(min_value=1)

    def act(self, request: ChangeRequest, **given: Any) -> None:
        change_services.request_supersede(
            request=request, by=change_or_404(given["by"]), actor=self.actor
        )


class ChangeRebase(ChangeOperation):
    """Put the changes onto what is accepted today; approvals are void.

    `choices`: `kind:slug` → path → `"mine"`, `"theirs"` or `{"value": …}`, one for every conflict.
    """

    class Input(Given):
        choices = JsonObject(default=dict)

    def act(self, request: ChangeRequest, **given: Any) -> None:
        change_services.request_rebase(
            request=request, actor=self.actor, choices=_choices(given["choices"])
        )


def _choices(given: dict[str, Any]) -> dict[str, dict[str, Any]]:
    errors = {}
    for key, paths in given.items():
        if not isinstance(paths, dict):
            errors[f"choices.{key}"] = [_("A place with its choice is expected.")]
            continue
        for path, choice in paths.items():
            valued = isinstance(choice, dict) and set(choice) == {"value"}
            if choice not in ("mine", "theirs") and not valued:
                text = _("Expected is “mine”, “theirs” or an object with “value”.")
                errors[f"choices.{key}.{path}"] = [text]
    if errors:
        raise serializers.ValidationError(errors)
    return given


# -- going live ----------------------------------------------------------------------------------
class ChangePublish(ChangeOperation):
    """Publish an approved request: freeze it into a release that its entry environment runs.

    Everything is checked again. Production is reached by promoting the release afterwards.
    """

    scope = "release:publish"

    def act(self, request: ChangeRequest, **given: Any) -> None:
        change_services.request_publish(request=request, actor=self.actor)


class ChangeSchedule(ChangeOperation):
    """Publish an approved request at a moment; `zone` is the time zone it is meant in."""

    scope = "release:publish"

    class Input(Given):
        at = serializers.DateTimeField()
        zone = serializers.CharField(max_length=64, default="UTC")

    def act(self, request: ChangeRequest, **given: Any) -> None:
        change_services.request_schedule(request=request, actor=self.actor, **given)


class ChangeUnschedule(ChangeOperation):
    """Take a schedule back; the approvals stay."""

    scope = "release:publish"
    Input = None

    def act(self, request: ChangeRequest, **given: Any) -> None:
        change_services.request_unschedule(request=request, actor=self.actor)


class ChangeBreakGlass(ChangeOperation):
    """Emergency: publish at once and deploy without approvals.

    Needs a person and a reason; a second person ratifies it in time, or it is reverted.
    """

    scope = "release:publish"

    class Input(Given):
        reason = serializers.CharField(max_length=10_000)
        environment = EnvironmentField(default="production")

    def act(self, request: ChangeRequest, **given: Any) -> None:
        change_services.request_break_glass(request=request, actor=self.actor, **given)


class ChangeRatify(ChangeOperation):
    """Accept an emergency release afterwards: a second person who could have approved it."""

    scope = "change:review"

    class Input(Given):
        comment = serializers.CharField(default="", allow_blank=True, max_length=10_000)

    def act(self, request: ChangeRequest, **given: Any) -> None:
        change_services.break_glass_ratify(request=request, actor=self.actor, **given)


class ChangeRevert(ChangeOperation):
    """Take an emergency release back."""

    scope = "release:publish"

    class Input(Given):
        reason = serializers.CharField(max_length=500)

    def act(self, request: ChangeRequest, **given: Any) -> None:
        change_services.break_glass_revert(request=request, actor=self.actor, **given)
