"""Field patches of any contents: what holds for all of them. No database."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.releases.patches.diff import content_diff
from apps.releases.patches.patching import patch_apply, patch_make, patch_resolve
from apps.releases.patches.places import Step, entry_path, field_path, path_parse, values_path
from apps.releases.tests.contents import contents
from apps.runtime.canonical import canonical_json
from apps.runtime.config import KINDS

NAMES = st.sampled_from(["a", "b", "c.d", "e[f]", "", '"', "a b"]) | st.text(max_size=3)
SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, "", "a", "b"])
KEYED = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "code": st.sampled_from(["A", "B", "C]", "D"]),
            "name": st.sampled_from(["A", "B", "n"]),
            "x": SCALARS,
        },
    ),
    max_size=4,
)
VALUES = st.recursive(
    SCALARS | KEYED | st.lists(SCALARS, max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
CONTENTS = st.dictionaries(NAMES, VALUES, max_size=4)


def same(one: Any, other: Any) -> bool:
    return canonical_json(one) == canonical_json(other)


def mixed(names: set[str], inside: dict[str, Any], outside: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of ``inside`` that are in ``names`` and those of ``outside`` that are not."""
    return {n: v for n, v in inside.items() if n in names} | {
        n: v for n, v in outside.items() if n not in names
    }


