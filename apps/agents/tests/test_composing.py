"""What is left out when several answers become one, and what never is."""

import pytest

from apps.agents.composing import closing, joined, one_voice
from apps.runtime.turn import ToolCall

BILL = ToolCall(
    tool="t", server="s", arguments={}, status="ok",
    result={"valor": 129.9, "vencimento": "2026-05-10", "itens": [50, 1234.5]},
)  # fmt: skip


def voiced(text):
    return one_voice(text, [BILL], ["billing_agent", "front"])


@pytest.mark.parametrize(
    "text",
    [
        "O item custa R$ 50,00. O item custa R$ 1.234,50.",
        "O total é R$ 7,00. O total é R$ 8,00.",
        "Chega em 10/05/2026. Custa R$ 129,90.",
        "Não está pago. Está enviado.",
        "Sim. Não.",
        "front é o começo. Um texto qualquer, com 3 números: 1, 2 e 3.",
    ],
)
def test_statements_that_may_both_be_true__both_stay(text):
    assert voiced(text) == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("O total é R$ 7,00. O total é R$ 129,90.", "O total é R$ 129,90."),
        ("O total é R$ 129,90. O total é R$ 7,00.", "O total é R$ 129,90."),
        ("Vence em 10/05/2026. Vence em 11/06/2027.", "Vence em 10/05/2026."),
        ("O plano está ativo. O plano não está ativo.", "O plano está ativo."),
        ("O plano está ativo. O plano está ativo!", "O plano está ativo."),
        ("# Fatura\nO total é R$ 129,90.", "O total é R$ 129,90."),
        ("**Fatura**\nO total é R$ 129,90.", "O total é R$ 129,90."),
        ("[billing_agent] O total é R$ 129,90.", "O total é R$ 129,90."),
        ("Falei com billing_agent. O total é R$ 129,90.", "O total é R$ 129,90."),
    ],
)
def test_repeated_contradicted_headed_or_named__is_left_out(text, left):
    assert voiced(text) == left


def test_joined__paragraphs_without_what_was_said_before():
    texts = ["A fatura vence em 10/05/2026.", "A fatura vence em 10/05/2026. Custa R$ 5,00.", ""]
    assert joined(texts) == "A fatura vence em 10/05/2026.\n\nCusta R$ 5,00."


def test_closing__nothing_to_keep__says_nothing():
    assert closing([" ", "."], "pt-BR") == ""
