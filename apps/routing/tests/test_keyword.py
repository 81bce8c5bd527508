"""Keywords are whole words; who wins is a matter of evidence (faults 8, 9, 12, 17; cases 4.1–4.11)."""

import pytest

from apps.routing.config import IntentConfig
from apps.routing.keywords import keyword_index
from apps.routing.sentence import read
from apps.routing.tests.world import INTENTS, route

BILLING = "billing_agent"


def found(keyword: str, text: str) -> bool:
    index = keyword_index([("intent", "agent", [keyword])])
    return bool(index.find(read(text)))


@pytest.mark.parametrize(
    ("keyword", "text"),
    [
        ("cobrança", "minha COBRANCA veio errada"),
        ("preco", "qual o PREÇO?"),
        ("informação", "informac\u0327a\u0303o"),
        ("fatura", "minhas faturas"),
        ("faturas", "minha fatura"),
        ("cartão", "perdi os cartões"),
        ("boleto", "ok thanks, e o boleto?"),
        ("segunda via", "preciso da segunda via"),
        ("segunda via", "a segunda e última via"),
        ("quero cancelar", "quero muito mesmo cancelar"),
        ("valor alto", "os valores estão muito altos"),
    ],
)
def test_keyword__same_word_in_another_form__matches(keyword, text):
    assert found(keyword, text)


@pytest.mark.parametrize(
    ("keyword", "text"),
    [
        ("conta", "Preciso do contato"),
        ("vas", "qual o valor do vaso"),
        ("jira", "escribe un cuento sobre una jirafa"),
        ("event", "eventually I will check"),
        ("ele", "meu telefone"),
        ("quero cancelar", "quero saber o horário"),
        ("quero cancelar", "cancelar eu não quero"),
        ("segunda via", "segunda eu vou lá na loja pela via"),
        ("segunda via", "chega na segunda. Via correio?"),
        ("conta", "me conta uma piada"),
        ("conta", "nos conta o que houve"),
        ("conta", "conta pra mim"),
        ("conta", "você conta como foi?"),
    ],
)
def test_keyword__inside_or_apart_or_another_reading__does_not_match(keyword, text):
    assert not found(keyword, text)


@pytest.mark.parametrize(
    ("keyword", "text"),
    [
        ("opción", "las opciones"), ("plan", "mis planes"), ("canales", "el canal"),
        ("móvil", "los móviles"), ("cupón", "cupones"), ("orden", "¿dónde están mis órdenes?"),
        ("unidad", "dos unidades"), ("factura", "las facturas"), ("pedidos", "mi pedido"),
        ("error", "errores"), ("devolución", "devoluciones"), ("pão", "pães"), ("mão", "mãos"),
        ("cartão", "cartões"), ("limão", "limões"), ("alemão", "alemães"), ("mês", "meses"),
        ("jornal", "jornais"), ("papel", "papéis"), ("bill", "bills"), ("invoice", "invoices"),
        ("delivery", "deliveries"), ("box", "boxes"), ("phone", "phones"), ("file", "files"),
        ("titular", "titulares"), ("imagem", "imagens"),
    ],
)  # fmt: skip
def test_keyword__singular_and_plural__meet_both_ways_in_three_languages(keyword, text):
    assert found(keyword, text)
    word = text.split()[-1].strip("¿?")
    assert found(word, f"x {keyword} y")


@pytest.mark.parametrize(
    ("keyword", "text"),
    [("preco", "PREC\u0327O?"), ("pre\u0063\u0327o", "preço"), ("AÇÃO", "ac\u0327a\u0303o"),
     ("informac\u0327a\u0303o", "informacao"), ("Straße", "STRASSE"), ("ﬁbra", "fibra")],
)  # fmt: skip
def test_keyword__decomposed_on_either_side__matches(keyword, text):
    assert found(keyword, text)
    assert found(text.strip("?"), keyword)


@pytest.mark.parametrize(
    ("keyword", "text", "how"),
    [
        ("segunda via", "quero a segunda via", "exact"),
        ("segunda via", "a segunda e última via", "ordered_tokens"),
        ("troca de produto", "a troca do produto", "ordered_content_tokens"),
        ("troca de produto", "quero troca de um produto", "ordered_tokens"),
        ("troca de produto", "trocas de produtos", "exact"),
    ],
)
def test_keyword__how_it_matched__is_told(keyword, text, how):
    sentence = read(text)
    [match] = keyword_index([("intent", "agent", [keyword])]).find(sentence)
    assert match.how(sentence) == how


@pytest.mark.parametrize(
    ("keyword", "text"),
    [("plano de TV", "meu plano"), ("plano de TV", "vi TV no plano"), ("de", "um"), ("a b", "a c"),
     ("troca de produto", "produto de troca"), ("cuenta", "cuenta un chiste"),
     ("cuenta", "me cuenta algo")],
)  # fmt: skip
def test_keyword__short_words_left_out__the_telling_ones_are_still_needed(keyword, text):
    assert not found(keyword, text)


@pytest.mark.parametrize("text", ["minha conta", "a conta de luz", "as contas", "conta alta"])
def test_keyword__noun_that_is_also_a_verb__matches_as_noun(text):
    assert found("conta", text)


