"""Fields of configuration forms: what they take, refuse and say."""

from typing import Any

import pytest
from django.http import QueryDict
from pydantic import Field

from apps.agents.config import AgentConfig, ModelProfileConfig
from apps.governance.config import RailPolicyConfig
from apps.releases.content import FieldError
from apps.releases.pages.choices import ReferenceChoices
from apps.releases.pages.form_fields import UnknownShape
from apps.releases.pages.forms import (
    ConfigForm,
    config_form_class,
    default_content,
    errors_show,
)
from apps.releases.pages.item_form import ItemForm
from apps.releases.tests.browser import editable, submission
from apps.releases.tests.test_form_round_trip import FewItems, ManyItems, shown
from apps.runtime.config import Config, KindConfig
from apps.tools.config import ParameterMappingConfig, ToolConfig, ToolServerConfig


def opened(
    config_class: type[KindConfig], choices: ReferenceChoices | None = None, **content: Any
) -> tuple[dict[str, Any], QueryDict]:
    """Return the initial content and what a browser would post for it."""
    initial = {**default_content(config_class), **content}
    form = config_form_class(config_class)(
        prefix="content", initial=initial, choices=choices or FewItems()
    )
    return initial, submission(shown(form))


def posted(
    config_class: type[KindConfig],
    initial: dict[str, Any],
    data: QueryDict,
    choices: ReferenceChoices | None = None,
) -> ConfigForm:
    form = config_form_class(config_class)(
        data, prefix="content", initial=initial, choices=choices or FewItems()
    )
    form.is_valid()
    return form


def test_number__out_of_bounds__is_refused_at_its_field() -> None:
    initial, data = opened(AgentConfig, prompt="aaa")
    data["content-max_tool_rounds"] = "11"
    form = posted(AgentConfig, initial, data)
    assert form.errors == {"max_tool_rounds": ["Ensure this value is less than or equal to 10."]}


def test_number__at_an_excluded_bound__is_refused() -> None:
    initial, data = opened(ToolServerConfig, endpoint="main")
    data["content-timeout_seconds"] = "0"
    form = posted(ToolServerConfig, initial, data)
    assert form.errors == {"timeout_seconds": ["Give a value above 0."]}


@pytest.mark.parametrize("text", ["many", "1e999", "nan"])
def test_number__that_is_none__is_refused(text: str) -> None:
    initial, data = opened(ModelProfileConfig)
    data["content-temperature"] = text
    assert posted(ModelProfileConfig, initial, data).errors == {"temperature": ["Enter a number."]}


def test_number__left_empty_where_it_may__is_none() -> None:
    initial, data = opened(ModelProfileConfig, temperature=0.5)
    data["content-temperature"] = ""
    assert posted(ModelProfileConfig, initial, data).content()["temperature"] is None


def test_reference__that_is_no_item__is_refused() -> None:
    initial, data = opened(AgentConfig, prompt="aaa")
    data["content-prompt"] = "gone"
    form = posted(AgentConfig, initial, data)
    assert form.errors == {"prompt": ["There is no “gone” to choose."]}


def test_reference__whose_item_is_gone__stays_and_is_marked() -> None:
    initial, data = opened(AgentConfig, prompt="gone", tools=["zzz", "lost"])
    form = posted(AgentConfig, initial, data)
    assert form.content()["prompt"] == "gone"
    assert form.content()["tools"] == ["zzz", "lost"]
    html = shown(form)
    assert '<option value="gone" selected>gone — missing</option>' in html
    assert '<option value="lost" selected>lost — missing</option>' in html


def test_reference__required_and_left_out__is_refused() -> None:
    initial, data = opened(AgentConfig)
    assert posted(AgentConfig, initial, data).errors == {"prompt": ["This field is required."]}


def test_references__with_many_items__search_instead_of_listing() -> None:
    form = config_form_class(AgentConfig)(
        prefix="content", initial={"prompt": "zzz"}, choices=ManyItems()
    )
    html = shown(form)
    assert 'data-ajax--url="/options/prompt/"' in html
    assert '<option value="zzz" selected>zzz</option>' in html
    assert 'value="aaa"' not in html


