"""What a person may do with a change request on its page: one function an act, each calls one service.

An act returns the sentence to tell. Whether it is allowed is the service's to say; the permission
beside it only keeps away those who never may.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from apps.releases.change_models import ChangeComment, ChangePatch, ChangeRequest
from apps.releases.changes import emergency, publishing, services
from apps.releases.changes.policy import change_policy
from apps.releases.changes.refusals import (
    ChangeRefused,
    IncompleteRequest,
    NotAnApprover,
    SelfApproval,
)
from apps.releases.changes.states import ACTS as STATES
from apps.releases.changes.states import OPEN
from apps.releases.content import InvalidContent
from apps.releases.environments.services import Frozen, HopSkipped, NotResponsible, UnboundBindings
from apps.releases.pages.change_forms import (
    CommentForm,
    DecisionForm,
    ReasonForm,
    ScheduleForm,
    SupersedeForm,
)
from apps.releases.pages.links import release_link
from apps.releases.services import GateRefused
from apps.tenants.tenant_admin import actor_of

REFUSALS = (
    ChangeRefused,
    GateRefused,
    InvalidContent,
    UnboundBindings,
    Frozen,
    HopSkipped,
    NotResponsible,
)
"""What the services may answer: shown on the page, with nothing done."""

FIELDS = {
    "comment": gettext_noop("Comment"),
    "text": gettext_noop("Comment"),
    "reason": gettext_noop("Reason"),
    "starts_at": gettext_noop("From"),
    "ends_at": gettext_noop("Until"),
}
"""What the pages call the fields that a service names."""

EDIT, REVIEW, PUBLISH = "config.change", "changes.review", "release.publish"


@dataclass(frozen=True)
class Acting:
    """Who does something with which request, and what they typed."""

    http: HttpRequest
    change: ChangeRequest

    @property
    def actor(self) -> str:
        return actor_of(self.http)

    def typed(self, form_class: type[forms.Form]) -> dict[str, Any]:
        """Return the checked values of a form; raise ``IncompleteRequest`` with what is wrong."""
        form = form_class(self.http.POST)
        if not form.is_valid():
            raise IncompleteRequest(
                {
                    name: f"{form[name].label}: {' '.join(map(str, errors))}"
                    for name, errors in form.errors.items()
                }
            )
        return form.cleaned_data

    def row(self, model: Any) -> Any:
        """Return the row of the request that the POSTed ``key`` names; 404 for any other."""
        key = self.http.POST.get("key", "")
        found = None
        if key.isascii() and key.isdigit() and len(key) < 19:
            found = model.objects.filter(pk=key, request=self.change).first()
        if found is None:
            raise Http404
        return found


def refusal_lines(refusal: Exception) -> list[str]:
    """Return a refusal as sentences, one a line."""
    if isinstance(refusal, GateRefused):
        return [problem.message for problem in refusal.problems]
    if isinstance(refusal, IncompleteRequest):
        return list(refusal.errors.values())
    if isinstance(refusal, InvalidContent):
        return [
            f"{_(FIELDS.get(error['field'], error['field']))}: {error['message']}"
            for error in refusal.errors
        ]
    return [str(refusal)]


def refusal_status(refusal: Exception) -> int:
    """Return the HTTP status of a refusal: 403 for who may not, 409 for what cannot be now."""
    return 403 if isinstance(refusal, SelfApproval | NotAnApprover | NotResponsible) else 409


def _submit(act: Acting) -> str:
    services.request_submit(request=act.change, actor=act.actor)
    return _("Submitted for review.")


def _decide(act: Acting) -> str:
    typed = act.typed(DecisionForm)
    approval = services.request_decide(
        request=act.change,
        actor=act.actor,
        decision=typed["decision"],
        sha256=typed["sha256"],
        comment=typed["comment"],
    )
    return _("Recorded: %(decision)s.") % {"decision": approval.get_decision_display()}


def _comment(act: Acting) -> str:
    services.comment_add(request=act.change, actor=act.actor, **act.typed(CommentForm))
    return _("Comment added.")


def _resolve(act: Acting) -> str:
    services.comment_resolve(comment=act.row(ChangeComment), actor=act.actor)
    return _("Comment resolved.")


def _drop(act: Acting) -> str:
    patch = act.row(ChangePatch)
    services.patch_drop(actor=act.actor, patch=patch)
    return _("The changes of %(item)s are taken out of the request.") % {"item": patch.slug}


def _withdraw(act: Acting) -> str:
    services.request_withdraw(request=act.change, actor=act.actor)
    return _("Withdrawn. Nothing of it goes live.")


def _supersede(act: Acting) -> str:
    number = act.typed(SupersedeForm)["by"]
    by = ChangeRequest.objects.filter(number=number).first()
    if by is None:
        raise IncompleteRequest(
            {"by": _("There is no change request #%(number)s.") % {"number": number}}
        )
    services.request_supersede(request=act.change, by=by, actor=act.actor)
    return _("Superseded by #%(number)s.") % {"number": by.number}


def _publish(act: Acting) -> str:
    release = publishing.request_publish(request=act.change, actor=act.actor)
    return released_text(_("Published as {release}."), release)


def _schedule(act: Acting) -> str:
    typed = act.typed(ScheduleForm)
    publishing.request_schedule(
        request=act.change, actor=act.actor, at=typed["at"], zone=typed["zone"]
    )
    return _("Scheduled. It is checked again when the time comes.")


def _unschedule(act: Acting) -> str:
    publishing.request_unschedule(request=act.change, actor=act.actor)
    return _("No longer scheduled; the approvals stay.")


def _ratify(act: Acting) -> str:
    comment = act.http.POST.get("comment", "")[:4000]
    emergency.break_glass_ratify(request=act.change, actor=act.actor, comment=comment)
    return _("Ratified: the emergency release stays.")


def _revert(act: Acting) -> str:
    reason = act.typed(ReasonForm)["reason"]
    release = emergency.break_glass_revert(request=act.change, actor=act.actor, reason=reason)
    if release is None:
        return _("Reverted. The environment had moved on, so what runs there stays.")
    return released_text(_("Reverted: {release} runs again."), release)


def released_text(text: str, release: Any) -> str:
    """Return ``text`` with ``{release}`` as a link to the release's page."""
    name = _("release #%(number)s") % {"number": release.number}
    link = format_html('<a class="underline" href="{}">{}</a>', release_link(release), name)
    return format_html(text, release=link)


