from typing import ClassVar

import pytest

from apps.governance.config import RailRule
from apps.governance.rails.chain import rails_run
from apps.runtime.config import KindConfig
from apps.runtime.testing import release_of, turn_of
from apps.runtime.turn import BusinessContext, Draft, SessionState

MSK = [RailRule(code="MSK")]


def mask_in(text, **changes):
    return rails_run(phase="input", rules=MSK, text=text, turn=turn_of(text, **changes))


def mask_out(text, rules=MSK, **changes):
    turn = turn_of("oi", draft=Draft(text=text, agent="a"), **changes)
    return rails_run(phase="output", rules=rules, text=text, turn=turn).text


def test_msk_input__several_values__numbered_and_kept_in_the_vault():
    run = mask_in(
        "CPF 111.444.777-35 ou 529.982.247-25, e-mail ana@exemplo.com, de novo 11144477735"
    )
    assert run.text == "CPF <CPF_1> ou <CPF_2>, e-mail <EMAIL_1>, de novo <CPF_1>"
    assert run.vault == {
        "<CPF_1>": "111.444.777-35",
        "<CPF_2>": "529.982.247-25",
        "<EMAIL_1>": "ana@exemplo.com",
    }
    assert [d.action for d in run.decisions] == ["sanitize"]


def test_msk_input__value_of_an_earlier_turn__same_placeholder_without_its_label():
    session = SessionState(vault={"<RG_1>": "12.345.678-9"})
    run = mask_in("o número é 12.345.678-9, certo?", session=session)
    assert run.text == "o número é <RG_1>, certo?"
    assert run.vault == {"<RG_1>": "12.345.678-9"}


def test_msk_input__nothing_personal__allows_and_leaves_the_text():
    run = mask_in("Esqueci minha senha do app e quero a fatura 3000131180")
    assert run.text == "Esqueci minha senha do app e quero a fatura 3000131180"
    assert [d.action for d in run.decisions] == ["allow"]
    assert run.vault == {}


def test_msk_input__masked_twice__nothing_changes():
    once = mask_in("senha: abc123, CPF 111.444.777-35, fone 11 98765-4321")
    twice = mask_in(once.text, session=SessionState(vault=once.vault))
    assert twice.text == once.text
    assert twice.vault == once.vault


def test_msk_output__tool_data_in_the_answer__shown_as_masks():
    answer = mask_out("CPF 111.444.777-35, cartão 4111 1111 1111 1111, e-mail ana@exemplo.com")
    assert answer == "CPF •••.•••.•••-35, cartão •••• •••• •••• 1111, e-mail a•••••@exemplo.com"


def test_msk_output__placeholder_or_real_value_of_the_vault__shown_as_the_same_mask():
    session = SessionState(vault={"<CPF_1>": "111.444.777-35", "<SECRET_1>": "Xy9-k2p"})
    text = "Confirmo <CPF_1>, isto é 11144477735, e Xy9-k2p."
    assert (
        mask_out(text, session=session) == "Confirmo •••.•••.•••-35, isto é •••••••••35, e ••••••."
    )


def test_msk_output__the_turns_own_line_and_contract__stay_readable():
    context = BusinessContext(values={"customer_key": "11999999999", "contract_key": "3000131180"})
    text = "A linha 11999999999 (ou (11) 99999-9999) do contrato 3000131180 vence em 10/06/2026: R$ 249,90."
    assert mask_out(text, business_context=context) == text


def test_msk_output__another_customers_line__is_masked():
    context = BusinessContext(values={"customer_key": "11999999999"})
    assert mask_out("Linha 11988887777", business_context=context) == "Linha •••••••7777"


def test_msk_output__customer_key_is_a_cpf__is_masked_all_the_same():
    context = BusinessContext(values={"customer_key": "11144477735"})
    assert mask_out("CPF 11144477735", business_context=context) == "CPF •••••••••35"


def test_msk_output__contact_of_the_tenant__named_when_rule_or_prompt_has_it():
    rules = [RailRule(code="MSK", parameters={"allow": "(11) 3030-4040, @acme.com"})]
    text = "Fale com (11) 3030-4040 ou ajuda@acme.com; não com bia@outra.com"
    assert mask_out(text, rules) == text.replace("bia@outra.com", "b•••••@outra.com")


def test_msk_output__contact_in_the_agents_prompt__stays_readable():
    class Agent(KindConfig):
        kind: ClassVar[str] = "agent"
        prompt: str

    class Prompt(KindConfig):
        kind: ClassVar[str] = "prompt"
        system: str

    prompt = Prompt(system="Help desk: help@acme.com, always.")
    release = release_of(agent={"a": Agent(prompt="p")}, prompt={"p": prompt})
    assert mask_out("Write to help@acme.com", release=release) == "Write to help@acme.com"


@pytest.mark.parametrize("action", ["block", "sanitize"])
def test_msk__rule_with_another_action__text_is_masked_all_the_same(action):
    rules = [RailRule(code="MSK", on_deny=action)]
    run = rails_run(phase="input", rules=rules, text="a@b.com", turn=turn_of("a@b.com"))
    assert (run.text, run.decisions[0].action) == ("<EMAIL_1>", action)


def test_msk__observe__text_is_left_and_the_finding_recorded():
    rules = [RailRule(code="MSK", on_deny="observe")]
    run = rails_run(phase="input", rules=rules, text="a@b.com", turn=turn_of("a@b.com"))
    assert (run.text, run.decisions[0].action) == ("a@b.com", "observe")


def test_msk__skip__entity_is_left_alone():
    rules = [RailRule(code="MSK", parameters={"skip": "CEP, PHONE"})]
    text = "CEP 01310-100, fone (11) 98765-4321, a@b.com"
    run = rails_run(phase="input", rules=rules, text=text, turn=turn_of(text))
    assert run.text == "CEP 01310-100, fone (11) 98765-4321, <EMAIL_1>"