def test_keyword__keyword_without_a_word__is_left_out():
    assert keyword_index([("intent", "agent", ["", "?!", "  "])]).by_anchor == {}


def test_route__folded_keyword__goes_to_its_agent_with_the_intents_tools():
    chosen = route("minha cobranca veio errada")
    assert (chosen.agent, chosen.intent) == (BILLING, "billing_invoice_explanation")
    assert (chosen.method, chosen.domain) == ("keyword", "telecom")
    assert chosen.tools == ("consultar_fatura", "consultar_pagamentos")
    assert chosen.confidence == 0.8
    assert chosen.threshold == 0.65
    assert chosen.candidates[0].matches == ("cobrança",)


def test_route__more_keywords__are_more_confident():
    assert route("minhas faturas e boletos").confidence > route("minhas faturas").confidence


def test_route__phrase__outweighs_a_word_inside_it():
    chosen = route("chegou um produto quebrado")
    assert chosen.agent == "support_agent"
    assert chosen.margin > 0.2


@pytest.mark.parametrize(
    "text",
    [
        "não quero fatura, quero o pedido",
        "não quero a fatura e sim o pedido",
        "não é da fatura, é do pedido",
        "não a fatura, o pedido",
        "nem fatura nem boleto, só o pedido",
        "não estou falando da fatura, mas do pedido",
        "I don't want the bill, where is my pedido",
        "no quiero la fatura, quiero mi pedido",
        "no es la fatura, es el pedido",
        "not the bill but the pedido",
    ],
)
def test_route__denied_subject__loses_to_the_wanted_one(text):
    chosen = route(text)
    assert chosen.agent == "orders_agent"
    assert chosen.method == "keyword"


@pytest.mark.parametrize(
    "text",
    [
        "não recebi minha fatura",
        "não reconheço essa cobrança",
        "não consigo pagar o boleto",
        "não quero pagar essa fatura",
        "nunca vi uma fatura tão alta",
        "I don't understand my bill",
        "no recibí la fatura",
        "no entiendo mi fatura",
        "no puedo pagar el boleto",
        "o valor no boleto",
    ],
)
def test_route__negation_of_something_else__leaves_the_subject(text):
    assert route(text).agent == BILLING


def test_route__no_longer_wanted__is_still_about_it():
    assert route("não quero mais o plano").agent == "product_agent"
    assert route("não quero mais falar do plano").method == "fallback"


def test_route__only_a_denied_subject__is_not_confident():
    chosen = route("não quero fatura")
    assert chosen.method == "fallback"
    assert chosen.confidence < chosen.threshold


def test_route__two_agents_with_equal_evidence__asks_without_tools():
    chosen = route("Meu pedido atrasou e minha fatura veio duplicada")
    assert (chosen.method, chosen.intent, chosen.agent) == ("clarify", "clarify", "front")
    assert chosen.tools == ()
    assert chosen.margin == 0.0
    assert {c.agent for c in chosen.candidates} >= {BILLING, "orders_agent"}


def test_route__three_subjects_in_one__is_never_billing_by_priority():
    chosen = route("quero devolver produto da fatura")
    assert chosen.agent != BILLING
    assert chosen.method == "clarify"


def test_route__exact_tie_within_one_agent__is_broken_by_priority():
    intents = {
        "a_late": IntentConfig(agent=BILLING, keywords=["fatura"], priority=50),
        "b_early": IntentConfig(agent=BILLING, keywords=["fatura"], priority=5),
    }
    assert route("minha fatura", intents=intents).intent == "b_early"


def test_route__priority__never_beats_evidence():
    intents = {
        "first": IntentConfig(agent=BILLING, keywords=["fatura"], priority=0),
        "second": IntentConfig(
            agent="orders_agent", keywords=["entrega", "pedido"], priority=10_000
        ),
    }
    assert route("a entrega do pedido e a fatura", intents=intents).intent == "second"


def test_route__keyword_shared_by_agents__counts_less_than_an_own_one():
    intents = {
        "one": IntentConfig(agent=BILLING, keywords=["valor", "fatura"]),
        "two": IntentConfig(agent="orders_agent", keywords=["valor", "pedido"]),
        "three": IntentConfig(agent="product_agent", keywords=["valor", "plano"]),
    }
    alone = route("qual o valor", intents=intents)
    assert alone.method == "clarify"
    assert alone.confidence < route("fatura", intents=intents).confidence
    assert route("qual o valor da fatura", intents=intents).agent == BILLING


def test_route__same_keyword_written_twice__counts_once():
    intents = {
        "one": IntentConfig(agent=BILLING, keywords=["fatura", "Faturas", "FATURA"]),
        "two": IntentConfig(agent="orders_agent", keywords=["pedido"]),
    }
    assert route("fatura fatura do pedido", intents=intents).method == "clarify"


def test_route__disabled_intent_or_agent__is_never_chosen():
    off = {"billing": INTENTS["billing_invoice_explanation"].model_copy(update={"enabled": False})}
    assert route("minha fatura", intents={**INTENTS, **off, **{
        "billing_invoice_explanation": off["billing"]}}).method == "fallback"  # fmt: skip
