"""A request's body as a JSON object, or the problem that says why it is none."""

import json
import math
import re
from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.http.request import UnreadablePostError
from django.utils.translation import gettext as _

from apps.gateway.problems import Problem, invalid

MAX_DEPTH = 32
"""Deeper nesting is no message of a person, and recursion in what reads it would meet its limit."""

MAX_PATH_CHARS = 200
"""Of a path that an error names: the sender wrote it, and it may be as long as the body."""

_SURROGATE = re.compile("[\ud800-\udfff]")


def body_of(request: HttpRequest) -> dict[str, Any]:
    """Return the JSON object that ``request`` carries.

    Refused: another content type than JSON in UTF-8 (415), and what ``body_read`` refuses.
    """
    kind = (request.content_type or "").lower()
    json_kind = kind == "application/json" or (
        kind.startswith("application/") and kind.endswith("+json")
    )
    charset = (request.content_params or {}).get("charset", "utf-8").lower()
    if not json_kind or charset not in ("utf-8", "utf8"):
        raise Problem(
            415,
            "UNSUPPORTED_MEDIA_TYPE",
            _("Send the header “Content-Type: application/json”; the body is JSON in UTF-8."),
            headers={"Accept": "application/json"},
        )
    try:
        # Not request.body: that reads all of it, whatever its length.
        raw = request.read(settings.MESSAGE_MAX_BYTES + 1)
    except UnreadablePostError:
        raise Problem(400, "INVALID_JSON", _("The body could not be read.")) from None
    return body_read(raw)


def too_large() -> Problem:
    """Return the 413."""
    return Problem(
        413,
        "MESSAGE_TOO_LARGE",
        _("The body is too large; at most %(bytes)d bytes are accepted.")
        % {"bytes": settings.MESSAGE_MAX_BYTES},
        errors=[
            {
                "field": "body",
                "message": _("The body is too large; at most %(bytes)d bytes are accepted.")
                % {"bytes": settings.MESSAGE_MAX_BYTES},
            }
        ],
    )


def body_read(raw: bytes) -> dict[str, Any]:
    """Return the JSON object in ``raw``.

    Refused with a problem: too large (413); not JSON, not UTF-8, with numbers that JSON does not
    have (400); not an object, NUL characters or lone surrogates anywhere, nested deeper than
    ``MAX_DEPTH`` (422): no store of ours can keep them.
    """
    if len(raw) > settings.MESSAGE_MAX_BYTES:
        raise too_large()
    try:
        body = json.loads(raw.decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise _not_json(_("it is not UTF-8 text")) from None
    except json.JSONDecodeError as error:
        raise _not_json(f"{error.msg}, {error.lineno}:{error.colno}") from None
    except RecursionError:
        raise _not_json(_("it is nested too deeply")) from None
    except ValueError:  # also Python's limit on the digits of an integer
        raise _not_json(_("it holds a number that cannot be read")) from None
    if not isinstance(body, dict):
        raise invalid("body", _("must be a JSON object"))
    storable_check(body)
    return body


def _not_json(reason: str) -> Problem:
    detail = _("The body is not JSON: %(reason)s.") % {"reason": reason}
    return Problem(
        400, "INVALID_JSON", detail, errors=[{"field": "body", "message": _("must be JSON")}]
    )


def _no_constant(name: str) -> None:
    raise ValueError(name)


# Where a value stands: (where its parent stands, its key). Written out only when it is refused.
Path = tuple["Path", str | int] | None


def storable_check(body: dict[str, Any]) -> None:
    """Raise the 422 of a value that no store of ours can keep, wherever it stands in ``body``."""
    # A walk of its own instead of recursion: the parser accepts deeper nesting than we may use.
    todo: list[tuple[Any, Path, int]] = [(body, None, 0)]
    while todo:
        value, path, depth = todo.pop()
        if isinstance(value, str):
            _text_check(value, path)
        elif isinstance(value, float):
            if not math.isfinite(value):
                raise invalid(shown(path), _("must be a finite number"))
        elif isinstance(value, (dict, list)):
            if depth > MAX_DEPTH:
                message = _("is nested more than %(levels)d levels deep") % {"levels": MAX_DEPTH}
                raise invalid(shown(path), message)
            todo.extend((item, (path, key), depth + 1) for key, item in _parts(value, path))


def _parts(value: dict[str, Any] | list[Any], path: Path) -> Iterable[tuple[str | int, Any]]:
    if isinstance(value, list):
        return enumerate(value)
    for key in value:
        _text_check(key, (path, key))
    return value.items()


def _text_check(value: str, path: Path) -> None:
    if "\x00" in value:
        raise invalid(shown(path), _("must not contain NUL characters"))
    if not value.isascii() and _SURROGATE.search(value):
        raise invalid(shown(path), _("must not contain lone surrogates"))


def shown(path: Path) -> str:
    """Return a path the sender wrote, short and in characters any answer can hold."""
    parts: list[str] = []
    while path is not None:
        path, key = path
        parts.append(f"[{key}]" if isinstance(key, int) else f".{key}")
    text = "".join(reversed(parts)).removeprefix(".") or "body"
    text = text[: MAX_PATH_CHARS + 1].encode("utf-8", "replace").decode().replace("\x00", "?")
    return text if len(text) <= MAX_PATH_CHARS else text[:MAX_PATH_CHARS] + "…"
