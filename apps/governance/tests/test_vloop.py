import pytest

from apps.governance.config import RailRule
from apps.governance.rails.chain import rails_run
from apps.runtime.dialogue import Dialogue, Transaction
from apps.runtime.testing import turn_of
from apps.runtime.turn import ChatMessage, SessionState


def memory(*lines):
    return tuple(
        ChatMessage(role="user" if line[0] == "u" else "assistant", text=line[2:]) for line in lines
    )


def action(text, lines, session=None, **parameters):
    turn = turn_of(text, memory=memory(*lines), session=session or SessionState())
    rules = [RailRule(code="VLOOP", parameters=parameters)]
    return rails_run(phase="input", rules=rules, text=text, turn=turn).decisions[0].action


def test_vloop__third_time_the_same__blocks():
    assert (
        action("Cadê meu pedido?", ["u:Cadê meu pedido?", "a:Oi", "u:cade  MEU pedido"]) == "block"
    )


def test_vloop__second_time_the_same__passes():
    assert action("Cadê meu pedido?", ["u:Cadê meu pedido?", "a:Oi"]) == "allow"


def test_vloop__this_message_and_the_agents_texts__do_not_count():
    assert action("sim", ["u:sim", "a:sim", "a:sim", "a:Confirma a troca?"]) == "allow"


@pytest.mark.parametrize("answer", ["sim", "Não", "sim, pode", "yes", "ok"])
def test_vloop__answer_to_a_pending_question__passes(answer):
    pending = SessionState(next_state="WAITING_ORDER_CONFIRMATION")
    earlier = [f"u:{answer}"] * 3
    assert action(answer, earlier, pending) == "allow"
    assert action(answer, earlier) == "block"


def test_vloop__long_text_while_a_question_is_pending__blocks():
    pending = SessionState(next_state="WAITING_ORDER_CONFIRMATION")
    text = "quero falar com um atendente"
    assert action(text, [f"u:{text}"] * 2, pending) == "block"


def test_vloop__repeats_outside_the_window__pass():
    lines = ["u:oi tudo", "u:oi tudo", *(f"u:outra coisa {i}" for i in range(6))]
    assert action("oi tudo", lines) == "allow"
    assert action("oi tudo", lines, window=8) == "block"
    assert action("oi tudo", ["u:oi tudo"], repeats=1) == "block"


def test_vloop__repeated_cpf_before_masking_in_the_policy__is_recognised():
    session = SessionState(vault={"<CPF_1>": "111.444.777-35"})
    lines = ["u:meu cpf <CPF_1>", "u:meu cpf <CPF_1>"]
    assert action("meu cpf 111.444.777-35", lines, session) == "block"


def test_vloop__only_punctuation__passes():
    assert action("?!", ["u:?!", "u:?!"]) == "allow"


def test_vloop__yes_to_an_action_that_waits_for_it__passes():
    waiting = Transaction(id="t", status="AWAITING_CONFIRMATION", tool="trocar", agent="a")
    asked = SessionState(dialogue=Dialogue(transaction=waiting))
    assert action("sim", ["u:sim"] * 3, asked) == "allow"
