"""Reads a table in ``docs/`` that says which test shows a row, and what of it is not there.

A test is written ``path/test_file.py::test_name``; one that begins with ``::`` is in the file named
before it. A name that ends in ``*`` or ``…`` stands for every test that begins so.
"""

import re

from agentops.env import BASE_DIR


class CoverageTable:
    """The table of the document ``name``; ``alone``: the file of a test that is named without one."""

    def __init__(self, name: str, *, alone: str = "") -> None:
        self.text = (BASE_DIR / "docs" / name).read_text()
        self._alone = alone

    @property
    def tests(self) -> list[tuple[str, str]]:
        """Every test that is named: (its file, how its definition begins)."""
        found, file = [], ""
        for cell in re.findall(r"`([^`\n]+)`", self.text):
            if self._alone and re.match(r"test_\w+[*…]?$", cell):
                cell = f"{self._alone}::{cell}"
            path, _, name = cell.partition("::")
            if path.endswith(".py") and "test_" in path:
                file = path
            elif path or not name:
                continue
            begin = re.split(r"[…*\[]", name)[0]
            if begin:
                every = name[len(begin) : len(begin) + 1] in ("*", "…")
                found.append((file, f"def {begin}" if every else f"def {begin}("))
        return sorted(set(found))

    @property
    def files(self) -> list[str]:
        """Every file that is named by its whole path."""
        path = r"`((?:apps|agentops|docs|templates|examples)/[\w/.-]+\.\w+)"
        return sorted(set(re.findall(path, self.text)))

    def absent(self) -> list[str]:
        """Return what the table names and is not there."""
        tests = [f"{file}: {begin}" for file, begin in self.tests if begin not in _source(file)]
        return tests + [path for path in self.files if not (BASE_DIR / path).exists()]


def _source(file: str) -> str:
    """Return the text of a test file that is named by its path, or alone when there is one such."""
    places = [BASE_DIR / file] if "/" in file else list(BASE_DIR.glob(f"a*/**/tests/**/{file}"))
    return places[0].read_text() if len(places) == 1 and places[0].exists() else ""
