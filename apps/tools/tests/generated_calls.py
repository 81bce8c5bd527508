"""Generates tools, what a model writes to call them, and what must come of it.

The writing is JSON text, as a model sends it; the intention is kept beside it, so that nothing of the
product decides what is right.
"""

import json
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from apps.runtime.text import fold
from apps.tools.config import Argument, PinnedContract, ToolConfig

NAMES = ["pedido", "valor", "motivo", "itens", "ativo", "data_vencimento"]
WORDS = ["defeito", "Não gostei", "arrependimento", "tamanho errado", "ção", "null"]


@dataclass(frozen=True)
class Said:
    """One argument as it is written (``text``, None: left out), and what is to arrive.

    ``wrong``: it has to be refused. ``sends``: something arrives; then it is ``value``.
    """

    text: str | None
    value: Any = None
    wrong: bool = False
    sends: bool = True


@dataclass(frozen=True)
class Kind:
    """How one argument is declared, and its writings."""

    declared: dict[str, Any]
    schema: dict[str, Any]
    right: st.SearchStrategy[Said]
    wrong: st.SearchStrategy[str]


@dataclass(frozen=True)
class Call:
    """A tool and one call of it."""

    tool: ToolConfig
    text: str
    intended: dict[str, Any] = field(default_factory=dict)
    refused: frozenset[str] = frozenset()


def quoted(value: Any) -> st.SearchStrategy[str]:
    """Both ways in which JSON writes the same text."""
    return st.booleans().map(lambda ascii_only: json.dumps(value, ensure_ascii=ascii_only))


def said(value: Any) -> st.SearchStrategy[Said]:
    return quoted(value).map(lambda text: Said(text, value))


_TEXT = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(str.strip),
    st.sampled_from(["null", "true", "[1]", '{"k":"v"}', "007", "1.10", "ação 😀", " á\u0000b "]),
)
_INT64 = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([9007199254740993, 1234567890123456789, 2**63 - 1, -(2**63), 0, -1]),
)
_DECIMALS = st.one_of(
    st.sampled_from(
        ["1.10", "0.30", "71.99", "0.1", "0.30000000000000004", "-0.5", "1e3", "2.50e-2"]
    ),
    st.floats(allow_nan=False, allow_infinity=False, width=64)
    .filter(lambda number: abs(number) < 2**53)
    .map(repr),
    st.decimals(-99999, 99999, places=2).map(str),
)
_NO_NUMBER = ['"1,5"', '"null"', '"abc"', "true", "[]", "{}", '""', '" 5"', "1e999", "-1e999"]


def _string() -> st.SearchStrategy[Kind]:
    return st.just(
        Kind(
            {"type": "string"},
            {"type": "string"},
            st.one_of(_TEXT.flatmap(said), _INT64.map(lambda n: Said(str(n), str(n)))),
            st.sampled_from(["1.5", "true", "[]", '["a"]', "{}", "0.1", "1" * 400]),
        )
    )


def _integer() -> st.SearchStrategy[Kind]:
    return st.just(
        Kind(
            {"type": "integer"},
            {"type": "integer"},
            _INT64.flatmap(lambda n: st.sampled_from([Said(str(n), n), Said(f'"{n}"', n)])),
            st.sampled_from(
                [
                    *_NO_NUMBER,
                    "1.5",
                    "5.0",
                    '"5.0"',
                    '"007"',
                    str(2**63),
                    str(-(2**63) - 1),
                    "9" * 5000,
                ]
            ),
        )
    )


def _number() -> st.SearchStrategy[Kind]:
    plain = _DECIMALS.filter(lambda text: "e" not in text.lower())
    return st.just(
        Kind(
            {"type": "number"},
            {"type": "number"},
            st.one_of(
                _DECIMALS.map(lambda text: Said(text, Decimal(text))),
                plain.filter(lambda t: len(t) <= 40 and not t.startswith("-0.0"))
                .filter(lambda t: t.lstrip("-").split(".")[0] == str(abs(int(Decimal(t)))))
                .map(lambda text: Said(f'"{text}"', Decimal(text))),
                _INT64.map(lambda n: Said(str(n), n)),
            ),
            st.sampled_from(
                [
                    *_NO_NUMBER,
                    "0.1234567890123456789",
                    '"0.1234567890123456789"',
                    "9007199254740993.5",
                ]
            ),
        )
    )


def _boolean() -> st.SearchStrategy[Kind]:
    return st.just(
        Kind(
            {"type": "boolean"},
            {"type": "boolean"},
            st.booleans().flatmap(said),
            st.sampled_from(['"true"', '"false"', "1", "0", '"null"', "[]", "{}", '""']),
        )
    )


