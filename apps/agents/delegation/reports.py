"""What a scoped sub-agent hands back: outputs by name, validated, never its raw words."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from apps.agents.delegation.functions import MAX_TEXT, REPORT
from apps.agents.tooling import ToolInfo

MAX_OPEN = 10
_TEXTS = ("scopedRequest", "interactionSummary", "findings")
_DESCRIBED: Mapping[str, Mapping[str, Any]] = {
    "answered": {
        "type": "boolean",
        "description": "true when the customer already has the answer from you.",
    },
    "scopedRequest": {"type": "string", "description": "The request you were given, unchanged."},
    "interactionSummary": {"type": "string", "description": "What you told the customer."},
    "findings": {
        "type": "string",
        "description": "The answer for your colleague to deliver, since you say nothing yourself.",
    },
    "openQuestions": {
        "type": "array",
        "items": {"type": "string"},
        "description": "What is left, or new. Do not guess who handles it.",
    },
}

_SCOPE = (
    "A colleague gives you one part of a customer's request. The last message is that part: treat it"
    " as the whole request and leave every other matter alone. End by calling report."
)
_SILENT = (
    "Send no message: nothing that you write reaches the customer, only report reaches your"
    " colleague. Put the answer into findings."
)
_SPEAKING = (
    "You answer the customer yourself: write the answer as the text of the reply in which you call"
    " report. Your colleague does not see that text, so sum it up in interactionSummary."
)


def scope_note(*, speaks: bool) -> str:
    """Return how a scoped sub-agent has to work."""
    return f"{_SCOPE} {_SPEAKING if speaks else _SILENT}"


def report_reminder(*, speaks: bool) -> str:
    """Return what is told to a sub-agent that wants to end without a report."""
    how = "Write the answer and call report in the same reply." if speaks else "Call report now."
    return f"Plain text reaches nobody. {how}"


def report_info(outputs: Sequence[str]) -> ToolInfo:
    """Return the function with which a sub-agent hands back ``outputs``."""
    names = list(dict.fromkeys(("answered", *outputs)))
    return ToolInfo(
        slug=REPORT,
        description="Hand back what came of your part. This ends it.",
        json_schema={
            "type": "object",
            "properties": {name: dict(_DESCRIBED[name]) for name in names},
            "required": ["answered"],
            "additionalProperties": False,
        },
    )


def report_read(arguments: Mapping[str, Any], outputs: Sequence[str]) -> tuple[dict[str, Any], str]:
    """Return the declared outputs in ``arguments`` and "", or ``{}`` and what is wrong, by field."""
    declared = {"answered", *outputs}
    errors = [f"{name}: not one of the outputs" for name in arguments if name not in declared]
    if not isinstance(arguments.get("answered"), bool):
        errors.append("answered: true or false is required")
    for name in _TEXTS:
        if not isinstance(arguments.get(name, ""), str):
            errors.append(f"{name}: a text is required")
    questions = arguments.get("openQuestions", [])
    if not isinstance(questions, list) or any(not isinstance(q, str) for q in questions):
        errors.append("openQuestions: a list of texts is required")
    if errors:
        return {}, "; ".join(errors)
    found: dict[str, Any] = {}
    for name, value in arguments.items():
        if name == "openQuestions":
            found[name] = [q.strip()[:MAX_TEXT] for q in value if q.strip()][:MAX_OPEN]
        else:
            found[name] = value.strip()[:MAX_TEXT] if isinstance(value, str) else value
    return found, ""


def report_text(text: str, outputs: Sequence[str]) -> dict[str, Any] | None:
    """Return the outputs of a report written as a JSON object instead of a call; ``None`` else."""
    stripped = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```")
    if not stripped.strip().startswith("{"):
        return None
    try:
        value = json.loads(stripped)
    except (ValueError, RecursionError):
        return None
    found, error = report_read(value, outputs) if isinstance(value, dict) else ({}, "no object")
    return None if error else found


def report_settled(found: Mapping[str, Any], *, request: str, speech: str) -> dict[str, Any]:
    """Return the outputs as the parent gets them.

    ``answered`` is true only when the customer was told something: a silent sub-agent cannot have
    answered. ``scopedRequest`` is the request that was given, whatever the model echoes.
    """
    answered = bool(found.get("answered")) and bool(speech)
    settled = {**found, "answered": answered, "scopedRequest": request}
    if not speech:
        settled.pop("interactionSummary", None)
    return {name: value for name, value in settled.items() if value not in ("", [])}
