"""What is read out of the customer's words, and what is not."""

import time
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest
from pydantic import ValidationError

from apps.runtime.ports import ModelFailed, ToolRequest
from apps.runtime.testing import FakeModel, FakeTransport
from apps.runtime.turn import Route
from apps.tools.config import Argument, Extraction, ParameterMappingConfig, ToolConfig
from apps.tools.extraction import (
    amount_read,
    date_read,
    month_read,
    today_in,
    value_extract,
    values_read,
)
from apps.tools.mapping import arguments_map, extractor_of
from apps.tools.model_extraction import (
    PARAMETER_EXTRACTION,
    TRANSACTION_EXTRACTION,
    ModelExtraction,
)
from apps.tools.patterns import PatternInvalid, pattern
from apps.tools.steps.read_arguments import ReadArguments
from apps.tools.tests.world import INVOICE, INVOICE_MAPPING, Agent, caller_of, release, turn

TODAY = date(2026, 5, 20)


# -- months, dates, amounts --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "month"),
    [
        ("fatura de março", 3), ("FATURA DE MARCO", 3), ("a de Março, março mesmo", 3),
        ("dezembro", 12), ("março ou abril", None), ("amarço", None), ("fatura", None),
    ],
)  # fmt: skip
def test_month__named_once__is_its_number(text, month):
    assert month_read(text) == month


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("05/03/2026", "2026-03-05"), ("em 5/3/26, por favor", "2026-03-05"),
        ("05-03-2026.", "2026-03-05"), ("2026-03-05", "2026-03-05"),
        ("05 de março de 2026", "2026-03-05"), ("1º de maio de 2027", "2027-05-01"),
        ("hoje", "2026-05-20"), ("amanhã", "2026-05-21"), ("AMANHA", "2026-05-21"),
        ("ontem", "2026-05-19"), ("depois de amanhã", "2026-05-22"), ("anteontem", "2026-05-18"),
        ("5 de março", "2026-03-05"), ("25/12", "2026-12-25"), ("29/02/2028", "2028-02-29"),
        ("dia 5 de março, isto é, 05/03/2026", "2026-03-05"),
        ("31/02/2026", None), ("29/02/2026", None), ("13/13/2026", None), ("março", None),
        ("hoje ou amanhã", None), ("de 01/03/2026 a 31/03/2026", None), ("1/2/3/4", None),
        ("protocolo 2026-03-055", None), ("PED-05/03", None), ("amanhecer", None), ("", None),
    ],
)  # fmt: skip
def test_date__one_day_that_exists__is_read_and_ambiguity_is_not(text, day):
    found = date_read(text, TODAY)

    assert (found.isoformat() if found else None) == day


@pytest.mark.parametrize(
    ("year", "march", "december"),
    [
        ("this", "2026-03-05", "2026-12-25"),
        ("past", "2026-03-05", "2025-12-25"),
        ("future", "2027-03-05", "2026-12-25"),
    ],
)
def test_date__without_a_year__is_of_the_year_that_is_configured(year, march, december):
    assert str(date_read("5 de março", TODAY, year)) == march
    assert str(date_read("25/12", TODAY, year)) == december


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("R$ 1.234,56", "1234.56"), ("1234.56", "1234.56"), ("1.234,56", "1234.56"),
        ("1,234.56", "1234.56"), ("R$71,99", "71.99"), ("paguei 71,99", "71.99"),
        ("-R$ 50,00", "-50.00"), ("R$ -50,00", "-50.00"), ("-12.5", "-12.5"), ("50 reais", "50"),
        ("R$ 1.234", "1234"), ("R$ 1.000.000,00", "1000000.00"), ("R$ 150.", "150"),
        ("0,10", "0.10"), ("R$ 150, sim, R$ 150", "150"),
        ("em 05/03/2026 paguei R$ 71,99 em 3 vezes", "71.99"),
        ("o pedido PED-1001 custou 71,99", "71.99"), ("dia 5 de março paguei 10", "10"),
        ("1.234", None), ("1,234", None), ("R$ 1,2345", None), ("2 ou 3", None),
        ("R$ 10 ou R$ 20", None), ("PED-1001", None), ("", None), ("mil reais", None),
    ],
)  # fmt: skip
def test_amount__written_in_portuguese_or_iso__is_exact_and_ambiguity_is_not_read(text, amount):
    assert amount_read(text) == amount