@given(before=CONTENTS, after=CONTENTS)
def test_patch_apply__onto_what_the_editor_saw__gives_what_the_editor_wrote(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    merged = patch_apply(before, patch_make(before, after))
    assert merged.conflicts == ()
    assert canonical_json(merged.content) == canonical_json(after)


@given(before=CONTENTS, after=CONTENTS)
def test_patch_make__any_two_contents__is_empty_only_when_they_mean_the_same(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    assert (patch_make(before, after) == []) is same(before, after)
    assert (content_diff(before, after) == []) is same(before, after)


@given(before=CONTENTS, after=CONTENTS)
def test_patch_apply__twice__changes_nothing_more(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    operations = patch_make(before, after)
    again = patch_apply(after, operations)
    assert again.conflicts == ()
    assert same(again.content, after)


@given(before=CONTENTS, after=CONTENTS, theirs=CONTENTS)
def test_patch_apply__onto_anything_else__is_stable_and_leaves_what_was_given_as_it_was(
    before: dict[str, Any], after: dict[str, Any], theirs: dict[str, Any]
) -> None:
    operations, given_text = patch_make(before, after), canonical_json(theirs)
    once = patch_apply(theirs, operations)
    twice = patch_apply(once.content, operations)
    assert same(twice.content, once.content)
    assert [c.path for c in twice.conflicts] == [c.path for c in once.conflicts]
    assert canonical_json(theirs) == given_text


@given(before=CONTENTS, after=CONTENTS, theirs=CONTENTS)
def test_patch_apply__onto_anything_else__changes_only_what_an_operation_names(
    before: dict[str, Any], after: dict[str, Any], theirs: dict[str, Any]
) -> None:
    operations = patch_make(before, after)
    merged = patch_apply(theirs, operations)
    named = {path_parse(operation["path"])[0].name for operation in operations}
    rest = {name: value for name, value in theirs.items() if name not in named}
    assert same({n: v for n, v in merged.content.items() if n not in named}, rest)
    assert {c.path for c in merged.conflicts} <= {operation["path"] for operation in operations}


@given(before=CONTENTS, after=CONTENTS, theirs=CONTENTS)
def test_patch_resolve__every_conflict_theirs__is_what_a_merge_leaves(
    before: dict[str, Any], after: dict[str, Any], theirs: dict[str, Any]
) -> None:
    operations = patch_make(before, after)
    merged = patch_apply(theirs, operations)
    resolved = patch_resolve(theirs, operations, {c.path: "theirs" for c in merged.conflicts})
    assert resolved.conflicts == ()
    assert same(resolved.content, merged.content)


@given(before=CONTENTS, after=CONTENTS, theirs=CONTENTS)
def test_patch_resolve__every_conflict_mine__leaves_none_and_has_every_field_as_the_editor_wrote(
    before: dict[str, Any], after: dict[str, Any], theirs: dict[str, Any]
) -> None:
    operations = patch_make(before, after)
    found = patch_apply(theirs, operations).conflicts
    resolved = patch_resolve(theirs, operations, {c.path: "mine" for c in found}, base=before)
    assert resolved.conflicts == ()
    for operation in operations:
        steps = path_parse(operation["path"])
        if len(steps) == 1 and operation["op"] in ("set", "add"):
            assert same(resolved.content[steps[0].name], operation["after"])
        if len(steps) == 1 and operation["op"] == "remove":
            assert steps[0].name not in resolved.content


@given(base=CONTENTS, mine=CONTENTS, theirs=CONTENTS)
def test_patch_apply__two_patches_of_different_fields__commute_and_keep_both(
    base: dict[str, Any], mine: dict[str, Any], theirs: dict[str, Any]
) -> None:
    # Mine are the fields in the first half of all names, theirs the rest.
    names = sorted({*base, *mine, *theirs})
    half = set(names[: len(names) // 2])
    first = patch_make(base, mixed(half, mine, base))
    second = patch_make(base, mixed(half, base, theirs))
    one = patch_apply(patch_apply(base, first).content, second)
    other = patch_apply(patch_apply(base, second).content, first)
    assert one.conflicts == other.conflicts == ()
    assert same(one.content, other.content)
    assert same(one.content, mixed(half, mine, theirs))


@given(
    base=st.lists(st.sampled_from("abcdef"), unique=True),
    mine=st.lists(st.sampled_from("abcdefxyz"), unique=True),
    theirs=st.lists(st.sampled_from("abcdefuvw"), unique=True),
)
def test_patch_apply__a_list_two_people_changed__has_what_both_added_and_not_what_either_removed(
    base: list[str], mine: list[str], theirs: list[str]
) -> None:
    merged = patch_apply({"k": theirs}, patch_make({"k": base}, {"k": mine}))
    kept = set(base) & set(mine) & set(theirs)
    assert set(merged.content["k"]) == kept | (set(mine) - set(base)) | (set(theirs) - set(base))
    assert len(merged.content["k"]) == len(set(merged.content["k"]))
    keyed = [[{"code": entry} for entry in side] for side in (base, mine, theirs)]
    by_key = patch_apply({"k": keyed[2]}, patch_make({"k": keyed[0]}, {"k": keyed[1]}))
    assert [entry["code"] for entry in by_key.content["k"]] == merged.content["k"]


@given(
    base=st.lists(st.sampled_from("abcdef"), unique=True),
    mine=st.lists(st.sampled_from("abcdefxyz"), unique=True),
    theirs=st.lists(st.sampled_from("uvw"), unique=True),
    data=st.data(),
)
def test_patch_apply__a_list_others_only_added_to__stands_as_the_editor_put_it(
    base: list[str], mine: list[str], theirs: list[str], data: st.DataObject
) -> None:
    now = list(base)
    for entry in theirs:
        now.insert(data.draw(st.integers(0, len(now))), entry)
    merged = patch_apply({"k": now}, patch_make({"k": base}, {"k": mine}))
    assert merged.conflicts == ()
    assert [entry for entry in merged.content["k"] if entry not in theirs] == mine
    untouched = [entry for entry in merged.content["k"] if entry in theirs]
    assert sorted(untouched) == sorted(theirs)


@given(steps=st.lists(st.tuples(st.sampled_from(["field", "entry"]), NAMES), max_size=4))
def test_path_parse__any_names__gives_them_back(steps: list[tuple[str, str]]) -> None:
    path = field_path("", "top")
    for kind, name in steps:
        path = field_path(path, name) if kind == "field" else entry_path(path, name)
    parsed = path_parse(values_path(path))
    assert parsed[0] == Step("field", "top")
    assert [(step.kind, step.name) for step in parsed[1:-1]] == steps
    assert parsed[-1] == Step("values")


@pytest.mark.parametrize("kind", sorted(KINDS))
@given(data=st.data())
def test_patch_apply__any_contents_of_a_kind__round_trips(kind: str, data: st.DataObject) -> None:
    sides = [data.draw(contents(KINDS[kind])).model_dump(mode="json") for _ in range(2)]
    merged = patch_apply(sides[0], patch_make(sides[0], sides[1]))
    assert merged.conflicts == ()
    assert same(merged.content, sides[1])
    assert [o["path"] for o in patch_make({}, sides[1])] == list(sides[1])
