"""Numbers in ordinary surroundings, and long public numbers that are nobody's personal data."""

import time

import pytest

from apps.governance.config import RailRule
from apps.governance.detection.personal_data import personal_data_find
from apps.governance.rails.chain import rails_run
from apps.runtime.testing import turn_of
from apps.runtime.turn import Draft, SessionState

CPF = "529.982.247-25"
CARD = "4111 1111 1111 1111"
SLIP = "23793.38128 60082.677139 66003.305208 1 12345678901234"


def found(text):
    return [(span.entity, span.value) for span in personal_data_find(text)]


@pytest.mark.parametrize(
    "text",
    [f"CPF ({CPF})", f"({CPF})", f"[{CPF}]", f"_{CPF}_", f"*{CPF}*", f"__{CPF}__", f'"{CPF}"',
     f"cpf={CPF}", f"cpf_{CPF}", f"cliente-{CPF}", f"x{CPF}y", f"CPF{CPF}", f"#{CPF}",
     f"3000131180,{CPF}", f"1:{CPF}", f"{CPF},00", f"{CPF}.000"],
)  # fmt: skip
def test_cpf__surrounded_by_punctuation__is_found(text):
    assert found(text) == [("CPF", CPF)]


@pytest.mark.parametrize(
    "text",
    ["CPF52998224725", "cpf:52998224725", "(52998224725)", "_52998224725_", "cpf_52998224725",
     "meuCPF 52998224725", "3000131180,52998224725", "52998224725,3000131180", "?cpf=52998224725&x=1"],
)  # fmt: skip
def test_cpf__bare_digits_with_something_around__is_found(text):
    assert found(text) == [("CPF", "52998224725")]


@pytest.mark.parametrize("separator", [",", ", ", ";", "/", " / ", "|", "\n", "\t"])
@pytest.mark.parametrize(
    ("first", "second"), [(CPF, "111.444.777-35"), ("52998224725", "11144477735")]
)
def test_cpf__in_a_list__each_is_found(separator, first, second):
    assert found(first + separator + second) == [("CPF", first), ("CPF", second)]


@pytest.mark.parametrize("hyphen", ["\u2010", "\u2011", "\u2012", "\u2013", "\u2014", "\u2212"])
def test_cpf__another_hyphen__is_found_as_it_was_written(hyphen):
    written = CPF.replace("-", hyphen)
    assert found(f"é o {written}.") == [("CPF", written)]


@pytest.mark.parametrize(
    "written",
    ["5 2 9 9 8 2 2 4 7 2 5", "52 99 82 24 72 5", "5299 8224 725", "5-2-9-9-8-2-2-4-7-2-5",
     "529 982 247 / 25", "529\u00a0982\u00a0247\u00a025", "５２９９８２２４７２５", "1 2 3 4 5 6 7 8 9 0 0"],
)  # fmt: skip
def test_cpf__digits_apart_after_its_label__is_found(written):
    assert found(f"meu CPF é {written}, ok?") == [("CPF", written)]


def test_cpf__digits_apart_without_label__needs_its_check_digits():
    assert found("5 2 9 9 8 2 2 4 7 2 5") == [("CPF", "5 2 9 9 8 2 2 4 7 2 5")]
    assert found("1 2 3 4 5 6 7 8 9 0 1") == []
    assert found("1 2 3 4 5 6 7 8 9 10 11 12") == []


@pytest.mark.parametrize(
    "text",
    [f"({CARD})", f"[{CARD}]", f"_{CARD}_", f"cartão ({CARD})", f"cartão:{CARD}", f"{CARD},00",
     f"1,{CARD}", f"cartão{CARD}", f"{CARD}, 12/28"],
)  # fmt: skip
def test_card__surrounded_by_punctuation__is_found(text):
    assert found(text) == [("CARD", CARD)]


@pytest.mark.parametrize("separator", [",", ";", "/", "|", " e "])
def test_card__in_a_list__each_is_found(separator):
    text = separator.join(["4111111111111111", "5555555555554444"])
    assert found(text) == [("CARD", "4111111111111111"), ("CARD", "5555555555554444")]


@pytest.mark.parametrize(
    "text",
    ["(11) 98765-4321", "(11)98765-4321", "+55 (11) 98765-4321", "(+55 11 98765-4321",
     "11 98765\u20114321", "_11 98765-4321"],
)  # fmt: skip
def test_phone__brackets_and_plus__still_a_phone(text):
    assert [entity for entity, _ in found(text)] == ["PHONE"]


