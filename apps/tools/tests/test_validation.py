"""Arguments against the declared schema."""

import json
import time

import jsonschema
import pytest

from apps.tools.config import Argument, PinnedContract, ToolConfig
from apps.tools.tests.world import EXCHANGE, INVOICE, release
from apps.tools.validation import Refused, arguments_check, json_schema, rules_of, value_check


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


# -- rules beyond the type ---------------------------------------------------------------------

ORDER = ToolConfig(
    mcp_server="telecom",
    args_schema={
        "pedido": Argument(type="object"),
        "dia": Argument(json_schema={"format": "date"}, nullable=True),
        "codigos": Argument(type="array", items="integer"),
        "cor": Argument(enum=["azul", "verde"], nullable=True),
    },
    requires=["pedido"],
    contract=PinnedContract(
        input_schema={
            "type": "object",
            "$defs": {"item": {"type": "object", "required": ["sku"], "properties": {"sku": {"type": "string"}}}},
            "properties": {
                "pedido": {
                    "type": "object",
                    "title": "Pedido",
                    "properties": {"itens": {"type": "array", "items": {"$ref": "#/$defs/item"}}},
                },
                "loja": {"type": "string"},
            },
            "required": ["pedido"],
        }
    ),
)  # fmt: skip


def test_errors__in_the_servers_nested_schema__name_field_place_and_what_is_accepted():
    given = {
        "pedido": {"itens": [{"sku": "A"}, {}, {"sku": 7}]},
        "dia": "05/03/2026",
        "codigos": ["1"],
    }

    checked = arguments_check(ORDER, given)

    assert [(e["field"], e.get("path", "")) for e in checked.errors] == [
        ("dia", ""), ("codigos", ""), ("pedido", "pedido.itens[1].sku"), ("pedido", "pedido.itens[2].sku"),
    ]  # fmt: skip
    assert [e["accepted"] for e in checked.errors] == [
        '{"format":"date"}', "array of integer", "string", "string",
    ]  # fmt: skip
    assert "05/03/2026" not in json.dumps(checked.errors)


def test_schema__shown_to_a_model__has_the_servers_nesting_and_our_own_words():
    schema = json_schema(ORDER)

    jsonschema.Draft202012Validator.check_schema(schema)
    assert set(schema["properties"]) == {"pedido", "dia", "codigos", "cor"}
    assert "title" not in schema["properties"]["pedido"]
    assert schema["properties"]["dia"] == {"format": "date", "type": ["string", "null"]}
    assert schema["properties"]["codigos"] == {"type": "array", "items": {"type": "integer"}}
    assert schema["properties"]["cor"]["enum"] == ["azul", "verde", None]
    jsonschema.validate({"pedido": {"itens": [{"sku": "A"}]}, "cor": None}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"pedido": {"itens": [{}]}}, schema)


def test_schema__of_a_server_that_is_none__checks_nothing():
    tool = ToolConfig(
        mcp_server="telecom",
        args_schema={"a": Argument()},
        contract=PinnedContract(input_schema={"type": "strange"}),
    )

    assert arguments_check(tool, {"a": "x"}).arguments == {"a": "x"}


def test_schema__reference_to_another_document__is_never_fetched(monkeypatch):
    monkeypatch.setattr("urllib.request.urlopen", lambda *a, **k: pytest.fail("fetched"))
    argument = Argument(json_schema={"$ref": "http://169.254.169.254/latest/meta-data"})
    tool = ToolConfig(mcp_server="telecom", args_schema={"a": argument})

    (error,) = arguments_check(tool, {"a": "x"}).errors

    assert error["message"] == "The schema of this field cannot be used."


def test_schema__pattern_of_a_server_that_would_run_for_ever__takes_milliseconds():
    argument = Argument(json_schema={"pattern": "^(a+)+$"})
    tool = ToolConfig(mcp_server="telecom", args_schema={"a": argument})
    started = time.perf_counter()

    assert arguments_check(tool, {"a": "a" * 5_000 + "!"}).errors
    assert time.perf_counter() - started < 1


def test_rules__of_a_release__are_compiled_once():
    world = release(tools={"pedido": ORDER})

    assert rules_of(world, "pedido", ORDER) is rules_of(world, "pedido", ORDER)


@pytest.mark.parametrize("text", ["0.1234567890123456789", "-0.30000000000000000001"])
def test_number__text_with_more_digits_than_a_float__is_refused_and_not_rounded(text):
    with pytest.raises(Refused, match="rounding"):
        value_check(Argument(type="number"), text)


def test_enum__of_numbers__is_shown_as_numbers():
    tool = ToolConfig(mcp_server="t", args_schema={"a": Argument(type="number", enum=["1", "2.5"])})

    assert json_schema(tool)["properties"]["a"]["enum"] == [1, 2.5]
