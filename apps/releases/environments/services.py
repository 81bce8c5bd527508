"""Writes of environments: what each runs, and its frozen times. ``canaries`` and ``environments.binding_services``
hold the rest; all of it is found here.

All inside a tenant scope; every function is one transaction: the change, its audit entry, its event.
``actor`` is a principal's name. Publish freezes, **deploy** lets an entry environment run a release,
**promote** moves it one hop, **roll back** returns to what ran before. Nothing else changes what an
environment runs, except an emergency (``changes.services.request_break_glass``).
"""

from datetime import datetime

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.releases.authority import authority_held
from apps.releases.change_models import DeploymentEvent, FreezeWindow
from apps.releases.changes.events import ChangeEvent, change_told
from apps.releases.content import FieldError, InvalidContent
from apps.releases.environments.binding_services import BindingInUse as BindingInUse
from apps.releases.environments.binding_services import BindingNeedsApproval as BindingNeedsApproval
from apps.releases.environments.binding_services import InvalidBinding as InvalidBinding
from apps.releases.environments.binding_services import ProposalRefused as ProposalRefused
from apps.releases.environments.binding_services import binding_decide as binding_decide
from apps.releases.environments.binding_services import binding_propose as binding_propose
from apps.releases.environments.binding_services import binding_remove as binding_remove
from apps.releases.environments.binding_services import binding_set as binding_set
from apps.releases.environments.binding_services import binding_withdraw as binding_withdraw
from apps.releases.environments.canaries import CanaryRefused as CanaryRefused
from apps.releases.environments.canaries import canary_change as canary_change
from apps.releases.environments.canaries import canary_finish as canary_finish
from apps.releases.environments.canaries import canary_start as canary_start
from apps.releases.environments.canaries import canary_stop as canary_stop
from apps.releases.environments.deploying import TAKING_BACK, deployment_find, deployment_write
from apps.releases.environments.deploying import requests_arrived as requests_arrived
from apps.releases.environments.emergencies import EmergencyNotAccepted as EmergencyNotAccepted
from apps.releases.environments.emergencies import emergency_check
from apps.releases.environments.rules import EnvironmentRefused as EnvironmentRefused
from apps.releases.environments.rules import Frozen as Frozen
from apps.releases.environments.rules import HopSkipped as HopSkipped
from apps.releases.environments.rules import NotResponsible as NotResponsible
from apps.releases.environments.rules import UnboundBindings as UnboundBindings
from apps.releases.environments.rules import (
    bound_check,
    duty_check,
    editor_check,
    environment_checked,
    gates_check,
    hop_check,
    reason_checked,
    reason_errors,
    terms_checked,
)
from apps.releases.environments.rules import frozen_check as frozen_check
from apps.releases.environments.rules import frozen_until as frozen_until
from apps.releases.models import Deployment, Release
from apps.releases.services import configuration_locked
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import UnknownEnvironment as UnknownEnvironment
from apps.tenants.services import audit_append

Verb = DeploymentEvent.Verb
_AT_ANY_TIME = (*TAKING_BACK, Verb.BREAK_GLASS)


class NeverRan(EnvironmentRefused):
    """Rolled back to a release that the environment never ran."""

    code = "never_ran"


def release_deploy(
    *,
    release: Release,
    environment: str,
    actor: str,
    in_flight: str = "follow",
    max_pin_hours: int = 72,
    reason: str = "",
    verb: str = "deploy",
) -> Deployment:
    """Let ``environment`` run ``release`` from the very next message.

    ``environments.in_flight`` and ``max_pin_hours`` are for conversations that are open then: see ``pointers``. A
    canary that runs beside it ends. ``verb``: ``break_glass`` and ``revert`` are deployments past
    windows, under an authority of their own. Deploying an older release than the current one is a
    rollback, and audited as one; the one that runs already, on the same terms, changes nothing.

    Without an authority only an entry environment is deployed to, by somebody with a duty there.
    Raises ``HopSkipped``, ``NotResponsible``, ``Frozen``, ``UnboundBindings`` when the environment
    lacks an address or credential the release names, ``CorruptRelease`` when the stored bytes have
    changed, ``UnknownEnvironment``, ``InvalidContent``.
    """
    environment_checked(environment)
    terms_checked(in_flight=in_flight, max_pin_hours=max_pin_hours, reason=reason)
    with tenant_transaction():
        configuration_locked()
        release = Release.objects.defer("manifest").get(pk=release.pk)
        _entry_check(release, environment, verb)
        duty_check(actor, environment)
        if verb not in _AT_ANY_TIME:
            frozen_check(environment)
        return _arrive(
            release,
            environment,
            verb=verb,
            actor=actor,
            reason=reason,
            in_flight=in_flight,
            max_pin_hours=max_pin_hours,
        )


