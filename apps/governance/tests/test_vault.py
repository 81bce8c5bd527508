from apps.governance.vault import Vault


def test_placeholder__same_value_in_another_spelling__same_placeholder():
    vault = Vault()
    assert vault.placeholder("CPF", "111.444.777-35") == "<CPF_1>"
    assert vault.placeholder("CPF", "11144477735") == "<CPF_1>"
    assert vault.placeholder("CPF", "529.982.247-25") == "<CPF_2>"
    assert vault.values == {"<CPF_1>": "111.444.777-35", "<CPF_2>": "529.982.247-25"}


def test_placeholder__known_session__numbers_go_on():
    vault = Vault({"<CPF_1>": "111.444.777-35", "<EMAIL_3>": "ana@exemplo.com"})
    assert vault.placeholder("CPF", "11144477735") == "<CPF_1>"
    assert vault.placeholder("CPF", "52998224725") == "<CPF_2>"
    assert vault.placeholder("EMAIL", "bia@exemplo.com") == "<EMAIL_4>"
    assert vault.placeholder("EMAIL", "ANA@exemplo.com") == "<EMAIL_3>"


def test_placeholder__secrets_differ_in_case__two_placeholders():
    vault = Vault()
    assert vault.placeholder("SECRET", "Abc123") != vault.placeholder("SECRET", "abc123")


def test_entries__foreign_keys_in_the_mapping__left_out():
    assert list(Vault({"note": "x", "<CPF_1>": "1"}).entries()) == [("<CPF_1>", "CPF", "1")]