ACTS: dict[str, tuple[tuple[str, ...], Callable[[Acting], str]]] = {
    "submit": ((EDIT,), _submit),
    "withdraw": ((EDIT,), _withdraw),
    "supersede": ((EDIT,), _supersede),
    "drop": ((EDIT,), _drop),
    "decide": ((REVIEW, EDIT), _decide),
    "comment": ((EDIT, REVIEW, PUBLISH), _comment),
    "resolve": ((EDIT, REVIEW, PUBLISH), _resolve),
    "publish": ((PUBLISH,), _publish),
    "schedule": ((PUBLISH,), _schedule),
    "unschedule": ((PUBLISH,), _unschedule),
    "ratify": ((REVIEW,), _ratify),
    "revert": ((REVIEW, PUBLISH), _revert),
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


def acts_offered(change: ChangeRequest, user: Any, *, is_editor: bool) -> set[str]:
    """Return the acts that the page offers: possible in this state, and the person's to try."""
    possible = {name for name, states in STATES.items() if change.status in states}
    emergency = bool(change.broken_glass_by) and not change.ratified_at and not change.reverted_at
    found: set[str] = possible & {"submit", "withdraw", "supersede"}
    if change.status in OPEN:
        found |= {"facts", "drop", "rebase", "break_glass"}
    if possible & {"approve", "request_changes", "reject"} and not is_editor:
        found.add("decide")
    found |= possible & {"publish", "schedule", "unschedule"}
    if emergency:
        found |= {"ratify", "revert"}
    found |= {"comment", "resolve"}
    needs = {
        **{name: permissions for name, (permissions, _act) in ACTS.items()},
        "facts": (EDIT,),
        "rebase": (EDIT,),
        "break_glass": (PUBLISH,),
    }
    found = {name for name in found if any(user.has_perm(needed) for needed in needs[name])}
    return found if "decide" not in found or _may_decide(user) else found - {"decide"}


def _may_decide(user: Any) -> bool:
    """Whoever reviews by role, and who edits other requests and was given a duty."""
    if user.has_perm(REVIEW):
        return True
    return bool(change_policy().duties_of(f"user:{user.get_username()}"))
