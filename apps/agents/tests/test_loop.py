"""The model asks for tools: what runs, what does not, and how it ends."""

import asyncio
import json
from dataclasses import replace

import pytest

from apps.agents.history import History
from apps.agents.loop import MAX_CALLS_ANSWERED, MAX_CALLS_PER_REPLY, Asking, converse
from apps.agents.tests.builders import INVOICE, Tools, asks, failed, routed_turn
from apps.agents.tooling import ToolInfo
from apps.runtime.dialogue import Dialogue, Transaction
from apps.runtime.ports import ModelFailed, ModelMessage, ModelReply, ModelToolCall
from apps.runtime.testing import FakeModel
from apps.runtime.turn import Draft, ToolCall

READ = ToolInfo("consultar_fatura", description="Consulta a fatura")
OTHER = ToolInfo("consultar_plano")
SWAP = ToolInfo("solicitar_troca", action=True)
RETURN = ToolInfo("solicitar_devolucao", action=True)
CANCEL = ToolInfo("cancelar", action=True, confirmation_required=True)
ALL = (READ, OTHER, SWAP, RETURN, CANCEL)


async def talk(model, tools, infos=ALL, *, rounds=4, turn=None, **options):
    opening = [ModelMessage("system", "s"), ModelMessage("user", "oi")]
    asking = Asking(
        profile="default",
        infos={info.slug: info for info in infos},
        max_rounds=rounds,
        tools=tools,
        models=model,
        mask=lambda text: text,
        **options,
    )
    return await converse(turn or routed_turn(), History(opening), asking)


def answers(model, request=-1):
    """Return the tool messages of a request as values."""
    return [json.loads(m.content) for m in model.requests[request].messages if m.role == "tool"]


async def test_loop__asked_tool__runs_and_its_result_goes_back():
    model = FakeModel(asks(("consultar_fatura", '{"mes":3}')), "pronto")
    tools = Tools({"consultar_fatura": INVOICE})
    end = await talk(model, tools)
    assert end.reply.text == "pronto"
    assert tools.called == [("consultar_fatura", {"mes": 3})]
    assert answers(model) == [{"tool": "consultar_fatura", "ok": True, "result": INVOICE}]
    asked = model.requests[1].messages[2]
    assert (asked.role, asked.tool_calls) == (
        "assistant", (ModelToolCall("c0", "consultar_fatura", '{"mes":3}'),),
    )  # fmt: skip
    assert model.requests[1].messages[3].tool_call_id == "c0"
    assert [r.ordinal for r in model.requests] == [0, 1]
    assert [c.status for c in end.turn.tool_calls] == ["ok"]
    assert len(end.turn.model_calls) == 2


async def test_loop__offered_functions__have_name_description_and_schema():
    model = FakeModel("oi")
    await talk(model, Tools(), (READ,))
    assert model.requests[0].tools == (
        {"type": "function", "function": {
            "name": "consultar_fatura", "description": "Consulta a fatura",
            "parameters": {"type": "object", "properties": {}}}},
    )  # fmt: skip


async def test_loop__slugs_no_provider_allows__get_unique_names_and_find_back():
    infos = (ToolInfo("crm.send:mail"), ToolInfo("crm:send.mail"))
    model = FakeModel("oi")
    await talk(model, Tools(), infos)
    names = [tool["function"]["name"] for tool in model.requests[0].tools]
    assert names[0] == "crm_send_mail"
    assert names[1].startswith("crm_send_mail_")
    model = FakeModel(asks((names[1], "")), "ok")
    tools = Tools({"crm:send.mail": 1})
    await talk(model, tools, infos)
    assert tools.called == [("crm:send.mail", {})]


@pytest.mark.parametrize("arguments", ["", "null", "{}"])
async def test_loop__empty_arguments__call_the_tool_without_arguments(arguments):
    model, tools = FakeModel(asks(("consultar_fatura", arguments)), "ok"), Tools()
    await talk(model, tools)
    assert tools.called == [("consultar_fatura", {})]