@pytest.mark.parametrize(
    "text",
    [
        SLIP,
        f"Linha digitável: {SLIP}.",
        f"Pague com ({SLIP})",
        "23793.38128  60082.677139  66003.305208  1  12345678901234",
        "2379338128 60082677139 66003305208 1 12345678901234",
        "23793381286008267713966003305208112345678901234",
        "23793-38128 60082-677139 66003-305208 1 12345678901234",
        "23793.38128 60082.677139 66003.305208 1 11222333000181",
        "84670000001-7 43590024020-9 02405000243-5 84221010811-9",
        "846700000017 435900240209 024050002435 842210108119",
        "846700000017435900240209024050002435842210108119",
        "23791123400000123453381260082677136600330520",
        "código de barras 84670000000143590024020024050002438422101081",
        "84670000000 14359002402 00240500024 38422101081",
    ],
)
def test_payment_line__any_grouping__comes_through_whole_both_ways(text):
    rules = [RailRule(code="MSK")]
    session = SessionState(vault={"<CNPJ_1>": "11.444.777/0001-61"})
    assert found(text) == []
    into = rails_run(phase="input", rules=rules, text=text, turn=turn_of(text, session=session))
    assert into.text == text
    turn = turn_of("oi", draft=Draft(text=text, agent="a"), session=session)
    assert rails_run(phase="output", rules=rules, text=text, turn=turn).text == text


@pytest.mark.parametrize(
    "digits",
    [
        "00193373700000001000500940144816060680935031",  # a bank's barcode
        "35260611222333000181550010000001231000001230",  # the key of an NF-e
    ],
)
def test_payment_line__barcode_in_fours__comes_through_by_its_check_digit(digits):
    assert found(" ".join(digits[i : i + 4] for i in range(0, 44, 4))) == []


def test_payment_line__then_a_document__the_document_is_found():
    assert found(f"{SLIP}, CPF {CPF}") == [("CPF", CPF)]


@pytest.mark.parametrize(
    ("text", "entities"),
    [
        ("4111 1111 1111 1111 5555 5555 5555 4444 3782 822463 10005", ["CARD"] * 3),
        ("4111111111111111 5555555555554444 378282246310005", ["CARD"] * 3),
        ("52998224725 11144477735 52998224725 11144477735", ["CPF"] * 4),
        ("84434895885 52998224725 11144477735 52998224725", ["CPF"] * 4),
    ],
)
def test_payment_line__a_list_of_documents_as_long_as_one__is_found(text, entities):
    assert [entity for entity, _ in found(text)] == entities


@pytest.mark.parametrize(
    "text",
    [
        "fatura 3000131180, fatura 3000131181,3000131182",
        "fatura (3000131180) de R$ 1.234,56 (R$1.234,56)",
        "R$ 529.982.247,25",
        "total 52.998.224,72 em 10/11/2026,11/11/2026",
        "pedido_52998224725 e pedido52998224725",
        "id4111111111111111, PED_1001, img_20261009_112345",
        "protocolo (20261009000123), 20261009000124",
        "2026\u201305\u201310, das 08:00\u201318:00",
        "1,2,3,4,5,6,7,8,9,10,11 e 12,345,678.90",
        "<CPF_1>,<CEP_100> e <PHONE_12345>",
    ],
)
def test_numbers__amounts_dates_orders_invoices__are_left_alone(text):
    assert found(text) == []


@pytest.mark.parametrize(
    "text", ["CPF(1" * 40_000, "1,2" * 66_000, "1 " * 100_000, "a1" * 100_000, "2379 " * 40_000,
             "12345678901," * 16_000, "CPF " + "1 " * 100_000, "_1" * 100_000],
)  # fmt: skip
def test_numbers__200_kb_of_surroundings__end_in_time(text):
    begun = time.process_time()
    personal_data_find(text)
    assert time.process_time() - begun < 10


def test_known_value__in_new_surroundings__gets_its_placeholder():
    session = SessionState(vault={"<RG_1>": "12.345.678-9"})
    text = "é _12345678-9_ ou (12.345.678\u20119),x123456789"
    run = rails_run(
        phase="input", rules=[RailRule(code="MSK")], text=text, turn=turn_of(text, session=session)
    )
    assert run.text == "é _<RG_1>_ ou (<RG_1>),x123456789"
