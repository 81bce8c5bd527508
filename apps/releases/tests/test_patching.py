"""Field patches: two people, one content. No database."""

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from apps.releases.content import content_validate
from apps.releases.patches.patching import (
    Conflict,
    Operation,
    patch_apply,
    patch_make,
    patch_resolve,
)
from apps.releases.patches.places import BadPath, path_parse
from apps.runtime.config import KINDS

EXAMPLES = Path(__file__).parents[3] / "examples" / "tenants"
MSK = {"code": "MSK", "enabled": True, "on_deny": "sanitize"}
PINJ = {"code": "PINJ", "enabled": True, "on_deny": "block"}
VLOOP = {"code": "VLOOP", "enabled": True, "on_deny": "block"}
RULES = {"input": [MSK, PINJ], "max_retries": 3, "block_text": "No."}


def put(theirs: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return ``theirs`` with the edit from ``before`` to ``after``, which must not conflict."""
    merged = patch_apply(theirs, patch_make(before, after))
    assert merged.conflicts == ()
    return merged.content


def conflicts(
    theirs: dict[str, Any], before: dict[str, Any], after: dict[str, Any]
) -> list[Conflict]:
    merged = patch_apply(theirs, patch_make(before, after))
    return list(merged.conflicts)


def test_patch_make__an_edit__names_each_place_with_what_was_and_what_shall_be() -> None:
    before = {**RULES, "words": ["a", "b"], "texts": {"MSK": "x"}}
    after = {
        "input": [{**MSK, "on_deny": "observe"}, VLOOP],
        "max_retries": 2,
        "block_text": "No.",
        "words": ["b", "c"],
        "texts": {"a.b": "y"},
    }
    assert [(o["op"], o["path"], o["before"], o["after"]) for o in patch_make(before, after)] == [
        ("set", "input[MSK].on_deny", "sanitize", "observe"),
        ("remove", "input[PINJ]", PINJ, None),
        ("add", "input[VLOOP]", None, VLOOP),
        ("set", "max_retries", 3, 2),
        ("remove", "texts.MSK", "x", None),
        ("add", 'texts."a.b"', None, "y"),
        ("remove", "words[]", "a", None),
        ("add", "words[]", None, "c"),
    ]


def test_patch_make__entries_in_another_order__touches_only_the_order() -> None:
    assert patch_make({"input": [MSK, PINJ]}, {"input": [PINJ, MSK]}) == [
        Operation(op="order", path="input", before=["MSK", "PINJ"], after=["PINJ", "MSK"])
    ]


def test_patch_make__an_entry_at_the_end__says_nothing_about_order() -> None:
    operations = patch_make({"input": [MSK]}, {"input": [MSK, PINJ]})
    assert [(o["op"], o["path"]) for o in operations] == [("add", "input[PINJ]")]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([{"x": 1}], [{"x": 2}]),  # Nothing names the entries.
        ([{"code": "A"}, {"code": "B"}], [{"code": "A"}, {"code": "A"}]),  # Not unique any more.
        (["a"], ["a", "a"]),  # A scalar twice.
        (["a"], [{"code": "A"}]),  # Another sort of list.
        ([1, {"code": "A"}], [1]),  # Mixed.
    ],
)
def test_patch_make__a_list_whose_entries_have_no_own_name__is_one_place(
    before: list[Any], after: list[Any]
) -> None:
    assert patch_make({"k": before}, {"k": after}) == [
        Operation(op="set", path="k", before=before, after=after)
    ]


def test_patch_make__a_new_item__adds_every_field() -> None:
    assert [(o["op"], o["path"]) for o in patch_make({}, RULES)] == [
        ("add", "input"),
        ("add", "max_retries"),
        ("add", "block_text"),
    ]
    assert put({}, {}, RULES) == RULES


def test_patch_apply__others_changed_other_places__keeps_both_and_reverts_nothing() -> None:
    mine = {**RULES, "input": [{**MSK, "enabled": False}, PINJ]}
    theirs = {
        "input": [{**MSK, "on_deny": "block"}, VLOOP, PINJ],
        "max_retries": 1,
        "block_text": "!",
    }
    assert put(theirs, RULES, mine) == {
        "input": [{"code": "MSK", "enabled": False, "on_deny": "block"}, VLOOP, PINJ],
        "max_retries": 1,
        "block_text": "!",
    }


def test_patch_apply__both_changed_the_same_field__is_a_conflict_and_theirs_stays() -> None:
    mine, theirs = {**RULES, "max_retries": 2}, {**RULES, "max_retries": 5}
    merged = patch_apply(theirs, patch_make(RULES, mine))
    assert merged.content == theirs
    assert merged.conflicts == (Conflict("max_retries", base=3, theirs=5, mine=2),)


def test_patch_apply__both_made_the_same_change__is_no_conflict() -> None:
    mine = {**RULES, "max_retries": 2, "input": [MSK, PINJ, VLOOP]}
    assert put(mine, RULES, mine) == mine


def test_patch_apply__a_long_text_changed_in_two_paragraphs__is_one_field_and_conflicts() -> None:
    base = {"system": "Seja claro.\n\nNunca peça senha."}
    mine = {"system": "Seja breve.\n\nNunca peça senha."}
    theirs = {"system": "Seja claro.\n\nNunca peça senha nem cartão."}
    assert conflicts(theirs, base, mine) == [
        Conflict("system", base["system"], theirs["system"], mine["system"])
    ]


def test_patch_apply__one_removed_what_the_other_changed__is_a_conflict_both_ways() -> None:
    changed = {**RULES, "input": [{**MSK, "enabled": False}, PINJ]}
    removed = {**RULES, "input": [PINJ]}
    assert conflicts(removed, RULES, changed) == [
        Conflict("input[MSK].enabled", base=True, theirs=None, mine=False)
    ]
    assert conflicts(changed, RULES, removed) == [
        Conflict("input[MSK]", base=MSK, theirs={**MSK, "enabled": False}, mine=None)
    ]


def test_patch_apply__both_removed_the_same_entry__is_no_conflict() -> None:
    removed = {**RULES, "input": [PINJ]}
    assert put(removed, RULES, removed) == removed


def test_patch_apply__both_added_the_same_key__conflicts_only_when_the_values_differ() -> None:
    mine = {**RULES, "input": [MSK, PINJ, VLOOP]}
    other = {**VLOOP, "enabled": False}
    theirs = {**RULES, "input": [MSK, PINJ, other]}
    assert conflicts(theirs, RULES, mine) == [
        Conflict("input[VLOOP]", base=None, theirs=other, mine=VLOOP)
    ]


def test_patch_apply__both_added_the_first_entries_of_an_empty_list__keeps_all() -> None:
    assert put({"k": [MSK]}, {"k": []}, {"k": [PINJ]}) == {"k": [MSK, PINJ]}
    assert put({"k": ["a"]}, {"k": []}, {"k": ["b"]}) == {"k": ["a", "b"]}


def test_patch_apply__a_list_was_emptied__keeps_what_others_added_to_it() -> None:
    assert put({"k": [MSK, VLOOP]}, {"k": [MSK]}, {"k": []}) == {"k": [VLOOP]}
    assert put({"k": ["a", "b"]}, {"k": ["a"]}, {"k": []}) == {"k": ["b"]}


def test_patch_apply__an_entry_added_in_the_middle__stands_behind_its_neighbour() -> None:
    theirs = {"input": [PINJ, {"code": "NEW"}, MSK]}
    assert put(theirs, {"input": [MSK, PINJ]}, {"input": [MSK, VLOOP, PINJ]}) == {
        "input": [PINJ, {"code": "NEW"}, MSK, VLOOP]
    }


def test_patch_apply__entries_moved__leaves_what_others_added_behind_its_neighbour() -> None:
    theirs = {"k": ["a", "new", "b", "c"]}
    assert put(theirs, {"k": ["a", "b", "c"]}, {"k": ["c", "a", "b"]}) == {
        "k": ["c", "a", "new", "b"]
    }


def test_patch_apply__both_moved_entries_differently__is_a_conflict_of_the_order_alone() -> None:
    base, mine, theirs = {"k": ["a", "b", "c"]}, {"k": ["c", "a", "b", "x"]}, {"k": ["b", "a", "c"]}
    merged = patch_apply(theirs, patch_make(base, mine))
    assert merged.content == {"k": ["b", "a", "c", "x"]}
    assert merged.conflicts == (
        Conflict("k", ["a", "b", "c"], ["b", "a", "c", "x"], ["c", "a", "b", "x"]),
    )
    operations = patch_make(base, mine)
    resolved = {
        choice: patch_resolve(theirs, operations, {"k": choice}).content["k"]
        for choice in ("mine", "theirs")
    }
    assert resolved == {"mine": ["c", "a", "b", "x"], "theirs": ["b", "a", "c", "x"]}
    own = patch_resolve(theirs, operations, {"k": {"value": ["x", "c", "b", "a"]}})
    assert own.content["k"] == ["x", "c", "b", "a"]


def test_patch_apply__a_list_in_which_a_key_became_double__conflicts_there_only() -> None:
    theirs = {"input": [MSK, {**MSK, "enabled": False}, PINJ]}
    mine = {"input": [{**MSK, "on_deny": "block"}, {**PINJ, "on_deny": "observe"}]}
    merged = patch_apply(theirs, patch_make({"input": [MSK, PINJ]}, mine))
    assert [c.path for c in merged.conflicts] == ["input[MSK].on_deny"]
    assert merged.content == {"input": [*theirs["input"][:2], {**PINJ, "on_deny": "observe"}]}


@pytest.mark.parametrize("theirs", [{}, {"k": None}, {"k": "text"}, {"k": {"MSK": 1}}])
def test_patch_apply__the_list_is_gone_or_something_else__is_a_conflict(
    theirs: dict[str, Any],
) -> None:
    edited = {**MSK, "enabled": False}
    assert [c.path for c in conflicts(theirs, {"k": [MSK]}, {"k": [edited, PINJ]})] == [
        "k[MSK].enabled",
        "k[PINJ]",
    ]
    assert [c.path for c in conflicts(theirs, {"k": ["a"]}, {"k": ["a", "b"]})] == ["k[]"]


def test_patch_apply__the_item_was_archived__every_change_is_a_conflict() -> None:
    found = conflicts({}, RULES, {**RULES, "max_retries": 1, "block_text": "!"})
    assert found == [
        Conflict("block_text", base="No.", theirs=None, mine="!"),
        Conflict("max_retries", base=3, theirs=None, mine=1),
    ]


def test_patch_apply__somebody_created_the_item_meanwhile__conflicts_where_it_differs() -> None:
    assert conflicts({**RULES, "max_retries": 1}, {}, RULES) == [
        Conflict("max_retries", base=None, theirs=1, mine=3)
    ]


def test_patch_apply__true_became_one__is_a_change() -> None:
    assert put({"a": 1}, {"a": 1}, {"a": True})["a"] is True
    assert [c.theirs for c in conflicts({"a": 1.0}, {"a": 1}, {"a": 2})] == [1.0]


def test_patch_resolve__a_choice_for_each_conflict__decides_it() -> None:
    theirs = {**RULES, "max_retries": 5, "block_text": "theirs", "input": [MSK]}
    mine = {
        **RULES,
        "max_retries": 1,
        "block_text": "mine",
        "input": [MSK, {**PINJ, "enabled": False}],
    }
    operations = patch_make(RULES, mine)
    some = patch_resolve(theirs, operations, {"max_retries": {"value": 2}, "block_text": "mine"})
    assert [c.path for c in some.conflicts] == ["input[PINJ].enabled"]
    assert some.content == {"max_retries": 2, "block_text": "mine", "input": [MSK]}


def test_patch_resolve__mine_in_an_entry_that_was_removed__brings_it_back_as_it_was() -> None:
    operations = patch_make(RULES, {**RULES, "input": [MSK, {**PINJ, "enabled": False}]})
    theirs, mine = {**RULES, "input": [MSK]}, {"input[PINJ].enabled": "mine"}
    back = patch_resolve(theirs, operations, mine, base=RULES)  # type: ignore[arg-type]
    assert back.content["input"] == [MSK, {**PINJ, "enabled": False}]
    bare = patch_resolve(theirs, operations, mine)  # type: ignore[arg-type]
    assert bare.content["input"] == [MSK, {"code": "PINJ", "enabled": False}]


def test_patch_resolve__a_choice_where_there_is_no_conflict__changes_nothing() -> None:
    operations = patch_make(RULES, {**RULES, "max_retries": 1})
    assert patch_resolve(RULES, operations, {"max_retries": "theirs"}).content["max_retries"] == 1


@pytest.mark.parametrize("path", ["", ".a", "a.", "a..b", "[x]", "a[x", "a]", 'a."b', "a[x]b"])
def test_patch_apply__an_operation_that_names_no_place__is_refused(path: str) -> None:
    with pytest.raises(BadPath):
        patch_apply({}, [Operation(op="set", path=path, before=None, after=1)])


def test_path_parse__names_that_look_like_paths__are_written_as_json_strings() -> None:
    assert [step.name for step in path_parse('a."b.c"["d]"][e.f]')] == ["a", "b.c", "d]", "e.f"]


def examples() -> list[tuple[str, str, str, dict[str, Any]]]:
    """Return (tenant, kind, slug, content) of everything in the example tenants."""
    found = []
    for file in sorted(EXAMPLES.glob("*.yaml")):
        for kind, items in (YAML(typ="safe").load(file).get("items") or {}).items():
            for slug, written in items.items():
                labels = ("name", "owner", "technical_owner")
                content = {n: v for n, v in written.items() if n not in labels or kind == "judge"}
                config = content_validate(kind=kind, slug=slug, content=content).config
                found.append((file.stem, kind, slug, config.model_dump(mode="json")))
    return found


def test_patch_apply__each_example_item_turned_into_each_other_of_its_kind__round_trips() -> None:
    items = examples()
    assert {kind for _, kind, _, _ in items} == set(KINDS)
    for _, kind, slug, before in items:
        for _, other_kind, other, after in items:
            if kind == other_kind:
                merged = patch_apply(before, patch_make(before, after))
                assert (merged.content, merged.conflicts) == (after, ()), (
                    f"{kind}: {slug} → {other}"
                )
