"""The table of what a conversation must do names tests and files that are there."""

import re

import pytest

from agentops.tests.coverage_table import CoverageTable

TABLE = CoverageTable("conversation-coverage.md")
FAULTS = range(1, 51)


@pytest.mark.once
def test_coverage_table__everything_it_names__is_there() -> None:
    assert len(TABLE.tests) > 300
    assert len(TABLE.files) > 60
    assert TABLE.absent() == []


@pytest.mark.once
def test_coverage_table__every_row__is_shown_or_says_why_not() -> None:
    rows = [line for line in TABLE.text.splitlines() if re.match(r"\| (?!row |---|-)", line)]
    bare = [row for row in rows if "::" not in row and not re.search(r"\*[a-z ]+\*:", row)]
    assert bare == []


@pytest.mark.once
def test_coverage_table__faults__all_have_a_row() -> None:
    rows = re.findall(r"^\| fault (\d+) ", TABLE.text, re.M)
    assert [int(number) for number in rows] == list(FAULTS)
