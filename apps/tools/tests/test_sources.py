"""Argument sources: what is not for a model it does not see, and what it sends is overwritten."""

import json

import pytest
from pydantic import ValidationError

from apps.runtime.ports import RemoteResult, ToolRequest, ToolUnavailable
from apps.runtime.testing import FakeLedger, FakeTransport
from apps.runtime.turn import Caller
from apps.tools.config import Argument, Extraction, ParameterMappingConfig, ToolConfig
from apps.tools.mapping import arguments_map
from apps.tools.tests.world import BINDINGS, TRUSTED, caller_of, release, turn

TOKEN = "tok_4e5f6a-very-secret"
WEAPONS = ToolConfig(
    mcp_server="telecom",
    args_schema={
        "user_uuid": Argument(source="context"),
        "limite": Argument(type="integer", source="constant", constant="50"),
        "api_key": Argument(source="secret", secret="weapons_key"),
        "mes": Argument(type="integer", source="extraction"),
        "busca": Argument(source="model"),
        "pagina": Argument(type="integer"),
    },
    requires=["user_uuid"],
)
MAPPING = ParameterMappingConfig(
    tool="armas",
    map={"customer_key": "user_uuid", "contract_key": "busca"},
    defaults={"busca": "default", "pagina": 1},
    extract={"mes": Extraction(strategy="month_name_pt")},
)
WORLD = release(tools={"armas": WEAPONS}, mappings={"armas": MAPPING})
BOUND = {**BINDINGS, "credential:weapons_key": "WEAPONS_KEY"}
KNOWN = {"customer_key": "uuid-1", "contract_key": "C-1"}


def asked(text="minhas armas de março", **changes):
    changes.setdefault("context", KNOWN)
    return turn(release=WORLD, bindings=BOUND, **changes).evolve(text=text)


def caller(transport, ledger=None):
    secrets = {"WEAPONS_KEY": TOKEN}
    made = caller_of(transport, ledger)
    object.__setattr__(made._preparation, "secret", lambda name: secrets.get(name, ""))
    return made


def mapped(explicit, **changes):
    return arguments_map(asked(**changes), "armas", WEAPONS, explicit)


async def test_functions__for_a_model__show_only_what_it_may_fill():
    (offered,) = caller(FakeTransport({})).functions(asked(), ["armas"])

    assert set(offered["parameters"]["properties"]) == {"busca", "pagina"}
    assert offered["parameters"]["required"] == []


async def test_call__model_writes_what_it_does_not_see__is_overwritten_and_noted():
    transport = FakeTransport({"armas": []})
    invented = {
        "user_uuid": "uuid-1",
        "limite": 9999,
        "api_key": "mine",
        "mes": 12,
        "busca": "espada",
    }

    (done,) = await caller(transport).call(asked(), [ToolRequest("armas", invented)])

    assert done.ok
    assert transport.calls[0][1] == {
        "user_uuid": "uuid-1", "limite": 50, "api_key": TOKEN, "mes": 3, "busca": "espada", "pagina": 1,
    }  # fmt: skip
    assert done.metadata["overwritten"] == ["user_uuid", "limite", "api_key", "mes"]


@pytest.mark.parametrize("caller_is", [TRUSTED, Caller(principal="visitor")])
async def test_call__model_invents_the_customer__context_is_sent_or_nothing(caller_is):
    transport = FakeTransport({"armas": []})

    (done,) = await caller(transport).call(
        asked(caller=caller_is), [ToolRequest("armas", {"user_uuid": "made-up"})]
    )

    assert [call[1]["user_uuid"] for call in transport.calls] == (["uuid-1"] if done.ok else [])
    assert "made-up" not in json.dumps(dict(done.arguments))


def test_model_source__nothing_said__neither_context_nor_default_fill_it():
    assert "busca" not in mapped({}).arguments
    assert mapped({"busca": "x"}).arguments["busca"] == "x"


