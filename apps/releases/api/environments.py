"""Operations on environments: what each runs, deploying, promoting, rolling back, frozen times."""

import json
from typing import Any, ClassVar

from django.conf import settings
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.utils import timezone
from rest_framework import serializers

from apps.releases.api.inputs import Given, Moment, Nothing, Paging
from apps.releases.api.operations import Operation, Page, page_of
from apps.releases.api.releases import release_or_404
from apps.releases.api.shapes import EnvironmentShape, EventShape, FreezeShape, ReleaseRow, Shape
from apps.releases.change_models import ChangeRequest, FreezeWindow
from apps.releases.environments import services as environments
from apps.releases.evidence.history import environment_at, environment_events, environments_now
from apps.releases.models import Deployment


def environment_or_404(name: str) -> str:
    """Return ``name``, of the settings."""
    if name not in settings.RELEASE_ENVIRONMENTS:
        raise Http404
    return name


def environment_shown(name: str, deployment: Deployment | None) -> dict[str, Any]:
    """Return what ``name`` runs, for ``EnvironmentShape``."""
    names = list(settings.RELEASE_ENVIRONMENTS)
    following = names[names.index(name) + 1 :]
    window = environments.frozen_until(name, timezone.now())
    return {
        "name": name,
        "is_entry": name in settings.RELEASE_ENTRY_ENVIRONMENTS,
        "next": following[0] if following else None,
        "release": deployment.release if deployment else None,
        "since": deployment.since if deployment else None,
        "deployed_by": deployment.deployed_by if deployment else "",
        "in_flight": deployment.in_flight if deployment else "",
        "max_pin_hours": deployment.max_pin_hours if deployment else 0,
        "canary": deployment.canary if deployment else None,
        "canary_share": deployment.canary_share if deployment else 0,
        "canary_rules": json.loads(deployment.canary_rules) if deployment else {},
        "frozen_until": window.ends_at if window else None,
    }


class EnvironmentOperation(Operation):
    """Base of what changes an environment: it is shown afterwards."""

    scope = "release:deploy"
    tag = "environments"
    Input: ClassVar[Any] = Nothing
    Output = EnvironmentShape

    def answer(self, **given: Any) -> dict[str, Any]:
        name = environment_or_404(self.named["environment"])
        if "release" in given:
            given["release"] = release_or_404(given["release"])
        self.act(name, **given)
        return environment_shown(name, environments_now().get(name))

    def act(self, environment: str, **given: Any) -> None:
        """Do it."""
        raise NotImplementedError


class Reason(Given):
    reason = serializers.CharField(default="", allow_blank=True, max_length=500)


class Arrival(Reason):
    """Which release, and what becomes of conversations that are open when it arrives."""

    release = serializers.IntegerField(min_value=1)
    in_flight = serializers.ChoiceField(ChangeRequest.InFlight.choices, default="follow")
    max_pin_hours = serializers.IntegerField(min_value=1, max_value=2160, default=72)


class EnvironmentList(Operation):
    """The environments in order of promotion, and what each runs."""

    tag = "environments"

    class Output(Shape):
        environments = EnvironmentShape(many=True)

    def answer(self, **given: Any) -> dict[str, Any]:
        now = environments_now()
        return {
            "environments": [
                environment_shown(name, now.get(name)) for name in settings.RELEASE_ENVIRONMENTS
            ]
        }


class EnvironmentGet(Operation):
    """What an environment runs now."""

    tag = "environments"
    Output = EnvironmentShape

    def answer(self, **given: Any) -> dict[str, Any]:
        name = environment_or_404(self.named["environment"])
        return environment_shown(name, environments_now().get(name))


class EnvironmentThen(Operation):
    """What an environment ran at the moment `at` (now when it is left out)."""

    tag = "environments"
    Query = Moment

    class Output(Shape):
        environment = serializers.CharField()
        release = ReleaseRow(allow_null=True)
        canary = ReleaseRow(allow_null=True)
        canary_share = serializers.IntegerField()
        since = serializers.DateTimeField(allow_null=True)
        actor = serializers.CharField()
        verb = serializers.CharField()

    def answer(self, **given: Any) -> Any:
        name = environment_or_404(self.named["environment"])
        return environment_at(name, given.get("at") or timezone.now())


