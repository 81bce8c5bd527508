"""The table of what governance asks for names tests and files that are there."""

import pytest

from agentops.tests.coverage_table import CoverageTable

# A gate's test is named alone: all of them have one file.
TABLE = CoverageTable("governance-coverage.md", alone="agentops/tests/test_each_gate.py")


@pytest.mark.once
def test_coverage_table__everything_it_names__is_there() -> None:
    assert len(TABLE.tests) > 120
    assert len(TABLE.files) > 30
    assert TABLE.absent() == []
