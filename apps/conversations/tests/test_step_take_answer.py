"""The one value that was asked for, out of the customer's own words."""

import pytest

from apps.conversations.config import IdentityKeyConfig
from apps.conversations.steps.identify import CREDENTIAL
from apps.conversations.steps.take_answer import TakeAnswer
from apps.runtime.identifiers import answer_value
from apps.runtime.testing import release_of, turn_of
from apps.runtime.turn import SAID, BusinessContext, Caller, Inbound, Route

KEYS = {
    "account_key": IdentityKeyConfig(identifies_customer=True),
    "contract_key": IdentityKeyConfig(required=True),
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("11999999999", "11999999999"),
        ("(11) 99999-9999", "11999999999"),
        ("+55 11 99999-9999", "5511999999999"),
        ("11 3333-4444", "1133334444"),
        ("meu número é 11999999999.", "11999999999"),
        ("PED-1001", "PED-1001"),
        ("é o PED-1001!", "PED-1001"),
        ("ABC.2024-001", "ABC.2024-001"),
        ("FAT_001", "FAT_001"),
    ],
)
def test_value__text_of_almost_only_one__is_it(text, value):
    assert answer_value(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sim",
        "não sei",
        "quero 2",
        "PED-1001 ou PED-1002",
        "(11) 99999-9999 e 12345",
        "R$ 71,99",
        "dia 25/12/2026",
        "x1" * 30 + "23",
        "ontem eu falei com uma pessoa da loja sobre o pedido 12345 e nada",
    ],
)
def test_value__nothing_or_several_or_a_story__is_none(text):
    assert answer_value(text) == ""


def answered(text, key, *, method="state", caller=None, sanitized=None, known=None):
    return turn_of(
        text,
        sanitized=text if sanitized is None else sanitized,
        release=release_of(identity_key=KEYS),
        inbound=Inbound(
            channel="web", text=text, agent=None, message_id="m", session="s1",
            caller=caller or Caller(),
        ),
        business_context=BusinessContext(values=known or {}, missing=("contract_key",)),
        route=Route(agent="a", intent="i", method=method, confidence=1.0),
    ), TakeAnswer(lambda turn: key)  # fmt: skip


async def taken(*arguments, **options):
    turn, step = answered(*arguments, **options)
    return await step(turn)


async def test_step__asked_value__is_in_the_context_and_no_longer_missing():
    turn = await taken("é o PED-1001", "contract_key", known={"session_key": "s1"})
    context = turn.business_context
    assert dict(context.values) == {"session_key": "s1", "contract_key": "PED-1001"}
    assert context.sources["contract_key"] == SAID
    assert context.missing == ()
    assert turn.decisions == ()


@pytest.mark.parametrize("key", ["customer_key", "account_key"])
@pytest.mark.parametrize(
    ("caller", "trusted"),
    [
        (Caller(), False),
        (Caller(may_name_customer=True), True),
        (Caller(demo=True), True),
    ],
)
async def test_step__customers_key__only_from_a_caller_that_may_name_it(key, caller, trusted):
    turn = await taken("12345", key, caller=caller)
    assert turn.business_context.get(key) == ("12345" if trusted else None)
    found = [(d.code, dict(d.metadata)) for d in turn.decisions]
    refused = [("IDENTITY_NOT_TRUSTED", {"key": key, "source": SAID})]
    assert found == ([] if trusted else refused)


@pytest.mark.parametrize(
    ("key", "options"),
    [
        ("", {}),
        ("contract_key", {"method": "keyword"}),
        ("contract_key", {"known": {"contract_key": "OLD"}}),
        ("contract_key", {"sanitized": "<CPF_1>"}),
        ("contract_key", {"sanitized": "<CARD_1>"}),
    ],
)
async def test_step__not_asked_or_known_or_a_masked_document__changes_nothing(key, options):
    turn, step = answered("12345", key, **options)
    assert await step(turn) == turn


async def test_step__masked_telephone__is_taken():
    turn = await taken("11999999999", "contract_key", sanitized="<PHONE_1>")
    assert turn.business_context.get("contract_key") == "11999999999"


@pytest.mark.parametrize(
    ("source", "value"),
    [("session", "PED-2"), ("payload.order_id", "PED-2"), (CREDENTIAL, "PED-1")],
)
async def test_step__named_value__replaces_a_known_one_unless_a_credential_gave_it(source, value):
    turn, _ = answered("e o PED-2?", "", method="keyword")
    known = BusinessContext(values={"contract_key": "PED-1"}, sources={"contract_key": source})
    step = TakeAnswer(lambda turn: "", lambda turn: {"contract_key": "PED-2"})
    done = await step(turn.evolve(business_context=known))
    assert done.business_context.get("contract_key") == value
