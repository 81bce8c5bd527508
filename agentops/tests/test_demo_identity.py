"""What the demo tenants' identity keys make of the payloads that the manuals document."""

from typing import Any

import pytest

from agentops.tests.test_demo_routing import release
from apps.conversations.steps.identify import identify
from apps.runtime.testing import turn_of
from apps.runtime.turn import Caller, Inbound, SessionState


def resolved(
    payload: dict[str, Any], tenant: str = "default", carried: dict[str, str] | None = None
) -> dict[str, str]:
    inbound = Inbound(
        channel="web",
        text="oi",
        agent=None,
        message_id="m1",
        session="s1",
        payload=payload,
        caller=Caller(principal="demo", demo=True),
    )
    session = SessionState(id="1", key=f"{tenant}:a:s1", business_context=carried or {})
    turn = turn_of("oi", release=release(tenant), inbound=inbound, session=session)
    return dict(identify(turn)[0].values)


CONTEXT = {
    "customer_key": "11999999999",
    "contract_key": "3000131180",
    "interaction_key": "URA-123",
    "session_key": "teste-001",
}


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (
            {"session_id": "teste-001", "msisdn": "11999999999", "invoice_id": "3000131180",
             "ura_call_id": "URA-123"},
            CONTEXT,
        ),
        ({"session_id": "s1", "business_context": CONTEXT, "msisdn": "1"}, CONTEXT),
        (
            {"session_id": "t", "user_id": "user-001", "customer_id": "12345",
             "contract_id": "ABC-999", "message_id": "msg-001"},
            {"customer_key": "12345", "contract_key": "ABC-999", "interaction_key": "msg-001",
             "session_key": "t"},
        ),
        (
            {"session_id": "s", "context": {"order_id": "PED-1001", "customer_id": "C-001"}},
            {"customer_key": "C-001", "contract_key": "PED-1001", "session_key": "s"},
        ),
        ({"session_id": "s1", "user_id": "u1"}, {"session_key": "s1"}),
    ],
)  # fmt: skip
def test_default__documented_payload__gives_the_canonical_keys(
    payload: dict[str, Any], expected: dict[str, str]
) -> None:
    assert resolved(payload) == expected


def test_default__user_id_in_every_turn__does_not_change_the_customer() -> None:
    carried = {"customer_key": "12345", "contract_key": "ABC-999"}
    found = resolved({"session_id": "s", "user_id": "user-001"}, carried=carried)
    assert found == {**carried, "session_key": "s"}


@pytest.mark.parametrize(
    ("tenant", "about", "contract"),
    [("tim", {"invoice_id": "FAT-001"}, "FAT-001"), ("loja", {"order_id": "PED-001"}, "PED-001")],
)
def test_other_tenants__channel_sends_the_customer_as_user_id__it_counts_last(
    tenant: str, about: dict[str, str], contract: str
) -> None:
    payload = {"session_id": "sessao-123", "user_id": "cliente-1", "context": about}
    assert resolved(payload, tenant) == {
        "customer_key": "cliente-1",
        "contract_key": contract,
        "session_key": "sessao-123",
    }
    assert resolved({**payload, "customer_id": "C-9"}, tenant)["customer_key"] == "C-9"
