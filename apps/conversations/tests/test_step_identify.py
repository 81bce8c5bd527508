"""Who a turn is about: paths, precedence, trust (faults 5, 6, 7; cases 1.6, 5.6)."""

from decimal import Decimal

import pytest

from apps.conversations.config import IdentityKeyConfig
from apps.conversations.steps.identify import Identify, identifier, identify
from apps.runtime.dialogue import Dialogue, Evidence, Topic, Transaction
from apps.runtime.testing import release_of, turn_of
from apps.runtime.turn import Caller, Inbound, SessionState

KEYS = {
    "customer_key": IdentityKeyConfig(
        sources=["business_context.customer_key", "customer_key", "msisdn", "user_id"],
        identifies_customer=True,
    ),
    "contract_key": IdentityKeyConfig(
        sources=["business_context.contract_key", "contract_key", "invoice_id", "order_id"],
        required=True,
    ),
    "interaction_key": IdentityKeyConfig(sources=["payload.message_id"], scope="turn"),
    "session_key": IdentityKeyConfig(sources=["business_context.session_key", "session_id"]),
}
TRUSTED = Caller(principal="key:channel", may_name_customer=True)
VISITOR = Caller(principal="anonymous")


def identified(payload, *, caller=TRUSTED, carried=None, keys=KEYS):
    turn = turn_of(
        release=release_of(identity_key=keys),
        inbound=Inbound(
            channel="web", text="oi", agent=None, message_id="minted", session="s1",
            user_id="minted-user", payload=payload, caller=caller,
        ),
        session=SessionState(id="1", business_context=carried or {}),
    )  # fmt: skip
    return identify(turn)


def codes(decisions):
    return [(d.code, d.metadata["key"]) for d in decisions]


def test_identify__several_sources__the_first_that_is_not_empty_wins():
    context, _ = identified(
        {
            "business_context": {"contract_key": "  "},
            "invoice_id": " 3000131180 ",
            "order_id": "PED-1",
        }
    )
    assert context.get("contract_key") == "3000131180"
    assert context.sources["contract_key"] == "invoice_id"


def test_identify__business_context_and_flat_key__configured_order_decides():
    context, _ = identified({"business_context": {"contract_key": "A"}, "contract_key": "B"})
    assert context.get("contract_key") == "A"
    assert context.sources["contract_key"] == "business_context.contract_key"


def test_identify__free_context_object__is_read_for_bare_names():
    context, _ = identified({"context": {"order_id": "PED-1001"}})
    assert context.get("contract_key") == "PED-1001"
    assert context.sources["contract_key"] == "context.order_id"


def test_identify__free_context_object__never_outranks_a_configured_source():
    context, _ = identified({"context": {"invoice_id": "FAT-1"}, "order_id": "PED-1"})
    assert context.get("contract_key") == "PED-1"


def test_identify__path_with_payload_prefix__is_the_same_path():
    context, _ = identified({"message_id": "m-7"})
    assert context.get("interaction_key") == "m-7"


def test_identify__ids_made_by_the_platform__identify_nobody():
    context, decisions = identified({})
    assert context.get("customer_key") is None
    assert context.get("interaction_key") is None
    assert context.get("session_key") == "s1"
    assert decisions == ()


def test_identify__required_key_without_value__is_reported_missing():
    assert identified({})[0].missing == ("contract_key",)
    assert identified({"order_id": "1"})[0].missing == ()


@pytest.mark.parametrize(
    "payload",
    [
        {"business_context": None, "context": None},
        {"business_context": [], "context": "text"},
        {"business_context": 5, "contract_key": {"deep": [None]}},
        {"business_context": {"contract_key": None, "customer_key": []}, "msisdn": [1]},
        {"contract_key": True, "invoice_id": False},
        {"contract_key": 1.5, "invoice_id": float("nan"), "order_id": float("inf")},
        {"contract_key": "x" * 201},
    ],
)
def test_identify__values_that_are_no_identifiers__are_absent(payload):
    context, _ = identified(payload)
    assert dict(context.values) == {"session_key": "s1"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (9007199254740993, "9007199254740993"),
        (1234567890123456789, "1234567890123456789"),
        (0, "0"),
        (3000131180.0, "3000131180"),
        (float(2**53), ""),
        (True, ""),
        (Decimal("1"), ""),
        ("  A1 ", "A1"),
        ("", ""),
        (None, ""),
    ],
)
def test_identifier__number_or_text__keeps_every_digit(value, text):
    assert identifier(value) == text


def test_identify__visitor_names_a_customer__is_ignored_and_noted():
    context, decisions = identified({"customer_key": "VICTIM", "order_id": "1"}, caller=VISITOR)
    assert context.get("customer_key") is None
    assert context.get("contract_key") == "1"
    assert codes(decisions) == [("IDENTITY_NOT_TRUSTED", "customer_key")]
    assert "VICTIM" not in repr(decisions)


@pytest.mark.parametrize("caller", [TRUSTED, Caller(demo=True)])
def test_identify__caller_that_may_name_the_customer__is_believed(caller):
    context, decisions = identified({"msisdn": 11999999999}, caller=caller)
    assert context.get("customer_key") == "11999999999"
    assert decisions == ()