def test_context_source__client_field_of_its_name__fills_only_what_context_does_not():
    tool = ToolConfig(mcp_server="telecom", args_schema={"loja": Argument(source="context")})
    world = release(
        tools={"lojas": tool},
        mappings={"lojas": ParameterMappingConfig(map={"contract_key": "loja"})},
    )

    from_payload = arguments_map(
        turn(release=world, payload={"loja": "L2"}), "lojas", tool, {"loja": "L9"}
    )
    from_context = arguments_map(
        turn(release=world, payload={"loja": "L2"}, context={"contract_key": "L1"}),
        "lojas",
        tool,
        {},
    )

    assert (from_payload.arguments, from_payload.overwritten) == ({"loja": "L2"}, ("loja",))
    assert from_context.arguments == {"loja": "L1"}


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("string", "50", "50"), ("string", "", ""), ("integer", "9007199254740993", 9007199254740993),
        ("number", "71.90", 71.9), ("boolean", "true", True), ("array", '["a",1]', ["a", 1]),
        ("object", '{"a":null}', {"a": None}),
    ],
)  # fmt: skip
async def test_constant__of_any_type__arrives_typed(kind, text, value):
    tool = ToolConfig(
        mcp_server="telecom",
        args_schema={"c": Argument(type=kind, source="constant", constant=text)},
    )
    transport = FakeTransport({"x": 1})

    await caller_of(transport).call(turn(release=release(tools={"x": tool})), [ToolRequest("x")])

    assert transport.calls[0][1] == {"c": value}
    assert type(transport.calls[0][1]["c"]) is type(value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "integer", "source": "constant", "constant": "1.5"},
        {"type": "integer", "source": "constant", "constant": "true"},
        {"type": "number", "source": "constant", "constant": "0.1234567890123456789"},
        {"type": "boolean", "source": "constant", "constant": "sim"},
        {"type": "array", "source": "constant", "constant": "{}"},
        {"type": "object", "source": "constant", "constant": ""},
        {"source": "secret"},
        {"source": "secret", "secret": "x", "type": "integer"},
        {"items": "string"},
        {"json_schema": {"type": "strange"}},
        {"json_schema": {"minimum": "1"}},
    ],
)
def test_argument__that_cannot_be_meant__is_an_error_when_it_is_saved(wrong):
    with pytest.raises(ValidationError):
        Argument(**wrong)


# -- secrets -----------------------------------------------------------------------------------


async def test_secret__is_sent__and_is_in_no_record_ledger_result_or_error():
    def repeats(arguments):
        return RemoteResult(
            ok=False,
            result={
                "echo": arguments["api_key"],
                arguments["api_key"]: [f"key={arguments['api_key']}"],
            },
            error=f"bad key {arguments['api_key']}",
            metadata={"sent": arguments},
        )

    transport, ledger = FakeTransport({"armas": repeats}), FakeLedger()

    (done,) = await caller(transport, ledger).call(asked(), [ToolRequest("armas", {})])

    assert transport.calls[0][1]["api_key"] == TOKEN
    assert done.arguments["api_key"] == "<SECRET:weapons_key>"
    assert done.result == {
        "echo": "<SECRET:weapons_key>", "<SECRET:weapons_key>": ["key=<SECRET:weapons_key>"],
    }  # fmt: skip
    for kept in (repr(done), repr(ledger.calls), repr(ledger.entries)):
        assert TOKEN not in kept


async def test_secret__transport_fails_naming_it__error_does_not():
    transport = FakeTransport({"armas": ToolUnavailable(f"refused {TOKEN}", sent=False)})

    (done,) = await caller(transport).call(asked(), [ToolRequest("armas", {})])

    assert (done.status, done.error) == ("error", "refused <SECRET:weapons_key>")


@pytest.mark.parametrize("bindings", [BINDINGS, {**BINDINGS, "credential:weapons_key": "OTHER"}])
async def test_secret__that_is_not_set__tool_is_unbound_and_nothing_is_sent(bindings):
    transport = FakeTransport({"armas": 1})

    (done,) = await caller(transport).call(
        asked().evolve(bindings=bindings), [ToolRequest("armas", {})]
    )

    assert (done.status, done.metadata["reason"]) == ("refused", "unbound")
    assert transport.calls == []


