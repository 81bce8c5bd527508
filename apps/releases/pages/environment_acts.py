"""What a person may do on an environment's page: one function an act, each calls one service.

An act returns the sentence to tell. Whether it is allowed is the service's to say; the permission
beside it only keeps away those who never may.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest
from django.utils.translation import gettext as _

from apps.releases.change_models import BindingProposal, FreezeWindow
from apps.releases.changes.refusals import ChangeRefused, IncompleteRequest
from apps.releases.content import InvalidContent
from apps.releases.environments import services
from apps.releases.freezing import CorruptRelease
from apps.releases.models import Release
from apps.releases.pages.environment_forms import (
    ArriveForm,
    CanaryForm,
    DecideForm,
    FreezeForm,
    OptionalReasonForm,
    ProposalForm,
    ReasonForm,
    RollBackForm,
    ShareForm,
)
from apps.tenants.services import UnknownEnvironment
from apps.tenants.tenant_admin import actor_of

REFUSALS = (
    ChangeRefused,
    InvalidContent,
    services.UnboundBindings,
    services.InvalidBinding,
    services.BindingInUse,
    CorruptRelease,
    UnknownEnvironment,
)
"""What the services may answer: shown on the page, with nothing done."""

DEPLOY, BIND, REVIEW = "release.deploy", "bindings.change", "changes.review"


@dataclass(frozen=True)
class Acting:
    """Who does something with which environment (and release), and what they typed."""

    http: HttpRequest
    environment: str
    release: Release | None = None

    @property
    def actor(self) -> str:
        return actor_of(self.http)

    def typed(self, form_class: type[forms.Form]) -> Any:
        """Return a checked form; raise ``IncompleteRequest`` with what is wrong in it."""
        form = form_class(self.http.POST)
        if not form.is_valid():
            raise IncompleteRequest(
                {
                    name: f"{form[name].label}: {' '.join(map(str, errors))}"
                    for name, errors in form.errors.items()
                }
            )
        return form

    def row(self, model: Any) -> Any:
        """Return the row of this environment that the POSTed ``key`` names; 404 for any other."""
        key = self.http.POST.get("key", "")
        found = None
        if key.isascii() and key.isdigit() and len(key) < 19:
            found = model.objects.filter(pk=key, environment=self.environment).first()
        if found is None:
            raise Http404
        return found

    def arriving(self) -> Release:
        """Return the release that the page is about; 404 on a page without one."""
        if self.release is None:
            raise Http404
        return self.release


def _runs(act: Acting) -> str:
    assert act.release is not None
    text = _("Release #%(number)s runs in %(environment)s from the next message on.")
    return text % {"number": act.release.number, "environment": act.environment}


def _deploy(act: Acting) -> str:
    typed = act.typed(ArriveForm).cleaned_data
    services.release_deploy(
        release=act.arriving(), environment=act.environment, actor=act.actor, **typed
    )
    return _runs(act)


def _promote(act: Acting) -> str:
    typed = act.typed(ArriveForm).cleaned_data
    services.release_promote(
        release=act.arriving(), environment=act.environment, actor=act.actor, **typed
    )
    return _runs(act)


def _roll_back(act: Acting) -> str:
    typed = act.typed(RollBackForm).cleaned_data
    services.release_roll_back(
        release=act.arriving(), environment=act.environment, actor=act.actor, **typed
    )
    return _runs(act)


def _canary_start(act: Acting) -> str:
    form = act.typed(CanaryForm)
    typed = form.cleaned_data
    services.canary_start(
        release=act.arriving(),
        environment=act.environment,
        share=typed["share"],
        actor=act.actor,
        rules=form.rules(),
        reason=typed["reason"],
        in_flight=typed["in_flight"],
        max_pin_hours=typed["max_pin_hours"],
    )
    return _(
        "Release #%(number)s answers %(share)s %% of the conversations of %(environment)s."
    ) % {
        "number": act.arriving().number,
        "share": typed["share"],
        "environment": act.environment,
    }


def _canary_change(act: Acting) -> str:
    typed = act.typed(ShareForm).cleaned_data
    services.canary_change(environment=act.environment, actor=act.actor, **typed)
    return _("The canary answers %(share)s %% now.") % {"share": typed["share"]}


def _canary_finish(act: Acting) -> str:
    typed = act.typed(OptionalReasonForm).cleaned_data
    deployment = services.canary_finish(environment=act.environment, actor=act.actor, **typed)
    return _("Release #%(number)s answers everybody now.") % {"number": deployment.release.number}


def _canary_stop(act: Acting) -> str:
    typed = act.typed(ReasonForm).cleaned_data
    services.canary_stop(environment=act.environment, actor=act.actor, **typed)
    return _("The canary is stopped.")


def _freeze_add(act: Acting) -> str:
    typed = act.typed(FreezeForm).cleaned_data
    services.freeze_add(
        environment=act.environment,
        starts_at=typed["starts_at"],
        ends_at=typed["ends_at"],
        reason=typed["reason"],
        actor=act.actor,
    )
    return _("The window is entered: nothing arrives in it.")


def _freeze_end(act: Acting) -> str:
    services.freeze_end(window=act.row(FreezeWindow), actor=act.actor)
    return _("The window has ended.")


def _binding_propose(act: Acting) -> str:
    typed = act.typed(ProposalForm).cleaned_data
    services.binding_propose(environment=act.environment, actor=act.actor, **typed)
    return _("Proposed. It holds once a second person approves it.")


def _binding_approve(act: Acting) -> str:
    services.binding_decide(
        proposal=act.row(BindingProposal),
        actor=act.actor,
        approve=True,
        comment=act.typed(DecideForm).cleaned_data["comment"],
    )
    return _("Approved: it holds from the next message on.")


def _binding_reject(act: Acting) -> str:
    services.binding_decide(
        proposal=act.row(BindingProposal),
        actor=act.actor,
        approve=False,
        comment=act.typed(DecideForm).cleaned_data["comment"],
    )
    return _("Rejected: nothing changes.")


def _binding_withdraw(act: Acting) -> str:
    services.binding_withdraw(proposal=act.row(BindingProposal), actor=act.actor)
    return _("Taken back: nothing changes.")


ACTS: dict[str, tuple[tuple[str, ...], Callable[[Acting], str]]] = {
    "deploy": ((DEPLOY,), _deploy),
    "promote": ((DEPLOY,), _promote),
    "roll_back": ((DEPLOY,), _roll_back),
    "canary_start": ((DEPLOY,), _canary_start),
    "canary_change": ((DEPLOY,), _canary_change),
    "canary_finish": ((DEPLOY,), _canary_finish),
    "canary_stop": ((DEPLOY,), _canary_stop),
    "freeze_add": ((DEPLOY,), _freeze_add),
    "freeze_end": ((DEPLOY,), _freeze_end),
    "binding_propose": ((BIND,), _binding_propose),
    "binding_approve": ((BIND, REVIEW), _binding_approve),
    "binding_reject": ((BIND, REVIEW), _binding_reject),
    "binding_withdraw": ((BIND,), _binding_withdraw),
}
"""Act → the permissions of which one is needed, and what it does."""


def act_do(name: str, acting: Acting) -> str:
    """Do the act ``name`` and return what to tell. Raises ``Http404`` for one that is none,
    ``PermissionDenied``, and every one of ``REFUSALS``."""
    if name not in ACTS:
        raise Http404
    permissions, act = ACTS[name]
    if not any(acting.http.user.has_perm(permission) for permission in permissions):
        raise PermissionDenied
    return act(acting)
