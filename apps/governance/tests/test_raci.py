"""The responsibility matrix: each row of the table it comes from, and what is wrong with one."""

import pytest

from apps.governance import raci
from apps.governance.raci import (
    ACTIVITIES,
    ACTIVITY_OF_KIND,
    DEFAULTS,
    DUTIES,
    accountable,
    activities_of,
    approving,
    raci_problems,
    responsible,
    row_problems,
)
from apps.releases.changes.policy import ItemEdit
from apps.runtime.config import KINDS

# activity, Platform, Domain, Integration, SRE, Security: the table as it is written there.
TABLE = [
    ("Framework or runtime change", "R/A", "C", "I", "C", "C"),
    ("New agent", "C", "R/A", "C", "I", "I"),
    ("New MCP tool", "C", "C", "R/A", "I", "C"),
    ("Prompt change", "I", "R/A", "I", "I", "C"),
    ("Guardrail change", "R", "C", "I", "I", "A"),
    ("Model profile change", "R", "C", "I", "I", "C"),
    ("Production deploy", "I", "C", "C", "R/A", "C"),
    ("Security review", "I", "C", "C", "C", "R/A"),
    ("Certification", "R/A", "C", "C", "I", "I"),
]
ANSWERS = [
    ("framework_change", ("platform",)),
    ("new_agent", ("domain",)),
    ("new_mcp_tool", ("integration",)),
    ("prompt_change", ("domain",)),
    ("guardrail_change", ("security",)),
    ("model_profile_change", ()),
    ("production_deploy", ("sre",)),
    ("security_review", ("security",)),
    ("certification", ("platform",)),
]


def edit(kind: str) -> ItemEdit:
    return ItemEdit(kind=kind, slug="x", before=None, after={})


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row[0])
def test_matrix__row_of_the_source__has_its_letters(row):
    activity = next(code for code, title in ACTIVITIES.items() if str(title) == row[0])
    assert tuple(DEFAULTS[activity][duty] for duty in DUTIES) == row[1:]


def test_matrix__has_the_rows_of_the_source_and_no_others():
    assert [str(title) for title in ACTIVITIES.values()] == [row[0] for row in TABLE]
    assert list(DEFAULTS) == list(ACTIVITIES) == [activity for activity, _duties in ANSWERS]


@pytest.mark.parametrize(("activity", "duties"), ANSWERS)
def test_matrix__activity__has_this_duty_accountable(activity, duties):
    assert accountable(DEFAULTS[activity]) == duties


def test_problems__of_the_source__are_model_profile_change_alone():
    (problem,) = raci_problems(DEFAULTS)
    assert (problem.activity, problem.code) == ("model_profile_change", "nobody_accountable")
    assert "Model profile change" in problem.message
    assert approving(DEFAULTS["model_profile_change"]) == ("platform",)


@pytest.mark.parametrize(
    ("letters", "codes", "who"),
    [
        ({"domain": "R/A"}, [], ("domain",)),
        ({"domain": "R", "security": "A"}, [], ("security",)),
        ({"domain": "R/A", "security": "A"}, ["many_accountable"], ("domain", "security")),
        ({"security": "A"}, ["nobody_responsible"], ("security",)),
        ({"domain": "R"}, ["nobody_accountable"], ("domain",)),
        ({"domain": "C"}, ["nobody_accountable", "nobody_responsible"], ("platform",)),
        ({}, ["nobody_accountable", "nobody_responsible"], ("platform",)),
    ],
)
def test_row__with_these_letters__has_these_problems_and_approvers(letters, codes, who):
    assert [problem.code for problem in row_problems("prompt_change", letters)] == codes
    assert approving(letters) == who


def test_kinds__all__are_an_activity():
    assert set(ACTIVITY_OF_KIND) == set(KINDS)
    assert set(ACTIVITY_OF_KIND.values()) <= set(ACTIVITIES)


def test_kind__unknown__changes_the_framework():
    assert activities_of([edit("spaceship")]) == (raci.FRAMEWORK_CHANGE,)


def test_activities__of_many_edits__are_each_once_in_order():
    edits = [edit(kind) for kind in ("rail_policy", "prompt", "tool", "prompt", "agent")]
    assert activities_of(edits) == (
        "new_agent", "new_mcp_tool", "prompt_change", "guardrail_change",
    )  # fmt: skip


def test_responsible__shared_with_accountable__counts_as_both():
    assert responsible(DEFAULTS["guardrail_change"]) == ("platform",)
    assert responsible(DEFAULTS["new_agent"]) == ("domain",)
