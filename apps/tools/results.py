"""A tool's answer, whatever its server wrote, as ``{ok, result, error, metadata}``."""

import json
from collections.abc import Mapping
from typing import Any

from apps.runtime.canonical import canonical_json
from apps.runtime.ports import RemoteResult

UNCONFIRMED = "unconfirmed"
"""Metadata key: an answer came that does not show whether the call did what it says."""

_PAYLOAD_KEYS = ("result", "data")


class NotJson(ValueError):
    """The text is not JSON, or has numbers JSON does not have."""


def json_parse(text: str | bytes) -> Any:
    """Return the value of JSON ``text``; whole numbers keep all their digits. Raises ``NotJson``."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def text_value(text: str) -> Any:
    """Return the object or list written in ``text``, or the text itself (digits stay text)."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            return json_parse(text)
        except NotJson:
            return text
    return text


def result_normalise(value: Any, *, metadata: Mapping[str, Any] | None = None) -> RemoteResult:
    """Return ``value`` as a result; an envelope of our own shape, alone or in a list, is unwrapped.

    An object is an envelope when ``ok`` is a boolean and it has a result, data or error; any other
    object with ``ok: false`` is a failure, whatever else it holds (field case 10.7). A list of one
    business object stays a list: whoever reads it shall not meet two shapes.
    """
    if isinstance(value, list) and len(value) == 1 and _says_ok(value[0]):
        value = value[0]
    extra = dict(metadata or {})
    if not _says_ok(value):
        return RemoteResult(ok=True, result=value, metadata=extra)
    if not any(key in value for key in (*_PAYLOAD_KEYS, "error")):
        failure = "" if value["ok"] else error_text(value)
        return RemoteResult(ok=value["ok"], result=value, error=failure, metadata=extra)
    inner = next((value[key] for key in _PAYLOAD_KEYS if value.get(key) is not None), None)
    nested = value.get("metadata")
    if isinstance(nested, Mapping):
        extra = {**nested, **extra}
    if value["ok"]:
        return RemoteResult(ok=True, result=inner, metadata=extra)
    return RemoteResult(ok=False, result=inner, error=error_text(value), metadata=extra)


def _says_ok(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("ok"), bool)


def error_text(value: Any) -> str:
    """Return the message in an error of any shape."""
    if isinstance(value, Mapping):
        for key in ("error", "message", "detail", "title", "reason"):
            if value.get(key):
                return error_text(value[key])
        return "The tool reported a failure without a message."
    return value if isinstance(value, str) else canonical_json(value)


def result_text(result: RemoteResult) -> str:
    """Return ``result`` as canonical text that any database takes (no lone surrogates).

    A value no JSON text can hold (an infinite number) makes the result a failure.
    """
    try:
        text = canonical_json(_document(result))
    except (ValueError, TypeError, RecursionError):
        reason = "The tool's answer holds a value that JSON text cannot hold."
        unreadable = RemoteResult(ok=False, error=reason, metadata={UNCONFIRMED: True})
        text = canonical_json(_document(unreadable))
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")


def _document(result: RemoteResult) -> dict[str, Any]:
    return {
        "ok": result.ok,
        "result": result.result,
        "error": result.error,
        "metadata": dict(result.metadata),
    }


def result_parse(text: str) -> RemoteResult:
    """Return the result that ``result_text`` wrote."""
    stored = json.loads(text)
    return RemoteResult(
        ok=stored["ok"],
        result=stored["result"],
        error=stored["error"],
        metadata=stored["metadata"],
    )