def _enum() -> st.SearchStrategy[Kind]:
    def made(values: list[str]) -> Kind:
        spellings = st.sampled_from(values).flatmap(
            lambda value: st.sampled_from([value, value.upper(), fold(value), f" {value} "]).map(
                lambda spelt: Said(json.dumps(spelt), value)
            )
        )
        return Kind(
            {"type": "string", "enum": values},
            {"type": "string", "enum": values},
            spellings,
            st.sampled_from(['"outra coisa"', '"defeit"', "1.5", "true", "[]", '"defeito, ção"']),
        )

    return st.lists(st.sampled_from(WORDS), min_size=2, max_size=4, unique_by=fold).map(made)


def _shaped() -> st.SearchStrategy[Kind]:
    dates = st.dates().map(lambda day: day.isoformat()).flatmap(said)
    codes = st.from_regex(r"\A[A-Z]{3}-[0-9]{2,4}\Z").flatmap(said)
    short = st.text("abcç", min_size=2, max_size=5).flatmap(said)
    small = st.integers(1, 99).flatmap(said)

    def kind(kind: str, rules: dict[str, Any], right: Any, wrong: list[str]) -> Kind:
        schema = {"type": kind, **rules}
        return Kind({"type": kind, "json_schema": rules}, schema, right, st.sampled_from(wrong))

    return st.sampled_from(
        [
            kind(
                "string",
                {"format": "date"},
                dates,
                ['"05/03/2026"', '"2026-02-30"', '"hoje"', "3.5"],
            ),
            kind(
                "string",
                {"pattern": "^[A-Z]{3}-[0-9]{2,4}$"},
                codes,
                ['"ped-1"', '"PED-1"', '"xPED-10"'],
            ),
            kind("string", {"minLength": 2, "maxLength": 5}, short, ['"a"', '"abcdef"', "true"]),
            kind("integer", {"minimum": 1, "maximum": 99}, small, ["0", "100", '"0"', "-1"]),
        ]
    )


_ITEMS: dict[str, tuple[st.SearchStrategy[Any], list[str]]] = {
    "string": (_TEXT, ['["null"]', "[1]", '["a",null]', "[[]]"]),
    "integer": (_INT64, ['["1"]', "[1.5]", "[true]", "[null]", f"[{2**63}]"]),
    "boolean": (st.booleans(), ['["true"]', "[1]", "[null]"]),
    "object": (
        st.dictionaries(st.sampled_from(["a", "b"]), _INT64, min_size=1),
        ["[1]", '["{}"]', "[[]]", "[null]"],
    ),
}


def _array() -> st.SearchStrategy[Kind]:
    def made(items: str) -> Kind:
        values, wrong = _ITEMS[items]
        lists = st.lists(values, min_size=1, max_size=4).filter(lambda found: found != ["null"])
        return Kind(
            {"type": "array", "items": items},
            {"type": "array", "items": {"type": items}},
            lists.flatmap(said),
            st.sampled_from([*wrong, '"[1]"', "{}", "1", '"null"', "[0.1234567890123456789]"]),
        )

    return st.sampled_from(sorted(_ITEMS)).map(made)


NESTED = {
    "type": "object",
    "properties": {
        "sku": {"type": "string", "pattern": "^[A-Z]{2}[0-9]+$"},
        "quantidade": {"type": "integer", "minimum": 1},
        "preco": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "entrega": {
            "type": ["object", "null"],
            "properties": {"cep": {"type": "string"}, "dia": {"type": "string", "format": "date"}},
            "required": ["cep"],
            "additionalProperties": False,
        },
    },
    "required": ["sku", "quantidade"],
    "additionalProperties": False,
}
_NESTED_WRONG = [
    '{"sku":"AB1"}', '{"sku":"AB1","quantidade":0}', '{"sku":"ab1","quantidade":1}',
    '{"sku":"AB1","quantidade":1,"mais":2}', '{"sku":"AB1","quantidade":"1"}',
    '{"sku":"AB1","quantidade":1,"entrega":{}}', '{"sku":"AB1","quantidade":1,"tags":[1]}',
    '{"sku":"AB1","quantidade":1,"entrega":{"cep":"1","dia":"31/12/2026"}}',
    '"{}"', "[]", "1", '{"sku":null,"quantidade":1}',
    '{"sku":"AB1","quantidade":1,"preco":0.1234567890123456789}',
]  # fmt: skip


