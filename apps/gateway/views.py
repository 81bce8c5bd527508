"""The console's own door: pick an agent, talk to it, see beside each answer why it is so."""

import secrets
import uuid
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from apps.conversations import browsing
from apps.conversations.browsing import STATES, TurnRow
from apps.conversations.selectors import agents_deployed
from apps.conversations.views import may_trace
from apps.gateway.contract import session_name
from apps.gateway.forms import IdentityForm
from apps.gateway.questions import questions_masked
from apps.tenants.console import console_page
from apps.tenants.lookups import TenantAccess
from apps.tenants.scope import current_tenant_id
from apps.tenants.switching import current_access

RECENT_SESSIONS = 8
NAME_CHARACTERS = 200
"""What a session's name may have (``Session.name``)."""
ANY_TURN = uuid.UUID(int=0)
"""Stands for a turn's id in the addresses that the chat's script fills in."""

CONNECTION = {
    "connecting": _("Connecting…"),
    "live": _("Connected"),
    "reconnecting": _("Connection lost. Reconnecting…"),
    "signed_out": _("You are signed out. Reload the page to sign in again."),
    "closed": _("This conversation is not open to you."),
}


@require_safe
@console_page("conversations.view")
def home(request: HttpRequest) -> HttpResponse:
    """The agents to talk to, and where conversations were left."""
    deployed = _deployed()
    agents = sorted(
        deployed["agents"], key=lambda agent: agent["agent_id"] != deployed["default_agent_id"]
    )
    context = {
        "agents": agents,
        "default": deployed["default_agent_id"],
        "release": deployed["release"],
        "sessions": browsing.sessions_page().sessions[:RECENT_SESSIONS],
        "may_write": request.user.has_perm("chat"),
    }
    return render(request, "gateway/home.html", context)


@require_safe
@console_page("chat")
def chat_new(request: HttpRequest, agent: str) -> HttpResponse:
    """A fresh conversation, whose name nobody can guess."""
    _agent_check(agent)
    return redirect("console-chat", agent=agent, name=secrets.token_urlsafe(12))


@require_safe
@console_page("conversations.view")
def chat(request: HttpRequest, agent: str, name: str) -> HttpResponse:
    """A conversation: what was said so far, then live. Who may not write watches."""
    context = _conversation(request, agent, name)
    context |= {
        "may_write": request.user.has_perm("chat"),
        "identity": IdentityForm(),
        "labels": {"states": STATES, "connection": CONNECTION, "you": _("You")},
        "any_turn": ANY_TURN,
    }
    return render(request, "gateway/chat.html", context)


@require_safe
@console_page("conversations.view")
def chat_transcript(request: HttpRequest, agent: str, name: str) -> HttpResponse:
    """What was said so far, as a fragment: for a viewer whose events are no longer all kept."""
    return render(request, "gateway/_transcript.html", _conversation(request, agent, name))


@require_safe
@console_page("conversations.view")
def chat_turn(request: HttpRequest, turn_id: uuid.UUID) -> HttpResponse:
    """One turn of a conversation, as a fragment."""
    turn = browsing.turn_row(turn_id=turn_id, trace=may_trace(request))
    if turn is None:
        raise Http404
    return render(request, "conversations/_turn.html", _shown([turn])[0])


def _conversation(request: HttpRequest, agent: str, name: str) -> dict[str, Any]:
    access = current_access(request)
    assert isinstance(access, TenantAccess)
    if session_name(name) != name or not name.isprintable() or len(name) > NAME_CHARACTERS:
        raise Http404
    key = f"{access.slug}:{agent}:{name}"
    # The session first, the turns after it: what is written in between is replayed, never missed.
    session = browsing.session_by_key(key=key)
    if session is not None and session.agent != agent:
        raise Http404
    turns: list[TurnRow] = []
    earlier, cursor = False, 0
    if session is None:
        _agent_check(agent)
    else:
        cursor = browsing.stream_cursor(session=session)
        turns, earlier = browsing.turns_page(session_id=session.pk, trace=may_trace(request))
    return {
        "agent": agent,
        "name": name,
        "key": key,
        "session": session,
        "rows": _shown(turns),
        "earlier": earlier,
        "cursor": cursor,
    }


def _shown(turns: list[TurnRow]) -> list[dict[str, Any]]:
    """Return turns with their questions: of an open one the message as it came, masked."""
    sealed = questions_masked(turn_ids=[turn.id for turn in turns if not turn.settled])
    return [{"turn": turn, "question": sealed.get(turn.id, turn.question)} for turn in turns]


def _deployed() -> dict[str, Any]:
    return agents_deployed(tenant_id=current_tenant_id(), environment=settings.DEFAULT_ENVIRONMENT)


def _agent_check(agent: str) -> None:
    if agent not in {known["agent_id"] for known in _deployed()["agents"]}:
        raise Http404
