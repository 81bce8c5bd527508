"""YAML in and out: JSON types only, lines for everything."""

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.releases.portable.yaml_source import SourceRefused, source_parse
from apps.releases.portable.yaml_text import yaml_text

ODD_TEXTS = [
    "no", "yes", "on", "y", "null", "~", "", "true", "1e3", "0123", "1_000", "0x1f", "12:30:00",
    "2026-01-01", "2026-01-01T10:00:00Z", ".5", "1.", "+1", ".inf", "=", "<<", "- a", "a: b",
    "a #b", "# c", "[a]", "{a}", "&a", "*a", "!a", "@a", "`a", "%a", "|", ">", "'", '"', "---",
    "...", " lead", "trail ", "tab\there", "a\nb", "a\nb\n", "a\n\n\n", "\na", " a\nb", "a \nb",
    "a\r\nb", "a\n---\nb", "a\n...\nb", "linha\u2028quebra", "next\x85line", "\ufeffbom",
    "não\u00a0quebra", "ação", "ação", "👩‍👩‍👧 família", "x" * 5000, "{{ agent }}", "C:\\dir",
]  # fmt: skip
_LETTERS = " \n\t\r-:#'\"abyno\x85é0129.eE+x[]{}&*|>@`~=<,?!%_()/"
_storable = st.text(max_size=10).filter(
    lambda text: "\0" not in text and not any("\ud800" <= c <= "\udfff" for c in text)
)
_text = st.text(alphabet=_LETTERS, max_size=12) | _storable
_value = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | _text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_text, inner, max_size=4),
    max_leaves=10,
)


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_yaml_text__odd_text__comes_back_as_the_same_text(text: str) -> None:
    document = {"key": text, "list": [text], text: 1}
    assert source_parse(yaml_text(document).encode(), "f").value == document


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(_text, _value, max_size=4))
def test_yaml_text__any_json_value__comes_back_the_same(document: dict[str, Any]) -> None:
    assert source_parse(yaml_text(document).encode(), "f").value == document


def test_yaml_text__odd_texts__mean_the_same_to_a_yaml_1_1_reader() -> None:
    assert yaml.safe_load(yaml_text({"odd": ODD_TEXTS})) == {"odd": ODD_TEXTS}


def test_yaml_text__several_lines__stand_as_a_literal_block() -> None:
    assert yaml_text({"system": "Olá.\nResponda.\n"}) == "system: |\n  Olá.\n  Responda.\n"


def test_yaml_text__long_numbers__keep_every_digit() -> None:
    document = {"int": 12345678901234567890123456789, "float": 0.1, "big": 1e22, "one": 1.0}
    parsed = source_parse(yaml_text(document), "f").value
    assert parsed == document
    assert isinstance(parsed["one"], float)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"), ("0123", "0123"), ("1_000", "1_000"), ("12:30", "12:30"), ("0x1f", "0x1f"),
        ("2026-01-01", "2026-01-01"), (".inf", ".inf"), ("1.5", 1.5), ("1e3", 1000.0), ("-7", -7),
        ("TRUE", True), ("False", False), ("~", None), ("", None), ("'5'", "5"),
    ],
)  # fmt: skip
def test_source_parse__plain_scalar__is_text_unless_it_is_exactly_json(
    text: str, value: Any
) -> None:
    parsed = source_parse(f"a: {text}\n", "f").value
    assert parsed == {"a": value}
    assert type(parsed["a"]) is type(value)


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 2\n", "f.yaml:4 b.c", "stands twice; first on line 3"),
        ("a: 1\na: !!python/object:os.system x", "f.yaml:2 a", "stands twice"),
        ("x: !!python/object:os.system x", "f.yaml:1 x", "tag"),
        ("x: !!binary aGk=", "f.yaml:1 x", "tag"),
        ("x: !mine {a: 1}", "f.yaml:1 x", "tag"),
        ("a: &m {b: 1}\nc:\n  <<: *m\n", "f.yaml:3 c", "Merge keys"),
        ("? [a]\n: 1\n", "f.yaml:1", "A key must be text"),
        ("ok: 1\nx: [1,\n", "f.yaml:3", "expected"),
        ("a: 1\n---\nb: 2\n", "f.yaml:2", "another document"),
        ('a: "\\0"', "f.yaml:1 a", "NUL"),
        ('a: "\\ud800"', "f.yaml:1 a", "NUL"),
        ('"\\0": 1', "f.yaml:1", "NUL"),
        ("a: 1\nb: \x00", "f.yaml:2", "does not allow"),
        ("a: 1e999", "f.yaml:1 a", "too large"),
        ("[" * 3000, "f.yaml", "nested too deeply"),
        ("a: &x [*x]", "f.yaml", "nested too deeply"),
    ],
)
def test_source_parse__bad_yaml__is_refused_with_line_and_path(
    text: str, where: str, message: str
) -> None:
    with pytest.raises(SourceRefused) as refused:
        source_parse(text, "f.yaml")
    assert any(str(p).startswith(where) and message in str(p) for p in refused.value.problems)


def test_source_parse__not_utf8__is_refused_with_the_line() -> None:
    with pytest.raises(SourceRefused) as refused:
        source_parse(b"a: 1\nb: \xff\n", "f.yaml")
    assert (refused.value.problems[0].line, refused.value.problems[0].file) == (2, "f.yaml")


def test_source_parse__aliases_that_multiply__are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(SourceRefused):
        source_parse("\n".join(lines), "f.yaml")


def test_source_line__path_that_is_not_there__is_the_line_around_it() -> None:
    source = source_parse("a:\n  b:\n    - c: 1\n", "f.yaml")
    assert [source.line(path) for path in ("a", "a.b[0]", "a.b[0].c.d", "a.zzz", "zzz")] == [
        1, 3, 3, 1, 1,
    ]  # fmt: skip
