"""The functions through which a model asks other agents, and the rules of their arguments."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from apps.agents.config import AgentConfig, Delegate
from apps.agents.evidence import wire_name
from apps.agents.tooling import ToolInfo

REQUEST = "request_specialist_sub_conversation"
END = "end_specialist_sub_conversation"
REPORT = "report"
QUESTION = "pergunta_interna"
SCOPED_REQUEST = "scopedRequest"
SCOPED_PREFIX = "delegate_"

STATUSES = (
    "completed", "failed", "user_cancelled", "needs_handoff", "out_of_scope", "needs_followup",
    "cannot_resolve",
)  # fmt: skip
"""How a sub-conversation may end."""

MAX_TEXT = 4_000
"""Characters of what one agent writes to another."""

SignalType = Literal["REQUEST_SUB_CONVERSATION", "END_SUB_CONVERSATION", "SIGNAL_ERROR"]


@dataclass(frozen=True)
class Signal:
    """What a well or badly used function of a sub-conversation says."""

    type: SignalType
    details: Mapping[str, Any]

    @property
    def wire(self) -> dict[str, Any]:
        """Return it as the platform's contract writes it."""
        if self.type == "SIGNAL_ERROR":
            return {"_signal_type": self.type, **self.details}
        return {"_signal_type": self.type, "details": dict(self.details)}


def consult_name(agent: AgentConfig, delegate: Delegate) -> str:
    """Return the function that consults ``delegate``: the agent's prefix and its slug."""
    return wire_name(f"{agent.consult_prefix}{delegate.agent}")


def scoped_name(delegate: Delegate) -> str:
    """Return the function that gives ``delegate`` a part of the request."""
    return wire_name(f"{SCOPED_PREFIX}{delegate.agent}")


def function_name(agent: AgentConfig, delegate: Delegate) -> str:
    """Return the function through which ``agent`` asks ``delegate``."""
    if delegate.kind == "consult":
        return consult_name(agent, delegate)
    return scoped_name(delegate) if delegate.kind == "scoped" else REQUEST


def role_of(delegate: Delegate) -> str:
    """Return the role a specialist is asked for by."""
    return delegate.role or delegate.agent


def specialists(agent: AgentConfig) -> dict[str, Delegate]:
    """Return role -> delegate of the specialists of ``agent``; the first of a role counts."""
    found: dict[str, Delegate] = {}
    for delegate in agent.delegates:
        if delegate.kind == "sub_conversation":
            found.setdefault(role_of(delegate), delegate)
    return found


def consult_info(name: str, purpose: str) -> ToolInfo:
    """Return the function ``name`` that asks one question and gets plain text."""
    return _info(
        name,
        purpose or "Ask a colleague one question.",
        {QUESTION: _text("The whole question; the colleague sees nothing else.")},
        [QUESTION],
    )


def scoped_info(name: str, purpose: str, *, speaks: bool) -> ToolInfo:
    """Return the function ``name`` that hands over a part of the request."""
    voice = (
        "It answers the customer itself; check answered and never repeat what it said."
        if speaks
        else "It says nothing to the customer; you deliver its findings."
    )
    described = f"{purpose or 'Give a colleague a part of the request.'} {voice}"
    part = _text("Only the part of the customer's request that it is to handle.")
    return _info(name, described, {SCOPED_REQUEST: part}, [SCOPED_REQUEST])


def request_info(known: Mapping[str, Delegate]) -> ToolInfo:
    """Return the function that gives the conversation to one of the ``known`` specialists."""
    roles = "; ".join(
        f"{role}: {delegate.purpose}" if delegate.purpose else role
        for role, delegate in known.items()
    )
    return _info(
        REQUEST,
        "Let a specialist talk with the customer until it is done. You get the result."
        f" Specialists: {roles}.",
        {
            "specialist_role": {**_text("One of the specialists."), "enum": list(known)},
            "initial_context": _text("What the specialist has to know to begin."),
        },
        ["specialist_role", "initial_context"],
    )


def end_info() -> ToolInfo:
    """Return the function with which a specialist gives the conversation back."""
    return _info(
        END,
        "End your part: the coordinator goes on with the customer. What you write beside this call"
        " is not sent.",
        {
            "status": {**_text("How it ended."), "enum": list(STATUSES)},
            "final_result": {"type": "object", "description": "What came of it."},
            "last_user_message": _text("The customer's last message; may be empty."),
            "message_to_coordinator": {
                "type": ["string", "null"],
                "description": "A note for the coordinator.",
            },
        },
        ["status", "final_result", "last_user_message"],
    )


def request_read(arguments: Mapping[str, Any], known: Mapping[str, Delegate]) -> Signal:
    """Return the signal of a request, or what is wrong with it."""
    for name in ("specialist_role", "initial_context"):
        value = arguments.get(name)
        if not isinstance(value, str) or not value.strip():
            return _error(f"{name}: a text that is not empty is required", arguments)
    role = arguments["specialist_role"].strip()
    if role not in known:
        listed = ", ".join(known)
        return _error(f"specialist_role: there is no {role[:80]!r}; one of: {listed}", arguments)
    context = arguments["initial_context"].strip()[:MAX_TEXT]
    return Signal("REQUEST_SUB_CONVERSATION", {"specialist_role": role, "initial_context": context})


def end_read(arguments: Mapping[str, Any], *, last_user_message: str) -> Signal:
    """Return the signal of an end, or what is wrong with it.

    The model has to give ``last_user_message``, but the transcript's is taken.
    """
    if arguments.get("status") not in STATUSES:
        return _error(f"status: one of {', '.join(STATUSES)}", arguments)
    if not isinstance(arguments.get("final_result"), dict):
        return _error("final_result: an object is required", arguments)
    if not isinstance(arguments.get("last_user_message"), str):
        return _error("last_user_message: a text is required, it may be empty", arguments)
    note = arguments.get("message_to_coordinator")
    if note is not None and not isinstance(note, str):
        return _error("message_to_coordinator: a text or null", arguments)
    return Signal(
        "END_SUB_CONVERSATION",
        {
            "status": arguments["status"],
            "final_result": arguments["final_result"],
            "last_user_message": last_user_message,
            "message_to_coordinator": note[:MAX_TEXT] if note else None,
        },
    )


def text_read(arguments: Mapping[str, Any], name: str) -> tuple[str, str]:
    """Return the text argument ``name`` and "", or "" and what is wrong with it."""
    value = arguments.get(name)
    if not isinstance(value, str) or not value.strip():
        return "", f"{name}: a text that is not empty is required"
    return value.strip()[:MAX_TEXT], ""


def _error(text: str, arguments: Mapping[str, Any]) -> Signal:
    return Signal("SIGNAL_ERROR", {"error": text, "originalArgs": dict(arguments)})


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _info(
    name: str, description: str, properties: Mapping[str, Any], required: list[str]
) -> ToolInfo:
    return ToolInfo(
        slug=name,
        description=description,
        json_schema={
            "type": "object",
            "properties": dict(properties),
            "required": required,
            "additionalProperties": False,
        },
    )
