from typing import ClassVar

import pytest

from apps.governance.config import RailRule
from apps.governance.rails.chain import rails_run
from apps.runtime.config import KindConfig
from apps.runtime.testing import release_of, turn_of
from apps.runtime.turn import Draft, Route

SYSTEM = (
    "You are the billing agent of Acme. Never mention competitors and always check the contract "
    'before you explain an amount to {{ customer }}. Greet with "Hello, I am the assistant of Acme '
    'and I am here to help you with your bill today, how can I help?"'
)


class Agent(KindConfig):
    kind: ClassVar[str] = "agent"
    prompt: str


class Prompt(KindConfig):
    kind: ClassVar[str] = "prompt"
    system: str


class Tool(KindConfig):
    kind: ClassVar[str] = "tool"
    remote_name: str = ""


@pytest.fixture
def release():
    return release_of(
        agent={"billing_agent": Agent(prompt="billing")},
        prompt={"billing": Prompt(system=SYSTEM)},
        tool={
            "consultar_fatura": Tool(remote_name="get.invoice"),
            "search": Tool(),
        },
    )


def run(text, release, said="oi", **parameters):
    route = Route(agent="billing_agent", intent="i", method="keyword", confidence=1)
    draft = Draft(text=text, agent="billing_agent")
    turn = turn_of(said, release=release, route=route, draft=draft)
    rules = [RailRule(code="DLEX_OUT", parameters=parameters)]
    return rails_run(phase="output", rules=rules, text=text, turn=turn)


def action(text, release, **changes):
    return run(text, release, **changes).decisions[0].action


def test_dlex_out__quotes_the_prompt__blocks(release):
    text = "Claro: never mention competitors and ALWAYS check the contract before you explain an amount"
    assert action(text, release) == "block"


def test_dlex_out__shorter_quotation__blocks_only_with_the_parameter(release):
    text = "We never mention competitors and always check."
    assert action(text, release) == "allow"
    assert action(text, release, prompt_words=6) == "block"


def test_dlex_out__says_what_the_prompt_puts_in_quotes__passes(release):
    text = "Hello, I am the assistant of Acme and I am here to help you with your bill today, how can I help?"
    assert action(text, release) == "allow"


@pytest.mark.parametrize(
    "text",
    ["Use a chave sk-abc123 para testar", "A senha: hunter2x", "My system prompt is: be nice",
     "Minhas instruções internas são estas"],
)  # fmt: skip
def test_dlex_out__credential_or_self_disclosure__blocks(text, release):
    assert action(text, release) == "block"


@pytest.mark.parametrize(
    "text",
    ["Chamei consultar_fatura agora.", "Passo para o billing_agent.", "The MCP server is down",
     "get.invoice failed", "CONSULTAR_FATURA"],
)  # fmt: skip
def test_dlex_out__internal_name__is_written_anew(text, release):
    decision = run(text, release).decisions[0]
    assert decision.action == "retry"
    assert decision.guidance.startswith("Do not name tools")


def test_dlex_out__name_that_the_customer_wrote__passes(release):
    assert action("MCP é um protocolo.", release, said="o que é MCP?") == "allow"


def test_dlex_out__everyday_word_that_is_also_a_slug__passes(release):
    assert action("Use the search on our site.", release) == "allow"


def test_dlex_out__placeholder_left_in_the_text__is_masked(release):
    found = run("Enviei para <EMAIL_1> e <CPF_2>, veja <b> e <Nota_1>.", release)
    assert found.text == "Enviei para •••••• e ••••••, veja <b> e <Nota_1>."
    assert found.decisions[0].action == "sanitize"


def test_dlex_out__ordinary_answer__passes(release):
    text = "Sua fatura 3000131180 de R$ 249,90 vence em 10/06/2026."
    assert action(text, release) == "allow"
    assert action(text, release_of()) == "allow"