def release_promote(
    *,
    release: Release,
    environment: str,
    actor: str,
    in_flight: str = "follow",
    max_pin_hours: int = 72,
    reason: str = "",
) -> Deployment:
    """Let ``environment`` run what the environment one hop before it runs now.

    Raises ``HopSkipped``, ``EmergencyNotAccepted``, ``Frozen``, ``NotResponsible`` when the actor holds no duty for it or
    edited what would arrive, and what ``release_deploy`` raises of the release itself.
    """
    environment_checked(environment)
    terms_checked(in_flight=in_flight, max_pin_hours=max_pin_hours, reason=reason)
    with tenant_transaction():
        configuration_locked()
        release = Release.objects.defer("manifest").get(pk=release.pk)
        hop_check(release, environment)
        emergency_check(release)
        gates_check(release)
        editor_check(actor, release, environment)
        frozen_check(environment)
        return _arrive(
            release,
            environment,
            verb=Verb.PROMOTE,
            actor=actor,
            reason=reason,
            in_flight=in_flight,
            max_pin_hours=max_pin_hours,
        )


def release_roll_back(
    *, release: Release, environment: str, actor: str, reason: str, force: bool = False
) -> Deployment:
    """Return ``environment`` to a ``release`` that it ran before; a canary there ends.

    Possible in a frozen window, and for whoever edited it: it is the safe way. Conversations on what
    is taken back go on with ``release`` at their next message, pinned or not; those pinned to others
    stay. ``force``: everybody moves, messages that wait too. Raises ``NeverRan``,
    ``EmergencyNotAccepted`` for a release with an emergency that was taken back,
    ``NotResponsible``, ``InvalidContent`` without a reason, ``UnboundBindings``, ``CorruptRelease``.
    """
    environment_checked(environment)
    reason_checked(reason)
    with tenant_transaction():
        configuration_locked()
        release = Release.objects.defer("manifest").get(pk=release.pk)
        duty_check(actor, environment)
        if not _ran_before(release, environment):
            raise NeverRan(
                _("Release #%(number)s never ran in %(environment)s, so nothing rolls back to it.")
                % {"number": release.number, "environment": environment}
            )
        emergency_check(release, open_ones=False)
        deployment = deployment_find(environment)
        assert deployment is not None
        return _arrive(
            release,
            environment,
            verb=Verb.ROLL_BACK,
            actor=actor,
            reason=reason,
            in_flight="force" if force else deployment.in_flight,
            max_pin_hours=deployment.max_pin_hours,
        )


def _entry_check(release: Release, environment: str, verb: str) -> None:
    """Raise ``HopSkipped`` unless a release may be deployed there, not promoted."""
    if authority_held():
        return
    if verb != Verb.DEPLOY or environment not in settings.RELEASE_ENTRY_ENVIRONMENTS:
        raise HopSkipped(
            _(
                "Release #%(number)s is not deployed to %(environment)s: it is promoted there, one "
                "hop at a time. Deployed to: %(entries)s."
            )
            % {
                "number": release.number,
                "environment": environment,
                "entries": ", ".join(settings.RELEASE_ENTRY_ENVIRONMENTS),
            }
        )


def _ran_before(release: Release, environment: str) -> bool:
    ran = DeploymentEvent.objects.filter(environment=environment, release_id=release.pk)
    # What was deployed before there was a history.
    runs = Deployment.objects.filter(environment=environment, release_id=release.pk)
    older = DeploymentEvent.objects.filter(environment=environment, previous_id=release.pk)
    return bool(ran.exists() or runs.exists() or older.exists())


