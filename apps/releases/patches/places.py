"""How a place inside a content is named: ``input[MSK].on_deny``. Pure.

A field follows a dot, an entry of a list of objects stands in brackets by its own key, ``keywords[]``
is any one value of a list of scalars. A name that would read as something else is written as a JSON
string (``defaults."a.b"``, ``judges["x]"]``), so every place has one name and every name one place.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

# What names an entry of a list of objects, first match wins.
LIST_KEYS = ("code", "name", "slug", "id")

_PLAIN_FIELD = re.compile(r'[^.\[\]"\x00-\x1f]+')
_PLAIN_ENTRY = re.compile(r'[^\[\]"\x00-\x1f]+')
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_STEP = re.compile(
    rf"\.?(?P<field>{_QUOTED}|{_PLAIN_FIELD.pattern})|\[(?P<entry>{_QUOTED}|[^\[\]\"\x00-\x1f]*)\]"
)


class BadPath(ValueError):
    """The text names no place."""


class Step(NamedTuple):
    """One step of a path: into a field, into an entry of a list, or to the values of a list."""

    kind: Literal["field", "entry", "values"]
    name: str = ""


def field_path(path: str, name: str) -> str:
    """Return the path of the field ``name`` of the object at ``path`` ("" is the content)."""
    written = name if _PLAIN_FIELD.fullmatch(name) else _quoted(name)
    return f"{path}.{written}" if path else written


def entry_path(path: str, key: str) -> str:
    """Return the path of the entry ``key`` of the list at ``path``."""
    return f"{path}[{key if _PLAIN_ENTRY.fullmatch(key) else _quoted(key)}]"


def values_path(path: str) -> str:
    """Return the path of the values of the list of scalars at ``path``."""
    return f"{path}[]"


def path_parse(path: str) -> tuple[Step, ...]:
    """Return the steps that ``path`` names. Raises ``BadPath``."""
    steps: list[Step] = []
    place = 0
    while place < len(path):
        match = _STEP.match(path, place)
        if match is None or (match["field"] and bool(steps) != (path[place] == ".")):
            raise BadPath(path)
        steps.append(_step(match))
        place = match.end()
    if not steps:
        raise BadPath(path)
    return tuple(steps)


def list_key(entries: Sequence[Any]) -> str | None:
    """Return the first of ``LIST_KEYS`` that all ``entries`` have and none shares, else ``None``."""
    if not all(isinstance(entry, dict) for entry in entries):
        return None
    for key in LIST_KEYS:
        names = [entry.get(key) for entry in entries]
        if all(isinstance(name, str) for name in names) and len(set(names)) == len(names):
            return key
    return None


def keyed_pair(
    before: Sequence[Any], after: Sequence[Any]
) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Return both lists by the key of the first (of the second when the first is empty).

    ``None`` when they have no key, or one that is not unique on both sides.
    """
    key = list_key(before or after)
    if key is None or not all(isinstance(entry, dict) for entry in after):
        return None
    names = [entry.get(key) for entry in after]
    if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        return None
    return {entry[key]: entry for entry in before}, {entry[key]: entry for entry in after}


def _step(match: re.Match[str]) -> Step:
    field, entry = match["field"], match["entry"]
    if field is not None:
        return Step("field", _unquoted(field))
    return Step("entry", _unquoted(entry)) if entry else Step("values")


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _unquoted(written: str) -> str:
    if not written.startswith('"'):
        return written
    try:
        return str(json.loads(written))
    except ValueError:
        raise BadPath(written) from None
