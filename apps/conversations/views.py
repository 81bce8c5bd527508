"""Console pages of what was said: sessions, one session, what one turn decided."""

import uuid

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_safe

from apps.conversations import browsing
from apps.tenants.console import console_page

SEARCH_CHARACTERS = 100


@require_safe
@console_page("conversations.view")
def session_list(request: HttpRequest) -> HttpResponse:
    """The tenant's sessions, newest first."""
    wanted = request.GET.get("q", "").strip().replace("\x00", "")[:SEARCH_CHARACTERS]
    before = request.GET.get("before", "")
    page = browsing.sessions_page(before=before, wanted=wanted)
    context = {"page": page, "wanted": wanted, "first": not before}
    return render(request, "conversations/session_list.html", context)


@require_safe
@console_page("conversations.view")
def session_detail(request: HttpRequest, session_id: uuid.UUID) -> HttpResponse:
    """One session's turns, oldest of the page first."""
    session = browsing.session_get(session_id=session_id)
    if session is None:
        raise Http404
    before = request.GET.get("before", "")
    number = int(before) if before.isascii() and before.isdigit() and len(before) < 10 else None
    turns, earlier = browsing.turns_page(
        session_id=session_id, trace=may_trace(request), before=number
    )
    context = {"session": session, "turns": turns, "earlier": earlier, "newest": number is None}
    return render(request, "conversations/session_detail.html", context)


@require_safe
@console_page("conversations.view")
def turn_detail(request: HttpRequest, turn_id: uuid.UUID) -> HttpResponse:
    """Everything one turn decided: a fragment for HTMX, else a page of its own."""
    trace = may_trace(request)
    turn = browsing.turn_row(turn_id=turn_id, trace=trace)
    if turn is None:
        raise Http404
    fragment = "conversations/_turn_details.html"
    template = fragment if getattr(request, "htmx", False) else "conversations/turn_detail.html"
    response = render(request, template, {"turn": turn, "trace": trace})
    patch_vary_headers(response, ["HX-Request"])
    return response


def may_trace(request: HttpRequest) -> bool:
    """Return whether the person may see reasons, arguments and raw results."""
    return request.user.has_perm("conversations.trace")