async def test_loop__parallel_calls__run_in_one_batch_and_answer_in_order():
    model = FakeModel(asks(("consultar_plano", ""), ("consultar_fatura", "")), "ok")
    tools = Tools({"consultar_plano": 1, "consultar_fatura": 2})
    end = await talk(model, tools)
    assert [len(batch) for batch in tools.batches] == [2]
    assert [a["result"] for a in answers(model)] == [1, 2]
    assert [c.ordinal for c in end.turn.tool_calls] == [0, 1]


async def test_loop__reads_beside_an_action__run_before_it():
    model = FakeModel(asks(("solicitar_troca", ""), ("consultar_fatura", "")), "ok")
    tools = Tools({"consultar_fatura": 1, "solicitar_troca": 2})
    await talk(model, tools)
    assert [[r.tool for r in b] for b in tools.batches] == [
        ["consultar_fatura"], ["solicitar_troca"],
    ]  # fmt: skip
    assert [a["result"] for a in answers(model)] == [2, 1]


@pytest.mark.parametrize("arguments", ['{"pedido":"12', "[]", "{'a': 1}"])
async def test_loop__broken_arguments__are_never_executed_and_are_explained(arguments):
    model, tools = FakeModel(asks(("consultar_fatura", arguments)), "ok"), Tools()
    end = await talk(model, tools)
    assert tools.batches == []
    [answer] = answers(model)
    assert (answer["ok"], answer["status"]) == (False, "refused")
    assert "Not taken: the arguments" in answer["error"]
    assert model.requests[1].messages[2].tool_calls[0].arguments == "{}"
    assert end.turn.tool_calls[0].status == "refused"


async def test_loop__reply_cut_by_length__runs_none_of_its_calls():
    reply = asks(("consultar_fatura", '{"a":1}'), ("solicitar_troca", ""), finish_reason="length")
    model, tools = FakeModel(reply, "ok"), Tools()
    await talk(model, tools)
    assert tools.batches == []
    assert all("cut off" in a["error"] for a in answers(model))


@pytest.mark.parametrize("name", ["apagar_tudo", "", "consultar_fatura ", "x" * 500, "a\0b<|im|>"])
async def test_loop__tool_outside_the_allow_list__is_refused_and_recorded(name):
    model, tools = FakeModel(asks((name, "")), "ok"), Tools()
    end = await talk(model, tools, (READ,))
    assert tools.batches == []
    assert answers(model)[0]["error"] == "No such tool here. Tools: consultar_fatura."
    [record] = end.turn.tool_calls
    assert record.status == "refused"
    assert record.tool.replace("_", "").replace("-", "").isalnum()
    assert len(record.tool) <= 64


async def test_loop__several_actions_in_one_reply__only_the_first_is_taken():
    reply = asks(("solicitar_devolucao", "{}"), ("solicitar_troca", "{}"))
    model = FakeModel(reply, "ok")
    tools = Tools({"solicitar_troca": 1, "solicitar_devolucao": 2})
    end = await talk(model, tools)
    assert tools.called == [("solicitar_devolucao", {})]
    assert answers(model)[0]["result"] == 2
    assert answers(model)[1]["error"] == (
        "Not taken: one action per message, and one was chosen already."
    )
    assert [(c.tool, c.status) for c in end.turn.tool_calls] == [
        ("solicitar_devolucao", "ok"), ("solicitar_troca", "refused"),
    ]  # fmt: skip


async def test_loop__another_action_in_a_later_round__is_not_taken():
    model = FakeModel(asks(("solicitar_troca", "")), asks(("solicitar_devolucao", "")), "ok")
    tools = Tools({"solicitar_troca": 1, "solicitar_devolucao": 2})
    await talk(model, tools)
    assert tools.called == [("solicitar_troca", {})]


