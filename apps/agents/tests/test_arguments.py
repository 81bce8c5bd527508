"""Arguments as models write them."""

import pytest

from apps.agents.arguments import ArgumentsInvalid, arguments_parse


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
        ('{"a":1e999}', "too large"),
        ('{"a":9007199254740993.5}', "write it as text"),
        ('{"a":"\\ud800"}', "not text"),
        ('{"a":' + "9" * 5000 + "}", "not valid JSON"),
        ('{"a":' * 100_000, "longer than"),
        ('{"a":' * 9_000, "not valid JSON"),
    ],
)
def test_arguments__anything_else__is_refused_with_the_reason(raw, reason):
    with pytest.raises(ArgumentsInvalid, match=reason):
        arguments_parse(raw)
