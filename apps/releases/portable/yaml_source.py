"""Reads YAML as JSON types, with the line of everything.

Only text, numbers, true/false, null, lists and maps: no tags, no merge keys, no dates, no objects. A
plain scalar that is not exactly a JSON number, ``true``, ``false`` or ``null`` is text, so ``no``,
``0123``, ``12:30`` and ``2026-01-01`` arrive as they were written. Keys are text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

# Far above any tenant's configuration; what is larger is a mistake or an attack (alias bombs).
MAX_BYTES = 8 * 1024 * 1024
MAX_NODES = 500_000
MAX_DEPTH = 40

_YAML = "tag:yaml.org,2002:"
_PLAIN = {f"{_YAML}{name}" for name in ("int", "float", "bool", "null", "timestamp")}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a file: where, and in words, without the values given."""

    file: str
    line: int
    path: str
    message: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        place = f"{where} {self.path}".strip()
        return f"{place}: {self.message}" if place else self.message


class SourceRefused(ValueError):
    """The files cannot be taken. ``problems`` names each, with file, line and path."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


@dataclass(frozen=True)
class Source:
    """One parsed file: its value in JSON types, and the line of every path in it."""

    file: str
    value: Any
    lines: dict[str, int] = field(repr=False, default_factory=dict)

    def line(self, path: str) -> int:
        """Return the line of ``path``, or of the nearest thing around it."""
        while path and path not in self.lines:
            path = re.sub(r"(\.[^.\[]*|\[[^\[]*\]|^[^.\[]*)$", "", path)
        return self.lines.get(path, 1)

    def problem(self, path: str, message: str) -> Problem:
        return Problem(self.file, self.line(path), path, message)


def join(path: str, key: str | int) -> str:
    """Return the path of ``key`` below ``path``: ``a.b`` and ``a[0]``."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def source_read(path: Path, name: str) -> Source:
    """Parse the file at ``path``, called ``name`` in messages. Raises ``SourceRefused``."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SourceRefused([Problem(name, 0, "", error.strerror or str(error))]) from None
    return source_parse(data, name)


def source_parse(data: bytes | str, name: str) -> Source:
    """Parse one YAML document. Raises ``SourceRefused`` naming lines, duplicate keys included."""
    if len(data) > MAX_BYTES:
        raise SourceRefused([Problem(name, 0, "", _("The file is larger than 8 MB."))])
    text = data if isinstance(data, str) else _decoded(data, name)
    try:
        node = YAML(typ="safe", pure=True).compose(text)
        reader = _Reader(name)
        value = None if node is None else reader.value(node, "", 0)
    except RecursionError:
        raise SourceRefused([Problem(name, 0, "", _too_deep())]) from None
    except ReaderError as error:
        line = text[: error.position].count("\n") + 1
        message = _("The file holds a character that YAML does not allow.")
        raise SourceRefused([Problem(name, line, "", message)]) from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = str(error.problem or error.context or _("This is not valid YAML."))
        if mark is None:
            raise SourceRefused([Problem(name, 0, "", message)]) from None
        found = {"message": message, "column": mark.column + 1}
        message = _("%(message)s (column %(column)s)") % found
        raise SourceRefused([Problem(name, mark.line + 1, "", message)]) from None
    except (YAMLError, ValueError) as error:
        raise SourceRefused([Problem(name, 0, "", str(error))]) from None
    if reader.problems:
        raise SourceRefused(reader.problems)
    return Source(name, value, reader.lines)


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise SourceRefused([Problem(name, line, "", _("This is not UTF-8 text."))]) from None


def _too_deep() -> str:
    return _("The document is nested too deeply.")


class _Reader:
    """Builds values from nodes and keeps each path's line; collects what is wrong."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines: dict[str, int] = {}
        self.problems: list[Problem] = []
        self.nodes = 0

    def value(self, node: Node, path: str, depth: int) -> Any:
        self.lines.setdefault(path, node.start_mark.line + 1)
        self.nodes += 1
        # Aliases repeat a node: without a budget a short file could grow without bound.
        if depth > MAX_DEPTH or self.nodes > MAX_NODES:
            raise RecursionError
        if isinstance(node, MappingNode) and node.tag == f"{_YAML}map":
            return self._map(node, path, depth)
        if isinstance(node, SequenceNode) and node.tag == f"{_YAML}seq":
            return [self.value(n, join(path, i), depth + 1) for i, n in enumerate(node.value)]
        if isinstance(node, ScalarNode):
            return self._scalar(node, path)
        return self._refuse(node, path, _("The tag %(tag)s is not allowed.") % {"tag": node.tag})

    def _map(self, node: MappingNode, path: str, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                self._refuse(key_node, path, _("A key must be text."))
                continue
            key = key_node.value
            here = join(path, key)
            if key_node.tag == f"{_YAML}merge":
                self._refuse(key_node, path, _("Merge keys (<<) are not allowed; write it out."))
            elif _UNSTORABLE.search(key):
                self._refuse(key_node, path, _unstorable())
            elif key in result:
                first = self.lines.get(here, 0)
                message = _("The key stands twice; first on line %(line)s.") % {"line": first}
                self._refuse(key_node, here, message)
            else:
                self.lines[here] = key_node.start_mark.line + 1
                result[key] = self.value(value_node, here, depth + 1)
        return result

    def _scalar(self, node: ScalarNode, path: str) -> Any:
        text = node.value
        if node.tag == f"{_YAML}str":
            if _UNSTORABLE.search(text):
                return self._refuse(node, path, _unstorable())
            return text
        if node.tag not in _PLAIN:
            return self._refuse(
                node, path, _("The tag %(tag)s is not allowed.") % {"tag": node.tag}
            )
        if text.lower() in _WORDS and text in (text.lower(), text.upper(), text.capitalize()):
            return _WORDS[text.lower()]
        if _INTEGER.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            number = float(text)
            if number in (float("inf"), float("-inf")):
                return self._refuse(node, path, _("The number is too large."))
            return number
        return text

    def _refuse(self, node: Node, path: str, message: str) -> None:
        self.problems.append(Problem(self.file, node.start_mark.line + 1, path, message))


def _unstorable() -> str:
    return _("The text holds a NUL or characters that are not valid Unicode.")
