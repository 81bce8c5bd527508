import pytest

from apps.runtime.text import stem_plural, words

NUMBERS = [
    ("fatura", "faturas"), ("boleto", "boletos"), ("cartão", "cartões"), ("mão", "mãos"),
    ("pão", "pães"), ("alemão", "alemães"), ("canal", "canais"), ("papel", "papéis"),
    ("fácil", "fáceis"), ("lençol", "lençóis"), ("azul", "azuis"), ("homem", "homens"),
    ("mês", "meses"), ("país", "países"), ("valor", "valores"), ("vez", "vezes"),
    ("série", "séries"), ("devolução", "devoluções"), ("português", "portugueses"),
    ("plan", "plans"), ("return", "returns"), ("store", "stores"), ("size", "sizes"),
    ("delivery", "deliveries"), ("address", "addresses"), ("box", "boxes"), ("batch", "batches"),
    ("purchase", "purchases"), ("email", "emails"), ("shoe", "shoes"), ("invoice", "invoices"),
]  # fmt: skip

OTHERS = [
    ("conta", "contato"), ("conta", "contar"), ("conta", "conto"), ("vas", "vaso"),
    ("event", "eventually"), ("jira", "jirafa"), ("mal", "mais"), ("preço", "preso"),
    ("car", "care"), ("plan", "plano"), ("fatura", "faturamento"), ("produto", "produtor"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "many"), NUMBERS)
def test_stem_plural__singular_and_plural__share_a_stem(one, many):
    assert stem_plural(words(one)[0]) == stem_plural(words(many)[0])


@pytest.mark.parametrize(("word", "other"), OTHERS)
def test_stem_plural__another_word__keeps_another_stem(word, other):
    assert stem_plural(words(word)[0]) != stem_plural(words(other)[0])


@pytest.mark.parametrize("word", [word for pair in NUMBERS for word in pair])
def test_stem_plural__a_stem__is_its_own_stem(word):
    stem = stem_plural(words(word)[0])
    assert stem_plural(stem) == stem


def test_words__composed_and_decomposed_accents__are_the_same():
    assert words("PREÇO informação") == words("prec\u0327o INFORMAC\u0327A\u0303O")
    assert words("PREÇO informação") == ["preco", "informacao"]
