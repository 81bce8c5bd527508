"""Arguments against the declared schema."""

import json

import jsonschema
import pytest

from apps.tools.config import Argument, ToolConfig
from apps.tools.tests.world import EXCHANGE, INVOICE
from apps.tools.validation import Refused, arguments_check, json_schema, value_check


@pytest.mark.parametrize("value", [9007199254740993, "9007199254740993"])
def test_integer__beyond_what_a_double_holds__keeps_every_digit(value):
    assert value_check(Argument(type="integer"), value) == 9007199254740993


def test_integer__nineteen_digits_as_text__keeps_every_digit():
    assert value_check(Argument(type="integer"), "1234567890123456789") == 1234567890123456789


@pytest.mark.parametrize(
    "value",
    [
        5.0, True, "5.0", "007", "+5", " 5", "5e3", "0x10", "٣", "null", "", "1" * 5000,
        2**63, -(2**63) - 1, "9223372036854775808", None, [], {},
    ],
)  # fmt: skip
def test_integer__anything_but_exact_digits__is_refused(value):
    with pytest.raises(Refused):
        value_check(Argument(type="integer"), value)


@pytest.mark.parametrize(("value", "typed"), [(-(2**63), -(2**63)), ("-12", -12), (0, 0)])
def test_integer__within_64_bits__is_accepted(value, typed):
    assert value_check(Argument(type="integer"), value) == typed


@pytest.mark.parametrize(
    ("value", "typed"), [(1.5, 1.5), ("71.99", 71.99), ("-3", -3), (2**53 + 1, 2**53 + 1)]
)
def test_number__written_as_json_writes_it__is_accepted(value, typed):
    checked = value_check(Argument(type="number"), value)

    assert (checked, type(checked)) == (typed, type(typed))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "NaN", "71,99", "1e5", True, "null"])
def test_number__not_a_finite_plain_number__is_refused(value):
    with pytest.raises(Refused):
        value_check(Argument(type="number"), value)


@pytest.mark.parametrize("text", ['{"k":"v"}', "[1]", "null", "123", "  a ", "á\x00"])
def test_string__text_that_looks_like_json__stays_text(text):
    assert value_check(Argument(type="string"), text) == text


def test_string__whole_number__is_written_out_in_all_its_digits():
    assert value_check(Argument(type="string"), 3000131180123456789) == "3000131180123456789"


@pytest.mark.parametrize(
    "value", [1.0, True, None, [], {}, "a\ud800", pytest.param(1 << 20_000, id="6000 digits")]
)
def test_string__what_has_no_faithful_text__is_refused(value):
    with pytest.raises(Refused):
        value_check(Argument(type="string"), value)


@pytest.mark.parametrize("value", ["true", "false", 1, 0, "null", None])
def test_boolean__anything_but_a_boolean__is_refused(value):
    with pytest.raises(Refused):
        value_check(Argument(type="boolean"), value)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("array", "[1]"), ("array", ["null"]), ("array", [float("nan")]), ("array", {"a": 1}),
        ("array", ["\ud800"]), ("object", '{"a":1}'), ("object", [1]), ("object", {"a": object()}),
    ],
)  # fmt: skip
def test_structures__encoded_as_text_or_not_json__are_refused(kind, value):
    with pytest.raises(Refused):
        value_check(Argument(type=kind), value)


def test_structures__lists_and_objects__are_accepted_as_they_are():
    assert value_check(Argument(type="array"), [1, "null"]) == [1, "null"]
    assert value_check(Argument(type="object"), {"k": [9007199254740993]}) == {
        "k": [9007199254740993]
    }


def test_structures__bottomless_nesting__is_refused():
    deep: list = []
    for _ in range(100_000):
        deep = [deep]

    with pytest.raises(Refused):
        value_check(Argument(type="array"), deep)


@pytest.mark.parametrize("value", ["Defeito", "DEFEITO ", "deféito"])
def test_enum__only_case_or_accents_differ__the_declared_spelling_is_sent(value):
    assert value_check(EXCHANGE.args_schema["reason"], value) == "defeito"


def test_enum__two_values_alike_but_for_case__nothing_is_guessed():
    argument = Argument(enum=["Plus", "PLUS"])

    assert value_check(argument, "PLUS") == "PLUS"
    with pytest.raises(Refused):
        value_check(argument, "plus")


def test_enum__another_word__is_refused_with_the_accepted_values_and_never_replaced():
    checked = arguments_check(EXCHANGE, {"order_id": "1", "reason": "troca"})

    assert "reason" not in checked.arguments
    assert checked.errors == (
        {
            "field": "reason",
            "message": "This is none of the accepted values.",
            "accepted": "defeito, tamanho errado, arrependimento",
        },
    )


@pytest.mark.parametrize(("value", "sent"), [("2", 2), (2, 2)])
def test_enum__of_integers__compares_digits(value, sent):
    assert value_check(Argument(type="integer", enum=["1", "2"]), value) == sent


def test_enum__on_a_list__is_checked_item_by_item():
    argument = Argument(type="array", enum=["a", "b"])

    assert value_check(argument, ["A", "b"]) == ["a", "b"]
    with pytest.raises(Refused):
        value_check(argument, ["a", "c"])


def test_errors__several_fields__each_is_named_once_and_no_value_is_repeated():
    checked = arguments_check(INVOICE, {"mes": "abril-4711", "detalhe": "sim-4711"})

    assert [e["field"] for e in checked.errors] == ["msisdn", "mes", "detalhe"]
    assert {e["accepted"] for e in checked.errors} == {"string", "integer", "boolean"}
    assert "4711" not in json.dumps(checked.errors)


def test_schema__of_a_tool__is_valid_and_accepts_what_validation_accepts():
    schema = json_schema(EXCHANGE)

    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["required"] == ["order_id", "reason"]
    jsonschema.validate({"order_id": "1", "reason": "defeito"}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"order_id": "1", "reason": "outro"}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"order_id": "1", "reason": "defeito", "x": 1}, schema)


def test_schema__without_parameters__is_an_empty_object():
    tool = ToolConfig(mcp_server="telecom")

    assert arguments_check(tool, {}).arguments == {}
    assert json_schema(tool) == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }


def test_schema__filled_arguments__are_not_shown():
    schema = json_schema(INVOICE, filled={"msisdn"})

    assert "msisdn" not in schema["properties"]
    assert schema["required"] == []
