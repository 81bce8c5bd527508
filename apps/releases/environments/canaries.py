"""A canary: a release that answers a share of an environment's conversations, and stops by itself.

Which conversations is ``conversations.choosing``'s to say: the same ones, for as long as it lasts, and
more of them when the share rises. ``canaries_watch`` is a chore (``settings.TENANT_CHORES``).
"""

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from apps.releases.authority import authority, authority_held
from apps.releases.change_models import DeploymentEvent
from apps.releases.content import FieldError, InvalidContent, field_errors
from apps.releases.environments import in_flight as conversations
from apps.releases.environments.deploying import deployment_find, deployment_write
from apps.releases.environments.emergencies import emergency_check
from apps.releases.environments.in_flight import TurnRates
from apps.releases.environments.rules import (
    EnvironmentRefused,
    bound_check,
    duty_check,
    editor_check,
    environment_checked,
    frozen_check,
    gates_check,
    hop_check,
    reason_checked,
    reason_errors,
    terms_checked,
)
from apps.releases.models import Deployment, Release
from apps.releases.services import configuration_locked
from apps.runtime.canonical import canonical_json
from apps.tenants.scope import tenant_transaction

logger = logging.getLogger(__name__)
Verb = DeploymentEvent.Verb
WATCH = "system:canaries_watch"


class CanaryRefused(EnvironmentRefused):
    """There is no canary to change, or one runs already, or it would be what runs anyway."""

    code = "canary_refused"


