import pytest

from apps.governance.config import RailRule
from apps.governance.detection.action_claims import claims_find
from apps.governance.rails.chain import rails_run
from apps.runtime.dialogue import Dialogue, Evidence
from apps.runtime.testing import turn_of
from apps.runtime.turn import ChatMessage, Draft, ToolCall


def call(tool, result=None, *, action=False, status="ok", **arguments):
    return ToolCall(
        tool=tool, server="s", arguments=arguments, status=status, result=result, action=action
    )


def decision(text, *calls, memory=(), said="oi"):
    draft = Draft(text=text, agent="a")
    turn = turn_of(said, tool_calls=tuple(calls), memory=tuple(memory), draft=draft)
    rules = [RailRule(code="REVPREC")]
    return rails_run(phase="output", rules=rules, text=text, turn=turn).decisions[0]


PAYMENTS = call(
    "consultar_pagamentos",
    {"pagamentos": [{"data": "2026-03-10", "valor": 100.0, "status": "CONFIRMADO"}]},
)


@pytest.mark.parametrize(
    "text",
    [
        "Seu serviço foi cancelado, protocolo 123456.",
        "Solicitei a troca do produto.",
        "Your order has been refunded.",
        "I've cancelled your subscription.",
        "Pronto! Troca solicitada.",
        "Não se preocupe, seu pedido foi cancelado.",
        "O estorno foi processado com sucesso.",
        "Já registramos sua reclamação.",
        "Abri um chamado para você.",
        "Tudo certo, está feito!",
        "O protocolo é 99887766.",
    ],
)
def test_revprec__claim_without_any_evidence__is_written_anew(text):
    verdict = decision(text)
    assert verdict.action == "retry"
    assert verdict.guidance


@pytest.mark.parametrize(
    "text",
    [
        "Seu pedido não foi cancelado.",
        "Se o pedido foi cancelado, o valor volta.",
        "Seu pedido foi cancelado?",
        "O cancelamento será confirmado por e-mail.",
        "Pode ser cancelado a qualquer momento.",
        "Deseja que eu confirme a troca?",
        "Orders are shipped in 2 days.",
        "Solicitamos que aguarde um momento.",
        "Você informou que o pedido foi cancelado.",
        "Consultei sua fatura e o valor é R$ 249,90, status ABERTA.",
        "A loja está aberta.",
        "Como posso ajudar?",
    ],
)
def test_revprec__no_finished_action__passes(text):
    assert decision(text).action == "allow"


def test_revprec__ok_action_with_its_protocol__passes():
    done = call("cancelar_servico", {"status": "CANCELADO", "protocolo": "123456"}, action=True)
    assert decision("Seu serviço foi cancelado, protocolo 123456.", done).action == "allow"


@pytest.mark.parametrize("status", ["error", "refused", "unknown"])
def test_revprec__action_that_did_not_end_well__is_written_anew(status):
    failed = call("cancelar_servico", {"protocolo": "1234"}, action=True, status=status)
    assert decision("Seu serviço foi cancelado.", failed).action == "retry"


def test_revprec__another_action__does_not_prove_it():
    exchanged = call("solicitar_troca", {"status": "SOLICITADA", "protocolo": 5555}, action=True)
    assert decision("Solicitei a troca do produto.", exchanged).action == "allow"
    assert decision("Seu pedido foi cancelado.", exchanged).action == "retry"
    assert decision("Solicitei o cancelamento do pedido.", exchanged).action == "retry"


def test_revprec__opaque_action__supports_what_is_said_of_it():
    assert (
        decision("Your plan was changed.", call("run_42", {"ok": 1}, action=True)).action == "allow"
    )


def test_revprec__made_up_protocol__is_written_anew():
    done = call("cancelar_servico", {"protocolo": "123456"}, action=True)
    assert decision("Serviço cancelado, protocolo 654321.", done).action == "retry"


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        ("R$ 100 foi pago em 10/03", PAYMENTS),
        ("O pagamento foi confirmado.", PAYMENTS),
        ("Seu pedido foi entregue.", call("consultar_entrega", {"status": "ENTREGUE"})),
        ("A fatura está paga.", call("consultar_fatura", {"fatura": {"status": "pago"}})),
        ("A fatura foi paga.", call("consultar_fatura", {"paga_em": "2026-03-10"})),
        ("The order was cancelled.", call("get_order", {"cancelled": True})),
        ("R$ 100 foi pago.", call("x", {"pagamentos": [{"data": "2026-03-10", "valor": 100}]})),
        ("Sua linha está bloqueada.", call("linha", "A linha está BLOQUEADA desde ontem")),
    ],
)
def test_revprec__read_only_result_says_so__passes(text, evidence):
    assert decision(text, evidence).action == "allow"


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        ("A fatura foi paga.", call("consultar_pagamentos", {"pagamentos": []})),
        ("A fatura foi paga.", call("x", {"pagamentos": [{"valor": 1, "status": "PENDENTE"}]})),
        ("A fatura foi paga.", call("x", {"status": "NAO_PAGA", "paga": False, "paga_em": None})),
        ("O pedido foi entregue.", call("x", {"status": "EM_TRANSITO", "entregue": "não"})),
        ("O pedido foi cancelado.", call("x", {"cancelamento": {"permitido": True}})),
        ("O pedido foi cancelado.", call("faq", "Um pedido pode ser cancelado. " * 20)),
    ],
)
def test_revprec__result_does_not_say_so__is_written_anew(text, evidence):
    assert decision(text, evidence).action == "retry"


def test_revprec__claim_of_an_earlier_answer__may_be_repeated():
    before = [ChatMessage(role="assistant", text="Seu pedido foi cancelado, protocolo 123456.")]
    assert decision("Seu pedido foi cancelado, protocolo 123456.", memory=before).action == "allow"
    assert decision("Seu valor foi estornado.", memory=before).action == "retry"


def test_revprec__customer_said_it__is_no_evidence():
    said = [ChatMessage(role="user", text="meu pedido foi cancelado")]
    assert decision("Seu pedido foi cancelado.", memory=said).action == "retry"


@pytest.mark.parametrize(
    "text", ["foi cancelado " * 14_000, "cancelei, " * 20_000, "foi " * 50_000]
)
def test_revprec__200_kb_of_bad_luck__still_ends(text):
    assert claims_find(text) <= {"cancellation"}


def test_revprec__protocol_of_an_earlier_action_of_the_conversation__passes():
    kept = Evidence(tool="solicitar_troca", status="COMPLETED", summary={"protocolo": "123456"})
    draft = Draft(text="O protocolo é 123456.", agent="a")
    turn = turn_of("qual o protocolo?", draft=draft, dialogue=Dialogue(evidence=(kept,)))
    rules = [RailRule(code="REVPREC")]
    known = rails_run(phase="output", rules=rules, text=draft.text, turn=turn).decisions[0]
    assert known.action == "allow"
    invented_text = "O protocolo é 654321."
    other = turn.evolve(draft=Draft(text=invented_text, agent="a"))
    invented = rails_run(phase="output", rules=rules, text=invented_text, turn=other)
    assert invented.decisions[0].action == "retry"
