import pytest

from apps.evals.judges.groundedness import Groundedness
from apps.runtime.dialogue import Dialogue
from apps.runtime.dialogue import Evidence as Kept
from apps.runtime.testing import turn_of
from apps.runtime.turn import BusinessContext, ChatMessage, Draft, ToolCall

INVOICE = {
    "invoice_id": "3000131180",
    "msisdn": "11999999999",
    "valor_total": 249.9,
    "vencimento": "2026-06-10",
    "status": "ABERTA",
    "pago": False,
    "itens": [
        {"descricao": "Plano Controle 50GB", "valor": 149.9},
        {"descricao": "Roaming internacional", "valor": 50.0},
        {"descricao": "Serviços digitais", "valor": 50.0},
    ],
}
PAYMENTS = {
    "pagamentos": [
        {"data": "2026-05-10", "valor": 199.9, "status": "COMPENSADO"},
        {"data": "2026-04-10", "valor": 189.9, "status": "COMPENSADO"},
    ]
}


def call(tool, result, status="ok", **arguments):
    return ToolCall(tool=tool, server="s", arguments=arguments, status=status, result=result)


def judged(answer, *calls, said="Quero minha fatura", **changes):
    draft = Draft(text=answer, agent="a")
    turn = turn_of(said, draft=draft, tool_calls=tuple(calls), **changes)
    return Groundedness().judge(turn)


BOTH = (call("consultar_fatura", INVOICE), call("consultar_pagamentos", PAYMENTS))


@pytest.mark.parametrize(
    "answer",
    [
        "Sua fatura 3000131180 é de R$ 249,90, vence em 10/06/2026 e está ABERTA.",
        "Your invoice of 249.90 is due on June 10, 2026 and is open.",
        "Vence dia 10 de junho. Plano Controle 50GB: R$ 149,90.",
        "São 3 itens e 2 pagamentos; os pagamentos somam R$ 389,80.",
        "A fatura ficou R$ 50,00 acima do último pagamento, de R$ 199,90 em 10/05.",
        "R$ 199,90 foi pago em 10/05/2026.",
        "Linha (11) 99999-9999.",
    ],
)
def test_groundedness__everything_is_in_the_evidence__scores_one(answer):
    assert judged(answer, *BOTH).value == 1.0


def test_groundedness__no_factual_claim__scores_one():
    assert judged("Olá! Como posso ajudar?").value == 1.0


def test_groundedness__claim_and_no_evidence__scores_zero():
    judgement = judged("Sua fatura é de R$ 249,90.")
    assert judgement.value == 0.0
    assert "r$ 249,90" in judgement.guidance


def test_groundedness__other_amount_than_the_tools__scores_zero():
    assert judged("O valor é R$ 999,00.", call("x", {"valor": 100})).value == 0.0


def test_groundedness__half_is_there__scores_half():
    judgement = judged("Pedidos PED-1001 e PED-2002.", call("x", ["PED-1001"]))
    assert judgement.value == 0.5
    assert judgement.metadata == {"facts": 2, "unsupported": ["ped-2002"]}


def test_groundedness__invented_amount_among_right_facts__score_is_capped():
    answer = "A fatura 3000131180 vence em 10/06/2026, está aberta e custa R$ 999,00."
    assert judged(answer, *BOTH).value == 0.5


@pytest.mark.parametrize("status", ["error", "refused", "unknown"])
def test_groundedness__result_of_a_call_that_failed__is_no_evidence(status):
    assert judged("R$ 249,90", call("consultar_fatura", INVOICE, status)).value == 0.0


def test_groundedness__field_that_is_false__does_not_state_its_name():
    assert judged("A fatura foi paga.", call("consultar_fatura", INVOICE)).value == 0.0


def test_groundedness__what_the_customer_or_the_context_says__is_evidence():
    context = BusinessContext(values={"contract_key": "3000131180"})
    memory = (ChatMessage(role="user", text="meu pedido é o PED-1001"),)
    answer = "Pedido PED-1001, contrato 3000131180, dia 15/07."
    told = judged(answer, said="dia 15/07", business_context=context, memory=memory)
    assert told.value == 1.0


def test_groundedness__protocol_of_an_earlier_answer__counts_but_its_amount_does_not():
    memory = (ChatMessage(role="assistant", text="Protocolo 20260001, R$ 75,00."),)
    assert judged("O protocolo é 20260001.", memory=memory).value == 1.0
    assert judged("O valor é R$ 75,00.", memory=memory).value == 0.0


def test_groundedness__rounded_number_and_card_ending__are_the_same_fact():
    evidence = call("x", {"media": 33.333333, "cartao": "4111111111111111"})
    assert judged("A média é R$ 33,33, cartão final 1111.", evidence).value == 1.0


def test_groundedness__what_an_earlier_action_brought__is_no_invention():
    kept = Kept(tool="solicitar_troca", status="COMPLETED", summary={"protocolo": "TRO-2026000001"})
    answer = "Seu protocolo é TRO-2026000001."
    assert judged(answer, dialogue=Dialogue(evidence=(kept,))).value == 1.0
    assert judged(answer).value == 0.0


def test_groundedness__question_of_the_runtime__is_no_claim_of_an_agent():
    asked = Draft(text="Confirma a troca do pedido PED-1002?", agent="a")
    assert judged(asked.text, said="quero trocar o pedido", prepared=asked).value == 1.0


def test_groundedness__words_around_a_question_of_the_runtime__are_judged():
    asked = Draft(text="Confirma a troca do pedido PED-1002?", agent="a")
    answer = f"O valor é R$ 999,00.\n\n{asked.text}"
    assert judged(answer, said="quero trocar", prepared=asked).value <= 0.5
