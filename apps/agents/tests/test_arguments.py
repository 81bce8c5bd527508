"""Arguments as models write them."""

import json

import pytest

from apps.agents.arguments import ArgumentsInvalid, arguments_parse
from apps.runtime.numbers import Inexact


@pytest.mark.parametrize("raw", ["", "  ", None, "null", "{}", " {} \n"])
def test_arguments__empty_or_missing__are_no_arguments(raw):
    assert arguments_parse(raw) == {}


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ('{"protocolo":9007199254740993}', {"protocolo": 9007199254740993}),
        ('{"protocolo":"1234567890123456789"}', {"protocolo": "1234567890123456789"}),
        ('{"protocolo":9007199254740993.0}', {"protocolo": 9007199254740993}),
        ('{"data":"{\\"k\\":\\"v\\"}"}', {"data": '{"k":"v"}'}),
        ('{"filtro":"null","x":null}', {"filtro": "null", "x": None}),
        ('{"valor":71.99}', {"valor": 71.99}),
        ('{"e":"\\ud83d\\ude00 ação"}', {"e": "😀 ação"}),
    ],
)
def test_arguments__values__arrive_exactly_as_written(raw, value):
    assert arguments_parse(raw) == value


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ('{"pedido":"12', "not valid JSON"),
        ('{"a":1}{"a":2}', "not valid JSON"),
        ("[1]", "one JSON object"),
        ('"{}"', "one JSON object"),
        ("sim", "not valid JSON"),
        ('{"a":NaN}', "NaN is not JSON"),
        ('{"a":1,"b":2,"a":3}', "written twice"),
        ('{"a":"\\ud800"}', "not text"),
        ('{"a":' * 100_000, "longer than"),
        ('{"a":' * 9_000, "not valid JSON"),
    ],
)
def test_arguments__anything_else__is_refused_with_the_reason(raw, reason):
    with pytest.raises(ArgumentsInvalid, match=reason):
        arguments_parse(raw)


@pytest.mark.parametrize(
    "number",
    ["1e999", "-1e999", "9007199254740993.5", "0.1234567890123456789", "1e-400", "9" * 5000],
)
def test_arguments__number_that_no_float_holds__is_marked_and_still_json(number):
    value = arguments_parse(f'{{"a":{number}}}')["a"]

    assert isinstance(value, Inexact)
    assert value.text == number
    assert json.loads(json.dumps(value)) == float(value)


@pytest.mark.parametrize("number", ["0.1", "1.1", "0.30000000000000004", "-71.99", "5e-324"])
def test_arguments__number_that_a_float_is_written_as__is_that_float(number):
    value = arguments_parse(f'{{"a":{number}}}')["a"]

    assert (type(value), value) == (float, float(number))