def test_today__late_in_the_evening__is_the_tenants_day_and_not_utc():
    moment = datetime(2026, 5, 2, 1, 30, tzinfo=UTC)  # 22:30 of the day before in São Paulo
    here = release(mappings={"_global": ParameterMappingConfig(time_zone="America/Sao_Paulo")})
    east = release(mappings={"_global": ParameterMappingConfig(time_zone="Asia/Tokyo")})

    def clock(zone: ZoneInfo | None) -> datetime:
        return moment.astimezone(zone)

    assert today_in(here, clock) == date(2026, 5, 1)
    assert today_in(east, clock) == date(2026, 5, 2)
    assert date_read("agende para hoje", today_in(here, clock)) == date(2026, 5, 1)


def test_time_zone__that_there_is_not__is_an_error_when_it_is_saved():
    with pytest.raises(ValidationError, match="time zone"):
        ParameterMappingConfig(time_zone="America/Sao_Paolo")


# -- patterns ----------------------------------------------------------------------------------


@pytest.mark.parametrize("hostile", [r"(a+)+$", r"(a|aa)+$", r"(\w+\s?)*x$", r"(.*a){20}b"])
def test_pattern__that_would_run_for_ever__takes_milliseconds(hostile):
    started = time.perf_counter()

    found = value_extract(Extraction(strategy="regex", pattern=hostile), "a" * 7_000 + "!", TODAY)

    assert found is None
    assert time.perf_counter() - started < 1


@pytest.mark.parametrize(
    "wrong", ["(", "(?=a)b", r"(a)\1", "a{1001}", "(((a{500}){500}){500}){500}", "[z-a]"]
)
def test_pattern__that_is_none_or_too_large__is_refused_when_it_is_saved(wrong):
    with pytest.raises(ValidationError, match="regular expression"):
        Extraction(strategy="regex", pattern=wrong)
    with pytest.raises(PatternInvalid):
        pattern(wrong)


def test_pattern__letters_with_accents__are_letters():
    assert (
        value_extract(Extraction(pattern=r"plano (\w+)", group=1), "o plano família", TODAY)
        == "família"
    )
    assert value_extract(Extraction(pattern=r"[\w-]+@"), "joão-pé@x", TODAY) == "joão-pé@"
    assert value_extract(Extraction(pattern=r"x(\W+)y", group=1), "x, y", TODAY) == ","


def test_pattern__with_a_group__gives_the_group_trimmed():
    how = Extraction(pattern=r"(?i)pedido\s+(?P<id>PED-\d+)( urgente)?", group=1)

    assert value_extract(how, "cancela o Pedido PED-1001!", TODAY) == "PED-1001"
    assert value_extract(replace_group(how, 2), "pedido PED-1001", TODAY) is None


def replace_group(how: Extraction, group: int) -> Extraction:
    return how.model_copy(update={"group": group})


def test_pattern__restricted_argument__finds_the_placeholder_of_the_masked_value():
    how = Extraction(pattern=r"\d{3}\.\d{3}\.\d{3}-\d{2}")
    vault = {"<CPF_1>": "111.444.777-35", "<CPF_2>": "222.555.888-46"}

    assert value_extract(how, "meu CPF é <CPF_2>", TODAY, vault) == "<CPF_2>"
    assert value_extract(how, "meu CPF é <CPF_2>", TODAY) is None
    assert value_extract(how, "sem documento", TODAY, vault) is None


# -- in a call ---------------------------------------------------------------------------------

TOOL = INVOICE.model_copy(
    update={
        "args_schema": {
            **INVOICE.args_schema,
            "vencimento": Argument(json_schema={"format": "date"}),
            "valor": Argument(type="number"),
            "motivo": Argument(enum=["defeito", "atraso"]),
        }
    }
)
HOW = {
    "mes": Extraction(strategy="month_name_pt"),
    "vencimento": Extraction(strategy="date", year="past"),
    "valor": Extraction(strategy="amount"),
    "motivo": Extraction(strategy="hybrid", pattern="(?i)defeito", description="why"),
    "invoice_id": Extraction(strategy="regex", pattern=r"\d+"),
    "msisdn": Extraction(strategy="regex", pattern=r"\d+"),
    "fora": Extraction(strategy="month_name_pt"),
}
MAPPING = INVOICE_MAPPING.model_copy(update={"extract": HOW, "defaults": {"mes": 1}})
PROFILE = {name: Agent() for name in (PARAMETER_EXTRACTION, TRANSACTION_EXTRACTION)}
WORLD = release(
    tools={"consultar_fatura": TOOL},
    mappings={"consultar_fatura": MAPPING},
    model_profile=PROFILE,
)


