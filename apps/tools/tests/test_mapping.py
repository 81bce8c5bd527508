"""Where arguments come from, and what never becomes one."""

import pytest

from apps.runtime.config import KindConfig
from apps.runtime.turn import Caller
from apps.tools.config import Argument, Extraction, ParameterMappingConfig, ToolConfig
from apps.tools.mapping import arguments_map, sources_of
from apps.tools.naming import keys_named
from apps.tools.tests.world import EXCHANGE, INVOICE, release, turn

VISITOR = Caller(principal="visitor")


class IdentityKey(KindConfig):
    """As the kind of that name in another app."""

    kind = "identity_key"
    identifies_customer: bool = False


def mapped(slug, tool, explicit=None, **changes):
    return arguments_map(turn(**changes), slug, tool, explicit or {})


def test_arguments__business_context_with_mapping__canonical_keys_fill_arguments():
    found = mapped(
        "consultar_fatura", INVOICE, context={"customer_key": "11999", "contract_key": "INV-1"}
    )

    assert found.arguments == {"msisdn": "11999", "invoice_id": "INV-1", "mes": 1}


def test_arguments__explicit_value_and_context__explicit_is_not_overwritten():
    found = mapped("solicitar_troca", EXCHANGE, {"order_id": "123"}, context={"contract_key": "A1"})

    assert found.arguments["order_id"] == "123"


def test_arguments__client_tool_arguments__come_before_context_and_after_the_request():
    context = {"contract_key": "A1"}
    given = {"order_id": "client"}

    from_client = mapped("solicitar_troca", EXCHANGE, context=context, tool_arguments=given)
    from_request = mapped(
        "solicitar_troca", EXCHANGE, {"order_id": "request"}, context=context, tool_arguments=given
    )

    assert from_client.arguments["order_id"] == "client"
    assert from_request.arguments["order_id"] == "request"


@pytest.mark.parametrize(
    "payload",
    [
        {"pedido": "PED-7"},
        {"order_id": "PED-7"},
        {"context": {"order_id": "PED-7"}},
        {"business_context": {"pedido": "PED-7"}},
    ],
)
def test_arguments__payload_field_of_that_name_or_alias__fills_what_context_does_not(payload):
    assert mapped("solicitar_troca", EXCHANGE, payload=payload).arguments == {"order_id": "PED-7"}


def test_arguments__payload_and_context__context_wins():
    found = mapped(
        "solicitar_troca", EXCHANGE, context={"contract_key": "A1"}, payload={"order_id": "B2"}
    )

    assert found.arguments["order_id"] == "A1"


def test_arguments__undeclared_values_anywhere__are_never_sent():
    found = mapped(
        "consultar_fatura",
        INVOICE,
        {"msisdn": "1", "sql": "drop"},
        context={"session_key": "s", "customer_key": "1"},
        payload={"secret": "x", "context": {"token": "y"}},
        tool_arguments={"use_mock": True},
    )

    assert set(found.arguments) == {"msisdn", "mes"}
    assert found.undeclared == ("sql", "use_mock")


def test_arguments__default_for_a_required_field__is_not_used():
    assert mapped("solicitar_troca", EXCHANGE).arguments == {}
    assert "msisdn" not in mapped("consultar_fatura", INVOICE).arguments


def test_arguments__global_mapping__fills_what_the_tools_own_does_not():
    shared = ParameterMappingConfig(
        map={"interaction_key": "invoice_id", "contract_key": "mes"},
        defaults={"mes": 9, "detalhe": True},
    )
    with_global = release(mappings={"_global": shared})

    found = mapped(
        "consultar_fatura",
        INVOICE,
        release=with_global,
        context={"contract_key": "7", "interaction_key": "I"},
    )

    assert found.arguments == {"invoice_id": "7", "mes": "7", "detalhe": True}


def test_arguments__mapping_under_another_slug__is_found_by_its_tool():
    items = {"fatura_v2": ParameterMappingConfig(tool="outra", map={"contract_key": "invoice_id"})}
    tool = ToolConfig(mcp_server="telecom", args_schema={"invoice_id": Argument()})

    found = mapped(
        "outra", tool, release=release(mappings=items), context={"contract_key": "INV-1"}
    )

    assert found.arguments == {"invoice_id": "INV-1"}


