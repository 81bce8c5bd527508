"""Who may change an environment, when, and by which way; why not, in a sentence. Reads only.

For ``environments.services``, ``canaries`` and ``environments.binding_services``, which hold the tenant's
configuration lock while they ask, so that what was checked still holds when it is written.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from apps.releases.authority import authority_held, is_setting_up
from apps.releases.change_models import ChangeRequest, FreezeWindow
from apps.releases.changes.policy import Requirement, change_policy
from apps.releases.changes.refusals import ChangeRefused
from apps.releases.content import FieldError, InvalidContent
from apps.releases.environments.pointers import IN_FLIGHT
from apps.releases.freezing import bindings_missing, manifest_stored
from apps.releases.gates import gate_results_read
from apps.releases.models import Deployment, Release
from apps.releases.selectors import release_load
from apps.tenants.scope import current_tenant_id
from apps.tenants.services import UnknownEnvironment

MOST_PIN_HOURS = 24 * 90
MOST_REASON = 500


class EnvironmentRefused(ChangeRefused):
    """Base of why an environment does not change: the sentence is for the person who tried."""

    code = "environment_refused"


class Frozen(EnvironmentRefused):
    """The environment is frozen now. ``window`` says until when and why."""

    code = "frozen"

    def __init__(self, window: FreezeWindow) -> None:
        self.window = window
        until = timezone.localtime(window.ends_at)
        super().__init__(
            _(
                "%(environment)s is frozen until %(until)s: %(reason)s. Rolling back and an "
                "emergency deployment stay possible."
            )
            % {
                "environment": window.environment,
                "until": f"{date_format(until, 'SHORT_DATETIME_FORMAT')} {until.tzname()}",
                "reason": window.reason,
            }
        )


class HopSkipped(EnvironmentRefused):
    """A release goes to an environment that it may only reach by promotion from the one before."""

    code = "hop_skipped"


class GatesBlock(EnvironmentRefused):
    """The release was made by taking an emergency back, and a gate has something against it."""

    code = "gates_block"


class NotResponsible(EnvironmentRefused):
    """The actor holds none of the duties that count here, or edited what would be deployed."""

    code = "not_responsible"


class UnboundBindings(RuntimeError):
    """The environment lacks bindings a release needs: ``missing`` has {kind, slug, path, what, name}."""

    code = "unbound_bindings"

    def __init__(self, environment: str, missing: Iterable[Mapping[str, str]]) -> None:
        self.environment = environment
        self.missing = [dict(entry) for entry in missing]
        names = sorted({f"{entry['what']} {entry['name']}" for entry in self.missing})
        super().__init__(
            _("Not bound in %(environment)s: %(names)s.")
            % {"environment": environment, "names": ", ".join(names)}
        )


# -- what is given ------------------------------------------------------------------------------
def environment_checked(environment: str) -> None:
    """Raise ``UnknownEnvironment`` unless it is one of ``settings.RELEASE_ENVIRONMENTS``."""
    if environment not in settings.RELEASE_ENVIRONMENTS:
        raise UnknownEnvironment(
            _("There is no environment %(name)s; known: %(known)s.")
            % {"name": environment, "known": ", ".join(settings.RELEASE_ENVIRONMENTS)}
        )


def terms_checked(*, in_flight: str, max_pin_hours: int, reason: str = "") -> None:
    """Raise ``InvalidContent`` unless these are an in-flight policy, a pin age and a short reason."""
    errors: list[FieldError] = []
    if in_flight not in IN_FLIGHT:
        errors.append({
            "field": "in_flight",
            "message": _("Open conversations: one of %(known)s.") % {"known": ", ".join(IN_FLIGHT)},
        })  # fmt: skip
    if type(max_pin_hours) is not int or not 1 <= max_pin_hours <= MOST_PIN_HOURS:
        errors.append({
            "field": "max_pin_hours",
            "message": _("The longest pin is 1 to %(most)s hours.") % {"most": MOST_PIN_HOURS},
        })  # fmt: skip
    errors += reason_errors(reason)
    if errors:
        raise InvalidContent(errors)


def reason_errors(
    reason: str, *, required: bool = False, field: str = "reason"
) -> list[FieldError]:
    """Return what is wrong with a reason: missing where it is ``required``, or too long."""
    if required and not reason.strip():
        return [{"field": field, "message": _("Say why.")}]
    if len(reason) > MOST_REASON or "\x00" in reason:
        return [{"field": field, "message": _("At most 500 characters.")}]
    return []


def reason_checked(reason: str, *, field: str = "reason") -> None:
    """Raise ``InvalidContent`` unless there is a reason, and a short one."""
    errors = reason_errors(reason, required=True, field=field)
    if errors:
        raise InvalidContent(errors)


# -- who may, and when --------------------------------------------------------------------------
def frozen_until(environment: str, now: datetime) -> FreezeWindow | None:
    """Return the window that freezes ``environment`` at ``now``, of several the one that ends last."""
    windows = FreezeWindow.objects.filter(
        environment=environment, starts_at__lte=now, ends_at__gt=now
    )
    found: FreezeWindow | None = windows.order_by("-ends_at").first()
    return found


def frozen_check(environment: str) -> None:
    """Raise ``Frozen`` when ``environment`` is frozen now. The world of a test or a first
    configuration is set up at any time."""
    window = None if is_setting_up() else frozen_until(environment, timezone.now())
    if window is not None:
        raise Frozen(window)


def environment_before(environment: str) -> str:
    """Return the environment one hop before, "" when there is none."""
    place = settings.RELEASE_ENVIRONMENTS.index(environment)
    return settings.RELEASE_ENVIRONMENTS[place - 1] if place else ""


def hop_check(release: Release, environment: str) -> None:
    """Raise ``HopSkipped`` unless the environment before runs ``release`` now, for everybody."""
    before = environment_before(environment)
    if not before:
        raise HopSkipped(
            _("Nothing comes before %(environment)s: a release is deployed there.")
            % {"environment": environment}
        )
    if not Deployment.objects.filter(environment=before, release_id=release.pk).exists():
        raise HopSkipped(
            _(
                "Release #%(number)s reaches %(environment)s from %(before)s, one hop at a time, "
                "and %(before)s does not run it now (a canary does not count)."
            )
            % {"number": release.number, "environment": environment, "before": before}
        )


def gates_check(release: Release) -> None:
    """Raise ``GatesBlock`` when a finding of ``release`` blocks: a request's was not published with
    one, but what is left when an emergency is taken back is made whatever the gates say."""
    against = [found for found in gate_results_read(release.gates) if found["level"] == "block"]
    if against and not authority_held():
        text = _("Release #%(number)s does not pass its gates: %(why)s Publish a request first.")
        why = " ".join(found["message"] for found in against[:3])
        raise GatesBlock(text % {"number": release.number, "why": why})


def duty_check(actor: str, environment: str) -> None:
    """Raise ``NotResponsible`` unless ``actor`` holds a duty that acts on ``environment``.

    An act that was checked elsewhere (``authority``) is not asked again.
    """
    if not authority_held():
        duty_required(actor, environment, change_policy().deployment_requirement(environment))


def duty_required(
    actor: str, environment: str, requirement: Requirement, *, not_for: Iterable[str] = ()
) -> None:
    """Raise ``NotResponsible`` unless ``actor`` holds one of the duties of ``requirement``.

    A duty held on behalf of one of ``not_for`` counts for nothing: nobody gets round a second
    person by delegating to one.
    """
    barred = {person for name in not_for for person in (name, name.removeprefix("user:"))}
    held = {
        duty.duty
        for duty in change_policy().duties_of(actor)
        if not duty.on_behalf_of or duty.on_behalf_of not in barred
    }
    if not held.intersection(requirement.duties):
        raise NotResponsible(
            _("%(environment)s is changed by somebody with one of the duties: %(duties)s.")
            % {
                "environment": environment,
                "duties": ", ".join(requirement.duties) or _("none is accountable for it"),
            }
        )


def editor_check(actor: str, release: Release, environment: str) -> None:
    """Raise ``NotResponsible`` when ``actor`` edited something that ``release`` would bring anew.

    That is every request that was published into ``release`` or one before it, and not into what
    the environment runs already. A duty held for such an editor does not help either.
    """
    if authority_held():
        return
    editors = {
        person
        for text in requests_arriving(release, environment).values_list("editors", flat=True)
        for person in json.loads(text)
    }
    if actor in editors:
        raise NotResponsible(
            _("You edited what would reach %(environment)s: somebody else has to let it in.")
            % {"environment": environment}
        )
    duty_required(
        actor, environment, change_policy().deployment_requirement(environment), not_for=editors
    )


def ancestry(release_id: UUID | None) -> set[UUID]:
    """Return the ids of a release and of all it descends from; none of ``None``."""
    parents = dict(Release.objects.values_list("pk", "parent_id"))
    found: set[UUID] = set()
    while release_id is not None and release_id not in found:
        found.add(release_id)
        release_id = parents.get(release_id)
    return found


def requests_arriving(release: Release, environment: str) -> Any:
    """Return the published requests that ``release`` would bring to ``environment``.

    Those of the release itself too when it is not what runs: it may be one that was made before and
    that a later request came back to.
    """
    runs = Deployment.objects.filter(environment=environment).values_list("release_id", flat=True)
    current = runs.first()
    new = ancestry(release.pk) - ancestry(current)
    new |= {release.pk} - {current}
    return ChangeRequest.objects.filter(release_id__in=new)


def bound_check(release: Release, environment: str) -> None:
    """Raise ``CorruptRelease`` or ``UnboundBindings`` unless ``release`` can run there."""
    manifest_stored(release)
    missing = bindings_missing(release_load(current_tenant_id(), release.pk), environment)
    if missing:
        raise UnboundBindings(environment, missing)