def saying(text: str, **changes):
    return turn(release=WORLD, context={"customer_key": "11999"}, **changes).evolve(text=text)


async def test_call__invoice_of_march__the_server_gets_month_three():
    transport = FakeTransport({"consultar_fatura": 1})

    await caller_of(transport).call(
        saying("minha fatura de março, R$ 1.234,56 com defeito"), [ToolRequest("consultar_fatura")]
    )

    assert transport.calls[0][1] == {
        "msisdn": "11999", "mes": 3, "valor": 1234.56, "motivo": "defeito",
    }  # fmt: skip


def test_values_read__of_named_arguments__typed_and_only_what_fits():
    text = "fatura de março, R$ 71,99, vence 05/03/2026"

    found = values_read(TOOL, MAPPING, text, TODAY, ["mes", "valor", "vencimento", "motivo", "x"])

    assert found == {"mes": 3, "valor": 71.99, "vencimento": "2026-03-05"}
    assert values_read(TOOL, None, text, TODAY, ["mes"]) == {}


def test_values_read__what_does_not_fit_the_type__was_not_read():
    tool = ToolConfig(mcp_server="telecom", args_schema={"mes": Argument(type="integer")})
    mapping = ParameterMappingConfig(extract={"mes": Extraction(pattern=r"mês (\w+)", group=1)})

    assert values_read(tool, mapping, "mês sete", TODAY, ["mes"]) == {}
    assert values_read(tool, mapping, "mês 7", TODAY, ["mes"]) == {"mes": 7}


def test_extractor__for_whoever_collects__reads_required_ones_and_never_the_customer():
    tool = TOOL.model_copy(update={"requires": ["mes"]})
    world = release(tools={"consultar_fatura": tool}, mappings={"consultar_fatura": MAPPING})

    read = extractor_of(turn(release=world), "consultar_fatura")

    assert read("mes", "de março") == 3
    assert read("invoice_id", "é a 3000131180") == "3000131180"
    assert read("msisdn", "11888") is None
    assert read("fora", "março") is None
    assert extractor_of(turn(), "nenhuma")("mes", "março") is None


# -- a model reads the rest --------------------------------------------------------------------

LLM = MAPPING.model_copy(
    update={
        "extract": {
            "mes": Extraction(strategy="llm", description="invoice month, 1 to 12"),
            "motivo": Extraction(strategy="hybrid", pattern="(?i)defeito", description="why"),
            "valor": Extraction(strategy="amount"),
            "detalhe": Extraction(strategy="llm"),
            "invoice_id": Extraction(strategy="llm"),
        }
    }
)
OTHER = ToolConfig(mcp_server="telecom", args_schema={"assunto": Argument()})
OTHER_MAPPING = ParameterMappingConfig(extract={"assunto": Extraction(strategy="llm")})
ASKING = release(
    tools={"consultar_fatura": TOOL, "outra": OTHER},
    mappings={"consultar_fatura": LLM, "outra": OTHER_MAPPING},
    model_profile=PROFILE,
)


def of(text: str, **changes):
    changes.setdefault("release", ASKING)
    return turn(context={"customer_key": "11999"}, **changes).evolve(text=text)


async def test_model__several_tools__one_request_for_all_open_fields_and_each_once():
    answer = '{"consultar_fatura.mes": 3, "consultar_fatura.motivo": null, "consultar_fatura.detalhe": null, "outra.assunto": "plano família"}'
    model = FakeModel(answer)
    read = ModelExtraction(model)

    done = await read(
        of("a fatura do terceiro mês e o plano família"), ["consultar_fatura", "outra"]
    )
    again = await read(done, ["consultar_fatura", "outra"])

    assert done.extracted == {"consultar_fatura": {"mes": 3}, "outra": {"assunto": "plano família"}}
    assert len(model.requests) == 1
    assert again is done
    (request,) = model.requests
    assert (request.profile, request.operation, request.ordinal) == (
        PARAMETER_EXTRACTION,
        PARAMETER_EXTRACTION,
        0,
    )
    assert "invoice_id" not in request.messages[0].content
    assert "msisdn" not in request.messages[0].content
    assert "invoice month, 1 to 12" in request.messages[0].content
    assert len(done.model_calls) == 1


