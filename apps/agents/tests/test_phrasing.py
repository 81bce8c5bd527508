"""Sentences made of field names and values: nothing added, nothing changed."""

from decimal import Decimal

import pytest

from apps.agents.phrasing import MAX_ITEMS, compose


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (
            {"invoice_id": "3000131180", "valor_total": 129.9, "vencimento": "2026-05-10",
             "status": "aberta"},
            "Fatura 3000131180: valor total R$ 129,90, vencimento 10/05/2026, situação aberta.",
        ),
        ({"valor": 1234567.5}, "Valor R$ 1.234.567,50."),
        ({"valor": -3}, "Valor -R$ 3,00."),
        ({"valor": Decimal("0.125")}, "Valor R$ 0,125."),
        ({"amount_cents": 12990}, "Amount cents R$ 129,90."),
        ({"valor": "129.90", "moeda": "USD"}, "Valor US$ 129,90."),
        ({"valor": "R$ 71,99"}, "Valor R$ 71,99."),
        ({"quantidade": 2, "percentual_desconto": 10}, "Quantidade 2, percentual desconto 10%."),
        ({"total": 2, "total_faturas": 5, "faturas": []},
         "Total 2, total faturas 5.\nFaturas: nenhum registro."),
        ({"protocolo": 9007199254740993}, "Protocolo 9007199254740993."),
        ({"pedido": "PED-1001", "situacao": "EM_TRANSITO"}, "Pedido PED-1001: situação em transito."),
        ({"nome": "Controle", "franquia_gb": 20, "roaming": True, "fidelidade": None},
         "Controle: franquia 20 GB, roaming sim."),
        ({"entregue_em": "2026-05-01T10:30:00-03:00"}, "Entregue em 01/05/2026 10:30."),
        ({"competencia": "2026-04"}, "Competência 04/2026."),
        ({"pagamentos": [{"invoice_id": "1", "valor": 10}, {"invoice_id": "2", "valor": 20}]},
         "Pagamentos: fatura 1 (valor R$ 10,00); fatura 2 (valor R$ 20,00)."),
        ({"endereco": {"rua": "A\nB", "numero": 12}}, "Endereço: rua A B, número 12."),
        ({"codigo_rastreio": "BR1"}, "Código de rastreio BR1."),
        ("texto  livre", "Texto livre."),
        ("a\0b\x1b\ud800 ação 😀", "Ab ação 😀."),
    ],
)  # fmt: skip
def test_compose__known_shape__is_one_sentence_per_record(result, said):
    assert compose([result], language="pt-BR") == said


def test_compose__english__keeps_iso_dates_and_names_no_currency_it_was_not_told():
    record = {"order_id": "7", "valor_total": 1129.9, "due_date": "2026-05-10"}
    assert compose([record], language="en") == (
        "Order 7: total amount 1,129.90, due date 2026-05-10."
    )


def test_compose__who_the_customer_is__is_not_repeated():
    record = {"msisdn": "11999999999", "customer_key": "c", "cpf": "1", "valor": 1, "ok": True}
    assert compose([record], language="pt-BR") == "Valor R$ 1,00."


@pytest.mark.parametrize("result", [{}, {"msisdn": "1"}, None, [], ""])
def test_compose__nothing_in_it__is_empty(result):
    assert compose([result], language="pt-BR") == ""


def test_compose__long_list__says_how_many_more():
    said = compose([{"servicos": [{"nome": f"S{i}"} for i in range(MAX_ITEMS + 3)]}], language="pt")
    assert said.endswith("S9; e mais 3.")


def test_compose__endless_results__stay_bounded():
    said = compose([{"nota": "x" * 10_000, "id": i} for i in range(100)], language="pt")
    assert len(said) < 4_500


def test_compose__deep_record__ends():
    deep: dict = {"valor": 1}
    for _ in range(50):
        deep = {"dados": deep}
    assert compose([deep], language="pt") == ""