# -- precedence --------------------------------------------------------------------------------

ORDER_TOOL = ToolConfig(
    mcp_server="telecom",
    args_schema={"mes": Argument(type="integer"), "codigo": Argument(), "cliente": Argument()},
)
ORDER_MAPPING = ParameterMappingConfig(
    map={"customer_key": "cliente", "resource_key": "codigo"},
    defaults={"mes": 12, "codigo": "DEFAULT"},
    extract={
        "mes": Extraction(strategy="hybrid", pattern=r"mês (\d+)", group=1),
        "codigo": Extraction(strategy="regex", pattern=r"COD-\d+"),
        "cliente": Extraction(strategy="regex", pattern=r"\d{5}"),
    },
)
ORDER_WORLD = release(tools={"t": ORDER_TOOL}, mappings={"t": ORDER_MAPPING})


def filled(explicit=None, text="", extracted=None, confirmed=False, **changes):
    made = turn(release=ORDER_WORLD, **changes).evolve(text=text, extracted={"t": extracted or {}})
    return dict(arguments_map(made, "t", ORDER_TOOL, explicit or {}, confirmed=confirmed).arguments)


def test_precedence__each_source_in_turn__the_better_known_wins():
    model_read = {"mes": 5}

    assert filled({"mes": 1}, "mês 3", model_read, tool_arguments={"mes": 2})["mes"] == 1
    assert filled({}, "mês 3", model_read, tool_arguments={"mes": 2})["mes"] == 2
    assert filled({}, "mês 3", model_read)["mes"] == "3"
    assert filled({}, "o mês passado", model_read)["mes"] == 5
    assert filled({}, "o mês passado")["mes"] == 12


def test_precedence__identity_keys__are_never_read_out_of_a_message():
    context = {"customer_key": "11999", "resource_key": "COD-1"}

    assert filled({}, "COD-77 e 12345", context=context) == {
        "mes": 12, "codigo": "COD-1", "cliente": "11999",
    }  # fmt: skip
    assert filled({}, "COD-77 e 12345") == {"mes": 12, "codigo": "DEFAULT"}


def test_precedence__required_argument__is_never_filled_by_extraction():
    tool = ORDER_TOOL.model_copy(update={"requires": ["mes"]})
    world = release(tools={"t": tool}, mappings={"t": ORDER_MAPPING})

    found = arguments_map(turn(release=world).evolve(text="mês 3"), "t", tool, {})

    assert "mes" not in found.arguments


def test_confirmed__values__stand_and_nothing_of_this_message_is_added():
    confirmed = filled(
        {"codigo": "A-1"},
        "mês 3 COD-77",
        {"mes": 5},
        confirmed=True,
        tool_arguments={"codigo": "B-2", "mes": 4},
        payload={"mes": 6},
        context={"resource_key": "COD-9"},
    )

    assert confirmed == {"codigo": "A-1", "mes": 12}


async def test_call__with_a_confirmation__runs_what_was_confirmed_whatever_the_message_says():
    class Yes:
        def __init__(self):
            self.grants = []

        async def use(self, turn, grant):
            self.grants.append(grant)
            return "granted"

    action = ORDER_TOOL.model_copy(update={"tool_type": "action", "confirmation_required": True})
    world = release(tools={"t": action}, mappings={"t": ORDER_MAPPING})
    transport, yes = FakeTransport({"t": "done"}), Yes()
    before = turn(release=world, context={"resource_key": "COD-1"}).evolve(text="mês 3")
    checked = await caller_of(transport).check(before, ToolRequest("t", {}))
    frozen = json.loads(checked.metadata["arguments"])

    after = turn(
        release=world, context={"resource_key": "COD-2"}, tool_arguments={"mes": 9}, id="t2"
    ).evolve(text="sim, mês 8 COD-5")
    request = ToolRequest("t", frozen, confirmation="c1")
    (done,) = await caller_of(transport, confirmations=yes).call(after, [request])

    assert done.ok
    assert transport.calls[0][1] == {"mes": 3, "codigo": "COD-1"} == frozen
    assert yes.grants[0].arguments == checked.metadata["arguments"]
    assert yes.grants[0].contract == checked.metadata["contract"]


