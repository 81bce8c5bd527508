"""What counts as personal data, entity by entity, and what only looks like it."""

import pytest

from apps.governance.detection.personal_data import personal_data_find


def found(text):
    return [(span.entity, span.value) for span in personal_data_find(text)]


@pytest.mark.parametrize(
    ("text", "entity", "value"),
    [
        ("Meu CPF é 123.456.789-00", "CPF", "123.456.789-00"),
        ("cpf 111.444.777-35.", "CPF", "111.444.777-35"),
        ("é o 11144477735", "CPF", "11144477735"),
        ("111 444 777 35", "CPF", "111 444 777 35"),
        ("CPF: 12345678900", "CPF", "12345678900"),
        ("CNPJ 11.222.333/0001-81", "CNPJ", "11.222.333/0001-81"),
        ("empresa 11222333000181", "CNPJ", "11222333000181"),
        ("novo formato 12.ABC.345/01DE-35", "CNPJ", "12.ABC.345/01DE-35"),
        ("novo formato 12ABC34501DE35", "CNPJ", "12ABC34501DE35"),
        ("a@b.com", "EMAIL", "a@b.com"),
        ("escreva para <carla_menezes+rh@empresa-exemplo.com.br>.", "EMAIL",
         "carla_menezes+rh@empresa-exemplo.com.br"),
        ("(11) 98765-4321", "PHONE", "(11) 98765-4321"),
        ("11 98765-4321", "PHONE", "11 98765-4321"),
        ("minha linha é 11999999999", "PHONE", "11999999999"),
        ("98765-4321", "PHONE", "98765-4321"),
        ("+55 41 99712-3344", "PHONE", "+55 41 99712-3344"),
        ("ligue +351 912 345 678", "PHONE", "+351 912 345 678"),
        ("call 541-714-1388", "PHONE", "541-714-1388"),
        ("telefone 1133334444", "PHONE", "1133334444"),
        ("Fixo: (11) 3333-4444", "PHONE", "(11) 3333-4444"),
        ("4111 1111 1111 1111", "CARD", "4111 1111 1111 1111"),
        ("4111-1111-1111-1111", "CARD", "4111-1111-1111-1111"),
        ("41 11 11 11 11 11 11 11", "CARD", "41 11 11 11 11 11 11 11"),
        ("cartão 4111111111111111 12/28", "CARD", "4111111111111111"),
        ("amex 378282246310005", "CARD", "378282246310005"),
        ("CEP 01310100", "CEP", "01310100"),
        ("moro no 30130-100", "CEP", "30130-100"),
        ("RG 12.345.678-9", "RG", "12.345.678-9"),
        ("RG nº MG-12.345.678", "RG", "12.345.678"),
        ("CNH nº 78778932870", "CNH", "78778932870"),
        ("PIS 787.78932.87-3", "PIS", "787.78932.87-3"),
        ("My IBAN is GB82 WEST 1234 5698 7654 32", "IBAN", "GB82 WEST 1234 5698 7654 32"),
        ("chave sk-abc123", "TOKEN", "sk-abc123"),
        ("Authorization: Bearer abcdef1234567890", "TOKEN", "Bearer abcdef1234567890"),
        ("AKIAIOSFODNN7EXAMPLE", "TOKEN", "AKIAIOSFODNN7EXAMPLE"),
        ("ghp_16C7e42F292c6912E7710c838347Ae178B4a", "TOKEN",
         "ghp_16C7e42F292c6912E7710c838347Ae178B4a"),
        ("senha: abc123", "SECRET", "abc123"),
        ("minha senha é Ab1-x9", "SECRET", "Ab1-x9"),
        ("senha 1234", "SECRET", "1234"),
        ("password=correcthorse", "SECRET", "correcthorse"),
        ("cvv 123", "SECRET", "123"),
    ],
)  # fmt: skip
def test_personal_data__one_value__is_found_whole(text, entity, value):
    assert found(text) == [(entity, value)]


@pytest.mark.parametrize(
    "text",
    [
        "esqueci minha senha do app",
        "a senha não funciona",
        "Senha: bloqueada",
        "bearer of bad news",
        "O total da nota é R$ 1.234,56, vencimento em 10/11/2026, pedido 4471.",
        "fatura 3000131180 do contrato 3000131180",
        "3000131180",
        "Pedido PED-1001 e INV-001, rastreio BR123456789BR",
        "Protocolo 20261009000123 aberto em 09/10/2026. Prazo: 5 dias úteis.",
        "protocolo 11144477735",
        "pedido 4111111111111111",
        "CPF 111.111.111-11",
        "4111 1111 1111 1112",
        "2026-05-10T22:30:00-03:00",
        "das 08:00 às 18:00, de 2024-2025",
        "boleto 23790.12345 60000.012345 67890.101112 1 23450000012345",
        "versão 10.15.7, ip 10.0.0.1",
        "Ligue para a central: 0800 123 4567 ou 4004-1234",
        "plano de 50GB por R$ 149,90 em 12x",
        "<CPF_1> e <EMAIL_2>",
    ],
)
def test_personal_data__something_else__is_left_alone(text):
    assert found(text) == []


def test_personal_data__several_values__all_in_order():
    text = "CPF 09679290832 e telefone (11) 98765-4321, ana@exemplo.com; cartão 4111 1111 1111 1111"
    assert [entity for entity, _ in found(text)] == ["CPF", "PHONE", "EMAIL", "CARD"]


def test_personal_data__skip__entity_is_left_alone():
    assert personal_data_find("CEP 01310-100", skip=("CEP",)) == []


@pytest.mark.parametrize(
    "text",
    ["1" * 200_000, "1 " * 100_000, "a" * 200_000, "@" * 200_000, "a@" * 100_000, "1.1-" * 50_000,
     "senha " * 33_000, "(((" * 66_000, "eyJ" * 66_000, "AA11" * 50_000, "+1" * 100_000],
)  # fmt: skip
def test_personal_data__200_kb_of_bad_luck__still_ends(text):
    assert len(personal_data_find(text)) <= len(text)
