"""What the console shows of a record, with the trace and without."""

import json
from typing import Any

import pytest
from django.template.loader import render_to_string

from apps.conversations.details import LONGEST_SHOWN, turn_details
from apps.conversations.models import TurnRecord
from apps.conversations.record import turn_record
from apps.conversations.tests.told import PATTERN, answer, ask, release_run, told
from apps.runtime.outcomes import Blocked
from apps.runtime.testing import turn_of
from apps.runtime.turn import Delegation
from apps.tenants.scope import tenant_transaction

pytestmark = pytest.mark.django_db


def record_of(world: Any, turn_id: Any) -> dict[str, Any]:
    with tenant_transaction(world.acme):
        stored = TurnRecord.objects.values_list("record", flat=True).get(pk=turn_id)
    return dict(json.loads(stored))


@pytest.fixture
def record(world: Any) -> dict[str, Any]:
    release_run(world.acme)
    return record_of(world, told(world.acme).turn_id)


def test_details__with_trace__hold_everything_that_was_decided(record: dict[str, Any]):
    details = turn_details(record, trace=True)
    assert details.route is not None
    assert [(c.intent, c.score, c.chosen) for c in details.route.candidates] == [
        ("bill_explained", 0.8, True),
        ("order_status", 0.5, False),
    ]
    bill, payments = details.tools
    assert (bill.name, bill.status, bill.latency_ms) == ("get_bill", "ok", 12.4)
    assert json.loads(bill.arguments) == {"contract": "C-77"}
    assert json.loads(bill.result)["amount"] == 214.37
    assert payments.field_errors == ({"field": "contract", "message": "is required"},)
    assert [(rail.code, rail.action) for rail in details.rails] == [
        ("MSK", "sanitize"),
        ("DLEX_OUT", "allow"),
    ]
    assert [rail.code for rail in details.rails_acted] == ["MSK"]
    assert [note.code for note in details.notes] == ["IDENTITY_NOT_TRUSTED"]
    assert [(s.judge, s.value, s.threshold, s.passed) for s in details.scores] == [
        ("groundedness", 0.91, 0.6, True)
    ]
    assert details.usage["input_tokens"] == 448
    assert details.usage["cost_usd"] is None
    assert [fact.name for fact in details.timings] == ["RunAgent", "Identify"]
    assert [(f.name, f.value, f.note) for f in details.identity] == [
        ("customer_key", "C-77", "payload.customer_key")
    ]


def test_details__without_trace__hold_what_any_caller_may_know(record: dict[str, Any]):
    details = turn_details(record, trace=False)
    assert details.route is not None
    assert (details.route.agent, details.route.intent) == ("helper", "bill_explained")
    assert (details.route.method, details.route.confidence) == ("keyword", 0.8)
    assert details.route.candidates == ()
    assert [(tool.name, tool.ok) for tool in details.tools] == [
        ("get_bill", True),
        ("get_payments", False),
    ]
    assert {(tool.arguments, tool.result, tool.error) for tool in details.tools} == {("", "", "")}
    assert [(rail.code, rail.action, rail.reason) for rail in details.rails] == [
        ("MSK", "sanitize", ""),
        ("DLEX_OUT", "allow", ""),
    ]
    assert [(s.judge, s.value, s.reason) for s in details.scores] == [("groundedness", 0.91, "")]
    assert (details.identity, details.models, details.timings, details.notes) == ((), (), (), ())


@pytest.mark.parametrize("trace", [True, False])
def test_details__never__hold_what_a_rail_matched(record: dict[str, Any], trace: bool):
    assert PATTERN in json.dumps(record)
    assert PATTERN not in repr(turn_details(record, trace=trace))


def test_details__of_a_blocked_turn_without_trace__show_its_rails_only(world: Any):
    release_run(world.acme)
    accepted = ask(world.acme)
    answer(world.acme, accepted.turn_id, Blocked("No.", "PINJ"))
    details = turn_details(record_of(world, accepted.turn_id), trace=False)
    assert (details.tools, details.scores) == ((), ())
    assert [rail.code for rail in details.rails] == ["MSK", "DLEX_OUT"]