def test_identify__credential__wins_over_everything_the_client_wrote():
    caller = Caller(principal="visitor", customer={"customer_key": "ME"}, may_name_customer=True)
    context, decisions = identified(
        {"business_context": {"customer_key": "VICTIM"}, "customer_key": "ME"}, caller=caller
    )
    assert context.get("customer_key") == "ME"
    assert context.sources["customer_key"] == "credential"
    assert codes(decisions) == [("IDENTITY_NOT_TRUSTED", "customer_key")]


def test_identify__client_repeats_its_credential__is_no_offence():
    caller = Caller(customer={"customer_key": "ME"})
    _, decisions = identified({"customer_key": "ME"}, caller=caller)
    assert decisions == ()


def test_identify__customer_key_is_not_marked__still_identifies_the_customer():
    keys = {"customer_key": IdentityKeyConfig(sources=["customer_key"])}
    context, decisions = identified({"customer_key": "X"}, caller=VISITOR, keys=keys)
    assert context.get("customer_key") is None
    assert codes(decisions) == [("IDENTITY_NOT_TRUSTED", "customer_key")]


def test_identify__next_turn_says_nothing__carries_what_was_known():
    context, _ = identified({}, carried={"customer_key": "ME", "contract_key": "A1"})
    assert context.get("contract_key") == "A1"
    assert context.sources == {
        "contract_key": "session", "customer_key": "session", "session_key": "session",
    }  # fmt: skip
    assert context.missing == ()


def test_identify__key_of_one_turn_or_of_no_release__is_not_carried():
    context, _ = identified({}, carried={"interaction_key": "old", "dropped_key": "x"})
    assert dict(context.values) == {"session_key": "s1"}


def test_identify__explicit_new_value__replaces_the_carried_one():
    context, decisions = identified({"order_id": "B2"}, carried={"contract_key": "A1"})
    assert context.get("contract_key") == "B2"
    assert decisions == ()


def test_identify__visitor_changes_the_customer__keeps_the_former():
    context, decisions = identified(
        {"customer_key": "OTHER"}, caller=VISITOR, carried={"customer_key": "ME"}
    )
    assert context.get("customer_key") == "ME"
    assert codes(decisions) == [("IDENTITY_NOT_TRUSTED", "customer_key")]


def test_identify__trusted_caller_changes_the_customer__nothing_of_the_former_stays():
    context, decisions = identified(
        {"customer_key": "OTHER"}, carried={"customer_key": "ME", "contract_key": "MINE"}
    )
    assert context.get("customer_key") == "OTHER"
    assert context.get("contract_key") is None
    assert context.missing == ("contract_key",)
    assert codes(decisions) == [("IDENTITY_CHANGED", "customer_key")]
    assert "ME" not in repr([d.metadata for d in decisions])


async def test_step__turn__gets_context_and_decisions():
    turn = turn_of(
        release=release_of(identity_key=KEYS),
        inbound=Inbound(
            channel="web", text="oi", agent=None, message_id="m", session="s1",
            payload={"customer_key": "VICTIM", "order_id": "1"},
        ),
    )  # fmt: skip
    turn = await Identify()(turn)
    assert turn.business_context.get("contract_key") == "1"
    assert [d.action for d in turn.decisions] == ["observe"]


def test_identify__release_without_identity_keys__knows_the_session_only():
    context, decisions = identified({"customer_key": "X"}, keys={})
    assert dict(context.values) == {"session_key": "s1"}
    assert decisions == ()


@pytest.mark.asyncio
@pytest.mark.parametrize("scope", ["session", "turn"])
@pytest.mark.parametrize(("now", "kept"), [("ME", True), ("OTHER", False)])
async def test_identify__customer_changes__nobody_says_yes_to_the_formers_action(now, kept, scope):
    asked = Transaction(id="t", status="AWAITING_CONFIRMATION", tool="trocar", agent="a")
    dialogue = Dialogue(
        transaction=asked,
        topics=(Topic(intent="i", agent="a", text="minha fatura", turn=1),),
        evidence=(Evidence(tool="trocar", status="COMPLETED", resource="PED-1", turn=1),),
    )
    keys = {**KEYS, "customer_key": KEYS["customer_key"].model_copy(update={"scope": scope})}
    turn = turn_of(
        "sim",
        release=release_of(identity_key=keys),
        inbound=Inbound(
            channel="web", text="sim", agent=None, message_id="m", session="s1",
            payload={"customer_key": now}, caller=TRUSTED,
        ),
        session=SessionState(
            id="1", turn_number=4, dialogue=dialogue, next_state="COLLECTING_ORDER",
            business_context={"customer_key": "ME"},
        ),
        dialogue=dialogue,
        vault={"<CPF_1>": "529.982.247-25"},
    )  # fmt: skip
    after = await Identify()(turn)
    assert after.dialogue == (dialogue if kept else Dialogue(since=4))
    assert bool(after.vault) is kept
    assert after.session.next_state == ("COLLECTING_ORDER" if kept else "")