async def test_loop__action_of_an_earlier_attempt__forbids_another_one():
    done = ToolCall(tool="solicitar_troca", server="s", arguments={}, status="unknown", action=True)
    model, tools = FakeModel(asks(("solicitar_troca", '{"a":1}')), "ok"), Tools()
    await talk(model, tools, turn=routed_turn(tool_calls=(done,)))
    assert tools.batches == []


async def test_loop__action_the_tool_turned_down__may_be_sent_again_with_other_arguments():
    model = FakeModel(asks(("solicitar_troca", "")), asks(("solicitar_troca", '{"m":"x"}')), "ok")
    tools = Tools({"solicitar_troca": failed("motivo", action=True)})
    await talk(model, tools)
    assert tools.called == [("solicitar_troca", {}), ("solicitar_troca", {"m": "x"})]


async def test_loop__same_action_again_after_success__is_answered_not_repeated():
    model = FakeModel(asks(("solicitar_troca", "")), asks(("solicitar_troca", "{}")), "ok")
    tools = Tools({"solicitar_troca": {"protocolo": "T1"}})
    end = await talk(model, tools)
    assert len(tools.called) == 1
    assert [a["result"] for a in answers(model)] == [{"protocolo": "T1"}] * 2
    assert len(end.turn.tool_calls) == 1


async def test_loop__action_that_needs_confirmation__is_never_sent():
    model, tools = FakeModel(asks(("cancelar", '{"confirmed": true}')), "ok"), Tools()
    await talk(model, tools)
    assert tools.batches == []
    assert answers(model)[0]["error"] == "Not taken: the customer has to confirm this first."


async def test_loop__same_read_twice_in_a_reply__is_sent_once_and_answered_twice():
    model = FakeModel(
        asks(("consultar_fatura", '{"a":1}'), ("consultar_fatura", '{ "a" : 1 }')), "k"
    )
    tools = Tools({"consultar_fatura": 7})
    await talk(model, tools)
    assert len(tools.called) == 1
    assert [a["result"] for a in answers(model)] == [7, 7]


async def test_loop__read_after_an_action__is_made_anew():
    model = FakeModel(
        asks(("consultar_fatura", "")), asks(("solicitar_troca", "")),
        asks(("consultar_fatura", "")), "ok",
    )  # fmt: skip
    tools = Tools({"consultar_fatura": 1, "solicitar_troca": 2})
    await talk(model, tools)
    assert [name for name, _ in tools.called] == [
        "consultar_fatura", "solicitar_troca", "consultar_fatura",
    ]  # fmt: skip


async def test_loop__same_call_failing_twice__ends_the_asking():
    same = asks(("consultar_fatura", '{"a":1}'))
    model = FakeModel(same, same, "desculpe")
    tools = Tools({"consultar_fatura": failed("field a: too small")})
    end = await talk(model, tools, rounds=9)
    assert len(tools.called) == 2
    assert model.requests[2].tools == ()
    assert end.reply.text == "desculpe"
    assert [d.code for d in end.turn.decisions] == ["TOOL_LOOP_STUCK"]
    assert answers(model)[0]["error"] == "field a: too small"


async def test_loop__different_failing_calls__go_on():
    model = FakeModel(asks(("consultar_fatura", '{"a":1}')), asks(("consultar_fatura", "")), "ok")
    tools = Tools({"consultar_fatura": failed()})
    end = await talk(model, tools)
    assert model.requests[2].tools != ()
    assert end.turn.decisions == ()


async def test_loop__rounds_used_up__is_asked_once_more_without_tools():
    replies = [asks(("consultar_fatura", f'{{"a":{n}}}')) for n in range(5)]
    model, tools = FakeModel(*replies), Tools({"consultar_fatura": 1})
    end = await talk(model, tools, rounds=2)
    assert len(tools.called) == 2
    assert [bool(r.tools) for r in model.requests] == [True, True, False]
    assert [d.code for d in end.turn.decisions] == ["TOOL_ROUNDS_USED"]
    assert end.reply.text == ""


