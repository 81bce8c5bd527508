"""Tool results as a model reads them: data that cannot pass for anything else.

A result travels in a message of role ``tool``, which neither the customer's text nor a result can
open or close. Its content is one JSON document in which ``<``, ``>`` and chat-template tokens are
escaped, so that no delimiter of a prompt or of a template can appear inside (field case 9.3).
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from apps.runtime.ports import ModelMessage, ModelToolCall
from apps.runtime.turn import ToolCall, Turn

Mask = Callable[[str], str]
MaskFor = Callable[[Turn], Mask]

MAX_RESULT_CHARS = 24_000
_ESCAPES = (
    ("<", "\\u003c"),
    (">", "\\u003e"),
    ("[INST", "\\u005bINST"),
    ("[/INST", "\\u005b/INST"),
)
_LONG_NUMBER = 10**7
# A number this long names someone; its separators may be written or not.
_LONG_ENOUGH = 8
_SEPARATOR = r"[-. /()]{0,2}"
_NAME = re.compile(r"[^A-Za-z0-9_-]")


def wire_name(slug: str) -> str:
    """Return ``slug`` in the letters a provider allows in a function name (64 of ``[\\w-]``)."""
    return _NAME.sub("_", slug)[:64]


def vault_mask(turn: Turn, mask: Mask | None = None) -> Mask:
    """Return what is done to every text before a model sees it.

    Real values of the turn's vault become their placeholders, numbers with or without their dots
    and dashes; then ``mask`` (the tenant's masking of personal data) is applied.
    """
    placeholders: dict[str, str] = {}
    patterns: list[str] = []
    for placeholder, value in {**turn.session.vault, **turn.vault}.items():
        digits = _digits(value)
        if len(digits) >= _LONG_ENOUGH and not any(char.isalpha() for char in value):
            placeholders.setdefault(digits, placeholder)
            patterns.append(_SEPARATOR.join(digits))
        elif value:
            placeholders.setdefault(value, placeholder)
            patterns.append(re.escape(value))
    if not patterns:
        return mask or _unchanged
    either = "|".join(sorted(patterns, key=len, reverse=True))
    pattern = re.compile(rf"(?<!\w)(?:{either})(?!\w)")

    def stand_in(found: re.Match[str]) -> str:
        return placeholders.get(found[0]) or placeholders[_digits(found[0])]

    def masked(text: str) -> str:
        text = pattern.sub(stand_in, text)
        return mask(text) if mask is not None else text

    return masked


def _digits(text: str) -> str:
    return "".join(char for char in text if char.isdigit())


def _unchanged(text: str) -> str:
    return text


def evidence_messages(calls: Sequence[ToolCall], mask: Mask) -> tuple[ModelMessage, ...]:
    """Return finished ``calls`` as one assistant message that asked and one tool message each."""
    if not calls:
        return ()
    asked = tuple(
        ModelToolCall(
            id=f"evidence_{call.ordinal}",
            name=wire_name(call.tool),
            arguments=inert_json(masked_value(dict(call.arguments), mask)),
        )
        for call in calls
    )
    results = [
        ModelMessage(
            role="tool", content=tool_content(call, mask), tool_call_id=ask.id, name=ask.name
        )
        for call, ask in zip(calls, asked, strict=True)
    ]
    return (ModelMessage(role="assistant", content="", tool_calls=asked), *results)


def tool_content(call: ToolCall, mask: Mask) -> str:
    """Return what a model reads of ``call``: its result, or why there is none, field by field."""
    if call.ok:
        body: dict[str, Any] = {"tool": call.tool, "ok": True, "result": call.result}
    else:
        body = {"tool": call.tool, "ok": False, "status": call.status, "error": call.error}
        if call.field_errors:
            body["fields"] = [dict(error) for error in call.field_errors]
    try:
        text = inert_json(masked_value(body, mask))
    except (RecursionError, ValueError):
        return inert_json({"tool": call.tool, "ok": False, "error": "unreadable result"})
    if len(text) <= MAX_RESULT_CHARS:
        return text
    return inert_json(
        {"tool": call.tool, "ok": call.ok, "truncated": True, "excerpt": text[:MAX_RESULT_CHARS]}
    )


def inert_json(value: Any) -> str:
    """Return ``value`` as JSON text that holds no delimiter, no template token, no lone surrogate."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    for raw, escaped in _ESCAPES:
        text = text.replace(raw, escaped)
    return text.encode("utf-8", "replace").decode("utf-8")


def masked_value(value: Any, mask: Mask) -> Any:
    """Return ``value`` with ``mask`` applied to every text in it, keys and long numbers included."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {mask(str(key)): masked_value(item, mask) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [masked_value(item, mask) for item in value]
    if isinstance(value, int) and abs(value) >= _LONG_NUMBER:
        text = mask(str(value))
        return value if text == str(value) else text
    return value