# -- null, empty, absent -----------------------------------------------------------------------

EMPTIES = ToolConfig(
    mcp_server="telecom",
    args_schema={
        "nota": Argument(),
        "filtro": Argument(nullable=True),
        "itens": Argument(type="array"),
        "obrigatorio": Argument(nullable=True),
    },
    requires=["obrigatorio"],
)


@pytest.mark.parametrize(
    ("said", "sent"),
    [
        ({"obrigatorio": "x"}, {"obrigatorio": "x"}),
        ({"obrigatorio": "x", "nota": ""}, {"obrigatorio": "x", "nota": ""}),
        ({"obrigatorio": "x", "nota": "  "}, {"obrigatorio": "x", "nota": "  "}),
        ({"obrigatorio": "x", "filtro": None}, {"obrigatorio": "x", "filtro": None}),
        ({"obrigatorio": "x", "filtro": "null"}, {"obrigatorio": "x", "filtro": "null"}),
        ({"obrigatorio": "x", "filtro": ""}, {"obrigatorio": "x", "filtro": ""}),
        ({"obrigatorio": "x", "itens": []}, {"obrigatorio": "x", "itens": []}),
        ({"obrigatorio": None}, {"obrigatorio": None}),
    ],
)
async def test_empty__null_absent_and_empty_text__arrive_as_they_were_meant(said, sent):
    transport = FakeTransport({"e": 1})

    await caller_of(transport).call(
        turn(release=release(tools={"e": EMPTIES})), [ToolRequest("e", said)]
    )

    assert transport.calls[0][1] == sent


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"obrigatorio": "x", "nota": None}, "nota"),
        ({"obrigatorio": "x", "itens": "null"}, "itens"),
        ({"obrigatorio": "x", "itens": ["null"]}, "itens"),
        ({"obrigatorio": ""}, "obrigatorio"),
        ({}, "obrigatorio"),
    ],
)
async def test_empty__what_cannot_be_sent__is_an_error_of_its_field(said, field):
    transport = FakeTransport({"e": 1})

    (done,) = await caller_of(transport).call(
        turn(release=release(tools={"e": EMPTIES})), [ToolRequest("e", said)]
    )

    assert [error["field"] for error in done.field_errors] == [field]
    assert transport.calls == []


async def test_restricted__only_the_tag_of_it_is_left__is_asked_for_again_and_not_sent():
    transport = FakeTransport({"solicitar_troca": 1})
    request = ToolRequest(
        "solicitar_troca",
        {"order_id": "1", "reason": "defeito", "cpf": "<RESTRICTED:0123456789abcdef>"},
    )

    (done,) = await caller_of(transport).call(turn(), [request])

    assert [error["field"] for error in done.field_errors] == ["cpf"]
    assert transport.calls == []


# -- two servers, one name ---------------------------------------------------------------------


async def test_names__two_servers_publish_the_same_tool__each_call_goes_to_its_own_and_says_so():
    seen = []

    class Seeing:
        async def call(self, tool, arguments, *, idempotency_key):
            seen.append((tool.server, tool.address, tool.name))
            return RemoteResult(ok=True, result=tool.server)

    both = release(
        tools={
            "crm__send_email": ToolConfig(mcp_server="telecom", remote_name="send_email"),
            "marketing__send_email": ToolConfig(mcp_server="retail", remote_name="send_email"),
        }
    )
    requests = [ToolRequest("crm__send_email"), ToolRequest("marketing__send_email")]

    done = await caller_of(Seeing()).call(turn(release=both), requests)

    assert [(call.tool, call.server, call.result) for call in done] == [
        ("crm__send_email", "telecom", "telecom"), ("marketing__send_email", "retail", "retail"),
    ]  # fmt: skip
    assert {name for _, _, name in seen} == {"send_email"}
    assert len({address for _, address, _ in seen}) == 2