@pytest.mark.parametrize("empty", [None, "", "   ", [], {}])
def test_arguments__empty_explicit_value__lets_the_next_source_fill(empty):
    found = mapped("solicitar_troca", EXCHANGE, {"order_id": empty}, context={"contract_key": "A1"})

    assert found.arguments["order_id"] == "A1"


@pytest.mark.parametrize(("name", "value"), [("mes", 0), ("detalhe", False)])
def test_arguments__zero_and_false__are_values(name, value):
    assert mapped("consultar_fatura", INVOICE, {name: value}).arguments[name] is value


@pytest.mark.parametrize("source", ["request", "tool_arguments", "payload"])
def test_arguments__confirmation_from_client_or_model__never_counts(source):
    said = {"confirmed": True}
    found = mapped(
        "solicitar_troca",
        EXCHANGE,
        said if source == "request" else {},
        tool_arguments=said if source == "tool_arguments" else {},
        payload=said if source == "payload" else {},
    )

    assert "confirmed" not in found.arguments


@pytest.mark.parametrize("source", ["request", "tool_arguments"])
def test_arguments__visitor_names_another_customer__credential_wins_and_it_is_told(source):
    said = {"msisdn": "VICTIM"}
    found = mapped(
        "consultar_fatura",
        INVOICE,
        said if source == "request" else {},
        tool_arguments=said if source == "tool_arguments" else {},
        payload={"msisdn": "VICTIM"},
        context={"customer_key": "ME"},
        caller=VISITOR,
    )

    assert found.arguments["msisdn"] == "ME"
    assert found.foreign == ("msisdn",)


def test_arguments__visitor_without_identity__cannot_say_who_the_customer_is():
    found = mapped(
        "consultar_fatura",
        INVOICE,
        {"msisdn": "VICTIM"},
        payload={"msisdn": "VICTIM"},
        caller=VISITOR,
    )

    assert "msisdn" not in found.arguments
    assert found.foreign == ("msisdn",)


def test_arguments__visitor_repeats_own_number_in_another_spelling__is_not_foreign():
    found = mapped(
        "consultar_fatura",
        INVOICE,
        {"msisdn": "<PHONE_1>"},
        context={"customer_key": "11 99999-0000"},
        caller=VISITOR,
        vault={"<PHONE_1>": "(11) 99999.0000"},
    )

    assert found.arguments["msisdn"] == "11 99999-0000"
    assert found.foreign == ()


def test_arguments__identity_key_marked_as_customer__is_protected_too():
    key = {"account_key": IdentityKey(identifies_customer=True)}
    mapping = ParameterMappingConfig(map={"account_key": "invoice_id"})
    marked = release(mappings={"consultar_fatura": mapping}, identity_key=key)

    assert sources_of(marked, "consultar_fatura", INVOICE).customer == {"invoice_id"}


def test_arguments__caller_who_may_name_the_customer__explicit_customer_is_sent():
    found = mapped(
        "consultar_fatura", INVOICE, {"msisdn": "11999"}, context={"customer_key": "crm-user"}
    )

    assert found.arguments["msisdn"] == "11999"


def test_arguments__placeholder_alone_in_an_unrestricted_argument__is_no_value():
    found = mapped(
        "consultar_fatura",
        INVOICE,
        {"msisdn": "<PHONE_1>"},
        context={"customer_key": "11999"},
        vault={"<PHONE_1>": "11888"},
    )

    assert found.arguments["msisdn"] == "11999"


NUMBERED = ParameterMappingConfig(
    tool="consultar_fatura",
    map={"customer_key": "msisdn", "contract_key": "invoice_id"},
    extract={
        "invoice_id": Extraction(pattern=r"INV-\d+"),
        "msisdn": Extraction(pattern=r"\d{11}"),
    },
)


def test_arguments__context_value_of_another_form__fills_nothing():
    known = {"customer_key": "11999", "contract_key": "PED-1"}
    numbered = release(mappings={"consultar_fatura": NUMBERED})
    found = mapped("consultar_fatura", INVOICE, context=known, release=numbered)
    assert found.arguments == {"msisdn": "11999"}


def test_keys_named__value_in_its_form__is_the_keys_and_never_the_customers():
    def named(text):
        asked = turn(release=release(mappings={"consultar_fatura": NUMBERED}))
        return keys_named(asked.evolve(text=text), "consultar_fatura")

    assert named("a fatura INV-7 da linha 11988887777") == {"contract_key": "INV-7"}
    assert named("INV-7 ou INV-8?") == {}
    assert named("a do pedido PED-7") == {}