class EnvironmentHistory(Operation):
    """What an environment did, newest first."""

    tag = "environments"
    many = True
    Query = Paging
    Output = EventShape

    def answer(self, **given: Any) -> Page:
        name = environment_or_404(self.named["environment"])
        return page_of(environment_events(name), given)


class EnvironmentDeploy(EnvironmentOperation):
    """Let an entry environment run a release. Others are reached by promotion."""

    Input = Arrival

    def act(self, environment: str, **given: Any) -> None:
        environments.release_deploy(environment=environment, actor=self.actor, **given)


class EnvironmentPromote(EnvironmentOperation):
    """Let an environment run what the one before it runs: one hop, never by who edited it."""

    Input = Arrival

    def act(self, environment: str, **given: Any) -> None:
        environments.release_promote(environment=environment, actor=self.actor, **given)


class EnvironmentRollBack(EnvironmentOperation):
    """Return an environment to a release that it ran before; possible while it is frozen."""

    class Input(Given):
        release = serializers.IntegerField(min_value=1)
        reason = serializers.CharField(max_length=500)
        force = serializers.BooleanField(default=False)

    def act(self, environment: str, **given: Any) -> None:
        environments.release_roll_back(environment=environment, actor=self.actor, **given)


# -- canary --------------------------------------------------------------------------------------
class CanaryStart(EnvironmentOperation):
    """Let a release answer a share of an environment's conversations. `rules`: when it stops."""

    class Input(Reason):
        class Rules(Given):
            min_turns = serializers.IntegerField(required=False)
            max_error_rate = serializers.FloatField(required=False, allow_null=True)
            max_block_rate = serializers.FloatField(required=False, allow_null=True)
            max_cost_per_turn = serializers.FloatField(required=False, allow_null=True)

        release = serializers.IntegerField(min_value=1)
        share = serializers.IntegerField(min_value=1, max_value=99)
        rules = Rules(required=False)

    def act(self, environment: str, **given: Any) -> None:
        environments.canary_start(environment=environment, actor=self.actor, **given)


class CanaryChange(EnvironmentOperation):
    """Let the canary answer another share."""

    class Input(Reason):
        share = serializers.IntegerField(min_value=1, max_value=99)

    def act(self, environment: str, **given: Any) -> None:
        environments.canary_change(environment=environment, actor=self.actor, **given)


class CanaryFinish(EnvironmentOperation):
    """Let the canary take over."""

    Input = Reason

    def act(self, environment: str, **given: Any) -> None:
        environments.canary_finish(environment=environment, actor=self.actor, **given)


class CanaryStop(EnvironmentOperation):
    """Stop the canary; its conversations go on with the release that runs beside it."""

    class Input(Given):
        reason = serializers.CharField(max_length=500)

    def act(self, environment: str, **given: Any) -> None:
        environments.canary_stop(environment=environment, actor=self.actor, **given)


# -- frozen times --------------------------------------------------------------------------------
class FreezeList(Operation):
    """Times in which nothing is published or promoted into an environment, latest first."""

    tag = "environments"
    many = True
    Query = Paging
    Output = FreezeShape

    def answer(self, **given: Any) -> Page:
        name = environment_or_404(self.named["environment"])
        windows = FreezeWindow.objects.filter(environment=name)
        return page_of(windows.order_by("-starts_at", "-pk"), given)


class FreezeAdd(Operation):
    """Freeze an environment for a time."""

    scope = "release:deploy"
    tag = "environments"
    status = 201
    Output = FreezeShape

    class Input(Given):
        starts_at = serializers.DateTimeField()
        ends_at = serializers.DateTimeField()
        reason = serializers.CharField(max_length=500)

    def answer(self, **given: Any) -> FreezeWindow:
        name = environment_or_404(self.named["environment"])
        return environments.freeze_add(environment=name, actor=self.actor, **given)


class FreezeEnd(Operation):
    """End a frozen time now."""

    scope = "release:deploy"
    tag = "environments"
    Input = Nothing
    Output = FreezeShape

    def answer(self, **given: Any) -> FreezeWindow:
        name = environment_or_404(self.named["environment"])
        window = get_object_or_404(FreezeWindow, environment=name, pk=self.named["window"])
        return environments.freeze_end(window=window, actor=self.actor)
