"""What a text states that can be checked, and in which readings."""

import pytest

from apps.evals.judges.facts import facts_find


def keys(text):
    return sorted((fact.kind, *sorted(fact.keys)) for fact in facts_find(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("R$ 1.234,56", [("money", "n:1234.56")]),
        ("$1,234.56", [("money", "n:1234.56")]),
        ("129.9", [("number", "n:129.9")]),
        ("R$ 129,90", [("money", "n:129.9")]),
        ("50 reais", [("money", "n:50")]),
        ("1.234", [("number", "n:1.234", "n:1234")]),
        ("10%", [("number", "n:0.1", "n:10")]),
        ("3000131180", [("number", "i:3000131180", "n:3000131180")]),
        ("2026-05-10", [("date", "d:2026-05-10")]),
        ("2026-05-10T14:30:00Z", [("date", "d:2026-05-10")]),
        ("13/05/2026", [("date", "d:2026-05-13")]),
        ("10/05/2026", [("date", "d:2026-05-10", "d:2026-10-05")]),
        ("13/05", [("date", "d:--05-13")]),
        ("10 de maio de 2026", [("date", "d:2026-05-10")]),
        ("10 de maio", [("date", "d:--05-10")]),
        ("May 10, 2026", [("date", "d:2026-05-10")]),
        ("maio de 2026", [("date", "m:2026-05")]),
        ("05/2026", [("date", "m:2026-05")]),
        ("às 14h30", [("time", "t:14:30")]),
        ("às 14:30", [("time", "t:14:30")]),
        ("pedido PED-1001", [("id", "i:ped1001")]),
        ("(11) 99999-9999", [("id", "i:11999999999")]),
        ("plano de 50GB", [("number", "n:50")]),
        ("ENTREGUE", [("status", "s:delivered")]),
        ("status: EM_TRANSITO", [("status", "w:em_transito")]),
        ("O pedido foi entregue", [("status", "s:delivered")]),
        ("The invoice is overdue", [("status", "s:overdue")]),
    ],
)
def test_facts__one_fact__carries_its_readings(text, expected):
    assert keys(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Claro, posso ajudar com a sua fatura!",
        "1. Fatura\n2. Plano\n3) Serviços",
        "Atendemos 24/7, 24 horas por dia",
        "O pedido não foi entregue",
        "CPF •••.•••.•••-35 e <CPF_1>",
        "",
    ],
)
def test_facts__nothing_to_check__none(text):
    assert keys(text) == []


@pytest.mark.parametrize(
    "text", ["a" * 200_000, "\n" * 200_000, "1." * 100_000, "a-" * 100_000, "10/10/2026 " * 18_000]
)
def test_facts__200_kb_of_bad_luck__still_ends(text):
    assert len(facts_find(text)) <= 1