class CanaryRules(BaseModel):
    """When a canary stops by itself: as soon as one rate is above its limit, of at least
    ``min_turns`` settled turns. ``None``: that rate does not stop it."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    min_turns: int = Field(20, ge=1, le=1_000_000)
    max_error_rate: float | None = Field(0.05, ge=0, le=1)
    max_block_rate: float | None = Field(0.20, ge=0, le=1)
    max_cost_per_turn: float | None = Field(None, ge=0, le=1_000_000)

    def broken_by(self, rates: TurnRates) -> str:
        """Return the sentence that says which limit ``rates`` are above, "" for none."""
        if rates.turns < self.min_turns:
            return ""
        found = [
            (_("error rate"), rates.failed / rates.turns, self.max_error_rate),
            (_("block rate"), rates.blocked / rates.turns, self.max_block_rate),
            (
                _("cost per turn"),
                None if rates.cost_usd is None else rates.cost_usd / rates.turns,
                self.max_cost_per_turn,
            ),
        ]
        for name, value, limit in found:
            if value is not None and limit is not None and value > limit:
                return _("Stopped by itself: %(rate)s %(value)s, limit %(limit)s, of %(turns)s turns.") % {
                    "rate": name,
                    "value": f"{value:.4g}",
                    "limit": f"{limit:.4g}",
                    "turns": rates.turns,
                }  # fmt: skip
        return ""


def canary_rules_read(rules: Mapping[str, Any] | None) -> CanaryRules:
    """Return ``rules`` checked. Raises ``InvalidContent`` that names each field."""
    try:
        return CanaryRules.model_validate(dict(rules or {}))
    except ValidationError as error:
        raise InvalidContent(field_errors(error, prefix="rules")) from None


def canary_start(
    *,
    release: Release,
    environment: str,
    share: int,
    actor: str,
    rules: Mapping[str, Any] | None = None,
    reason: str = "",
    in_flight: str | None = None,
    max_pin_hours: int | None = None,
) -> Deployment:
    """Let ``release`` answer ``share`` (1–99) per cent of the conversations of ``environment``.

    The same hop, duties, windows and bindings as for all of them: to an entry environment any
    release, elsewhere what the environment before runs. ``rules``: see ``CanaryRules``.
    ``environments.in_flight`` None: as it is. Raises ``CanaryRefused`` and what ``release_promote`` raises.
    """
    environment_checked(environment)
    errors = _share_errors(share) + reason_errors(reason)
    if errors:
        raise InvalidContent(errors)
    valid = canary_rules_read(rules)
    with tenant_transaction():
        configuration_locked()
        release = Release.objects.defer("manifest").get(pk=release.pk)
        _arrival_check(release, environment, actor)
        deployment = deployment_find(environment)
        if deployment is None or deployment.release_id == release.pk:
            raise CanaryRefused(_("A canary runs beside another release."))
        if deployment.canary is not None:
            raise CanaryRefused(
                _("Release #%(number)s is a canary in %(environment)s already; stop or finish it.")
                % {"number": deployment.canary.number, "environment": environment}
            )
        bound_check(release, environment)
        now = timezone.now()
        deployment.canary, deployment.canary_share = release, share
        deployment.canary_rules = canonical_json(valid.model_dump(mode="json"))
        deployment.canary_started_at = now
        deployment.in_flight = in_flight or deployment.in_flight
        deployment.max_pin_hours = max_pin_hours or deployment.max_pin_hours
        terms_checked(in_flight=deployment.in_flight, max_pin_hours=deployment.max_pin_hours)
        return deployment_write(
            deployment, verb=Verb.CANARY_START, actor=actor, reason=reason, now=now
        )


def canary_change(*, environment: str, share: int, actor: str, reason: str = "") -> Deployment:
    """Let the canary answer another share. Less is possible in a frozen window, more is not.

    Raises ``CanaryRefused``, ``NotResponsible``, ``Frozen``, ``InvalidContent``.
    """
    environment_checked(environment)
    errors = _share_errors(share) + reason_errors(reason)
    if errors:
        raise InvalidContent(errors)
    with tenant_transaction():
        configuration_locked()
        deployment, canary = _running(environment)
        if share > deployment.canary_share:
            editor_check(actor, canary, environment)
            frozen_check(environment)
        duty_check(actor, environment)
        if share == deployment.canary_share:
            return deployment
        deployment.canary_share = share
        return deployment_write(
            deployment, verb=Verb.CANARY_CHANGE, actor=actor, reason=reason, now=timezone.now()
        )


def canary_finish(*, environment: str, actor: str, reason: str = "") -> Deployment:
    """Let the canary answer everybody: it becomes what the environment runs.

    Open conversations by the environment's in-flight policy. Raises ``CanaryRefused``,
    ``HopSkipped`` when the environment before has moved on, ``NotResponsible``, ``Frozen``.
    """
    environment_checked(environment)
    errors = reason_errors(reason)
    if errors:
        raise InvalidContent(errors)
    with tenant_transaction():
        configuration_locked()
        deployment, canary = _running(environment)
        _arrival_check(canary, environment, actor)
        bound_check(canary, environment)
        deployment.release, deployment.since = canary, timezone.now()
        _canary_cleared(deployment)
        return deployment_write(
            deployment,
            verb=Verb.CANARY_FINISH,
            actor=actor,
            reason=reason,
            now=deployment.since,
        )


def canary_stop(*, environment: str, actor: str, reason: str) -> Deployment:
    """End the canary: its conversations go back to what runs with their next message, pinned or not.

    Possible at any time. Raises ``CanaryRefused``, ``NotResponsible``, ``InvalidContent`` without a
    reason.
    """
    environment_checked(environment)
    reason_checked(reason)
    with tenant_transaction():
        configuration_locked()
        deployment, canary = _running(environment)
        duty_check(actor, environment)
        return _stopped(deployment, canary.pk, actor, reason)


def canaries_watch(now: datetime) -> int:
    """Stop every canary of the current tenant that is above one of its limits; return how many."""
    with tenant_transaction():
        running = list(
            Deployment.objects.filter(canary__isnull=False).values_list(
                "environment", "canary_id", "canary_rules", "canary_started_at"
            )
        )
    return sum(_watched(*row) for row in running)


def _watched(environment: str, canary_id: UUID, rules: str, since: datetime | None) -> int:
    rates = conversations.turn_rates(release_id=canary_id, environment=environment, since=since)
    reason = CanaryRules.model_validate_json(rules).broken_by(rates)
    if not reason:
        return 0
    with tenant_transaction(), authority("a canary's own rules"):
        configuration_locked()
        deployment = deployment_find(environment)
        # Somebody may have been quicker: stopped it, or started it anew.
        if deployment is None or deployment.canary_id != canary_id:
            return 0
        if deployment.canary_started_at != since:
            return 0
        _stopped(deployment, canary_id, WATCH, reason, rates)
    logger.warning("canary %s in %s stopped: %s", canary_id, environment, reason)
    return 1


def _stopped(
    deployment: Deployment,
    canary_id: UUID,
    actor: str,
    reason: str,
    rates: TurnRates | None = None,
) -> Deployment:
    assert deployment.canary is not None
    detail: dict[str, Any] = {"stopped": deployment.canary.number}
    if rates is not None:
        detail["rates"] = {
            "turns": rates.turns, "failed": rates.failed, "blocked": rates.blocked,
            "cost_usd": rates.cost_usd,
        }  # fmt: skip
    _canary_cleared(deployment)
    return deployment_write(
        deployment,
        verb=Verb.CANARY_STOP,
        actor=actor,
        reason=reason,
        now=timezone.now(),
        taken_back=[canary_id],
        detail=detail,
    )


def _canary_cleared(deployment: Deployment) -> None:
    deployment.canary, deployment.canary_share = None, 0
    deployment.canary_rules, deployment.canary_started_at = "{}", None


def _running(environment: str) -> tuple[Deployment, Release]:
    deployment = deployment_find(environment)
    if deployment is None or deployment.canary is None:
        raise CanaryRefused(_("No canary runs in %(environment)s.") % {"environment": environment})
    return deployment, deployment.canary


def _arrival_check(release: Release, environment: str, actor: str) -> None:
    if authority_held():
        frozen_check(environment)
        return
    if environment in settings.RELEASE_ENTRY_ENVIRONMENTS:
        duty_check(actor, environment)
    else:
        hop_check(release, environment)
        emergency_check(release)
        gates_check(release)
        editor_check(actor, release, environment)
    frozen_check(environment)


def _share_errors(share: int) -> list[FieldError]:
    if type(share) is int and 1 <= share <= 99:
        return []
    return [{"field": "share", "message": _("A canary's share is 1 to 99 per cent.")}]
