"""What an editor sends, and what is said about it. No database."""

from collections.abc import Mapping
from typing import Any

import pytest

from apps.releases.content import InvalidContent, content_validate


def errors_of(kind: str, content: Any, slug: str = "x") -> dict[str, str]:
    with pytest.raises(InvalidContent) as invalid:
        content_validate(kind=kind, slug=slug, content=content)
    return {error["field"]: error["message"] for error in invalid.value.errors}


@pytest.mark.parametrize(
    ("kind", "content", "field", "message"),
    [
        ("prompt", {}, "system", "This field is required."),
        ("prompt", {"system": "x", "sistem": "y"}, "sistem", "This field is not known here."),
        ("prompt", {"system": 5}, "system", "Input should be a valid string"),
        (
            "agent",
            {"prompt": "p", "lifecycle": {"deprecated_on": "31/12/2026"}},
            "lifecycle.deprecated_on",
            "This is not in the form that the field asks for.",
        ),
        ("prompt", {"system": None}, "system", "Input should be a valid string"),
        ("prompt", "text", "", "Input should be a valid dictionary or instance of PromptConfig"),
        (
            "prompt",
            {"system": "a\x00b"},
            "system",
            "The text holds a NUL or characters that are not valid Unicode.",
        ),
        (
            "prompt",
            {"system": "a\ud800b"},
            "system",
            "The text holds a NUL or characters that are not valid Unicode.",
        ),
        (
            "rail_policy",
            {"input": [{"code": "MSK"}, {"code": "PINJ", "on_deny": "explode"}]},
            "input[1].on_deny",
            "Input should be '', 'observe', 'sanitize', 'retry', 'block' or 'handover'",
        ),
        (
            "rail_policy",
            {"input": [{"code": "NOPE"}]},
            "input",
            "unknown rail 'NOPE'; known: INPUT_SIZE, MSK, PINJ, VLOOP",
        ),
        (
            "tool",
            {"mcp_server": "s", "description": "", "args_schema": {"id": {"type": "text"}}},
            "args_schema.id.type",
            "Input should be 'string', 'integer', 'number', 'boolean', 'array' or 'object'",
        ),
        (
            "parameter_mapping",
            {"tool": "t", "defaults": {"a": [float("nan")]}},
            "defaults.a[0]",
            "This is not a finite number.",
        ),
        (
            "model_profile",
            {"prices": {"input": "inf"}},
            "prices.input",
            "This is not a finite number.",
        ),
        (
            "parameter_mapping",
            {"tool": "t", "defaults": {"a": {"b": ["x", "\x00"]}}},
            "defaults.a.b[1]",
            "The text holds a NUL or characters that are not valid Unicode.",
        ),
        (
            "agent",
            {"prompt": "no such name!"},
            "prompt",
            "Use letters, digits, and . _ : - (the first one a letter, digit or _), at most 120.",
        ),
        (
            "agent",
            {"prompt": "p", "tools": ["ok", "x" * 121]},
            "tools[1]",
            "Use letters, digits, and . _ : - (the first one a letter, digit or _), at most 120.",
        ),
        ("agent", {"prompt": ""}, "prompt", "This field is required."),
        ("tool_server", {"endpoint": ""}, "endpoint", "This field is required."),
        (
            "tool_server",
            {"endpoint": "http://host/mcp"},
            "endpoint",
            "Use letters, digits, and . _ : - (the first one a letter, digit or _), at most 120.",
        ),
    ],
)
def test_content__wrong_field__names_it_in_plain_words(
    kind: str, content: Mapping[str, Any], field: str, message: str
) -> None:
    assert errors_of(kind, content) == {field: message}


def test_content__unknown_kind__is_an_error_of_the_kind() -> None:
    assert errors_of("robot", {}) == {"kind": "There is no kind of that name."}


@pytest.mark.parametrize("slug", ["", " ", "a b", "-a", "a/b", "á", "a\n", "x" * 121, "a\x00"])
def test_content__bad_slug__is_an_error_of_the_slug(slug: str) -> None:
    assert list(errors_of("prompt", {"system": "x"}, slug=slug)) == ["slug"]


def test_content__nested_beyond_measure__is_an_error_and_no_crash() -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    assert errors_of("parameter_mapping", {"tool": "t", "defaults": {"a": deep}}) == {
        "": "The content is nested too deeply."
    }


def test_content__message__never_repeats_the_value() -> None:
    found = errors_of("model_profile", {"temperature": "sk-secret-value", "model": 5})
    assert "sk-secret-value" not in str(found)
    assert set(found) == {"temperature", "model"}


def test_content__large_integers__keep_every_digit() -> None:
    valid = content_validate(
        kind="parameter_mapping",
        slug="x",
        content={"tool": "t", "defaults": {"id": 9007199254740993, "n": 1234567890123456789}},
    )
    assert '"id":9007199254740993' in valid.text
    assert '"n":1234567890123456789' in valid.text


def test_content__broken_template__is_an_error_of_its_field() -> None:
    assert list(errors_of("prompt", {"system": "Hello {{ agent"})) == ["system"]
