from apps.governance.config import RailRule
from apps.governance.rails.chain import rails_run
from apps.runtime.testing import turn_of


def run(text, **parameters):
    rules = [RailRule(code="INPUT_SIZE", parameters=parameters)]
    return rails_run(phase="input", rules=rules, text=text, turn=turn_of(text))


def test_input_size__4096_tokens_of_four_characters__pass_and_one_more_blocks():
    assert run("a" * 16_384).decisions[0].action == "allow"
    assert run("a" * 16_385).decisions[0].action == "block"


def test_input_size__parameter__moves_the_limit():
    assert run("a" * 41, max_tokens=10).decisions[0].action == "block"
    assert run("a" * 40, max_tokens=10).decisions[0].action == "allow"


def test_input_size__too_long__only_whole_words_of_the_beginning_go_on():
    assert run("meu cpf 111.444.777-35 e mais", max_tokens=4).text == "meu cpf"