async def test_model__pattern_already_read_it__is_not_asked_for_that_field():
    model = FakeModel("{}")

    await ModelExtraction(model)(of("com DEFEITO"), ["consultar_fatura"])

    assert "motivo" not in model.requests[0].messages[0].content


async def test_model__reading_of_it__comes_after_patterns_and_before_defaults():
    made = of("terceiro mês", extracted={"consultar_fatura": {"mes": 3}})
    found = arguments_map(made, "consultar_fatura", TOOL, {})
    explicit = arguments_map(made, "consultar_fatura", TOOL, {"mes": 7})

    assert found.arguments["mes"] == 3
    assert explicit.arguments["mes"] == 7
    assert arguments_map(of("x"), "consultar_fatura", TOOL, {}).arguments["mes"] == 1


@pytest.mark.parametrize(
    "answer",
    [
        '{"consultar_fatura.mes": null}', '{"consultar_fatura.mes": "março"}',
        '{"consultar_fatura.mes": 3.5}', '{"consultar_fatura.mes": true}', "não sei", "[]", "",
        '{"consultar_fatura.motivo": "troca"}', '{"mes": 3}', '{"consultar_fatura.invoice_id": "1"}',
    ],
)  # fmt: skip
async def test_model__unsure_or_unfit_answer__leaves_the_fields_open(answer):
    done = await ModelExtraction(FakeModel(answer))(of("a fatura"), ["consultar_fatura"])

    assert done.extracted == {"consultar_fatura": {}}


async def test_model__free_text_that_nobody_wrote__was_not_read():
    model = FakeModel('{"outra.assunto": "cancelamento imediato"}', '{"outra.assunto": "Plano"}')
    read = ModelExtraction(model)

    invented = await read(of("sobre o plano"), ["outra"])
    said = await read(of("sobre o plano"), ["outra"])

    assert (invented.extracted, said.extracted) == ({"outra": {}}, {"outra": {"assunto": "Plano"}})


async def test_model__answer_in_a_code_block__is_read():
    done = await ModelExtraction(FakeModel('```json\n{"consultar_fatura.mes": 3}\n```'))(
        of("terceiro"), ["consultar_fatura"]
    )

    assert done.extracted["consultar_fatura"] == {"mes": 3}


async def test_model__fails_or_is_not_configured__turn_goes_on_without_values():
    class Broken:
        async def complete(self, turn, request):
            raise ModelFailed("down", code="timeout")

    failed = await ModelExtraction(Broken())(of("x"), ["consultar_fatura"])
    without = FakeModel()
    bare = release(tools={"consultar_fatura": TOOL}, mappings={"consultar_fatura": LLM})
    none = await ModelExtraction(without)(of("x", release=bare), ["consultar_fatura"])

    assert (failed.extracted, none.extracted) == (
        {"consultar_fatura": {}},
        {"consultar_fatura": {}},
    )
    assert [d.code for d in failed.decisions] == ["NOC.LLM_FAILED"]
    assert without.requests == []


async def test_model__collecting_an_action__reads_only_the_pending_ones_with_their_own_profile():
    model = FakeModel('{"motivo": "Atraso", "valor": 71.99, "msisdn": "1"}')

    done, values = await ModelExtraction(model).pending(
        of("demorou, foram 71,99"), "consultar_fatura", ["motivo", "valor", "msisdn"]
    )

    assert values == {"motivo": "atraso", "valor": 71.99}
    assert model.requests[0].profile == TRANSACTION_EXTRACTION
    assert "msisdn" not in model.requests[0].messages[0].content
    assert len(done.model_calls) == 1


async def test_step__before_tools_run__fills_extracted_for_the_chosen_tools():
    step = ReadArguments(
        ModelExtraction(FakeModel('{"consultar_fatura.mes": 3}')),
        lambda turn: turn.route.tools if turn.route else (),
    )
    route = Route(
        agent="a", intent="i", method="keyword", confidence=1, tools=("consultar_fatura",)
    )

    done = await step(of("terceiro mês").evolve(route=route))
    unrouted = await step(of("terceiro mês"))

    assert done.extracted == {"consultar_fatura": {"mes": 3}}
    assert unrouted.extracted == {}


async def test_model__sees_the_text_as_it_is_hidden():
    model = FakeModel("{}")
    hidden = ModelExtraction(model, lambda turn: lambda text: text.replace("Maria", "<NAME_1>"))

    await hidden(of("sou a Maria"), ["consultar_fatura"])

    assert model.requests[0].messages[1].content == "sou a <NAME_1>"
