"""The page on which a request is put onto today's heads: a choice for each place both sides changed."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _

from apps.releases.change_models import ChangeRequest
from apps.releases.changes.selectors import RequestView, request_view
from apps.releases.changes.services import request_rebase
from apps.releases.pages.change_acts import EDIT, REFUSALS, refusal_lines
from apps.releases.pages.change_forms import own_value
from apps.releases.pages.change_shown import ShownConflict, shown_conflicts
from apps.releases.pages.config_admin import ConfigAdmin
from apps.releases.pages.links import kind_label, request_link
from apps.releases.services import configuration_locked
from apps.runtime.canonical import canonical_json, sha256_text
from apps.tenants.scope import tenant_transaction
from apps.tenants.tenant_admin import actor_of

Choices = dict[str, dict[str, Any]]


def rebase_view(admin: ConfigAdmin, request: HttpRequest, change: ChangeRequest) -> HttpResponse:
    """Show every conflict with both sides, and rebase with what was chosen (POST)."""
    if not request.user.has_perm(EDIT):
        raise PermissionDenied
    refused: list[str] = []
    if request.method == "POST":
        refused = _rebase(request, change)
        if not refused:
            messages.success(request, _("Rebased: the request is on what was published last."))
            return HttpResponseRedirect(request_link(change))
        change.refresh_from_db()
    view = request_view(change)
    context = {
        "change": change,
        "original": change,
        "view": view,
        "items": _items(view, request),
        "seen": _seen(view),
        "refused": refused,
        "status": 409 if refused else 200,
    }
    title = _("Rebase %(request)s") % {"request": change}
    response = admin.page(request, "releases/change_rebase.html", title, context)
    response.status_code = 409 if refused else 200
    return response


def _rebase(request: HttpRequest, change: ChangeRequest) -> list[str]:
    """Rebase with the POSTed choices; return why not, in sentences.

    A choice is about what was shown: when another publication came between, it is asked anew, so
    that nothing newer is overwritten unseen.
    """
    with tenant_transaction():
        configuration_locked()
        view = request_view(change)
        if request.POST.get("seen") != _seen(view):
            return [
                _("Something was published after you opened this page. Look at both sides again.")
            ]
        try:
            choices = _choices(view, request)
            request_rebase(request=change, actor=actor_of(request), choices=choices or None)
        except ValidationError as error:
            return [str(message) for message in error.messages]
        except REFUSALS as refusal:
            return refusal_lines(refusal)
    return []


def _choices(view: RequestView, request: HttpRequest) -> Choices:
    found: Choices = {}
    for patch in view.patches:
        for shown in shown_conflicts(patch):
            choice = request.POST.get(shown.name, "")
            if choice == "value":
                typed = request.POST.get(f"{shown.name}|value", "")
                value = {"value": _typed(shown, typed)}
                found.setdefault(str(patch.patch), {})[shown.path] = value
            elif choice in ("mine", "theirs"):
                found.setdefault(str(patch.patch), {})[shown.path] = choice
    return found


def _typed(shown: ShownConflict, text: str) -> Any:
    conflict = shown.conflict
    like = next((v for v in (conflict.mine, conflict.theirs, conflict.base) if v is not None), "")
    try:
        return own_value(text, like)
    except ValidationError as error:
        raise ValidationError(f"{shown.title} {shown.path}: {' '.join(error.messages)}") from None


def _items(view: RequestView, request: HttpRequest) -> list[dict[str, Any]]:
    return [
        {
            "kind": kind_label(patch.patch.kind),
            "slug": patch.patch.slug,
            "conflicts": [
                {
                    "shown": shown,
                    "chosen": request.POST.get(shown.name, ""),
                    "typed": request.POST.get(f"{shown.name}|value", _as_typed(shown)),
                    "may_type": bool(shown.path),
                }
                for shown in shown_conflicts(patch)
            ],
        }
        for patch in view.patches
        if patch.conflicts
    ]


def _as_typed(shown: ShownConflict) -> str:
    """Return the request's own value as it would be typed: what one begins an own value with."""
    mine = shown.conflict.mine
    if isinstance(mine, str):
        return mine
    if isinstance(mine, list) and all(isinstance(entry, str) for entry in mine):
        return "\n".join(mine)
    return "" if mine is None else canonical_json(mine)


def _seen(view: RequestView) -> str:
    """Return a digest of every conflict with what is there now."""
    rows = [
        [str(patch.patch), found.path, found.theirs, found.mine]
        for patch in view.patches
        for found in patch.conflicts
    ]
    return sha256_text(canonical_json(rows))
