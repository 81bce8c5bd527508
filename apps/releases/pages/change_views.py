"""Pages of change requests in the admin: the queue, one request, its facts, rebase, going live.

Each takes the admin whose frame it is shown in, checks the permission, calls one service or
selector and renders. What a button does is in ``pages.change_acts``.
"""

import json
from collections.abc import Sequence

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from apps.releases.change_models import ChangeRequest
from apps.releases.changes.approvals import approvals_counted, editors_of
from apps.releases.changes.emergency import request_break_glass
from apps.releases.changes.publishing import entry_environment
from apps.releases.changes.selectors import RequestView, request_view
from apps.releases.changes.services import request_describe, request_open
from apps.releases.changes.states import OPEN, PUBLISHED
from apps.releases.content import InvalidContent
from apps.releases.environments.in_flight import open_conversations
from apps.releases.evidence.record import evidence_about
from apps.releases.pages.change_acts import (
    EDIT,
    PUBLISH,
    REFUSALS,
    Acting,
    act_do,
    acts_offered,
    refusal_lines,
    refusal_status,
    released_text,
)
from apps.releases.pages.change_forms import (
    BreakGlassForm,
    FactsForm,
    ReasonForm,
    ScheduleForm,
    SupersedeForm,
    person_name,
)
from apps.releases.pages.change_queue import QUEUE_TITLES, queue_found, queue_rows, queue_tabs
from apps.releases.pages.change_shown import (
    duty_label,
    shown_approvals,
    shown_fillers,
    shown_gates,
    shown_patches,
)
from apps.releases.pages.config_admin import ConfigAdmin
from apps.releases.pages.links import release_link, request_link
from apps.releases.pages.waiting import not_in_production
from apps.tenants.tenant_admin import actor_of

QUEUE_PAGE = 25
PATCHES_PAGE = 50
SHOWN_CONVERSATIONS = 20
FROM_PUBLISH_PAGE = ("publish", "schedule")


def queue_view(admin: ConfigAdmin, request: HttpRequest) -> TemplateResponse:
    """Show one queue, a page at a time; without ``queue``, the reader's own."""
    if not admin.has_view_permission(request):
        raise PermissionDenied
    actor = actor_of(request)
    queue = request.GET.get("queue", "mine")
    if queue not in QUEUE_TITLES:
        raise Http404
    search = request.GET.get("q", "").strip()[:200].replace("\x00", "")
    page = Paginator(queue_found(queue, actor, search), QUEUE_PAGE).get_page(request.GET.get("p"))
    context = {
        "queues": queue_tabs(actor),
        "queue": queue,
        "search": search,
        "page": page,
        "rows": queue_rows(page.object_list),
        "may_edit": request.user.has_perm(EDIT),
    }
    return admin.page(request, "releases/change_queue.html", _("Change requests"), context)


def request_page(
    admin: ConfigAdmin,
    request: HttpRequest,
    change: ChangeRequest,
    *,
    refused: Sequence[str] = (),
    status: int = 200,
) -> HttpResponse:
    """Show one request; ``refused`` says why an act was not done, what was typed is kept."""
    view = request_view(change)
    comments = list(change.comments.order_by("created_at", "pk"))
    editors = editors_of(change)
    actor = actor_of(request)
    is_editor = actor in editors or actor == change.author
    page = Paginator(view.patches, PATCHES_PAGE).get_page(request.GET.get("p"))
    count = approvals_counted(change, view.requirement)
    typed = request.POST if refused else {}
    context = {
        "change": change,
        "original": change,
        "view": view,
        "page": page,
        "patches": shown_patches(page.object_list, view.risks, comments),
        "weakening": [risk for risk in view.risks if risk.risk == "weakening"],
        "comments": [found for found in comments if not found.kind],
        "open_comments": sum(not found.resolved_by for found in comments),
        "approvals": shown_approvals(view.approvals, count.approvals),
        "counted": len(count.approvals),
        "has_approved": any(found.person == actor for found in count.approvals),
        "missing": [duty_label(duty) for duty in view.missing],
        "fillers": shown_fillers(view.fillers),
        "gates": shown_gates(view.gate_results, "block", "warn"),
        "gates_off": shown_gates(view.gate_results, "off"),
        "gates_passed": shown_gates(view.gate_results, "passed"),
        "evidence": evidence_about(change.manifest_sha256),
        "author": person_name(change.author),
        "editors": [person_name(name) for name in editors],
        "reviewers": [person_name(name) for name in json.loads(change.reviewers)],
        "is_editor": is_editor,
        "is_open": change.status in OPEN,
        "entry": entry_environment(change.environment),
        "release_url": release_link(change.release) if change.release else "",
        "promote_url": _promote_link(change) if request.user.has_perm("release.deploy") else "",
        "offers": acts_offered(change, request.user, is_editor=is_editor),
        "supersede_form": SupersedeForm(),
        "reason_form": ReasonForm(),
        "refused": refused,
        "typed": typed,
    }
    title = str(change)
    response = admin.page(request, "releases/change_detail.html", title, context)
    response.status_code = status
    return response


