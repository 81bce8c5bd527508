"""The tool port: what is sent, what is refused, what the ledger hears of it."""

import asyncio
import json

import pytest

from apps.runtime.canonical import canonical_json
from apps.runtime.ports import (
    LeaseLost,
    LedgerState,
    RemoteResult,
    ToolRequest,
    ToolUnavailable,
)
from apps.runtime.testing import FakeLedger, FakeTransport
from apps.runtime.turn import Caller, ToolCall
from apps.tools.calling import ToolCaller
from apps.tools.config import Argument, ToolConfig, ToolServerConfig
from apps.tools.tests.world import (
    BINDINGS,
    EXCHANGE,
    INVOICE,
    caller_of,
    release,
    turn,
)

ASK_INVOICE = ToolRequest("consultar_fatura", {"msisdn": "11999"})
ASK_EXCHANGE = ToolRequest("solicitar_troca", {"order_id": "PED-1", "reason": "defeito"})


class CountingLedger(FakeLedger):
    """Counts how often it is asked, and what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.begins = 0
        self.finishes: list[list[str]] = []

    async def begin(self, turn, calls):
        self.begins += 1
        return await super().begin(turn, calls)

    async def finish(self, turn, results):
        self.finishes.append([result.result for result in results])
        await super().finish(turn, results)


class Scripted:
    """A transport that plays ``steps`` in order: results, exceptions, or seconds to sleep."""

    def __init__(self, *steps) -> None:
        self.steps = list(steps)
        self.calls: list[tuple[dict, str, float]] = []

    async def call(self, tool, arguments, *, idempotency_key):
        self.calls.append((dict(arguments), idempotency_key, tool.timeout_seconds))
        step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        if isinstance(step, float):
            await asyncio.sleep(step)
            return RemoteResult(ok=True)
        return step


def action(**changes) -> ToolConfig:
    return EXCHANGE.model_copy(update=changes)


async def one(tools: ToolCaller, request: ToolRequest, /, **changes) -> ToolCall:
    (done,) = await tools.call(turn(**changes), [request])
    return done


# -- the plain way -----------------------------------------------------------------------------


async def test_call__read_tool__result_and_record_are_filled():
    transport = FakeTransport({"consultar_fatura": {"valor_total": 214.37}})
    ledger = CountingLedger()

    done = await one(caller_of(transport, ledger), ASK_INVOICE, context={"contract_key": "INV-1"})

    assert (done.status, done.result, done.error) == ("ok", {"valor_total": 214.37}, "")
    assert (done.tool, done.server, done.action, done.replayed) == (
        "consultar_fatura", "telecom", False, False,
    )  # fmt: skip
    assert done.arguments == {"msisdn": "11999", "invoice_id": "INV-1", "mes": 1}
    assert done.latency_ms > 0
    (sent,) = transport.calls
    assert sent[1] == dict(done.arguments)
    assert json.loads(ledger.finishes[0][0]) == {
        "ok": True, "result": {"valor_total": 214.37}, "error": "", "metadata": {},
    }  # fmt: skip


async def test_call__several_tools__one_begin_one_finish_and_sent_at_the_same_time():
    started, release_all = [], asyncio.Event()

    class Meeting:
        async def call(self, tool, arguments, *, idempotency_key):
            started.append(tool.name)
            if len(started) == 2:
                release_all.set()
            await asyncio.wait_for(release_all.wait(), 2)
            return RemoteResult(ok=True, result=tool.name)

    ledger = CountingLedger()
    done = await caller_of(Meeting(), ledger).call(turn(), [ASK_INVOICE, ASK_EXCHANGE])

    assert [call.result for call in done] == ["consultar_fatura", "solicitar_troca"]
    assert (ledger.begins, len(ledger.finishes), len(ledger.finishes[0])) == (1, 1, 2)


async def test_call__address_credential_and_deadline__come_from_bindings_secret_and_config():
    seen = []

    class Seeing:
        async def call(self, tool, arguments, *, idempotency_key):
            seen.append(tool)
            return RemoteResult(ok=True)

    tool = action(remote_name="troca_v2", timeout_seconds=7.0)
    await one(caller_of(Seeing()), ASK_EXCHANGE, release=release(tools={"solicitar_troca": tool}))

    assert (seen[0].address, seen[0].credential, seen[0].name, seen[0].timeout_seconds) == (
        "http://retail.test/mcp", "s3cret", "troca_v2", 7.0,
    )  # fmt: skip
    assert (seen[0].server, seen[0].transport) == ("retail", "streamable_http")


async def test_call__tool_says_no__status_error_and_recorded():
    transport = FakeTransport({"consultar_fatura": RemoteResult(ok=False, error="não existe")})
    ledger = CountingLedger()

    done = await one(caller_of(transport, ledger), ASK_INVOICE)

    assert (done.status, done.error) == ("error", "não existe")
    assert len(ledger.finishes[0]) == 1


async def test_call__action_answer_that_shows_nothing__is_unknown_and_not_sent_again():
    answer = RemoteResult(ok=False, error="shape", metadata={"unconfirmed": True})
    transport = FakeTransport({"solicitar_troca": answer})
    caller = caller_of(transport)

    first = await one(caller, ASK_EXCHANGE)
    again = await one(caller, ASK_EXCHANGE)

    assert (first.status, again.status, again.replayed) == ("unknown", "unknown", True)
    assert len(transport.calls) == 1


async def test_call__server_metadata__does_not_replace_our_own():
    answer = RemoteResult(ok=True, metadata={"undeclared": [], "server": "x"})
    request = ToolRequest("consultar_fatura", {"msisdn": "1", "sql": "x"})

    done = await one(caller_of(FakeTransport({"consultar_fatura": answer})), request)

    assert done.metadata == {"undeclared": ["sql"], "server": "x"}


async def test_call__result_with_infinite_number_or_lone_surrogate__still_recordable():
    results = {"consultar_fatura": {"v": float("inf")}, "solicitar_troca": {"t": "a\ud800b"}}
    ledger = CountingLedger()

    done = await caller_of(FakeTransport(results), ledger).call(turn(), [ASK_INVOICE, ASK_EXCHANGE])

    assert done[0].status == "error"
    assert done[1].result == {"t": "a?b"}
    for text in ledger.finishes[0]:
        text.encode("utf-8")


# -- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"release": release(tool={})}, "unknown_tool"),
        ({"release": release(tools={"solicitar_troca": action(enabled=False)})}, "disabled"),
        (
            {"release": release(tool_server={"retail": ToolServerConfig(endpoint="retail_url", enabled=False)})},
            "disabled",
        ),
        ({"release": release(tool_server={})}, "disabled"),
        ({"bindings": {}}, "unbound"),
        ({"bindings": {**BINDINGS, "credential:retail_token": "NO_SUCH_SECRET"}}, "unbound"),
        (
            {"release": release(tools={"solicitar_troca": action(confirmation_required=True)})},
            "confirmation_required",
        ),
    ],
)  # fmt: skip
async def test_call__not_allowed_by_the_release__is_refused_and_nothing_is_sent(changes, reason):
    transport, ledger = FakeTransport({}), CountingLedger()

    done = await one(caller_of(transport, ledger), ASK_EXCHANGE, **changes)

    assert (done.status, done.metadata["reason"]) == ("refused", reason)
    assert done.error
    assert (transport.calls, ledger.begins) == ([], 0)


@pytest.mark.parametrize("said", [True, "true", 1])
async def test_call__client_says_confirmed__confirmation_is_still_required(said):
    needs = release(tools={"solicitar_troca": action(confirmation_required=True)})
    transport = FakeTransport({"solicitar_troca": "done"})

    done = await one(
        caller_of(transport),
        ToolRequest("solicitar_troca", {**ASK_EXCHANGE.arguments, "confirmed": said}),
        release=needs,
        tool_arguments={"confirmed": said, "confirmation": said},
        payload={"confirmed": said},
    )

    assert (done.status, done.metadata["reason"]) == ("refused", "confirmation_required")
    assert transport.calls == []


async def test_call__recorded_yes_to_exactly_this_call__it_is_sent():
    needs = release(tools={"solicitar_troca": action(confirmation_required=True)})
    confirmed = canonical_json({"order_id": "PED-1", "reason": "defeito"})

    class Recorded:
        async def use(self, turn, grant):
            return "granted" if (grant.id, grant.arguments) == ("c1", confirmed) else "mismatch"

    caller = caller_of(FakeTransport({"solicitar_troca": "done"}), confirmations=Recorded())
    requests = [
        ToolRequest("solicitar_troca", {"order_id": order, "reason": "defeito"}, confirmation=given)
        for order, given in (("PED-1", "c1"), ("PED-2", "c1"), ("PED-3", ""))
    ]

    done = await caller.call(turn(release=needs), requests)

    assert [call.status for call in done] == ["ok", "refused", "refused"]
    assert [call.metadata.get("confirmation") for call in done] == [None, "mismatch", "absent"]


async def test_call__required_argument_absent_after_mapping__is_named():
    done = await one(caller_of(FakeTransport({})), ToolRequest("solicitar_troca"))

    assert (done.status, done.metadata["reason"]) == ("refused", "missing_arguments")
    assert [e["field"] for e in done.field_errors] == ["order_id", "reason"]


async def test_call__required_argument_filled_by_mapping__is_sent():
    transport = FakeTransport({"solicitar_troca": "done"})
    request = ToolRequest("solicitar_troca", {"reason": "Defeito"})

    done = await one(caller_of(transport), request, context={"contract_key": "A1"})

    assert done.status == "ok"
    assert transport.calls[0][1] == {"order_id": "A1", "reason": "defeito"}


async def test_call__invalid_argument__is_refused_with_field_errors():
    request = ToolRequest("solicitar_troca", {"order_id": "1", "reason": "troca"})

    done = await one(caller_of(FakeTransport({})), request)

    assert (done.status, done.metadata["reason"]) == ("refused", "invalid_arguments")
    assert done.field_errors[0]["accepted"] == "defeito, tamanho errado, arrependimento"
    assert done.error == "reason: This is none of the accepted values."


async def test_call__visitor_asks_for_another_customer__is_refused_without_sending():
    transport = FakeTransport({"consultar_fatura": "secret"})

    done = await one(
        caller_of(transport),
        ToolRequest("consultar_fatura", {"msisdn": "VICTIM"}),
        context={"customer_key": "ME"},
        caller=Caller(principal="visitor"),
    )

    assert (done.status, done.metadata["reason"]) == ("refused", "invalid_arguments")
    assert [e["field"] for e in done.field_errors] == ["msisdn"]
    assert "VICTIM" not in repr(done)
    assert transport.calls == []


# -- once --------------------------------------------------------------------------------------


async def test_call__same_action_twice_in_a_batch__is_sent_once_and_answered_twice():
    transport = FakeTransport({"solicitar_troca": {"protocolo": "T-1"}})
    again = ToolRequest("solicitar_troca", {"reason": "DEFEITO", "pedido": "PED-1"}, ordinal=1)

    first, second = await caller_of(transport).call(turn(), [ASK_EXCHANGE, again])

    assert len(transport.calls) == 1
    assert (first.result, second.result) == ({"protocolo": "T-1"}, {"protocolo": "T-1"})
    assert (second.ordinal, second.replayed, second.metadata["deduped"]) == (1, True, True)


async def test_call__same_action_earlier_in_the_turn__is_not_sent_whatever_came_of_it():
    transport = FakeTransport({"solicitar_troca": RemoteResult(ok=False, error="ocupado")})
    caller = caller_of(transport)
    first = await one(caller, ASK_EXCHANGE)
    request = ToolRequest("solicitar_troca", ASK_EXCHANGE.arguments, ordinal=3)

    again = await one(caller, request, tool_calls=(first,))

    assert (again.status, again.error, again.ordinal) == ("error", "ocupado", 3)
    assert len(transport.calls) == 1


async def test_call__same_read_earlier_in_the_turn__is_reused_until_an_action_came_between():
    transport = FakeTransport({"consultar_fatura": "v1", "solicitar_troca": "done"})
    caller = caller_of(transport)
    read = await one(caller, ASK_INVOICE)
    acted = await one(caller, ASK_EXCHANGE)
    later = ToolRequest("consultar_fatura", ASK_INVOICE.arguments, ordinal=2)

    reused = await one(caller, later, tool_calls=(read,))
    fresh = await one(caller, later, tool_calls=(read, acted))

    assert reused.replayed
    assert not fresh.replayed
    assert [name for name, _, _ in transport.calls].count("consultar_fatura") == 2


async def test_call__refused_earlier__is_tried_again():
    transport = FakeTransport({"solicitar_troca": "done"})
    refused = await one(caller_of(transport), ASK_EXCHANGE, bindings={})

    done = await one(caller_of(transport), ASK_EXCHANGE, tool_calls=(refused,))

    assert done.status == "ok"


async def test_call__ledger_has_the_end__result_is_replayed_and_not_sent_or_written_again():
    transport = FakeTransport({"consultar_fatura": {"a": 1}})
    ledger = CountingLedger()
    caller = caller_of(transport, ledger)
    first = await one(caller, ASK_INVOICE)

    again = await one(caller, ASK_INVOICE)

    assert (again.result, again.status, again.replayed) == (first.result, "ok", True)
    assert (len(transport.calls), len(ledger.finishes)) == (1, 1)


async def test_call__ledger_says_unknown__action_is_not_sent():
    class Crashed(CountingLedger):
        async def begin(self, turn, calls):
            return [LedgerState("unknown", "k") for _ in calls]

    transport, ledger = FakeTransport({}), Crashed()

    done = await one(caller_of(transport, ledger), ASK_EXCHANGE)

    assert done.status == "unknown"
    assert done.error
    assert (transport.calls, ledger.finishes) == ([], [])


async def test_call__ledger_says_restarted__is_sent_under_the_same_key():
    class Crashed(CountingLedger):
        async def begin(self, turn, calls):
            return [LedgerState("restarted", "key-1") for _ in calls]

    transport = FakeTransport({"consultar_fatura": "ok"})

    done = await one(caller_of(transport, Crashed()), ASK_INVOICE)

    assert (done.status, transport.calls[0][2]) == ("ok", "key-1")


@pytest.mark.parametrize("when", ["begin", "finish"])
async def test_call__lease_is_lost__goes_up(when):
    class Lost(FakeLedger):
        async def begin(self, turn, calls):
            if when == "begin":
                raise LeaseLost
            return await super().begin(turn, calls)

        async def finish(self, turn, results):
            raise LeaseLost

    with pytest.raises(LeaseLost):
        await one(caller_of(FakeTransport({"consultar_fatura": 1}), Lost()), ASK_INVOICE)


async def test_contract__of_a_tool__changes_with_schema_server_transport_and_name_only():
    async def contract(**kinds) -> str:
        ledger = FakeLedger()
        answers = FakeTransport({"consultar_fatura": 1, "b": 1})
        await one(caller_of(answers, ledger), ASK_INVOICE, release=release(**kinds))
        return ledger.calls[0].contract

    def tool(**changes):
        return {"tools": {"consultar_fatura": INVOICE.model_copy(update=changes)}}

    same = [await contract(), await contract(**tool(description="x", timeout_seconds=3.0))]
    other = [
        await contract(**tool(args_schema={"msisdn": Argument()})),
        await contract(**tool(remote_name="b")),
        await contract(tool_server={"telecom": ToolServerConfig(endpoint="telecom_url", transport="http")}),
        await contract(**tool(mcp_server="retail")),
    ]  # fmt: skip

    assert len(set(same)) == 1
    assert len({*same, *other}) == 5


# -- no answer ---------------------------------------------------------------------------------

SENT = ToolUnavailable("broke off", sent=True)
NOT_SENT = ToolUnavailable("refused", sent=False)
DONE = RemoteResult(ok=True, result="done")


@pytest.mark.parametrize(
    ("tool", "steps", "status", "calls", "recorded"),
    [
        (INVOICE, [SENT, DONE], "ok", 2, True),
        (INVOICE, [SENT, SENT], "error", 2, True),
        (INVOICE, [NOT_SENT, DONE], "ok", 2, True),
        (INVOICE, [NOT_SENT, NOT_SENT], "error", 2, True),
        (EXCHANGE, [SENT], "unknown", 1, False),
        (EXCHANGE, [NOT_SENT, DONE], "ok", 2, True),
        (EXCHANGE, [NOT_SENT, NOT_SENT], "error", 2, True),
        (EXCHANGE, [NOT_SENT, SENT], "unknown", 2, False),
        (action(idempotent=True), [SENT, DONE], "ok", 2, True),
        (action(idempotent=True), [SENT, SENT], "unknown", 2, False),
        (action(idempotent=True), [SENT, NOT_SENT], "unknown", 2, False),
    ],
)
async def test_call__no_answer__is_repeated_only_where_that_cannot_act_twice(
    tool, steps, status, calls, recorded
):
    request = ASK_INVOICE if tool is INVOICE else ASK_EXCHANGE
    transport, ledger = Scripted(*steps), CountingLedger()

    done = await one(
        caller_of(transport, ledger), request, release=release(tools={request.tool: tool})
    )

    assert (done.status, len(transport.calls)) == (status, calls)
    assert len({key for _, key, _ in transport.calls}) == 1
    assert bool(ledger.finishes) is recorded


async def test_call__one_of_two_without_answer__the_other_is_recorded():
    class Half:
        async def call(self, tool, arguments, *, idempotency_key):
            if tool.name == "solicitar_troca":
                raise SENT
            return DONE

    ledger = CountingLedger()

    done = await caller_of(Half(), ledger).call(turn(), [ASK_EXCHANGE, ASK_INVOICE])

    assert [call.status for call in done] == ["unknown", "ok"]
    assert len(ledger.finishes[0]) == 1


async def test_call__transport_overruns_its_deadline__the_turn_goes_on(monkeypatch):
    monkeypatch.setattr("apps.tools.calling.BACKSTOP_SECONDS", 0.01)
    quick = action(timeout_seconds=0.02)

    done = await one(
        caller_of(Scripted(30.0)), ASK_EXCHANGE, release=release(tools={"solicitar_troca": quick})
    )

    assert done.status == "unknown"


async def test_call__transport_breaks_in_a_way_nobody_foresaw__others_are_recorded_first():
    class Broken:
        async def call(self, tool, arguments, *, idempotency_key):
            if tool.name == "consultar_fatura":
                raise ZeroDivisionError
            return DONE

    ledger = CountingLedger()

    with pytest.raises(ZeroDivisionError):
        await caller_of(Broken(), ledger).call(turn(), [ASK_INVOICE, ASK_EXCHANGE])

    assert len(ledger.finishes[0]) == 1


# -- restricted values -------------------------------------------------------------------------


async def test_call__restricted_argument_with_placeholder__tool_gets_the_value_records_do_not():
    transport, ledger = FakeTransport({"solicitar_troca": "done"}), FakeLedger()
    request = ToolRequest("solicitar_troca", {**ASK_EXCHANGE.arguments, "cpf": "<CPF_1>"})

    done = await one(caller_of(transport, ledger), request, vault={"<CPF_1>": "111.444.777-35"})

    assert transport.calls[0][1]["cpf"] == "111.444.777-35"
    assert done.arguments["cpf"] == "<CPF_1>"
    assert "111.444" not in ledger.calls[0].arguments


async def test_call__unrestricted_argument_with_placeholder_in_text__stays_masked():
    tool = action(args_schema={"order_id": Argument(), "reason": Argument()})
    transport = FakeTransport({"solicitar_troca": "done"})
    request = ToolRequest("solicitar_troca", {"order_id": "1", "reason": "CPF <CPF_1> errado"})

    await one(
        caller_of(transport),
        request,
        release=release(tools={"solicitar_troca": tool}),
        vault={"<CPF_1>": "111.444.777-35"},
    )

    assert transport.calls[0][1]["reason"] == "CPF <CPF_1> errado"


async def test_call__restricted_value_in_clear_from_a_client__is_tagged_in_records():
    transport, ledger = FakeTransport({"solicitar_troca": "done"}), FakeLedger()
    caller = caller_of(transport, ledger)
    values = ["11144477735", "22255588846"]

    done = [
        await one(caller, ASK_EXCHANGE, id=f"t{i}", tool_arguments={"cpf": value})
        for i, value in enumerate([*values, values[0]])
    ]

    assert [call[1]["cpf"] for call in transport.calls] == [*values, values[0]]
    tags = [call.arguments["cpf"] for call in done]
    assert tags[0] == tags[2] != tags[1]
    assert not any(value in repr(done) for value in values)


# -- what a model is offered -------------------------------------------------------------------


async def test_functions__for_a_model__hide_what_the_conversation_fills():
    off = release(tools={"outra": ToolConfig(mcp_server="telecom", enabled=False)})
    caller = caller_of(FakeTransport({}))
    known = turn(release=off, context={"customer_key": "11999", "contract_key": "INV-1"})

    offered = caller.functions(known, ["consultar_fatura", "outra", "nenhuma"])

    assert [f["name"] for f in offered] == ["consultar_fatura"]
    assert set(offered[0]["parameters"]["properties"]) == {"mes", "detalhe"}
    nobody = caller.functions(turn(), ["consultar_fatura"])
    assert set(nobody[0]["parameters"]["properties"]) == {"invoice_id", "mes", "detalhe"}


async def test_server__that_repeats_its_credential__does_not_bring_it_into_the_turn():
    said = RemoteResult(ok=False, error="bad token s3cret", result={"header": "Bearer s3cret"})
    ledger = FakeLedger()
    port = caller_of(FakeTransport({"solicitar_troca": said}), ledger)
    asked = ToolRequest("solicitar_troca", {"order_id": "PED-1", "reason": "defeito"})

    [call] = await port.call(turn(), [asked])

    assert "s3cret" not in f"{call.error} {call.result}"
    assert "s3cret" not in str(ledger.entries)