@st.composite
def _order(draw: Any) -> Said:
    """An object that fits ``NESTED``, written with its numbers as digits."""
    value: dict[str, Any] = {
        "sku": draw(st.from_regex(r"\A[A-Z]{2}[0-9]{1,5}\Z")),
        "quantidade": draw(st.integers(1, 2**62)),
    }
    if draw(st.booleans()):
        value["tags"] = draw(st.lists(_TEXT, max_size=3))
    if draw(st.booleans()):
        delivery = st.fixed_dictionaries(
            {"cep": _TEXT}, optional={"dia": st.dates().map(lambda day: day.isoformat())}
        )
        value["entrega"] = draw(st.one_of(st.none(), delivery))
    text = json.dumps(value, ensure_ascii=draw(st.booleans()))
    if draw(st.booleans()):
        price = draw(_DECIMALS)
        text = f'{text[:-1]},"preco":{price}}}'
        value["preco"] = Decimal(price)
    return Said(text, value)


def _object() -> st.SearchStrategy[Kind]:
    return st.just(
        Kind(
            {"type": "object", "json_schema": NESTED},
            NESTED,
            _order(),
            st.sampled_from(_NESTED_WRONG),
        )
    )


KINDS = st.one_of(
    _string(), _integer(), _number(), _boolean(), _enum(), _shaped(), _array(), _object()
)


@st.composite
def calls(draw: Any) -> Call:
    """A tool of up to four arguments and one call, right in everything or wrong in something.

    Half of the tools say the finer rules in their own arguments, half have them from the schema that
    their server declares.
    """
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    by_server = draw(st.booleans())
    spoilt = draw(st.booleans())
    arguments: dict[str, Argument] = {}
    properties: dict[str, Any] = {}
    written: dict[str, Said] = {}
    required = [name for name in names if draw(st.booleans())]
    for name in names:
        kind, nullable = draw(KINDS), draw(st.booleans())
        declared = dict(kind.declared)
        if by_server:
            declared.pop("json_schema", None)
        arguments[name] = Argument(**declared, nullable=nullable)
        properties[name] = {"anyOf": [kind.schema, {"type": "null"}]} if nullable else kind.schema
        written[name] = draw(_writing(kind, nullable, name in required, spoilt))
    contract = PinnedContract()
    if by_server:
        schema = {"type": "object", "properties": properties, "required": required}
        contract = PinnedContract(input_schema=schema)
    body = ",".join(f"{json.dumps(n)}:{w.text}" for n, w in written.items() if w.text is not None)
    return Call(
        tool=ToolConfig(
            mcp_server="telecom", remote_name="echo", args_schema=arguments, requires=required,
            contract=contract,
        ),
        text=draw(st.sampled_from([f"{{{body}}}", f" {{ {body} }}\n"])) if body else draw(
            st.sampled_from(["{}", "", "null"])
        ),
        intended={name: w.value for name, w in written.items() if w.sends and not w.wrong},
        refused=frozenset(name for name, w in written.items() if w.wrong),
    )  # fmt: skip


@st.composite
def _writing(draw: Any, kind: Kind, nullable: bool, required: bool, spoilt: bool) -> Said:
    ways = ["right"] * 3
    if not required:
        ways.append("absent")
        if kind.declared == {"type": "string"}:
            ways.append("empty")
    if nullable:
        ways.append("null")
    if spoilt:
        ways += ["wrong"] * 2
        if not nullable:
            ways.append("refused null")
        if required:
            ways.append("missing")
    way = draw(st.sampled_from(ways))
    if way == "right":
        found: Said = draw(kind.right)
        return found
    if way == "wrong":
        return Said(draw(kind.wrong), wrong=True)
    return {
        "absent": Said(None, sends=False),
        "empty": Said('""', ""),
        "null": Said("null", None),
        "refused null": Said("null", wrong=True),
        "missing": Said(None, wrong=True, sends=False),
    }[way]


def same(sent: Any, meant: Any) -> bool:
    """Whether ``sent`` is ``meant``: types and structure alike, numbers to the last digit."""
    if isinstance(meant, bool) or meant is None or isinstance(meant, str):
        return type(sent) is type(meant) and sent == meant
    if isinstance(meant, int | float | Decimal):
        number = isinstance(sent, int | Decimal) and not isinstance(sent, bool)
        return number and Decimal(sent) == Decimal(str(meant))
    if isinstance(meant, dict):
        return isinstance(sent, dict) and sent.keys() == meant.keys() and all(
            same(sent[key], meant[key]) for key in meant
        )  # fmt: skip
    return isinstance(sent, list) and len(sent) == len(meant) and all(map(same, sent, meant))