async def test_loop__too_many_calls_at_once__the_rest_is_not_taken():
    reply = asks(*[("consultar_fatura", f'{{"a":{n}}}') for n in range(1000)])
    model, tools = FakeModel(reply, "ok"), Tools({"consultar_fatura": 1})
    end = await talk(model, tools)
    assert len(tools.called) == MAX_CALLS_PER_REPLY
    assert len(answers(model)) == len(end.turn.tool_calls) == MAX_CALLS_ANSWERED


async def test_loop__call_ids_missing_or_repeated__are_made_unique():
    calls = tuple(ModelToolCall(i, "consultar_fatura", f'{{"a":{n}}}')
                  for n, i in enumerate(["", "x", "x"]))  # fmt: skip
    model, tools = FakeModel(ModelReply(text="", tool_calls=calls), "ok"), Tools()
    await talk(model, tools)
    asked = model.requests[1].messages[2]
    ids = [call.id for call in asked.tool_calls]
    assert len(set(ids)) == 3
    assert all(ids)
    assert [m.tool_call_id for m in model.requests[1].messages[3:]] == ids


async def test_loop__text_beside_calls__is_no_answer():
    model = FakeModel(asks(("consultar_fatura", ""), text="Vou ver isso."), "R$ 10")
    end = await talk(model, Tools({"consultar_fatura": 1}))
    assert end.reply.text == "R$ 10"


async def test_loop__without_tools__calls_a_model_asks_for_are_ignored():
    model, tools = FakeModel(asks(("consultar_fatura", ""), text="oi")), Tools()
    end = await talk(model, tools, ())
    assert (end.reply.text, tools.batches, len(model.requests)) == ("oi", [], 1)


async def test_loop__filtered_reply_with_calls__runs_nothing():
    model, tools = FakeModel(asks(("solicitar_troca", ""), finish_reason="content_filter")), Tools()
    end = await talk(model, tools)
    assert tools.batches == []
    assert end.reply.finish_reason == "content_filter"


async def test_loop__model_that_fails_after_a_tool__keeps_what_was_collected():
    class Failing(FakeModel):
        async def complete(self, turn, request):
            if self.requests:
                raise ModelFailed("down", code="broken")
            return await super().complete(turn, request)

    end = await talk(Failing(asks(("consultar_fatura", ""))), Tools({"consultar_fatura": INVOICE}))
    assert end.failure.code == "broken"
    assert end.turn.tool_calls[0].result == INVOICE


# -- what the customer has to confirm --------------------------------------------------------------


class Checking(Tools):
    """Says of a call what the port would: ready but for the customer's yes, or not ready."""

    def __init__(self, results=None, *, reason="confirmation_required", **more):
        super().__init__(results)
        self.checked = []
        self.reason, self.more = reason, more

    async def check(self, turn, request):
        self.checked.append((request.tool, dict(request.arguments)))
        return ToolCall(
            request.tool, "s", request.arguments, "refused", ordinal=request.ordinal,
            metadata={"reason": self.reason, "contract": "c"}, **self.more,
        )  # fmt: skip


class Transactions:
    def __init__(self):
        self.calls = []

    async def propose(self, turn, call):
        self.calls.append(call)
        return turn.evolve(prepared=Draft("Confirma?", "billing", outcome="waiting_confirmation"))


async def test_confirmation__ready_call__is_proposed_and_the_model_is_asked_no_more():
    model = FakeModel(asks(("cancelar", '{"linha":"1"}'), text="Cancelado!"), "nunca")
    tools, transactions = Checking(), Transactions()
    end = await talk(model, tools, transactions=transactions)
    assert end.turn.prepared.text == "Confirma?"
    assert end.reply is None
    assert tools.batches == []
    assert [(c.tool, dict(c.arguments), c.metadata["contract"]) for c in transactions.calls] == [
        ("cancelar", {"linha": "1"}, "c")
    ]
    assert len(model.requests) == 1


