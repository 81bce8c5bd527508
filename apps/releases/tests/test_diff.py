"""Field-wise changes. No database."""

from typing import Any

import pytest

from apps.releases.patches.diff import content_diff, text_lines


def changes(before: Any, after: Any) -> list[tuple[str, str, Any, Any]]:
    return [(c["change"], c["path"], c["before"], c["after"]) for c in content_diff(before, after)]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, [("changed", "a", 1, 2)]),
        ({}, {"a": 1}, [("added", "a", None, 1)]),
        ({"a": 1}, {}, [("removed", "a", 1, None)]),
        ({"a": 1}, {"a": True}, [("changed", "a", 1, True)]),
        ({"a": 1}, {"a": 1.0}, [("changed", "a", 1, 1.0)]),
        ({"a": None}, {"a": 0}, [("changed", "a", None, 0)]),
        ({"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 2}}}, [("changed", "a.b.c", 1, 2)]),
        ({"a": {"b": 1}}, {"a": [1]}, [("changed", "a", {"b": 1}, [1])]),
        ({"b": 1, "a": 1}, {"b": 2, "a": 2}, [("changed", "a", 1, 2), ("changed", "b", 1, 2)]),
    ],
)
def test_content_diff__fields__name_path_before_and_after(
    before: Any, after: Any, expected: list[tuple[str, str, Any, Any]]
) -> None:
    assert changes(before, after) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (["a", "b"], ["b", "c"], [("removed", "k", "a", None), ("added", "k", None, "c")]),
        (["a"], ["a", "a"], [("added", "k", None, "a")]),
        (["a", "b"], ["b", "a"], [("moved", "k", ["a", "b"], ["b", "a"])]),
        ([1], [True], [("removed", "k", 1, None), ("added", "k", None, True)]),
        (
            ["a", "b", "x"],
            ["b", "a"],
            [("removed", "k", "x", None), ("moved", "k", ["a", "b", "x"], ["b", "a"])],
        ),
        ([], ["a"], [("added", "k", None, "a")]),
    ],
)
def test_content_diff__lists_of_values__show_entries_added_removed_and_moved(
    before: list[Any], after: list[Any], expected: list[tuple[str, str, Any, Any]]
) -> None:
    assert changes({"k": before}, {"k": after}) == expected


def test_content_diff__lists_of_objects__are_matched_by_code() -> None:
    before = [{"code": "MSK", "on_deny": "block"}, {"code": "PINJ", "on_deny": "block"}]
    after = [{"code": "VLOOP"}, {"code": "MSK", "on_deny": "observe"}]
    assert changes({"input": before}, {"input": after}) == [
        ("changed", "input[MSK].on_deny", "block", "observe"),
        ("removed", "input[PINJ]", {"code": "PINJ", "on_deny": "block"}, None),
        ("added", "input[VLOOP]", None, {"code": "VLOOP"}),
    ]


def test_content_diff__lists_of_objects_in_another_order__are_moved() -> None:
    a, b = {"name": "a", "x": 1}, {"name": "b", "x": 1}
    assert changes({"judges": [a, b]}, {"judges": [b, a]}) == [
        ("moved", "judges", ["a", "b"], ["b", "a"])
    ]


def test_content_diff__lists_of_objects_without_a_unique_key__are_matched_by_place() -> None:
    before, after = [{"name": "a"}, {"name": "a"}], [{"name": "a"}, {"name": "b"}]
    assert changes({"k": before}, {"k": after}) == [("changed", "k[1].name", "a", "b")]


def test_content_diff__long_text__is_marked_for_a_diff_of_lines() -> None:
    found = content_diff({"system": "one\ntwo\nthree"}, {"system": "one\n2\nthree"})
    assert [(c["change"], c["path"]) for c in found] == [("text", "system")]
    assert text_lines(found[0]["before"], found[0]["after"]) == [
        (" ", "one"),
        ("-", "two"),
        ("+", "2"),
        (" ", "three"),
    ]


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ("claro e objetivo", "claro, objetivo", "changed"),
        ("claro e muito objetivo", "claro e objetivo", "text"),
        ("", "claro e muito objetivo", "text"),
    ],
)
def test_content_diff__a_sentence_of_some_words__is_marked_for_a_diff_of_words(
    before: str, after: str, change: str
) -> None:
    assert [c["change"] for c in content_diff({"s": before}, {"s": after})] == [change]


def test_content_diff__lists_told_apart_by_another_key__are_compared_by_place() -> None:
    before, after = [{"code": "A", "name": "n"}], [{"name": "n"}, {"name": "m"}]
    assert [(c["change"], c["path"]) for c in content_diff({"k": before}, {"k": after})] == [
        ("removed", "k[0].code"),
        ("added", "k[1]"),
    ]


def test_content_diff__names_that_read_as_paths__are_written_as_json_strings() -> None:
    before = {"texts": {"a.b": 1}, "input": [{"code": "x]", "on": 1}]}
    after = {"texts": {"a.b": 2}, "input": [{"code": "x]", "on": 2}]}
    assert [c["path"] for c in content_diff(before, after)] == ['input["x]"].on', 'texts."a.b"']


def test_content_diff__one_long_line__is_marked_too() -> None:
    assert [c["change"] for c in content_diff({"s": "x" * 81}, {"s": "y"})] == ["text"]
    assert [c["change"] for c in content_diff({"s": "x" * 80}, {"s": "y"})] == ["changed"]