def _promote_link(change: ChangeRequest) -> str:
    """Return where a published request goes on to its target, or "" when it is there."""
    if change.release is None or change.status != PUBLISHED:
        return ""
    address = reverse("admin:releases_deploy", args=[change.release_id])
    return f"{address}?environment={change.environment}"


def act_view(
    admin: ConfigAdmin, request: HttpRequest, change: ChangeRequest, act: str
) -> HttpResponse:
    """Do one act (POST) and go back to the request; a refusal is shown on its page, at this
    address: who loads it again, or signs in again and is sent back here, is shown the request."""
    if request.method != "POST":
        return HttpResponseRedirect(request_link(change))
    try:
        text = act_do(act, Acting(request, change))
    except REFUSALS as refusal:
        change.refresh_from_db()
        show = publish_page if act in FROM_PUBLISH_PAGE else request_page
        lines, status = refusal_lines(refusal), refusal_status(refusal)
        return show(admin, request, change, refused=lines, status=status)
    messages.success(request, text)
    return HttpResponseRedirect(request_link(change))


def facts_view(
    admin: ConfigAdmin, request: HttpRequest, change: ChangeRequest | None
) -> HttpResponse:
    """Open a request (``change`` None) or change what is said of one."""
    _require(request, EDIT)
    initial = (
        FactsForm.initial_of(change, json.loads(change.reviewers))
        if change
        else FactsForm.initial_of(ChangeRequest(), [])
    )
    form = FactsForm(request.POST if request.method == "POST" else None, initial=initial)
    if request.method == "POST" and form.is_valid():
        actor = actor_of(request)
        try:
            if change is None:
                change = request_open(actor=actor, **form.cleaned_data)
            else:
                request_describe(request=change, actor=actor, **form.cleaned_data)
        except InvalidContent as invalid:
            for error in invalid.errors:
                field = error["field"] if error["field"] in form.fields else None
                form.add_error(field, error["message"])
        except REFUSALS as refusal:
            form.add_error(None, str(refusal))
        else:
            messages.success(request, _("Saved."))
            return HttpResponseRedirect(request_link(change))
    context = {"form": form, "change": change, "original": change}
    title = str(change) if change else _("New change request")
    return admin.page(request, "releases/change_facts.html", title, context)


def publish_page(
    admin: ConfigAdmin,
    request: HttpRequest,
    change: ChangeRequest,
    *,
    refused: Sequence[str] = (),
    status: int = 200,
) -> HttpResponse:
    """Show what publishing does: where it runs, and which open conversations it meets."""
    _require(request, PUBLISH)
    view = request_view(change)
    environment = entry_environment(change.environment)
    removed = [(p.patch.kind, p.patch.slug) for p in view.patches if p.after is None]
    count, _found = open_conversations(environment=environment, limit=0)
    using, found = (
        open_conversations(environment=environment, using=removed, limit=SHOWN_CONVERSATIONS)
        if removed
        else (0, [])
    )
    context = {
        "change": change,
        "original": change,
        "view": view,
        "missing": [duty_label(duty) for duty in view.missing],
        "entry": environment,  # Not "environment": the frame would show its first letter.
        "conversations": count,
        "using": using,
        "using_shown": found,
        "removed": removed,
        "schedule_form": ScheduleForm(request.POST if request.POST.get("date") else None),
        "offers": acts_offered(change, request.user, is_editor=False),
        "refused": refused,
    }
    title = _("Publish %(request)s") % {"request": change}
    response = admin.page(request, "releases/change_publish.html", title, context)
    response.status_code = status
    return response


def break_glass_view(
    admin: ConfigAdmin, request: HttpRequest, change: ChangeRequest
) -> HttpResponse:
    """Ask, warn, then publish and deploy at once without approval (POST)."""
    _require(request, PUBLISH)
    form = BreakGlassForm(request.POST if request.method == "POST" else None)
    refused: list[str] = []
    if request.method == "POST" and form.is_valid():
        try:
            release = request_break_glass(
                request=change,
                actor=actor_of(request),
                reason=form.cleaned_data["reason"],
                environment=form.cleaned_data["environment"],
            )
        except REFUSALS as refusal:
            refused = refusal_lines(refusal)
        else:
            messages.warning(request, released_text(_("{release} runs without approval."), release))
            return HttpResponseRedirect(request_link(change))
    view: RequestView = request_view(change)
    context = {
        "change": change,
        "original": change,
        "view": view,
        "form": form,
        "refused": refused,
        "hours": settings.BREAK_GLASS_HOURS,
        # The release holds every head: what waits for its promotion goes live with it.
        "carried": not_in_production().exclude(pk=change.pk),
    }
    title = _("Emergency: %(request)s") % {"request": change}
    return admin.page(request, "releases/change_break_glass.html", title, context)


def _require(request: HttpRequest, permission: str) -> None:
    if not request.user.has_perm(permission):
        raise PermissionDenied