def test_typed_pairs__of_every_type__keep_their_exact_values() -> None:
    initial, data = opened(ParameterMappingConfig)
    rows = [
        ("text", "text", " 007 "),
        ("number", "whole", "123456789012345678901234567890"),
        ("number", "part", "0.1"),
        ("true", "yes", ""),
        ("false", "no", "ignored"),
        ("null", "nothing", ""),
        ("json", "list", '[1, "a"]'),
    ]
    for part, index in (("type", 0), ("name", 1), ("text", 2)):
        data.setlist(f"content-defaults-{part}", [row[index] for row in rows])
    form = posted(ParameterMappingConfig, initial, data)
    assert form.errors == {}
    assert form.content()["defaults"] == {
        "text": " 007 ",
        "whole": 123456789012345678901234567890,
        "part": 0.1,
        "yes": True,
        "no": False,
        "nothing": None,
        "list": [1, "a"],
    }


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("number", "limit", "ten"), "“limit” needs a number."),
        (("number", "limit", "true"), "“limit” needs a number."),
        (("number", "limit", "1e999"), "“limit” needs a number."),
        (("number", "limit", "9" * 5000), "“limit” needs a number."),
        (
            ("json", "limit", "{"),
            '“limit” needs a list like [1, 2] or an object like {"a": 1}.',
        ),
        (("text", "", "x"), "Row 1 has no name."),
        (("guess", "limit", "x"), "“limit”: choose a type."),
        (("text", "a\x00", "x"), "Null characters are not allowed."),
    ],
)
def test_typed_pairs__that_do_not_fit__say_which(row: tuple[str, str, str], message: str) -> None:
    initial, data = opened(ParameterMappingConfig)
    for part, value in zip(("type", "name", "text"), row, strict=True):
        data.setlist(f"content-defaults-{part}", [value])
    assert posted(ParameterMappingConfig, initial, data).errors == {"defaults": [message]}


def test_pairs__with_one_name_twice__are_refused() -> None:
    initial, data = opened(AgentConfig, prompt="aaa")
    data.setlist("content-metadata-name", ["a", "a"])
    data.setlist("content-metadata-text", ["1", "2"])
    assert posted(AgentConfig, initial, data).errors == {"metadata": ["“a” stands twice."]}


def test_rows__left_blank__are_dropped() -> None:
    initial, data = opened(AgentConfig, prompt="aaa")
    data.setlist("content-members", ["zzz", "aaa"])
    form = posted(AgentConfig, initial, data)
    assert form.content()["members"] == ["zzz", "aaa"]


def rails(*codes: str) -> list[dict[str, Any]]:
    return [{"code": code, "enabled": code != "MSK"} for code in codes]


def test_config_rows__moved_and_removed__keep_the_order_given() -> None:
    initial, data = opened(RailPolicyConfig, input=rails("MSK", "PINJ", "VLOOP"))
    data["content-input-0-ORDER"] = "9"
    data["content-input-1-DELETE"] = "on"
    content = posted(RailPolicyConfig, initial, data).content()
    assert [(rule["code"], rule["enabled"]) for rule in content["input"]] == [
        ("VLOOP", True),
        ("MSK", False),
    ]


def test_config_rows__a_row_added_by_the_page__is_taken() -> None:
    initial, data = opened(RailPolicyConfig, input=rails("MSK"))
    assert data["content-input-TOTAL_FORMS"] == "2"
    data["content-input-1-code"] = "PINJ"
    content = posted(RailPolicyConfig, initial, data).content()
    assert [rule["code"] for rule in content["input"]] == ["MSK", "PINJ"]


def test_config_rows__without_their_count__say_so_instead_of_losing_the_rows() -> None:
    initial, data = opened(RailPolicyConfig, input=rails("MSK"))
    del data["content-input-TOTAL_FORMS"]
    form = posted(RailPolicyConfig, initial, data)
    assert not form.is_valid()