async def test_confirmation__beside_reads_and_others__reads_run_and_one_is_proposed():
    model = FakeModel(
        asks(("cancelar", '{"a":1}'), ("consultar_fatura", ""), ("cancelar", '{"a":2}'))
    )
    tools, transactions = Checking({"consultar_fatura": 1}), Transactions()
    end = await talk(model, tools, transactions=transactions)
    assert tools.called == [("consultar_fatura", {})]
    assert [dict(c.arguments) for c in transactions.calls] == [{"a": 1}]
    assert [c.tool for c in end.turn.tool_calls] == ["consultar_fatura"]


async def test_confirmation__argument_missing__is_told_to_the_model_by_field():
    fields = ({"field": "motivo", "message": "required"},)
    model = FakeModel(asks(("cancelar", "{}")), "Qual o motivo?")
    tools = Checking(reason="missing_arguments", field_errors=fields, error="motivo: required")
    transactions = Transactions()
    end = await talk(model, tools, transactions=transactions)
    assert transactions.calls == []
    assert answers(model)[0]["fields"] == [dict(fields[0])]
    assert end.reply.text == "Qual o motivo?"
    assert [c.status for c in end.turn.tool_calls] == ["refused"]


async def test_confirmation__policy_lets_it_run__is_run():
    model = FakeModel(asks(("cancelar", "{}")), "ok")
    tools = Checking({"cancelar": 1}, reason="ready")
    await talk(model, tools, transactions=Transactions())
    assert tools.called == [("cancelar", {})]


async def test_confirmation__that_only_the_port_knows_of__is_proposed_too():
    refused = ToolCall("", "", {}, "refused", error="The customer has to confirm this first.")

    class Port(Checking):
        def _answer(self, request):
            return replace(refused, tool=request.tool, metadata={"reason": "confirmation_required"})

    model, transactions = FakeModel(asks(("solicitar_troca", '{"a":1}'))), Transactions()
    end = await talk(model, Port(), transactions=transactions)
    assert [c.tool for c in transactions.calls] == ["solicitar_troca"]
    assert end.turn.prepared is not None


async def test_confirmation__second_action_of_the_turn__is_not_proposed():
    done = ToolCall(tool="solicitar_troca", server="s", arguments={}, status="ok", action=True)
    model, transactions = FakeModel(asks(("cancelar", "")), "ok"), Transactions()
    await talk(model, Checking(), turn=routed_turn(tool_calls=(done,)), transactions=transactions)
    assert transactions.calls == []
    assert "one action per message" in answers(model)[0]["error"]


async def test_deadline__model_that_is_late__ends_as_a_timeout():
    class Late(FakeModel):
        async def complete(self, turn, request):
            await asyncio.sleep(5)

    end = await talk(Late(), Tools(), deadline=asyncio.get_running_loop().time() + 0.02)
    assert end.failure.code == "timeout"


async def test_deadline__reads_that_are_late__end_as_a_timeout_and_nothing_is_recorded():
    class Late(Tools):
        async def call(self, turn, requests):
            await asyncio.sleep(5)

    model = FakeModel(asks(("consultar_fatura", "")))
    end = await talk(model, Late(), deadline=asyncio.get_running_loop().time() + 0.02)
    assert (end.failure.code, end.turn.tool_calls) == ("timeout", ())


async def test_confirmation__while_the_customer_is_asked_about_another_action__is_not_proposed():
    asked = Transaction(id="t", status="AWAITING_CONFIRMATION", tool="x", agent="a")
    turn = routed_turn().evolve(dialogue=Dialogue(transaction=asked))
    model, transactions = FakeModel(asks(("cancelar", "")), "ok"), Transactions()
    end = await talk(model, Checking(), transactions=transactions, turn=turn)
    assert (end.turn.prepared, transactions.calls) == (None, [])
    assert end.turn.dialogue.transaction == asked
    assert "another action" in answers(model)[0]["error"]
