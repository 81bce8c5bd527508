"""The table of what governance asks for names tests and files that are there."""

import re
from pathlib import Path

import pytest

from agentops.env import BASE_DIR

TABLE = (BASE_DIR / "docs" / "governance-coverage.md").read_text()


def named() -> list[tuple[str, str]]:
    """Return (file, beginning of a test's name) for each test that the table names."""
    found, file = [], ""
    for line in TABLE.splitlines():
        for cell in re.findall(r"`([^`]+)`", line):
            if re.match(r"test_\w+[*…]?$", cell):  # A gate's, all of which have one file.
                cell = f"agentops/tests/test_each_gate.py::{cell}"
            path, _, name = cell.partition("::")
            if path.endswith(".py") and "test_" in path:
                file = path
            elif path or not name:
                continue
            begin = re.split(r"[…*\[]", name)[0]
            if begin:
                found.append((file, begin))
    return sorted(set(found))


def source_of(file: str) -> str:
    places = [BASE_DIR / file] if "/" in file else list(BASE_DIR.glob(f"a*/**/tests/**/{file}"))
    assert len(places) == 1, f"{file} is not one file: {places}"
    return places[0].read_text()


@pytest.mark.once
def test_coverage_table__every_test_it_names__is_there() -> None:
    absent = [f"{file}::{name}" for file, name in named() if f"def {name}" not in source_of(file)]
    assert len(named()) > 120
    assert absent == []


@pytest.mark.once
def test_coverage_table__every_file_it_names__is_there() -> None:
    paths = set(re.findall(r"`((?:apps|agentops|docs|templates)/[\w/.-]+\.\w+)", TABLE))
    assert len(paths) > 30
    assert [path for path in sorted(paths) if not Path(BASE_DIR / path).exists()] == []