@pytest.mark.parametrize("trace", [True, False])
@pytest.mark.parametrize(
    "record",
    [{}, {"outcome": {"kind": "failed", "code": "RUNTIME_TIMEOUT", "attempts": 5}}],
    ids=["open", "abandoned"],
)
def test_details__of_a_turn_without_a_walk__are_empty(record: dict[str, Any], trace: bool):
    details = turn_details(record, trace=trace)
    assert (details.route, details.tools, details.rails, details.timings) == (None, (), (), ())


def test_result__longer_than_a_page_shows__is_cut_and_counted():
    call = {"tool": "t", "ok": True, "result": "x" * (LONGEST_SHOWN + 98)}
    (tool,) = turn_details({"tool_calls": [call]}, trace=True).tools
    assert (len(tool.result), tool.cut) == (LONGEST_SHOWN, 100)


ASKED = [
    Delegation(
        kind="consult", caller="helper", agent="expert", tool="consult_expert", status="failed",
        request="q", error="no answer in time", model_calls=1, latency_ms=20.0,
    ),
    Delegation(
        kind="sub_conversation", caller="helper", agent="expert", tool="end", status="completed",
        outputs={"role": "deals", "details": {"final_result": {"parts": 3}}}, spoke=True,
    ),
]  # fmt: skip


@pytest.mark.parametrize("trace", [True, False])
def test_details__delegations__are_shown_with_the_trace_only(trace: bool):
    record = turn_record(turn_of("x", delegations=tuple(ASKED)))
    found = turn_details(record, trace=trace).delegations
    if not trace:
        assert found == ()
        return
    consult, sub = found
    assert (consult.caller, consult.agent, consult.status, consult.ok) == (
        "helper", "expert", "failed", False,
    )  # fmt: skip
    assert (consult.request, consult.error, consult.model_calls) == ("q", "no answer in time", 1)
    assert (sub.role, sub.ok, sub.spoke) == ("deals", True, True)
    assert json.loads(sub.outputs) == {"details": {"final_result": {"parts": 3}}}


def test_page__delegations__are_a_section_one_can_read():
    record = turn_record(turn_of("x", delegations=tuple(ASKED)))
    delegations = turn_details(record, trace=True).delegations
    shown = render_to_string(
        "conversations/_details_delegations.html", {"delegations": delegations}
    )
    assert 'data-delegation="expert"' in shown
    assert "no answer in time" in shown
    assert "spoke to the customer" in shown


MOVED = {
    "code": "IC.TRANSACTION_STATUS",
    "component": "transactions",
    "data": {"tool": "exchange", "status": "COLLECTING_PARAMETERS", "missing": ["reason"]},
}
ROUTED = {"code": "IC.ROUTE_SELECTED", "component": "router", "data": {"route": "helper", "n": []}}
FOUND = {"name": "keyword", "best": "bill_explained", "margin": 0.3, "reason": "keywords: bill"}


def test_details__action_events_and_strategies__are_shown_to_who_may_see_traces(
    record: dict[str, Any],
):
    record["signals"] = [ROUTED, MOVED]
    record["route"]["metadata"] = {"strategies": [FOUND]}
    details = turn_details(record, trace=True)
    assert [(a.tool, a.status, a.missing) for a in details.actions] == [
        ("exchange", "COLLECTING_PARAMETERS", ("reason",))
    ]
    assert [(e.name, e.value) for e in details.events] == [("IC.ROUTE_SELECTED", "route helper")]
    assert details.route is not None
    assert [(s.name, s.best, s.margin) for s in details.route.strategies] == [
        ("keyword", "bill_explained", 0.3)
    ]
    for template, shown in (("action", "actions"), ("events", "events")):
        page = render_to_string(
            f"conversations/_details_{template}.html", {shown: getattr(details, shown)}
        )
        assert "<code>" in page


def test_details__action__without_trace_is_its_status_alone(record: dict[str, Any]):
    record["signals"] = [ROUTED, MOVED]
    details = turn_details(record, trace=False)
    assert [(a.tool, a.status, a.missing) for a in details.actions] == [
        ("", "COLLECTING_PARAMETERS", ())
    ]
    assert details.events == ()