def test_config_mapping__with_one_name_twice__is_refused_at_the_row() -> None:
    initial, data = opened(ToolConfig, mcp_server="aaa", args_schema={"a": {}, "b": {}})
    data["content-args_schema-1-_key"] = "a"
    form = posted(ToolConfig, initial, data)
    assert not form.is_valid()
    assert ("id_content-args_schema-1-_key", "Name", "“a” stands twice.") in form.error_list()


@pytest.mark.parametrize(
    ("field", "target"),
    [
        ("args_schema.b.type", "id_content-args_schema-1-type"),
        ("args_schema.b.enum[0]", "id_content-args_schema-1-enum_0"),
        ("cache.ttl_seconds", "id_content-cache-ttl_seconds"),
        ("requires", "id_content-requires_0"),
        ("args_schema", "content-args_schema"),
        ("", ""),
        ("elsewhere.x", ""),
        ("name", "id_name"),
    ],
)
def test_errors_of_the_service__are_shown_at_their_field(field: str, target: str, db: None) -> None:
    initial, data = opened(ToolConfig, mcp_server="aaa", args_schema={"a": {}, "b": {}})
    form = posted(ToolConfig, initial, data)
    item_form = ItemForm(QueryDict("base=1&request=new"), kind="tool", slug="t")
    item_form.is_valid()
    errors_show(item_form, form, [FieldError(field=field, message="It does not fit.")])
    found = [*item_form.error_list(), *form.error_list()]
    assert [(where, message.rpartition(": ")[2]) for where, _label, message in found] == [
        (target, "It does not fit.")
    ]


def test_errors_of_the_service__in_a_moved_row__are_shown_in_that_row() -> None:
    initial, data = opened(RailPolicyConfig, input=rails("MSK", "PINJ"))
    data["content-input-0-ORDER"] = "9"
    form = posted(RailPolicyConfig, initial, data)
    form.error_add(["input", "1", "code"], "It does not fit.")
    assert form.error_list() == [("id_content-input-0-code", "Rail", "It does not fit.")]


def test_locked_form__for_whoever_may_only_look__has_no_control_to_change_it() -> None:
    form = config_form_class(ToolConfig)(
        prefix="content",
        initial={**default_content(ToolConfig), "mcp_server": "aaa", "args_schema": {"a": {}}},
        choices=FewItems(),
    )
    form.lock()
    html = shown(form)
    assert editable(html) == []
    assert "data-empty-form" not in html
    assert 'name="content-args_schema-1-' not in html


def test_form__for_whoever_may_change_it__has_every_field_open() -> None:
    form = config_form_class(ToolConfig)(
        prefix="content", initial=default_content(ToolConfig), choices=FewItems()
    )
    found = {name.removeprefix("content-") for name in editable(shown(form))}
    groups = {"cache", "retry", "pre_validation", "execution", "response", "contract"}
    plain = set(ToolConfig.model_fields) - {"args_schema"} - groups
    assert plain | {"cache-enabled", "cache-ttl_seconds", "args_schema-0-_key"} <= found
    assert groups <= {name.split("-")[0] for name in found}


class Odd(Config):
    thing: set[str] = Field(default_factory=set)


class Inner(Config):
    rows: list[ToolConfig] = Field(default_factory=list)


class Outer(Config):
    rows: list[Inner] = Field(default_factory=list)


class Missing(Config):
    part: Odd | None = None


@pytest.mark.parametrize("config_class", [Odd, Outer, Missing])
def test_form_class__of_a_shape_without_a_field__fails_when_built(
    config_class: type[Config],
) -> None:
    with pytest.raises(UnknownShape):
        config_form_class(config_class)


def test_labels__in_portuguese__are_translated() -> None:
    from django.utils import translation

    with translation.override("pt-br"):
        form = config_form_class(AgentConfig)(prefix="content", choices=FewItems())
        assert form["max_tool_rounds"].label == "Rodadas de ferramentas"
