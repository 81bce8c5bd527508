"""What a workflow's parameters and conditions point at. Pure.

``$.input.NAME`` is an argument or an answer, ``$.nodes.NODE.FIELD`` something a node brought. What is
not such a path is a literal.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.runtime.text import fold

_PATH = re.compile(r"\$\.(input|nodes)((?:\.[A-Za-z0-9_]+)+)")
_PLACE = re.compile(r"\{((?:input|nodes)(?:\.[A-Za-z0-9_]+)+)\}")
_CONDITION = re.compile(r"\s*(\S+)\s*(?:(==|!=)\s*(.*\S)\s*)?", re.DOTALL)


class BadPath(ValueError):
    """A text that begins like a path and is none."""


@dataclass(frozen=True)
class Path:
    """``root`` is ``input`` or ``nodes``; ``names`` lead from there to the value."""

    root: str
    names: tuple[str, ...]

    @property
    def node(self) -> str:
        """Return the node it reads of, "" for an input."""
        return self.names[0] if self.root == "nodes" else ""


@dataclass(frozen=True)
class Condition:
    """``path`` compared with ``value``; without ``operator``: whether it says anything but no."""

    path: Path
    operator: str = ""
    value: str = ""


def path_parse(text: str) -> Path | None:
    """Return the path ``text`` is, ``None`` for a literal. Raises ``BadPath``."""
    if not text.startswith("$"):
        return None
    found = _PATH.fullmatch(text)
    if found is None:
        raise BadPath(f"{text!r} is no path: write $.input.NAME or $.nodes.NODE.FIELD")
    return Path(found[1], tuple(found[2].strip(".").split(".")))


def condition_parse(text: str) -> Condition:
    """Return the condition ``text`` is. Raises ``BadPath``."""
    found = _CONDITION.fullmatch(text)
    path = path_parse(found[1]) if found is not None else None
    if found is None or path is None:
        raise BadPath(f"{text!r} is no condition: write PATH, PATH == VALUE or PATH != VALUE")
    return Condition(path, found[2] or "", _unquoted(found[3] or ""))


def places(text: str) -> list[Path]:
    """Return every ``{nodes.NODE.FIELD}`` and ``{input.NAME}`` of a text."""
    found = (path_parse(f"$.{name}") for name in _PLACE.findall(text))
    return [path for path in found if path is not None]


def value_at(path: Path, inputs: Mapping[str, Any], nodes: Mapping[str, Any]) -> Any:
    """Return what ``path`` leads to, ``None`` when it leads nowhere."""
    value: Any = inputs if path.root == "input" else nodes
    for name in path.names:
        if isinstance(value, Mapping):
            value = value.get(name)
        elif isinstance(value, Sequence) and not isinstance(value, str) and name.isdigit():
            value = value[int(name)] if int(name) < len(value) else None
        else:
            return None
    return value


def condition_met(
    condition: Condition, inputs: Mapping[str, Any], nodes: Mapping[str, Any]
) -> bool:
    """Return whether it holds. Case and accents do not matter; nothing equals the empty text."""
    value = value_at(condition.path, inputs, nodes)
    if not condition.operator:
        return value not in (None, "", False, [], {}) or (value == 0 and value is not False)
    same = fold(plain_text(value).strip()) == fold(condition.value.strip())
    return same if condition.operator == "==" else not same


def arguments_of(
    params: Mapping[str, str],
    inputs: Mapping[str, Any],
    nodes: Mapping[str, Any],
    *,
    type_of: Callable[[str], str],
) -> dict[str, Any]:
    """Return the arguments that ``params`` stand for; a path that leads nowhere gives none.

    ``type_of`` an argument: a literal is text, and only what its type wants otherwise is read so.
    """
    arguments: dict[str, Any] = {}
    for name, text in params.items():
        path = path_parse(text)
        value = _literal(text, type_of(name)) if path is None else value_at(path, inputs, nodes)
        if value is not None:
            arguments[name] = value
    return arguments


def text_filled(text: str, inputs: Mapping[str, Any], nodes: Mapping[str, Any]) -> str:
    """Return ``text`` with its places filled; one that leads nowhere is left empty."""

    def fill(found: re.Match[str]) -> str:
        path = path_parse(f"$.{found[1]}")
        return plain_text(value_at(path, inputs, nodes)) if path is not None else ""

    return _PLACE.sub(fill, text)


def plain_text(value: Any) -> str:
    """Return ``value`` as it is written in a sentence or a condition."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _literal(text: str, wanted: str) -> Any:
    if wanted in ("boolean", "array", "object"):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text
