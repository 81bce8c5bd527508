"""What an import made of foreign files: every value that was not taken over as it stood."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from django.utils.translation import gettext as _

from apps.releases.portable.yaml_source import Problem, Source

# dropped: has no meaning here. later: belongs to a kind that does not exist yet. derived: added,
# because the files imply it. warning: files contradict each other, or something needs a look.
Action = Literal["dropped", "later", "derived", "warning"]

_SECRET = re.compile(
    r"(^|_)(token|secret|passw\w*|pwd|authorization|credentials?|cookie|auth|bearer)$"
    r"|(api|access|private|secret)_?key",
    re.I,
)
_VALUE_LENGTH = 60


@dataclass(frozen=True)
class ReportLine:
    """One value: where it stood, what it was (shortened, secrets hidden), what became of it, why."""

    action: Action
    file: str
    line: int
    path: str
    value: str
    reason: str


@dataclass
class Report:
    """Collects lines, and problems that refuse the import as a whole."""

    lines: list[ReportLine] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def add(
        self, action: Action, source: Source, path: str, reason: str, value: Any = None
    ) -> None:
        shown = summary(path, value)
        self.lines.append(ReportLine(action, source.file, source.line(path), path, shown, reason))

    def add_file(self, action: Action, file: str, reason: str) -> None:
        self.lines.append(ReportLine(action, file, 0, "", "", reason))

    def refuse(self, source: Source, path: str, message: str) -> None:
        self.problems.append(source.problem(path, message))

    def counts(self) -> dict[str, int]:
        counted = Counter(line.action for line in self.lines)
        return {name: counted[name] for name in ("dropped", "later", "derived", "warning")}

    def sorted(self) -> list[ReportLine]:
        return sorted(self.lines, key=lambda line: (line.file, line.line, line.path, line.action))

    def as_json(self) -> list[dict[str, Any]]:
        """Return the lines as JSON types, by file and line."""
        return [asdict(line) for line in self.sorted()]

    def as_table(self) -> str:
        """Return the lines as a text table, by file and line."""
        head = (_("what"), _("where"), _("path"), _("value"), _("why"))
        rows = [
            (
                line.action,
                f"{line.file}:{line.line}" if line.line else line.file,
                line.path,
                line.value,
                line.reason,
            )
            for line in self.sorted()
        ]
        return _table([head, *rows])


def summary(path: str, value: Any) -> str:
    """Return ``value`` in at most 60 characters; what looks like a secret by its name is hidden."""
    if value is None:
        return ""
    if _SECRET.search(path.rpartition(".")[2]):
        return _("(hidden)")
    if isinstance(value, dict):
        return _("%(count)s entries") % {"count": len(value)}
    if isinstance(value, list):
        return _("list of %(count)s") % {"count": len(value)}
    text = str(value).lower() if isinstance(value, bool) else " ".join(str(value).split())
    text = re.sub(r"://[^/@\s]*@", "://…@", text)
    return text if len(text) <= _VALUE_LENGTH else f"{text[: _VALUE_LENGTH - 1]}…"


def _table(rows: list[tuple[str, ...]]) -> str:
    widths = [max(_width(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def _width(text: str) -> int:
    return sum(_character_width(character) for character in text)


def _character_width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def problems_json(problems: Iterable[Problem]) -> list[dict[str, Any]]:
    """Return problems as JSON types."""
    return [asdict(problem) for problem in problems]
