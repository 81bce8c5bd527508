"""The record's own words in the reader's language."""

from typing import Any

from django import template
from django.utils.translation import gettext_lazy as _

register = template.Library()

WORDS: dict[str, Any] = {
    # how a route was found
    "state": _("by state"),
    "keyword": _("by keyword"),
    "example": _("by example"),
    "requested": _("as requested"),
    "fallback": _("fallback"),
    "clarify": _("asked back"),
    "transaction": _("by the open action"),
    "delegation": _("by who holds the conversation"),
    "control": _("a person or the end was asked for"),
    "literal": _("by a fixed answer"),
    "continuity": _("by going on"),
    "semantic": _("by meaning"),
    "llm": _("by a model"),
    # how an action stands
    "COLLECTING_PARAMETERS": _("asks for what is missing"),
    "AWAITING_CONFIRMATION": _("asks for a yes"),
    "CONFIRMED": _("confirmed"),
    "WORKFLOW_PAUSED": _("asks in between"),
    "TOOL_RESULT_CLARIFICATION": _("asks about the result"),
    "COMPLETED": _("done"),
    "PARTIAL_SUCCESS": _("done in part"),
    "FAILED": _("did not work"),
    "BLOCKED": _("not allowed"),
    "OUT_OF_SCOPE": _("not possible"),
    "CANCELLED": _("given up"),
    "UNKNOWN": _("nobody knows how it ended"),
    # what a rail did
    "allow": _("allow"),
    "observe": _("observe"),
    "sanitize": _("sanitise"),
    "retry": _("retry"),
    "block": _("block"),
    "handover": _("hand over"),
    # where it stood
    "identity": _("identity"),
    "input": _("input"),
    "route": _("route"),
    "tool": _("tool"),
    "output": _("output"),
    "supervisor": _("supervisor"),
    # how a tool call ended
    "ok": _("ok"),
    "error": _("error"),
    "refused": _("refused"),
    "unknown": _("unknown"),
    # how an agent asked another, and how that ended
    "consult": _("consultation"),
    "sub_conversation": _("sub-conversation"),
    "scoped": _("scoped sub-agent"),
    "started": _("started"),
    "completed": _("completed"),
    "failed": _("failed"),
    "user_cancelled": _("left by the customer"),
    "needs_handoff": _("needs a person"),
    "out_of_scope": _("out of scope"),
    "needs_followup": _("needs a follow-up"),
    "cannot_resolve": _("cannot be solved"),
    # what a turn waits for
    "confirmation": _("a confirmation"),
    "parameter": _("a value"),
    "approval": _("an approval"),
    "clarification": _("a clarification"),
}


@register.filter
def word(value: str) -> Any:
    """Return ``value`` translated when it is one of the record's words, else as it is."""
    return WORDS.get(value, value)