def _arrive(
    release: Release,
    environment: str,
    *,
    verb: str,
    actor: str,
    reason: str,
    in_flight: str,
    max_pin_hours: int,
) -> Deployment:
    bound_check(release, environment)
    deployment = deployment_find(environment) or Deployment(environment=environment)
    previous = deployment.release if deployment.pk else None
    terms = (release.pk, None, in_flight, max_pin_hours)
    if previous is not None and terms == (
        deployment.release_id,
        deployment.canary_id,
        deployment.in_flight,
        deployment.max_pin_hours,
    ):
        return deployment
    taken_back = [pk for pk in (deployment.release_id, deployment.canary_id) if pk]
    if verb == Verb.DEPLOY and previous is not None and release.number < previous.number:
        verb = Verb.ROLL_BACK
        taken_back = []
    now = timezone.now()
    if previous is None or previous.pk != release.pk:
        deployment.since = now
    deployment.release = release
    deployment.in_flight, deployment.max_pin_hours = in_flight, max_pin_hours
    deployment.canary, deployment.canary_share = None, 0
    deployment.canary_rules, deployment.canary_started_at = "{}", None
    return deployment_write(
        deployment,
        verb=verb,
        actor=actor,
        reason=reason,
        now=now,
        taken_back=taken_back if verb in TAKING_BACK else (),
    )


# -- frozen times -------------------------------------------------------------------------------
def freeze_add(
    *, environment: str, starts_at: datetime, ends_at: datetime, reason: str, actor: str
) -> FreezeWindow:
    """Freeze ``environment`` from ``starts_at`` to ``ends_at`` (both with a time zone).

    Windows may overlap: it is frozen while one of them lasts. Raises ``InvalidContent``,
    ``NotResponsible``, ``UnknownEnvironment``.
    """
    environment_checked(environment)
    errors = _window_errors(starts_at, ends_at) + reason_errors(reason, required=True)
    if errors:
        raise InvalidContent(errors)
    with tenant_transaction():
        duty_check(actor, environment)
        window: FreezeWindow = FreezeWindow.objects.create(
            environment=environment,
            starts_at=starts_at,
            ends_at=ends_at,
            reason=reason,
            created_by=actor,
        )
        _frozen_told(window, actor, ended=False)
        return window


def freeze_end(*, window: FreezeWindow, actor: str) -> FreezeWindow:
    """End ``window`` now; one that has not begun never begins. Raises ``NotResponsible``."""
    with tenant_transaction():
        window = FreezeWindow.objects.select_for_update().get(pk=window.pk)
        duty_check(actor, window.environment)
        now = timezone.now()
        if window.ends_at <= now:
            return window
        window.ends_at = max(now, window.starts_at) if window.starts_at <= now else window.starts_at
        window.save(update_fields=["ends_at"])
        _frozen_told(window, actor, ended=True)
        return window


def _window_errors(starts_at: datetime, ends_at: datetime) -> list[FieldError]:
    naive = [
        name
        for name, moment in (("starts_at", starts_at), ("ends_at", ends_at))
        if timezone.is_naive(moment)
    ]
    if naive:
        return [{"field": name, "message": _("Give the time with its zone.")} for name in naive]
    if ends_at <= starts_at:
        return [{"field": "ends_at", "message": _("It ends after it starts.")}]
    if ends_at <= timezone.now():
        return [{"field": "ends_at", "message": _("It ends in the future.")}]
    return []


def _frozen_told(window: FreezeWindow, actor: str, *, ended: bool) -> None:
    facts = {
        "starts_at": window.starts_at.isoformat(),
        "ends_at": window.ends_at.isoformat(),
        "reason": window.reason,
        "ended": ended,
    }
    audit_append(
        actor=actor,
        action="environment.frozen",
        entity=f"environment:{window.environment}",
        detail=facts,
    )
    change_told(
        ChangeEvent(
            event="environment.frozen",
            actor=actor,
            subject=str(window),
            environment=window.environment,
            detail=facts,
        )
    )
