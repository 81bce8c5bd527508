"""What a workflow's configuration may say, and the reason when it may not."""

import pytest
from pydantic import ValidationError

from apps.tools.config import WorkflowConfig
from apps.tools.workflows.paths import (
    BadPath,
    Path,
    condition_parse,
    path_parse,
    places,
    text_filled,
    value_at,
)

A = {"id": "a", "tool": "t", "next": "b"}
B = {"id": "b", "tool": "t"}


def errors(*nodes, **fields) -> str:
    with pytest.raises(ValidationError) as raised:
        WorkflowConfig(**{"start": "a", "nodes": list(nodes), **fields})
    return str(raised.value)


def fits(*nodes, **fields) -> WorkflowConfig:
    return WorkflowConfig(**{"start": "a", "nodes": list(nodes), **fields})


def test_workflow__whole__is_taken():
    ask = {"key": "why", "question": "Why {nodes.a.id}?"}
    flow = fits(
        {**A, "compensate_tool": "u", "compensate_params": {"x": "$.nodes.a.id"}},
        {**B, "when": "$.nodes.a.ok == yes", "otherwise": "c", "on_failure": "c", "next": "c"},
        {"id": "c", "pause": ask, "next": "d"},
        {"id": "d", "tool": "t", "params": {"x": "$.input.why", "y": "text", "z": "$.nodes.b.0"}},
        done_text="Done {nodes.d.id} {input.why}.",
    )
    assert [node.id for node in flow.nodes] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("nodes", "fields", "reason"),
    [
        ((A, A), {}, "two nodes have the same id"),
        ((A, B), {"start": "z"}, "start names a node that there is not: z"),
        ((), {}, "start names a node that there is not: a"),
        ((A,), {}, "a.next names a node that there is not: b"),
        ((A, B, {"id": "c", "tool": "t"}), {}, "c is never reached"),
        ((A, {"id": "b"}), {}, "b does nothing"),
        ((A, {**B, "otherwise": "a"}), {}, "b.otherwise needs a condition"),
        ((A, {"id": "b", "when": "$.input.x", "retries": 2}), {}, "b.retries needs a tool"),
        ((A, {"id": "b", "when": "$.input.x", "compensate_tool": "u"}), {}, "b.compensate_tool needs a tool"),
        ((A, {**B, "compensate_params": {"x": "1"}}), {}, "b.compensate_params needs a compensate_tool"),
        ((A, {**B, "at_most_once": True, "retries": 1}), {}, "b is at_most_once"),
        ((A, {"id": "b", "pause": {"key": "k"}}), {}, "b.pause needs a question"),
        (
            (A, {"id": "b", "pause": {"key": "k", "question": "?", "classify_profile": "router"}}),
            {},
            "b.pause.classify_profile needs allowed_values",
        ),
        ((A, {**B, "pause": {"question": "?"}}), {}, "b.pause needs a key"),
        ((A, {"id": "b", "pause": {"key": "k", "question": "? {nodes.z.x}"}}), {}, "b.pause.question: z does not come before it"),
        ((A, {**B, "when": "sim"}), {}, "b.when: 'sim' is no condition"),
        ((A, {**B, "when": "$.input.x > 3"}), {}, "b.when"),
        ((A, {**B, "params": {"x": "$.nodes.b.id"}}), {}, "b.params.x: b does not come before it"),
        (({**A, "params": {"x": "$.nodes.b.id"}}, B), {}, "a.params.x: b does not come before it"),
        ((A, {**B, "params": {"x": "$.something"}}), {}, "b.params.x: '$.something' is no path"),
        ((A, B), {"done_text": "{nodes.zz.id}"}, "done_text: zz does not come before it"),
        ((A, {**B, "next": "a"}), {}, "a → b → a goes round without ever asking"),
        ((A, {**B, "on_failure": "b"}), {}, "b → b goes round"),
    ],
)  # fmt: skip
def test_workflow__that_cannot_be_run__says_what_is_wrong(nodes, fields, reason):
    assert reason in errors(*nodes, **fields)


def test_workflow__that_goes_round_through_a_question__is_taken():
    pause = {"key": "k", "question": "Again?"}
    fits(A, {"id": "b", "next": "a", "pause": pause})


@pytest.mark.parametrize("retries", [-1, 11])
def test_retries__outside_0_to_10__are_refused(retries):
    assert "retries" in errors(A, {**B, "retries": retries})


def test_node__of_a_name_that_no_path_could_have__is_refused():
    assert "id" in errors({"id": "a-b", "tool": "t"}, start="a-b")


def path_of(text: str) -> Path:
    found = path_parse(text)
    assert found is not None
    return found


def test_path__and_literal__are_told_apart():
    assert path_parse("texto") is None
    assert path_of("$.nodes.a.b.0").names == ("a", "b", "0")
    for bad in ("$", "$.x.y", "$.input", "$.nodes.a b", "$.input.a.", "$input.a"):
        with pytest.raises(BadPath):
            path_parse(bad)


def test_value__at_a_path__is_nothing_where_it_leads_nowhere():
    nodes = {"a": {"list": [{"id": 1}], "text": "abc"}}
    assert value_at(path_of("$.nodes.a.list.0.id"), {}, nodes) == 1
    for path in ("$.nodes.a.list.7", "$.nodes.a.text.0", "$.nodes.z.x", "$.input.q"):
        assert value_at(path_of(path), {}, nodes) is None


def test_text__with_places__is_filled_and_other_braces_stay():
    nodes = {"a": {"id": 12, "ok": True, "gone": None}}
    text = "n {nodes.a.id} {nodes.a.ok} [{nodes.a.gone}] {outra} {input.v}"
    assert text_filled(text, {"v": "é"}, nodes) == "n 12 true [] {outra} é"
    assert [place.names for place in places(text)] == [("a", "id"), ("a", "ok"), ("a", "gone"), ("v",)]  # fmt: skip


def test_condition__value__may_be_quoted_and_hold_blanks():
    assert condition_parse("$.input.x == 'em aberto'").value == "em aberto"
    assert condition_parse("  $.input.x  !=  a b  ").value == "a b"
